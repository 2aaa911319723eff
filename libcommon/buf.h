#ifndef TUNE_BUF_H
#define TUNE_BUF_H
/*
 * buf: a growing byte string, and grow() for arrays.
 *
 * Writing to a buf never fails at the call: a failed allocation sets oom, later writes are
 * dropped, and buf_ok() reports it once, where the result is used.  p is always
 * NUL-terminated after a write (the NUL is not counted in n).  {0} is an empty buf.
 */
#include <stdbool.h>
#include <stddef.h>

#include "libcommon/err.h"

struct buf {
	char *p;      /* owned; NULL until the first write */
	size_t n, cap;
	bool oom;
};

void buf_put(struct buf *b, const void *src, size_t n);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, int c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Make room for n more bytes and return where they go (NULL if oom); the caller adds to b->n. */
char *buf_room(struct buf *b, size_t n);
void buf_clear(struct buf *b);     /* n = 0, keeps the memory */
void buf_release(struct buf *b);
int buf_ok(const struct buf *b, struct err *err);
/* Hand the string over to the caller, who frees it; b is empty after. NULL if oom. */
char *buf_detach(struct buf *b);

/*
 * grow: make room for `need` items of `size` bytes in the array *p of capacity *cap.
 * New items are not cleared.  Returns -1 with EX_OSERR; *p stays valid.
 *   if (grow(&v->items, &v->cap, v->n + 1, sizeof(*v->items), err) < 0) return -1;
 */
int grow(void *p_of_array, size_t *cap, size_t need, size_t size, struct err *err);
/* calloc and strdup with an error. */
void *mem_zalloc(size_t n, size_t size, struct err *err);
char *mem_strdup(const char *s, struct err *err);
char *mem_strndup(const char *s, size_t n, struct err *err);
#endif
