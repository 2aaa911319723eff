#include "libcommon/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *buf_room(struct buf *b, size_t n)
{
	if (b->oom)
		return NULL;
	if (b->cap - b->n <= n) {   /* one byte stays for the NUL */
		size_t want = b->n + n + 1;
		size_t cap = want > b->cap + b->cap / 2 ? want : b->cap + b->cap / 2;
		char *p;

		if (want < n || !(p = realloc(b->p, cap < 64 ? 64 : cap))) {
			b->oom = true;
			return NULL;
		}
		b->p = p;
		b->cap = cap < 64 ? 64 : cap;
	}
	return b->p + b->n;
}

void buf_put(struct buf *b, const void *src, size_t n)
{
	char *to = buf_room(b, n);

	if (!to)
		return;
	if (n)
		memcpy(to, src, n);
	b->n += n;
	b->p[b->n] = 0;
}

void buf_puts(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void buf_putc(struct buf *b, int c)
{
	char ch = (char)c;

	buf_put(b, &ch, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	int n;
	char *to;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	to = n < 0 ? NULL : buf_room(b, (size_t)n);
	if (to) {
		vsnprintf(to, (size_t)n + 1, fmt, again);
		b->n += (size_t)n;
	} else {
		b->oom = true;
	}
	va_end(again);
}

void buf_clear(struct buf *b)
{
	b->n = 0;
	if (b->p)
		b->p[0] = 0;
}

void buf_release(struct buf *b)
{
	free(b->p);
	*b = (struct buf){0};
}

int buf_ok(const struct buf *b, struct err *err)
{
	return b->oom ? err_oom(err, b->cap) : 0;
}

char *buf_detach(struct buf *b)
{
	char *p;

	if (!b->p && !b->oom)
		buf_put(b, "", 0);
	p = b->oom ? NULL : b->p;
	if (b->oom)
		free(b->p);
	*b = (struct buf){0};
	return p;
}

int grow(void *p_of_array, size_t *cap, size_t need, size_t size, struct err *err)
{
	size_t want = *cap + *cap / 2 > need ? *cap + *cap / 2 : need;
	void *p;

	if (need <= *cap)
		return 0;
	if (want < 8)
		want = 8;
	memcpy(&p, p_of_array, sizeof(p));
	if (want > SIZE_MAX / size || !(p = realloc(p, want * size)))
		return err_oom(err, (unsigned long long)want * size);
	memcpy(p_of_array, &p, sizeof(p));
	*cap = want;
	return 0;
}

void *mem_zalloc(size_t n, size_t size, struct err *err)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		err_oom(err, (unsigned long long)n * size);
	return p;
}

char *mem_strndup(const char *s, size_t n, struct err *err)
{
	char *p = mem_zalloc(n + 1, 1, err);

	if (p && n)
		memcpy(p, s, n);
	return p;
}

char *mem_strdup(const char *s, struct err *err)
{
	return mem_strndup(s, strlen(s), err);
}
