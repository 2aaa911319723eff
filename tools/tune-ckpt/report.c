#include "tools/tune-ckpt/report.h"

#include <stdio.h>
#include <string.h>

enum { INDENT = 18 };

void report_begin(struct report *r, bool json)
{
	*r = (struct report){ .json = json };
	r->w = (struct json_w){ .out = &r->b };
	if (json)
		json_w_obj(&r->w);
}

static void label(struct report *r, const char *name)
{
	buf_printf(&r->b, "%-*s", INDENT, name);
}

/* What comes from a file may hold terminal escapes.  Further lines stand below the first. */
static void put_clean(struct buf *b, const char *s)
{
	for (; *s; s++)
		if (*s == '\n')
			buf_printf(b, "\n%*s", INDENT, "");
		else
			buf_putc(b, (unsigned char)*s < 32 || *s == 127 ? '?' : *s);
}

void report_str(struct report *r, const char *name, const char *value)
{
	if (r->json) {
		json_w_name(&r->w, name);
		json_w_str(&r->w, value);
		return;
	}
	label(r, name);
	put_clean(&r->b, value);
	buf_putc(&r->b, '\n');
}

static void put_commas(struct buf *b, int64_t v)
{
	char s[32];
	int n = snprintf(s, sizeof(s), "%lld", (long long)v), first = s[0] == '-';

	for (int i = 0; i < n; i++) {
		if (i > first && (n - i) % 3 == 0)
			buf_putc(b, ',');
		buf_putc(b, s[i]);
	}
}

void report_int(struct report *r, const char *name, int64_t value)
{
	if (r->json) {
		json_w_name(&r->w, name);
		json_w_int(&r->w, value);
		return;
	}
	label(r, name);
	put_commas(&r->b, value);
	buf_putc(&r->b, '\n');
}

void report_num(struct report *r, const char *name, double value)
{
	if (r->json) {
		json_w_name(&r->w, name);
		json_w_num(&r->w, value);
		return;
	}
	label(r, name);
	buf_printf(&r->b, "%.10g\n", value);
}

void report_strs(struct report *r, const char *name, const char *const *values, size_t n)
{
	if (r->json) {
		json_w_name(&r->w, name);
		json_w_arr(&r->w);
		for (size_t i = 0; i < n; i++)
			json_w_str(&r->w, values[i]);
		json_w_end(&r->w);
		return;
	}
	label(r, name);
	for (size_t i = 0; i < n; i++) {
		buf_puts(&r->b, i ? " " : "");
		put_clean(&r->b, values[i]);
	}
	buf_putc(&r->b, '\n');
}

void report_ids(struct report *r, const char *name, const uint32_t *ids, size_t n)
{
	if (r->json) {
		json_w_name(&r->w, name);
		json_w_arr(&r->w);
		for (size_t i = 0; i < n; i++)
			json_w_int(&r->w, ids[i]);
		json_w_end(&r->w);
		return;
	}
	label(r, name);
	for (size_t i = 0; i < n; i++)
		buf_printf(&r->b, "%s%u", i ? " " : "", ids[i]);
	buf_putc(&r->b, '\n');
}

void report_end(struct report *r)
{
	if (r->json) {
		json_w_end(&r->w);
		buf_putc(&r->b, '\n');
	}
	if (!r->b.oom)
		fwrite(r->b.p, 1, r->b.n, stdout);   /* tool_exit looks at ferror */
	buf_release(&r->b);
}
