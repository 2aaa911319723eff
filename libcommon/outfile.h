#ifndef TUNE_OUTFILE_H
#define TUNE_OUTFILE_H
/*
 * outfile, outdir: a file or a folder that appears under its name complete, or not at all.
 *
 * open writes PATH.tmp.PID beside PATH (mode 0666 less the umask); commit fsyncs, renames
 * and fsyncs the parent folder; abort removes what was written.  One of the two must be
 * called; abort is safe after a failed open, after commit and after abort.  What is open
 * when a signal kills the program is removed by outfile_on_signal() (async-signal-safe; the
 * tools' signal handler calls it).
 *
 * An existing PATH is refused with EX_CANTCREAT unless force; with it the old one goes only
 * when the new one is complete.  PATH "-" is standard output (no temporary file, commit
 * flushes); a device such as /dev/full is written in place.
 */
#include <stdbool.h>
#include <stdio.h>

#include "libcommon/err.h"

struct outfile {
	char *path, *tmp;   /* owned; tmp NULL for stdout and devices */
	FILE *fp;           /* write here */
	int slot;           /* in the table of what a signal must remove */
};
int outfile_open(struct outfile *f, const char *path, bool force, struct err *err);
/*
 * EX_USAGE if out (a path, NULL or "-") is one of the inputs: its data would be replaced by what is
 * made of it.
 */
int refuse_input(const char *out, char *const *inputs, size_t n, struct err *err);
int outfile_commit(struct outfile *f, struct err *err);
void outfile_abort(struct outfile *f);

struct outdir {
	char *path, *tmp;   /* owned; write files under tmp */
	int slot;
};
int outdir_open(struct outdir *d, const char *path, bool force, struct err *err);
/* fsyncs every file below tmp, then renames.  With force an old PATH is exchanged, then removed. */
int outdir_commit(struct outdir *d, struct err *err);
void outdir_abort(struct outdir *d);
void outfile_on_signal(void);
/* The table of what a signal must remove; name stays valid until slot_give.  -1: it is full. */
int slot_take(const char *name);
void slot_give(int *slot);

/* Remove a file or folder with all that is in it (never follows links); absent is fine. */
int remove_tree(const char *path, struct err *err);
/* fsync a folder and all that is in it */
int sync_tree(const char *dir, struct err *err);
int sync_parent(const char *path, struct err *err);          /* fsync the folder that holds path */
int make_dirs(const char *path, struct err *err);            /* mkdir -p */
/* Point the relative link `link` at `target`, by rename, so that it always resolves. */
int replace_link(const char *link, const char *target, struct err *err);
#endif
