#ifndef TUNE_FILE_H
#define TUNE_FILE_H
/* file: whole files in, and names of paths. */
#include <stdbool.h>
#include <stddef.h>

#include "libcommon/buf.h"

/* Read all of path into *out (appended), at most `limit` bytes, else EX_DATAERR. */
int file_read(const char *path, size_t limit, struct buf *out, struct err *err);

/* Map path read-only.  data is NULL when size is 0.  Not for pipes: EX_NOINPUT says so. */
struct mapped { const unsigned char *data; size_t size; };
int file_map(struct mapped *m, const char *path, struct err *err);
void file_unmap(struct mapped *m);
/* Give back the memory of a part of a map that was read; if touched it is read again. */
void file_forget(const void *part, size_t n);

/*
 * An input opened once, to choose its reader by its first bytes; the reader takes it over with
 * them (a pipe can't be read twice).  "-" is standard input.
 */
struct peeked { const char *path; int fd; unsigned char head[8]; size_t n; };
int file_peek(struct peeked *p, const char *path, struct err *err);

bool file_exists(const char *path);
bool is_dir(const char *path);
bool is_file(const char *path);
bool dir_has(const char *dir, const char *name);   /* a regular file of that name */
/*
 * "dir/name" (name alone if it is absolute or dir is "" or "."); caller frees; NULL if out of
 * memory.
 */
char *path_join(const char *dir, const char *name);
char *path_dir(const char *path);              /* caller frees; "." if there is no slash */
const char *path_base(const char *path);       /* points into path */
bool has_suffix(const char *s, const char *suffix);
/*
 * A name that a file of ours may point at: one path component, not "", "." or "..", no control
 * bytes.
 */
bool safe_name(const char *s, size_t n);
#endif
