#ifndef TUNE_TUNE_H
#define TUNE_TUNE_H
/*
 * tune: the dispatcher.  One file a verb; each parses its own options (argv[0] is the verb) and
 * returns the exit status. place.c knows where the tools, recipes, configs and pages lie.
 */
#include <stdbool.h>
#include <stddef.h>

#include "libcommon/err.h"

int verb_ls(int argc, char **argv);
int verb_cp(int argc, char **argv);
int verb_run(int argc, char **argv);
int verb_validate(int argc, char **argv);
int verb_help(int argc, char **argv);
int verb_version(int argc, char **argv);
/*
 * Become tune-NAME (argv[0] is NAME), from this program's folder or PATH.  Returns 126 or 127 with
 * the message said.
 */
int run_tool(int argc, char **argv);
extern const char *const tune_verbs[];   /* NULL-terminated */

/* The folder of this program, without a trailing slash; "" if it can't be told. */
const char *place_bin(void);
/*
 * The folder that holds recipes/ and configs/: $TUNE_DATADIR, the source tree around build/, or
 * where make install put it.
 */
const char *place_data(struct err *err);
/* The folder that holds man/, or man1/ and man5/: NULL if there is none. */
const char *place_man(bool *sections);

/* What tune ls lists, sorted: recipes, configs, the models that can be made from scratch. */
enum item_kind { ITEM_RECIPE = 1, ITEM_CONFIG = 2, ITEM_MODEL = 4, ITEM_ALL = 7 };
struct item {
	/* "sft.sh", or "1B" of a model; where it lies; its first comment line, or a model's sizes */
	char *name, *path, *about;
	enum item_kind kind;
};
const char *item_folder(const struct item *it);   /* "recipes", "configs", "models" */
struct items {
	struct item *v;
	size_t n, cap;
};
int items_read(struct items *l, struct err *err);
void items_release(struct items *l);
/* By "sft", "sft.sh" or "recipes/sft.sh"; NULL if there is none. */
const struct item *items_find(const struct items *l, const char *name, unsigned kinds);
/* The nearest name, with or without its suffix, or NULL. */
const char *items_nearest(const struct items *l, const char *name, unsigned kinds);
#endif
