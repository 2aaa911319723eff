#ifndef TUNE_CONFIG_INT_H
#define TUNE_CONFIG_INT_H
/*
 * config_int: what the files of the config room share and nobody else includes.
 *
 *   config_yaml.c   YAML text -> tree of nodes, with limits
 *   config_type.c   a node and a schema row -> a value
 *   config.c        the values, and what is read and set
 *   config_print.c  values -> YAML, shell, JSON, hash
 *   hints.c         an unknown key -> what its writer may have meant
 *
 * Everything lies in the config's arena.
 */
#include <stdarg.h>

#include "libcommon/arena.h"
#include "libcommon/config.h"

enum {
	CFG_FILE_MAX = 1 << 20,   /* bytes of a file */
	CFG_DEPTH_MAX = 16,       /* lists and maps inside each other */
	CFG_NODES_MAX = 65536,    /* scalars, lists and maps of a file */
	CFG_ITEMS_MAX = 4096,     /* keys of one map: they are compared with each other */
	CFG_KEY_MAX = 200,        /* bytes of a key */
	CFG_SHOWN = 80            /* bytes of a user's text that a message repeats */
};

/*
 * Where text comes from, for messages: "sft.yaml" (then LINE:COL follow), "optim.lr=1e-4" or "-m".
 */
struct cfg_src {
	const char *name;
	const char *origin;   /* of values that are not from a file: "command line", "-m", "default" */
	const char *dir;      /* relative paths are relative to this; NULL = leave them */
	bool is_file;
	struct err *err;      /* errors are added to it, a line each */
};

enum cfg_kind { CFG_NULL, CFG_SCALAR, CFG_LIST, CFG_MAPPING };
struct cfg_node {
	enum cfg_kind kind;
	bool quoted;                     /* SCALAR: so "null" is a string */
	const char *text;                /* SCALAR and keys */
	size_t line, col;                /* from 1 */
	size_t n;                        /* LIST, MAPPING: children */
	struct cfg_node *child, *next;   /* LIST: items; MAPPING: keys, each with its value */
	struct cfg_node *value;          /* of a key */
};

struct cfg_value {
	bool has, set;             /* has: not null; set: by a file or the command line */
	const char *text;          /* scalars, as written (paths: resolved) */
	int64_t i;
	double num;
	size_t n;
	const char **items, **names;
	double *nums;              /* of items: NAN where one is no number */
	const char *origin;
};

/* One key of a free section ("x-a.k"), or the section itself where it is no map ("x-a"). */
struct cfg_free_key {
	const char *path, *origin;
	const struct cfg_node *node;
	struct cfg_free_key *next;
};

struct config {
	struct arena arena;
	struct cfg_value *values;      /* by row */
	struct cfg_free_key *free_keys;
};

/* Add "NAME:LINE:COL: message" (or "NAME: message") to src->err; EX_CONFIG; returns -1. */
int cfg_src_error(const struct cfg_src *src, const struct cfg_node *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Read a file's text; errors are added to src->err. */
void cfg_read_text(struct config *c, const struct cfg_src *src, const char *text, size_t n);
/*
 * *root NULL if there is no value at all.  Errors are in src->err; the tree is whole unless -1 is
 * returned.
 */
int cfg_yaml_tree(
	struct arena *a, const struct cfg_src *src, const char *text, size_t n, struct cfg_node **root);
bool cfg_null_word(const char *s);                /* "", ~, null: not set, where not quoted */
bool cfg_utf8_valid(const char *s);
/* Type node by row.  check: ranges and choices too (defaults are held to them by the unit test). */
int cfg_type_node(struct arena *a, const struct cfg_src *src, const struct cfg_row *row,
	const struct cfg_node *node, bool check, struct cfg_value *out);
bool cfg_parse_num(const char *s, double *out);   /* a finite decimal number, the whole of s */
bool cfg_is_list(enum cfg_type t);                /* STRS, PATHS, NUMS */
/* The '|'-separated word at *p, advanced past it; false at the end. */
bool cfg_next_choice(const char **p, char word[64]);
bool cfg_has_choice(const char *choices, const char *s);   /* choices may be NULL */
/* " (did you mean 'optim.lr'?)" and the like; "" if nothing is near. */
void cfg_hint(const char *path, char *out, size_t n);
bool cfg_is_foreign(const char *name);            /* a name of another program that has a hint */
bool cfg_known_section(const char *name, size_t n);
const struct cfg_free_key *cfg_find_free(const struct config *c, const char *path);
#endif
