#include "libcommon/json.h"

#include <limits.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "libcommon/utf8.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	"find_special takes the lowest byte of a word for the first");

/*
 * One pass, no recursion.  Values go onto doc->stack; when an array or object closes, its children
 * move from there into the arena.  Strings go into one piece of arena as long as the text: decoded,
 * with a NUL for the closing quote, they never need more.
 */
struct frame { size_t base; bool object; };
struct parser {
	const char *text, *p, *end;
	char *str;                   /* where the next string goes */
	struct json_doc *doc;
	size_t n;                    /* of doc->stack */
	struct frame frames[JSON_DEPTH_MAX];
	int depth;
	const char *name;
	uint64_t line0;
	struct err *err;
};

static int fail_at(const struct parser *s, const char *at, const char *what)
{
	uint64_t line = s->line0, col = 1;
	const char *q;

	for (q = s->text; q < at; q++) {
		if (*q == '\n') {
			line++;
			col = 1;
		} else if ((*q & 0xc0) != 0x80) {
			col++;
		}
	}
	return err_set(s->err, EX_DATAERR, "%s:%llu:%llu: %s", s->name, (unsigned long long)line,
		(unsigned long long)col, what);
}

static inline void skip_space(struct parser *s)
{
	const char *p = s->p, *end = s->end;

	while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
		p++;
	s->p = p;
}

static inline int push(struct parser *s, struct json v)
{
	struct json_doc *d = s->doc;

	if (s->n == d->stack_cap &&
		grow(&d->stack, &d->stack_cap, s->n + 1, sizeof(*d->stack), s->err) < 0)
		return -1;
	d->stack[s->n++] = v;
	return 0;
}

/* ---- strings ---- */

/*
 * High bits of the bytes that are '"', '\\', below 0x20 or above 0x7f; exact up to the lowest one
 * set.
 */
static inline uint64_t find_special(uint64_t w)
{
	const uint64_t ones = 0x0101010101010101, high = 0x8080808080808080;
	uint64_t quote = w ^ ones * '"', slash = w ^ ones * '\\';

	return (w | (w - ones * 0x20) | (quote - ones) | (slash - ones)) & high;
}

static int hex4(const char *p, const char *end, uint32_t *v)
{
	int i;

	if (end - p < 4)
		return -1;
	for (*v = 0, i = 0; i < 4; i++) {
		int c = p[i], low = c | 0x20;

		if (c >= '0' && c <= '9')
			*v = *v << 4 | (uint32_t)(c - '0');
		else if (low >= 'a' && low <= 'f')
			*v = *v << 4 | (uint32_t)(low - 'a' + 10);
		else
			return -1;
	}
	return 0;
}

/* s->p is behind "\u".  A surrogate without its partner becomes U+FFFD. */
static int unicode_escape(struct parser *s)
{
	uint32_t c, low;

	if (hex4(s->p, s->end, &c) < 0)
		return fail_at(s, s->p, "\\u needs four hexadecimal digits");
	s->p += 4;
	if (c >= 0xd800 && c < 0xe000) {
		if (c < 0xdc00 && s->end - s->p >= 6 && s->p[0] == '\\' && s->p[1] == 'u' &&
		    hex4(s->p + 2, s->end, &low) == 0 && low >= 0xdc00 && low < 0xe000) {
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
			s->p += 6;
		} else {
			c = 0xfffd;
			s->doc->replaced++;
		}
	}
	s->str += utf8_put(s->str, c);
	return 0;
}

static int escape(struct parser *s)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;
	char c;

	if (++s->p == s->end)
		return fail_at(s, s->p, "the text ends inside a string");
	c = *s->p++;
	if (c == 'u')
		return unicode_escape(s);
	at = c ? strchr(from, c) : NULL;
	if (!at)
		return fail_at(s, s->p - 2, "unknown escape in a string");
	*s->str++ = to[at - from];
	return 0;
}

/* s->p is at the opening quote. */
static int parse_string(struct parser *s, struct json *v)
{
	const char *start = s->p++;
	char *begin = s->str;

	for (;;) {
		unsigned char c;

		/* Eight plain bytes at a time; the copy runs ahead of what counts (str has room for it). */
		while (s->end - s->p >= 8) {
			uint64_t w, hit;

			memcpy(&w, s->p, 8);
			memcpy(s->str, &w, 8);
			hit = find_special(w);
			if (hit) {
				int plain = __builtin_ctzll(hit) >> 3;

				s->p += plain;
				s->str += plain;
				break;
			}
			s->p += 8;
			s->str += 8;
		}
		if (s->p == s->end)
			return fail_at(s, start, "this string has no end");
		c = (unsigned char)*s->p;
		if (c == '"') {
			break;
		} else if (c == '\\') {
			if (escape(s) < 0)
				return -1;
		} else if (c < 0x20) {
			return fail_at(s, s->p, "a control character in a string must be escaped");
		} else {
			size_t n = utf8_len(s->p, s->end);

			if (!n)
				return fail_at(s, s->p, "this is not UTF-8");
			memcpy(s->str, s->p, n);
			s->str += n;
			s->p += n;
		}
	}
	s->p++;
	*v = (struct json){ .type = JSON_STR, .n = (uint32_t)(s->str - begin), .s = begin };
	*s->str++ = 0;
	return 0;
}

/* ---- numbers ---- */

static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/*
 * The number at [from, s->p), whatever the user's locale is.  The digits 0..digits-1 scaled by
 * 10^exp are it, if exact.
 */
static int make_double(
	struct parser *s, const char *from, bool exact, uint64_t digits, int exp, double *d)
{
	static const double tens[] = { 1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
		1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	size_t n = (size_t)(s->p - from);

	/* Both factors are exact doubles, so that the one rounding is the right one (Clinger 1990). */
	if (exact && digits < (uint64_t)1 << 53 && exp >= -22 && exp <= 22) {
		*d = exp < 0 ? (double)digits / tens[-exp] : (double)digits * tens[exp];
		if (*from == '-')
			*d = -*d;
		return 0;
	}
	pthread_once(&c_locale_once, make_c_locale);
	if (!c_locale)
		return err_oom(s->err, 1);
	memcpy(s->str, from, n);   /* the text has no NUL behind it */
	s->str[n] = 0;
	*d = strtod_l(s->str, NULL, c_locale);
	return isfinite(*d) ? 0 : fail_at(s, from, "this number is too large");
}

static int parse_number(struct parser *s, struct json *v)
{
	const char *from = s->p, *p = s->p, *first, *end = s->end;
	uint64_t digits = 0;
	ptrdiff_t ndigits;
	int exp = 0, e = 0;
	bool whole = true, minus = *p == '-', eminus = false;
	double d = 0;

	p += minus;
	first = p;
	for (; p < end && *p >= '0' && *p <= '9'; p++)
		digits = digits * 10 + (uint64_t)(*p - '0');
	if (p == first)
		return fail_at(s, from, "expected a value");
	ndigits = p - first;
	if (*first == '0' && ndigits > 1)
		return fail_at(s, from, "a number may not start with 0");
	if (p < end && *p == '.') {
		whole = false;
		for (first = ++p; p < end && *p >= '0' && *p <= '9'; p++)
			digits = digits * 10 + (uint64_t)(*p - '0');
		if (p == first)
			return fail_at(s, p, "expected a digit");
		ndigits += p - first;
		exp = p - first < INT_MAX / 2 ? -(int)(p - first) : -INT_MAX / 2;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		whole = false;
		if (++p < end && (*p == '+' || *p == '-'))
			eminus = *p++ == '-';
		for (first = p; p < end && *p >= '0' && *p <= '9'; p++)
			e = e < 100000 ? e * 10 + (*p - '0') : e;
		if (p == first)
			return fail_at(s, p, "expected a digit");
	}
	s->p = p;
	/* Up to 18 digits never overflow; 19 may just fit. */
	if (whole && (ndigits < 19 || (ndigits == 19 && digits <= (uint64_t)INT64_MAX + minus))) {
		*v =
			(struct json){ .type = JSON_INT, .i = minus ? (int64_t)(0 - digits) : (int64_t)digits };
		return 0;
	}
	if (make_double(s, from, ndigits < 19, digits, exp + (eminus ? -e : e), &d) < 0)
		return -1;
	*v = (struct json){ .type = JSON_NUM, .d = d };
	return 0;
}

/* ---- arrays and objects ---- */

static inline bool same_name(const struct json *a, const struct json *b)
{
	return a->n == b->n && !memcmp(a->s, b->s, a->n);
}

static inline uint64_t name_hash(const struct json *name)
{
	uint64_t h = name->n * 0x9e3779b97f4a7c15, w;
	uint32_t i;

	for (i = 0; i + 8 <= name->n; i += 8) {
		memcpy(&w, name->s + i, 8);
		h = (h ^ w) * 0x9fb21c651e98df25;
		h ^= h >> 32;
	}
	w = 0;
	memcpy(&w, name->s + i, name->n - i);
	h = (h ^ w) * 0x9fb21c651e98df25;
	h ^= h >> 29;
	h *= 0x9e3779b97f4a7c15;
	return h ^ h >> 32;
}

/* Few names: each with each.  Many: a table of 1 + index, at most half full. */
static int count_duplicates(struct parser *s, const struct json_member *m, uint32_t n)
{
	struct json_doc *d = s->doc;
	uint32_t i, j;
	size_t size = 64;

	if (n <= 16) {
		for (i = 1; i < n; i++)
			for (j = 0; j < i; j++)
				if (same_name(&m[i].name, &m[j].name)) {
					d->duplicates++;
					break;
				}
		return 0;
	}
	while (size < (size_t)n * 2)
		size *= 2;
	if (grow(&d->seen, &d->seen_cap, size, sizeof(*d->seen), s->err) < 0)
		return -1;
	memset(d->seen, 0, size * sizeof(*d->seen));
	for (i = 0; i < n; i++) {
		size_t at = name_hash(&m[i].name) & (size - 1);

		while (d->seen[at] && !same_name(&m[i].name, &m[d->seen[at] - 1].name))
			at = (at + 1) & (size - 1);
		d->duplicates += d->seen[at] != 0;
		d->seen[at] = i + 1;
	}
	return 0;
}

static int open_value(struct parser *s, bool object)
{
	if (s->depth == JSON_DEPTH_MAX)
		return fail_at(s, s->p, "nested too deeply (limit 128)");
	s->frames[s->depth++] = (struct frame){ s->n, object };
	s->p++;
	return 0;
}

/* Move the children of the innermost array or object to the arena and put it in their place. */
static int close_value(struct parser *s)
{
	struct frame f = s->frames[--s->depth];
	size_t n = s->n - f.base, bytes = n * sizeof(struct json);
	struct json v = { .type = f.object ? JSON_OBJ : JSON_ARR,
		.n = (uint32_t)(f.object ? n / 2 : n) };
	void *kids = NULL;

	s->p++;
	if (n) {
		kids = arena_alloc(&s->doc->arena, bytes);
		if (!kids)
			return err_oom(s->err, bytes);
		memcpy(kids, s->doc->stack + f.base, bytes);
	}
	if (f.object) {
		v.members = kids;
		if (v.n > 1 && count_duplicates(s, v.members, v.n) < 0)
			return -1;
	} else {
		v.items = kids;
	}
	s->n = f.base;
	return push(s, v);
}

static int parse_name(struct parser *s)
{
	struct json name;

	skip_space(s);
	if (s->p == s->end || *s->p != '"')
		return fail_at(s, s->p, "expected a name in double quotes");
	if (parse_string(s, &name) < 0 || push(s, name) < 0)
		return -1;
	skip_space(s);
	if (s->p == s->end || *s->p != ':')
		return fail_at(s, s->p, "expected ':' after a name");
	s->p++;
	return 0;
}

static int parse_word(struct parser *s, const char *word, struct json v)
{
	size_t n = strlen(word);

	if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n))
		return fail_at(s, s->p, "expected a value");
	s->p += n;
	return push(s, v);
}

/*
 * One value, or the opening of one: 1 = its children come first, 0 = it is whole and on the stack.
 */
static int parse_start(struct parser *s)
{
	struct json v;

	skip_space(s);
	if (s->p == s->end)
		return fail_at(s, s->p, "the text ends where a value is expected");
	switch (*s->p) {
	case '"':
		return parse_string(s, &v) < 0 ? -1 : push(s, v);
	case '{':
	case '[':
		if (open_value(s, *s->p == '{') < 0)
			return -1;
		skip_space(s);
		if (s->p < s->end && *s->p == (s->frames[s->depth - 1].object ? '}' : ']'))
			return close_value(s);
		if (s->frames[s->depth - 1].object && parse_name(s) < 0)
			return -1;
		return 1;
	case 't':
		return parse_word(s, "true", (struct json){ .type = JSON_BOOL, .b = true });
	case 'f':
		return parse_word(s, "false", (struct json){ .type = JSON_BOOL });
	case 'n':
		return parse_word(s, "null", (struct json){ .type = JSON_NULL });
	default:
		return parse_number(s, &v) < 0 ? -1 : push(s, v);
	}
}

/* After a whole value: 1 = another one follows, 0 = the root is whole. */
static int parse_after(struct parser *s)
{
	while (s->depth) {
		bool object = s->frames[s->depth - 1].object;

		skip_space(s);
		if (s->p == s->end)
			return fail_at(s, s->p,
				object ? "the text ends inside an object" : "the text ends inside an array");
		if (*s->p == ',') {
			s->p++;
			return object && parse_name(s) < 0 ? -1 : 1;
		}
		if (*s->p != (object ? '}' : ']'))
			return fail_at(s, s->p, object ? "expected ',' or '}'" : "expected ',' or ']'");
		if (close_value(s) < 0)
			return -1;
	}
	return 0;
}

static int parse(struct parser *s)
{
	int more = 1;

	while (more > 0) {
		more = parse_start(s);
		if (!more)
			more = parse_after(s);
	}
	if (more < 0)
		return -1;
	skip_space(s);
	if (s->p < s->end)
		return fail_at(s, s->p, "unexpected text after the value");
	s->doc->root = s->doc->stack[0];
	return 0;
}

int json_parse(struct json_doc *doc, const char *text, size_t n, const char *name, uint64_t line0,
	struct err *err)
{
	struct parser s = { .text = text,
		.p = text,
		.end = text + n,
		.doc = doc,
		.name = name,
		.line0 = line0,
		.err = err };

	arena_reset(&doc->arena);
	doc->root = (struct json){ .type = JSON_NULL };
	doc->replaced = doc->duplicates = 0;
	if (n >= UINT32_MAX)
		return err_set(
			err, EX_DATAERR, "%s: %zu bytes of JSON are too many (limit 4 GiB)", name, n);
	/* 8 for a copy that runs ahead, the rest for NULs */
	s.str = arena_alloc(&doc->arena, n + 16);
	if (!s.str)
		return err_oom(err, n + 16);
	return parse(&s);
}

int json_parse_file(struct json_doc *doc, const char *path, size_t limit, struct err *err)
{
	struct buf b = {0};
	int rc = -1;

	doc->root = (struct json){ .type = JSON_NULL };
	if (file_read(path, limit, &b, err) == 0) {
		size_t bom = b.n >= 3 && !memcmp(b.p, "\xef\xbb\xbf", 3) ? 3 : 0;

		rc = json_parse(doc, b.n ? b.p + bom : "", b.n - bom, path, 1, err);
	}
	buf_release(&b);
	return rc;
}

void json_release(struct json_doc *doc)
{
	arena_release(&doc->arena);
	free(doc->stack);
	free(doc->seen);
	*doc = (struct json_doc){0};
}

/* ---- looking at values ---- */

const struct json *json_get(const struct json *obj, const char *name)
{
	size_t n = strlen(name);
	uint32_t i;

	if (!json_is(obj, JSON_OBJ))
		return NULL;
	for (i = obj->n; i-- > 0;)
		if (obj->members[i].name.n == n && !memcmp(obj->members[i].name.s, name, n))
			return &obj->members[i].value;
	return NULL;
}

bool json_is(const struct json *v, enum json_type t)
{
	return v && v->type == t;
}

bool json_str_eq(const struct json *v, const char *s)
{
	return json_is(v, JSON_STR) && v->n == strlen(s) && !memcmp(v->s, s, v->n);
}

const char *json_type_name(enum json_type t)
{
	static const char *const names[] = { "null", "true or false", "a whole number", "a number",
		"a string", "an array", "an object" };

	return names[t];
}

static int wrong_type(
	const struct json *v, const char *name, const char *want, const char *where, struct err *err)
{
	return err_set(err, EX_DATAERR, "%s: '%s' must be %s, found %s", where, name, want,
		json_type_name(v->type));
}

int json_get_int(
	const struct json *obj, const char *name, int64_t *out, const char *where, struct err *err)
{
	const struct json *v = json_get(obj, name);

	if (!v)
		return 0;
	if (v->type == JSON_INT)
		*out = v->i;
	else if (v->type == JSON_NUM && fabs(v->d) <= 9007199254740992.0 && v->d == floor(v->d))
		*out = (int64_t)v->d;
	else
		return wrong_type(v, name, "a whole number", where, err);
	return 1;
}

int json_get_num(
	const struct json *obj, const char *name, double *out, const char *where, struct err *err)
{
	const struct json *v = json_get(obj, name);

	if (!v)
		return 0;
	if (v->type != JSON_INT && v->type != JSON_NUM)
		return wrong_type(v, name, "a number", where, err);
	*out = v->type == JSON_INT ? (double)v->i : v->d;
	return 1;
}

int json_get_bool(
	const struct json *obj, const char *name, bool *out, const char *where, struct err *err)
{
	const struct json *v = json_get(obj, name);

	if (!v)
		return 0;
	if (v->type != JSON_BOOL)
		return wrong_type(v, name, "true or false", where, err);
	*out = v->b;
	return 1;
}

int json_get_str(
	const struct json *obj, const char *name, const char **out, const char *where, struct err *err)
{
	const struct json *v = json_get(obj, name);

	if (!v)
		return 0;
	if (v->type != JSON_STR)
		return wrong_type(v, name, "a string", where, err);
	if (memchr(v->s, 0, v->n))
		return err_set(err, EX_DATAERR, "%s: '%s' holds a NUL character", where, name);
	*out = v->s;
	return 1;
}
