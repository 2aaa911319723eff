/*
 * config_type: one YAML node becomes a value of a schema row's type, or a message that says what it
 * should be.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/config_int.h"
#include "libcommon/file.h"

struct typing {
	struct arena *arena;
	const struct cfg_src *src;
	const struct cfg_row *row;
	bool check;
};

static const char *skip_digits(const char *s)
{
	while (*s >= '0' && *s <= '9')
		s++;
	return s;
}

/*
 * [+-] digits [. digits] [e [+-] digits], with a digit before or after the point: no hex, no nan,
 * no underscores.
 */
bool cfg_parse_num(const char *s, double *out)
{
	const char *p = s + (*s == '-' || *s == '+'), *a = p, *e;
	size_t digits;

	p = skip_digits(p);
	digits = (size_t)(p - a);
	if (*p == '.') {
		a = ++p;
		p = skip_digits(p);
		digits += (size_t)(p - a);
	}
	if (!digits)
		return false;
	if (*p == 'e' || *p == 'E') {
		p += 1 + (p[1] == '-' || p[1] == '+');
		e = skip_digits(p);
		if (e == p)
			return false;
		p = e;
	}
	if (*p)
		return false;
	*out = strtod(s, NULL);
	return isfinite(*out);
}

static bool parse_int(const char *s, int64_t *out)
{
	const char *d = s + (*s == '-' || *s == '+');
	const char *end = skip_digits(d);

	if (end == d || *end)
		return false;
	errno = 0;
	*out = strtoll(s, NULL, 10);
	return !errno;
}

/* 512M, 2G, 1.5GiB: powers of 1024. */
bool cfg_parse_size(const char *s, int64_t *out)
{
	static const char units[] = "KMGT";
	char num[32];
	size_t n = strspn(s, "0123456789.");
	const char *u = s + n, *unit;
	double v;

	if (!n || n >= sizeof(num))
		return false;
	memcpy(num, s, n);
	num[n] = 0;
	if (!cfg_parse_num(num, &v))
		return false;
	if (*u) {
		unit = strchr(units, *u & ~32);
		if (!unit || (u[1] && strcmp(u + 1, "iB")))
			return false;
		v = ldexp(v, 10 * (int)(unit - units + 1));
	}
	if (v > 9e18)
		return false;
	*out = (int64_t)v;
	return true;
}

bool cfg_is_list(enum cfg_type t)
{
	return t == CFG_STRS || t == CFG_PATHS || t == CFG_NUMS;
}

bool cfg_next_choice(const char **p, char word[64])
{
	size_t n = strcspn(*p, "|");

	if (!n)
		return false;
	snprintf(word, 64, "%.*s", (int)n, *p);
	*p += n + ((*p)[n] == '|');
	return true;
}

bool cfg_has_choice(const char *choices, const char *s)
{
	char word[64];

	while (choices && cfg_next_choice(&choices, word))
		if (!strcmp(word, s) || !strcmp(word, "*"))
			return true;
	return false;
}

static const char *nearest_choice(const char *choices, const char *s, char out[64])
{
	char words[16][64];
	const char *list[16];
	const char *near;
	size_t n = 0;

	while (n < 16 && cfg_next_choice(&choices, words[n])) {
		list[n] = words[n];
		n += strcmp(words[n], "number") != 0;   /* stands for a number */
	}
	near = nearest_name(s, list, n);
	if (!near)
		return NULL;
	snprintf(out, 64, "%s", near);
	return out;
}

static int bad_choice(const struct typing *t, const struct cfg_node *at)
{
	char all[512] = "", word[64], near[64];
	const char *p = t->row->choices, *hint;

	while (cfg_next_choice(&p, word)) {
		size_t n = strlen(all);

		snprintf(all + n, sizeof(all) - n, "%s%s%s",
			!n       ? ""
				: *p ? ", "
					 : " or ",
			strcmp(word, "number") ? "" : "a ", word);
	}
	hint = nearest_choice(t->row->choices, at->text, near);
	return cfg_src_error(t->src, at, "%s must be %s%s, found '%.*s'%s%s%s", t->row->path,
		t->row->type != CFG_NUM_OR_ENUM && strchr(t->row->choices, '|') ? "one of " : "", all,
		CFG_SHOWN,
		at->text, hint ? " (did you mean '" : "", hint ? hint : "", hint ? "'?)" : "");
}

static int wrong(const struct typing *t, const struct cfg_node *at, const char *want)
{
	static const char *const kinds[] = { "null", NULL, "a list", "a map" };

	if (at->kind != CFG_SCALAR)
		return cfg_src_error(
			t->src, at, "%s must be %s, found %s", t->row->path, want, kinds[at->kind]);
	return cfg_src_error(
		t->src, at, "%s must be %s, found '%.*s'", t->row->path, want, CFG_SHOWN, at->text);
}

static const char *bound(double v, char out[32])
{
	snprintf(out, 32, v == floor(v) && fabs(v) < 1e16 ? "%.0f" : "%.10g", v);
	return out;
}

/* Compared as integers, so that 2^53 + 1 is more than 2^53. */
static bool above(const struct cfg_row *row, int64_t i)
{
	return (row->type == CFG_INT || row->type == CFG_SIZE) && i > (int64_t)row->max;
}

static int in_range(const struct typing *t, const struct cfg_node *at, double v, int64_t i)
{
	char lo[32], hi[32];

	if (!t->check || (v >= t->row->min && v <= t->row->max && !above(t->row, i)))
		return 0;
	return cfg_src_error(t->src, at, "%s must be between %s and %s, found '%.*s'", t->row->path,
		bound(t->row->min, lo), bound(t->row->max, hi), CFG_SHOWN, at->text);
}

static const char *keep(const struct typing *t, const char *s)
{
	const char *p = arena_strndup(t->arena, s, strlen(s));

	if (!p)
		err_oom(t->src->err, strlen(s));
	return p;
}

/*
 * A relative path of a file is relative to that file; words that are no paths (choices) and "-"
 * stay.
 */
static const char *resolve(const struct typing *t, const char *s)
{
	char *joined;
	const char *p;

	if (!t->src->dir || !*s || !strcmp(s, "-") || cfg_has_choice(t->row->choices, s))
		return keep(t, s);
	joined = path_join(t->src->dir, s);
	if (!joined) {
		err_oom(t->src->err, strlen(s));
		return NULL;
	}
	p = keep(t, joined);
	free(joined);
	return p;
}

static int type_number(const struct typing *t, const struct cfg_node *at, struct cfg_value *v)
{
	if (t->row->type == CFG_INT && !parse_int(at->text, &v->i))
		return wrong(t, at, "a whole number");
	if (t->row->type == CFG_SIZE && !cfg_parse_size(at->text, &v->i))
		return wrong(t, at, "a size such as 512M or 2G (powers of 1024)");
	if (t->row->type == CFG_INT || t->row->type == CFG_SIZE)
		v->num = (double)v->i;
	else if (!cfg_parse_num(at->text, &v->num))
		return wrong(t, at, "a finite number");
	return in_range(t, at, v->num, v->i);
}

static int type_scalar(const struct typing *t, const struct cfg_node *at, struct cfg_value *v)
{
	enum cfg_type type = t->row->type;

	if (at->kind != CFG_SCALAR)
		return wrong(t, at,
			type == CFG_BOOL                                              ? "true or false"
				: type == CFG_STR || type == CFG_PATH || type == CFG_ENUM ? "one string"
				: type == CFG_INT                                         ? "a whole number"
																		  : "a number");
	v->num = NAN;
	v->text = type == CFG_PATH ? resolve(t, at->text) : keep(t, at->text);
	if (!v->text)
		return -1;
	/* an empty path or choice is none */
	v->has = *at->text || (type != CFG_PATH && type != CFG_ENUM);
	if (!v->has || type == CFG_STR || type == CFG_PATH)
		return 0;
	if (type == CFG_NUM_OR_ENUM && strcmp(at->text, "number") &&
		cfg_has_choice(t->row->choices, at->text))
		return 0;
	if (type == CFG_NUM_OR_ENUM && !cfg_parse_num(at->text, &v->num))
		return bad_choice(t, at);
	if (type == CFG_ENUM)
		return !t->check || cfg_has_choice(t->row->choices, at->text) ? 0 : bad_choice(t, at);
	if (type == CFG_BOOL) {
		v->i = !strcmp(at->text, "true");
		return v->i || !strcmp(at->text, "false") ? 0 : wrong(t, at, "true or false");
	}
	return type_number(t, at, v);
}

static int type_item(const struct typing *t, const struct cfg_node *at, struct cfg_value *v)
{
	const char *s;

	if (at->kind != CFG_SCALAR)
		return wrong(t, at,
			t->row->type == CFG_MAP ? "a map of names to single values"
									: "a list of single values");
	s = t->row->type == CFG_PATHS ? resolve(t, at->text) : keep(t, at->text);
	if (!s)
		return -1;
	v->items[v->n] = s;
	v->nums[v->n] = NAN;
	if (!cfg_parse_num(at->text, &v->nums[v->n]) && t->row->type == CFG_NUMS)
		return wrong(t, at, "a list of finite numbers");
	if (t->row->type == CFG_STRS && t->row->choices && t->check &&
		!cfg_has_choice(t->row->choices, at->text))
		return bad_choice(t, at);
	if (t->row->type == CFG_NUMS && in_range(t, at, v->nums[v->n], 0) < 0)
		return -1;
	v->n++;
	return 0;
}

static int type_items(const struct typing *t, const struct cfg_node *node, struct cfg_value *v)
{
	struct cfg_node one = *node;
	bool map = t->row->type == CFG_MAP, single = !map && node->kind == CFG_SCALAR;
	const struct cfg_node *at = single ? &one : node->child;
	size_t n = single ? 1 : node->n;
	int rc = 0;

	if (!single && node->kind != (map ? CFG_MAPPING : CFG_LIST))
		return wrong(t, node, map ? "a map (name: value)" : "a list");
	one.next = NULL;
	v->has = true;
	v->items = arena_alloc(t->arena, (n + 1) * sizeof(*v->items));
	v->names = arena_alloc(t->arena, (n + 1) * sizeof(*v->names));
	v->nums = arena_alloc(t->arena, (n + 1) * sizeof(*v->nums));
	if (!v->items || !v->names || !v->nums)
		return err_oom(t->src->err, n * sizeof(*v->items));
	for (; at; at = at->next) {
		v->names[v->n] = map ? keep(t, at->text) : NULL;
		if ((map && !v->names[v->n]) || type_item(t, map ? at->value : at, v) < 0)
			rc = -1;
	}
	return rc;
}

int cfg_type_node(struct arena *a, const struct cfg_src *src, const struct cfg_row *row,
	const struct cfg_node *node, bool check, struct cfg_value *out)
{
	struct typing t = { a, src, row, check };

	*out = (struct cfg_value){ .num = NAN, .text = "" };
	if (node->kind == CFG_NULL)
		return 0;
	if (row->type == CFG_MAP || cfg_is_list(row->type))
		return type_items(&t, node, out);
	return type_scalar(&t, node, out);
}
