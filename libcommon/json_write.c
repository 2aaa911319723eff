#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/json.h"
#include "libcommon/utf8.h"

static void newline(struct json_w *w)
{
	int i;

	if (!w->indent)
		return;
	buf_putc(w->out, '\n');
	for (i = 0; i < w->indent * w->depth; i++)
		buf_putc(w->out, ' ');
}

/* What stands between this value (or name) and the one before it. */
static void before(struct json_w *w)
{
	if (w->named) {
		w->named = false;
		return;
	}
	if (w->after)
		buf_putc(w->out, ',');
	if (w->depth)
		newline(w);
}

static void begin(struct json_w *w, char kind)
{
	assert(w->depth < (int)sizeof(w->kind));
	before(w);
	buf_putc(w->out, kind);
	w->kind[w->depth++] = kind;
	w->after = false;
}

void json_w_obj(struct json_w *w)
{
	begin(w, '{');
}

void json_w_arr(struct json_w *w)
{
	begin(w, '[');
}

void json_w_end(struct json_w *w)
{
	assert(w->depth > 0 && !w->named);
	w->depth--;
	if (w->after)
		newline(w);
	buf_putc(w->out, w->kind[w->depth] == '{' ? '}' : ']');
	w->after = true;
}

/* Runs of bytes that may stand as they are go out together. */
static void quoted(struct buf *b, const char *s, size_t n)
{
	static const char names[] = "\bb\ff\nn\rr\tt\"\"\\\\";
	const char *end = s + n, *run = s;

	buf_putc(b, '"');
	while (s < end) {
		size_t len = utf8_len(s, end);
		const char *name;

		if (len > 1 || (len && (unsigned char)*s >= 0x20 && *s != '"' && *s != '\\')) {
			s += len;
			continue;
		}
		buf_put(b, run, (size_t)(s - run));
		for (name = names; *name && *name != *s; name += 2)
			;
		if (!len)
			buf_puts(b, "\xef\xbf\xbd");
		else if (*s && *name)
			buf_printf(b, "\\%c", name[1]);
		else
			buf_printf(b, "\\u%04x", (unsigned)*s);
		run = ++s;
	}
	buf_put(b, run, (size_t)(s - run));
	buf_putc(b, '"');
}

void json_w_namen(struct json_w *w, const char *name, size_t n)
{
	assert(w->depth > 0 && w->kind[w->depth - 1] == '{' && !w->named);
	before(w);
	quoted(w->out, name, n);
	buf_puts(w->out, w->indent ? ": " : ":");
	w->named = true;
}

void json_w_name(struct json_w *w, const char *name)
{
	json_w_namen(w, name, strlen(name));
}

void json_w_strn(struct json_w *w, const char *s, size_t n)
{
	before(w);
	quoted(w->out, s, n);
	w->after = true;
}

void json_w_str(struct json_w *w, const char *s)
{
	json_w_strn(w, s, strlen(s));
}

void json_w_int(struct json_w *w, int64_t v)
{
	before(w);
	buf_printf(w->out, "%" PRId64, v);
	w->after = true;
}

void json_w_num(struct json_w *w, double v)
{
	char s[40], *comma;
	int digits;

	if (!isfinite(v)) {
		json_w_null(w);
		return;
	}
	before(w);
	for (digits = 15; digits <= 17; digits++) {
		snprintf(s, sizeof(s), "%.*g", digits, v);
		if (strtod(s, NULL) == v)
			break;
	}
	comma = strchr(s, ',');   /* of the user's locale */
	if (comma)
		*comma = '.';
	buf_puts(w->out, s);
	if (!strpbrk(s, ".e"))
		buf_puts(w->out, ".0");
	w->after = true;
}

void json_w_bool(struct json_w *w, bool v)
{
	before(w);
	buf_puts(w->out, v ? "true" : "false");
	w->after = true;
}

void json_w_null(struct json_w *w)
{
	before(w);
	buf_puts(w->out, "null");
	w->after = true;
}

/* Recursion is as deep as the value: JSON_DEPTH_MAX. */
void json_w_value(struct json_w *w, const struct json *v)
{
	uint32_t i;

	switch (v->type) {
	case JSON_NULL:
		json_w_null(w);
		break;
	case JSON_BOOL:
		json_w_bool(w, v->b);
		break;
	case JSON_INT:
		json_w_int(w, v->i);
		break;
	case JSON_NUM:
		json_w_num(w, v->d);
		break;
	case JSON_STR:
		json_w_strn(w, v->s, v->n);
		break;
	case JSON_ARR:
		json_w_arr(w);
		for (i = 0; i < v->n; i++)
			json_w_value(w, &v->items[i]);
		json_w_end(w);
		break;
	case JSON_OBJ:
		json_w_obj(w);
		for (i = 0; i < v->n; i++) {
			json_w_namen(w, v->members[i].name.s, v->members[i].name.n);
			json_w_value(w, &v->members[i].value);
		}
		json_w_end(w);
		break;
	}
}
