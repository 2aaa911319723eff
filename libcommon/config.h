#ifndef TUNE_CONFIG_H
#define TUNE_CONFIG_H
/*
 * config: one schema, read from YAML files and key=value operands (tune-config(5)).
 *
 * The schema is a table of rows, generated at build time from every *.rows file of the tree
 * (libcommon/schema/ for the shared sections; a loss, optimizer or schedule brings its own rows
 * beside its .c file).  Every tool checks the whole file against the whole schema.  All errors of a
 * file are reported at once, one a line, "FILE:LINE:COL: unknown key 'lora.ranl' (did you mean
 * 'lora.rank'?)", EX_CONFIG; names that other programs use get a hint that names ours.  Errors on
 * the command line say "KEY=VALUE: ...", also EX_CONFIG.  Sections x-... are free.
 *
 * A value's text is YAML flow syntax; the schema types it: 5e-5, 5.0e-5 and .00005 are equal, only
 * true and false are booleans, a string key takes any scalar as it is written.  A later source
 * replaces the whole value (also of lists and maps); null, ~ and an empty path or choice mean "not
 * set", so the default holds again.  On the command line a string or path is taken as it is typed
 * unless it begins with a quote (a list also unless with '[').
 *
 * Files are at most 1 MiB, 16 levels and 65536 values; tags, anchors, aliases and second documents
 * are refused.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "libcommon/buf.h"
#include "libcommon/hash.h"

enum cfg_type {
	CFG_STR, CFG_PATH, CFG_INT, CFG_NUM, CFG_BOOL, CFG_ENUM,   /* scalars; ENUM: choices "a|b|c" */
	/* bytes: 512M, 2G (powers of 1024), 0 = automatic */
	CFG_SIZE,
	/* lists; a single scalar is a list of one */
	CFG_STRS, CFG_PATHS, CFG_NUMS,
	CFG_MAP,                                                   /* name: scalar */
	/* a number, or one of choices (model.init_std: fan_in) */
	CFG_NUM_OR_ENUM
};

struct cfg_row {
	const char *path;      /* SECTION.KEY: "optim.lr" */
	enum cfg_type type;
	const char *def;       /* default as YAML flow text; "" = not set */
	/* inclusive range of numbers (and of each item of NUMS); ignored elsewhere */
	double min, max;
	/*
	 * ENUM and NUM_OR_ENUM; a trailing "|*" also allows other strings; PATH: words that are no
	 * paths
	 */
	const char *choices;
	const char *help;      /* one line, lower case, no stop */
};
extern const struct cfg_row cfg_rows[];
extern const size_t cfg_nrows;
const struct cfg_row *cfg_find_row(const char *path);      /* NULL if there is none */

struct config;
int cfg_new(struct config **c, struct err *err);
void cfg_free(struct config *c);
/* Read a YAML file ("-" = stdin).  Relative paths in it become relative to its folder.  err may
 * hold the lines of earlier errors (here and in cfg_set_arg, cfg_set_option): lines are added, so
 * that all that is wrong is said at once. */
int cfg_read_file(struct config *c, const char *path, struct err *err);
/* "optim.lr=1e-4" from the command line. */
int cfg_set_arg(struct config *c, const char *key_value, struct err *err);
/* A short option that is a key: origin says the option ("-m"). */
int cfg_set_option(
	struct config *c, const char *path, const char *value, const char *option, struct err *err);
/* True if the part before the first '=' of arg is a known key or x-NAME.KEY; also if it can only be
 * a misspelt one: dotted, a section's or another program's name, and no file is called arg.  (A
 * file of a key's name is given as ./a=b.) */
bool cfg_is_setting(const char *arg);
/*
 * Range and choice are checked when a value is set; cross-checks of several values are each tool's.
 */

/*
 * Values, by path; asserts that path is in the schema and of that type.  Defaults apply.  Pointers
 * live as long as c.
 */
/* by a file or the command line */
bool cfg_is_set(const struct config *c, const char *path);
/* STR, PATH, ENUM: "" if not set */
const char *cfg_str(const struct config *c, const char *path);
int64_t cfg_int(const struct config *c, const char *path);             /* INT, SIZE */
/* NUM, INT, SIZE; NAN if not set, and for a NUM_OR_ENUM that is a word (cfg_str gives it) */
double cfg_num(const struct config *c, const char *path);
bool cfg_bool(const struct config *c, const char *path);
size_t cfg_count(const struct config *c, const char *path);            /* items of a list or map */
/* list item, or map value, as text */
const char *cfg_item(const struct config *c, const char *path, size_t i);
const char *cfg_item_name(const struct config *c, const char *path, size_t i); /* map: its name */
/* NUMS, MAP; NAN if a map's value is no number */
double cfg_item_num(const struct config *c, const char *path, size_t i);
/* "sft.yaml:12:3", "command line", "-m", "default": for messages about a value. */
const char *cfg_origin(const struct config *c, const char *path);
/* Adds a line, EX_CONFIG: "ORIGIN: PATH: message" ("PATH: message" about a default). */
int cfg_error(const struct config *c, struct err *err, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* All keys with values as YAML that reads back equal, each with its origin as a comment, x-
 * sections carried along.  Paths are printed absolute, so that it can be saved in any folder.  Read
 * back, a default counts as set: compare values, not cfg_is_set. */
void cfg_print(const struct config *c, struct buf *out);
/* One value bare, for shells: lists one item a line, maps name=value lines.  Keys of x- sections
 * too. -1 with EX_USAGE and the nearest key if unknown. */
int cfg_print_key(const struct config *c, const char *path, struct buf *out, struct err *err);
/*
 * {"optim.lr": 1e-4, ...}: every value but those whose rows the caller names as free
 * (NULL-terminated list of paths or "section.").
 */
void cfg_to_json(const struct config *c, const char *const *leave_out, struct buf *out);
/* SHA-256 of cfg_to_json(c, leave_out). */
int cfg_hash(
	const struct config *c, const char *const *leave_out, char hex[SHA256_HEX], struct err *err);

/* "512M", "2G", "0": bytes, in powers of 1024; for options that are no config key. */
bool cfg_parse_size(const char *s, int64_t *bytes);

/*
 * Nearest of names (Damerau-Levenshtein, at most a third of the length away), or NULL; for "did you
 * mean".
 */
const char *nearest_name(const char *name, const char *const *names, size_t n);
#endif
