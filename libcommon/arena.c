#include "libcommon/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
	struct arena_block *next;
	size_t cap;
	alignas(16) char data[];
};

enum { BLOCK_MIN = 64 << 10 };

void *arena_alloc(struct arena *a, size_t n)
{
	struct arena_block *b = a->head;
	size_t need = (n + 15) & ~(size_t)15;
	void *p;

	if (need < n)
		return NULL;
	if (!b || b->cap - a->used < need) {
		size_t cap = b && b->cap * 2 > BLOCK_MIN ? b->cap * 2 : BLOCK_MIN;

		if (cap > (size_t)64 << 20)
			cap = (size_t)64 << 20;
		if (cap < need)
			cap = need;
		if (cap > SIZE_MAX - sizeof(*b) || !(b = malloc(sizeof(*b) + cap)))
			return NULL;
		b->cap = cap;
		b->next = a->head;
		a->head = b;
		a->used = 0;
	}
	p = b->data + a->used;
	a->used += need;
	a->total += need;
	return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *p = arena_alloc(a, n + 1);

	if (p) {
		if (n)
			memcpy(p, s, n);
		p[n] = 0;
	}
	return p;
}

void arena_reset(struct arena *a)
{
	struct arena_block *keep = a->head, *b, *next;

	for (b = a->head; b; b = b->next)
		if (b->cap > keep->cap)
			keep = b;
	for (b = a->head; b; b = next) {
		next = b->next;
		if (b != keep)
			free(b);
	}
	if (keep)
		keep->next = NULL;
	a->head = keep;
	a->used = a->total = 0;
}

void arena_release(struct arena *a)
{
	struct arena_block *b, *next;

	for (b = a->head; b; b = next) {
		next = b->next;
		free(b);
	}
	*a = (struct arena){0};
}
