#ifndef TUNE_ARENA_H
#define TUNE_ARENA_H
/*
 * arena: many small allocations that are given back together.
 *
 * arena_reset keeps the largest block, so that a reader of a million JSON Lines allocates
 * only for its longest line.  Everything returned is 16-byte aligned and not cleared.
 */
#include <stddef.h>

struct arena_block;
struct arena {
	struct arena_block *head;
	size_t used;    /* bytes used of head */
	size_t total;   /* bytes handed out since the last reset */
};

void *arena_alloc(struct arena *a, size_t n);             /* NULL if out of memory */
char *arena_strndup(struct arena *a, const char *s, size_t n);
void arena_reset(struct arena *a);
void arena_release(struct arena *a);
#endif
