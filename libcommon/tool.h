#ifndef TUNE_TOOL_H
#define TUNE_TOOL_H
/*
 * tool: what every program does the same way: options, config, messages, the end.
 *
 * This is the one part of libcommon that may print and exit: it is main()'s own wiring.
 * One table of struct opt rows gives getopt, --help, --list-options (for the completion file) and
 * the check that the man page names each option.  Options that all tools have are added here: -h -V
 * -q -v --json --progress=W --color=W, and, with a config, -c FILE and --print-config[=KEY].
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcommon/config.h"
#include "libcommon/err.h"
#include "libcommon/progress.h"

enum opt_type {
	OPT_FLAG,      /* value: bool * */
	OPT_STR,       /* value: const char ** */
	OPT_U64,       /* value: uint64_t * */
	OPT_NUM,       /* value: double * */
	OPT_OPT_U64,   /* --preview[=N]: value: uint64_t *; dflt where it stands without =N */
	OPT_KEY        /* sets the config key `key` */
};

struct opt {
	char short_name;          /* 0 = none */
	const char *long_name;    /* NULL ends the table */
	const char *arg;          /* NULL = takes none; "[N]" style for OPT_OPT_U64 */
	enum opt_type type;
	void *value;
	const char *help;
	uint64_t dflt;            /* OPT_OPT_U64: the value when the option stands without =N */
	const char *key;          /* OPT_KEY: "model.path" */
};

struct tool {
	const char *name, *synopsis, *summary;
	const struct opt *opts;
	bool uses_config;         /* has -c, key=value, --print-config */
	bool survives_sigpipe;    /* tune-train: SIGPIPE ignored; else the default action */
	/* options end at the first operand: the rest belongs to another program */
	bool options_first;
	/* NULL, or a NULL-terminated list: the first operand must be one of them */
	const char *const *verbs;
	/* filled by tool_init */
	const char *verb;
	int argc;                 /* operands that are left (settings and the verb taken out) */
	char **argv;
	struct config *cfg;
	bool quiet, verbose, json;
	enum when progress, color;
};

/*
 * Opens fds 0-2, sets SIGPIPE and the handlers that remove temporary files, parses options, reads
 * the config.  --help, --version,
 * --list-options and --print-config end the program here (0); errors end it with a message (64 or
 * 78).
 */
void tool_init(struct tool *t, int argc, char **argv);
/*
 * Reports err if rc < 0 (every line with the tool's name), flushes and closes stdout (ENOSPC shows
 * up only here: 74), frees cfg; returns the exit status: err->code, or rc if >= 0.
 */
int tool_exit(struct tool *t, int rc, struct err *err);
/* "name: message" on stderr unless quiet; the progress line is the caller's to clear. */
void tool_say(const struct tool *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for warnings: "name: warning: message"; quiet does not silence them. */
void tool_warn(const struct tool *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* EX_USAGE if stdout (or path "-") would put binary data on a terminal. */
int refuse_terminal(const char *path, struct err *err);
#endif
