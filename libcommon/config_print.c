/*
 * config_print: the values as YAML that reads back, as words for a shell, as JSON, and their hash.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcommon/config_int.h"
#include "libcommon/file.h"
#include "libcommon/json.h"
#include "libcommon/utf8.h"

/* The code point at *p, which moves on; -1 (and one byte on) for what is no UTF-8. */
static int32_t next_rune(const char **p)
{
	const unsigned char *s = (const unsigned char *)*p;
	size_t n = utf8_len(*p, *p + strnlen(*p, 4));
	int32_t c = n == 1 ? s[0] : s[0] & (0x7f >> n);

	*p += n + !n;
	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return n ? c : -1;
}

bool cfg_utf8_valid(const char *s)
{
	while (*s)
		if (next_rune(&s) < 0)
			return false;
	return true;
}

/* ---- YAML ---- */

static bool plain_safe(const char *s)
{
	static const char alnum[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	char first[2] = { *s, 0 };

	if (cfg_null_word(s))
		return false;
	if (!strpbrk(first, alnum) && !strpbrk(first, "_./") &&
		!((*s == '-' || *s == '+') && s[1] && strchr("0123456789.", s[1])))
		return false;
	return s[strspn(s, alnum)] == 0 ||
		s[strspn(s, "_./+-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")] == 0;
}

static void put_quoted(struct buf *b, const char *s)
{
	buf_putc(b, '"');
	while (*s) {
		const char *at = s;
		int32_t c = next_rune(&s);

		if (c == '"' || c == '\\')
			buf_printf(b, "\\%c", (char)c);
		else if (c == '\n' || c == '\t')
			buf_puts(b, c == '\n' ? "\\n" : "\\t");
		else if (c < 0x20 || (c >= 0x7f && c < 0xa0))
			buf_printf(b, "\\x%02x", (unsigned)(c < 0 ? '?' : c));
		/* breaks, and what YAML bars */
		else if (c == 0x2028 || c == 0x2029 || c == 0xfeff || c == 0xfffe || c == 0xffff)
			buf_printf(b, "\\u%04x", (unsigned)c);
		else
			buf_put(b, at, (size_t)(s - at));
	}
	buf_putc(b, '"');
}

static void put_scalar(struct buf *b, const char *s)
{
	if (plain_safe(s))
		buf_puts(b, s);
	else
		put_quoted(b, s);
}

static void put_node(struct buf *b, const struct cfg_node *n)
{
	bool map = n->kind == CFG_MAPPING;

	if (n->kind == CFG_NULL) {
		buf_puts(b, "null");
	} else if (n->kind == CFG_SCALAR) {
		if (n->quoted)
			put_quoted(b, n->text);   /* the reader may tell "1" from 1 */
		else
			put_scalar(b, n->text);
	} else {
		buf_putc(b, map ? '{' : '[');
		for (const struct cfg_node *k = n->child; k; k = k->next) {
			buf_puts(b, k == n->child ? "" : ", ");
			if (map) {
				put_scalar(b, k->text);
				buf_puts(b, ": ");
			}
			put_node(b, map ? k->value : k);
		}
		buf_putc(b, map ? '}' : ']');
	}
}

/* Paths are printed absolute, so that the output means the same wherever it is saved. */
static void put_path(struct buf *b, const struct cfg_row *row, const char *s)
{
	char cwd[4096], *p = NULL;
	bool word = !*s || !strcmp(s, "-") || cfg_has_choice(row->choices, s);

	if (!word && *s != '/' && getcwd(cwd, sizeof(cwd)))
		p = path_join(cwd, !strncmp(s, "./", 2) ? s + 2 : s);
	put_scalar(b, p ? p : s);
	free(p);
}

static void put_value(struct buf *b, const struct cfg_row *row, const struct cfg_value *v)
{
	bool map = row->type == CFG_MAP;

	if (!v->has) {
		buf_puts(b, "null");
	} else if (!map && !cfg_is_list(row->type)) {
		if (row->type == CFG_PATH)
			put_path(b, row, v->text);
		else
			put_scalar(b, v->text);
	} else {
		buf_putc(b, map ? '{' : '[');
		for (size_t i = 0; i < v->n; i++) {
			buf_puts(b, i ? ", " : "");
			if (map) {
				put_scalar(b, v->names[i]);
				buf_puts(b, ": ");
			}
			if (row->type == CFG_PATHS)
				put_path(b, row, v->items[i]);
			else
				put_scalar(b, v->items[i]);
		}
		buf_putc(b, map ? '}' : ']');
	}
}

static void put_origin(struct buf *b, size_t start, const char *origin)
{
	while (b->n - start < 39)
		buf_putc(b, ' ');
	buf_puts(b, " # ");
	while (*origin) {   /* a file's name may hold anything */
		const char *at = origin;
		int32_t c = next_rune(&origin);

		if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
			c == 0xfffe || c == 0xffff)
			buf_putc(b, '?');
		else
			buf_put(b, at, (size_t)(origin - at));
	}
	buf_putc(b, '\n');
}

static void print_free(const struct config *c, const struct cfg_free_key *first, struct buf *out)
{
	size_t n = strcspn(first->path, "."), start = out->n;

	for (const struct cfg_free_key *k = c->free_keys; k != first; k = k->next)
		if (!strncmp(k->path, first->path, n) && k->path[n] == '.')
			return;   /* its section is printed already */
	if (!first->path[n]) {
		buf_printf(out, "%s: ", first->path);
		put_node(out, first->node);
		put_origin(out, start, first->origin);
		return;
	}
	buf_printf(out, "%.*s:\n", (int)n, first->path);
	for (const struct cfg_free_key *k = first; k; k = k->next) {
		if (strncmp(k->path, first->path, n) || k->path[n] != '.')
			continue;
		start = out->n;
		buf_puts(out, "  ");
		put_scalar(out, k->path + n + 1);
		buf_puts(out, ": ");
		put_node(out, k->node);
		put_origin(out, start, k->origin);
	}
}

/*
 * True if row i is the first of its section; rows of a loss or an optimizer stand apart from their
 * section's others.
 */
static bool opens_section(size_t i, size_t n)
{
	for (size_t k = 0; k < i; k++)
		if (!strncmp(cfg_rows[k].path, cfg_rows[i].path, n + 1))
			return false;
	return true;
}

void cfg_print(const struct config *c, struct buf *out)
{
	for (size_t i = 0; i < cfg_nrows; i++) {
		const char *path = cfg_rows[i].path;
		size_t n = strcspn(path, ".");

		if (!opens_section(i, n))
			continue;
		buf_printf(out, "%.*s:\n", (int)n, path);
		for (size_t k = i; k < cfg_nrows; k++) {
			size_t start = out->n;

			if (strncmp(cfg_rows[k].path, path, n + 1))
				continue;
			buf_printf(out, "  %s: ", cfg_rows[k].path + n + 1);
			put_value(out, &cfg_rows[k], &c->values[k]);
			put_origin(out, start, c->values[k].origin);
		}
	}
	for (const struct cfg_free_key *k = c->free_keys; k; k = k->next)
		print_free(c, k, out);
}

/* ---- one value ---- */

static const char *node_text(const struct cfg_node *n)
{
	return n->kind == CFG_SCALAR ? n->text : "";
}

static int print_free_key(
	const char *path, const struct cfg_node *n, struct buf *out, struct err *err)
{
	bool map = n->kind == CFG_MAPPING;

	if (n->kind != CFG_LIST && !map)
		buf_printf(out, "%s\n", node_text(n));
	for (const struct cfg_node *k = n->child; k; k = k->next) {
		const struct cfg_node *v = map ? k->value : k;

		if (v->kind == CFG_LIST || v->kind == CFG_MAPPING)
			return err_set(err, EX_USAGE, "'%s' is nested too deep to be printed bare", path);
		buf_printf(out, "%s%s%s\n", map ? k->text : "", map ? "=" : "", node_text(v));
	}
	return 0;
}

int cfg_print_key(const struct config *c, const char *path, struct buf *out, struct err *err)
{
	const struct cfg_row *row = cfg_find_row(path);
	const struct cfg_free_key *k = cfg_find_free(c, path);
	const struct cfg_value *v;
	char hint[512];

	if (k)
		return print_free_key(path, k->node, out, err);
	if (!row) {
		cfg_hint(path, hint, sizeof(hint));
		return err_set(err, EX_USAGE, "unknown key '%.*s'%s", CFG_SHOWN, path, hint);
	}
	v = &c->values[row - cfg_rows];
	if (row->type != CFG_MAP && !cfg_is_list(row->type))
		buf_printf(out, "%s\n", v->text);
	for (size_t i = 0; i < v->n; i++) {
		const char *name = row->type == CFG_MAP ? v->names[i] : NULL;

		buf_printf(out, "%s%s%s\n", name ? name : "", name ? "=" : "", v->items[i]);
	}
	return 0;
}

/* ---- JSON and the hash ---- */

static bool left_out(const char *path, const char *const *names)
{
	for (; names && *names; names++) {
		size_t n = strlen(*names);

		if (!strcmp(path, *names) || (n && (*names)[n - 1] == '.' && !strncmp(path, *names, n)))
			return true;
	}
	return false;
}

static void json_items(struct json_w *w, const struct cfg_row *row, const struct cfg_value *v)
{
	if (row->type == CFG_MAP)
		json_w_obj(w);
	else
		json_w_arr(w);
	for (size_t i = 0; i < v->n; i++) {
		if (row->type == CFG_MAP)
			json_w_name(w, v->names[i]);
		if (row->type == CFG_NUMS)
			json_w_num(w, v->nums[i]);
		else
			json_w_str(w, v->items[i]);
	}
	json_w_end(w);
}

void cfg_to_json(const struct config *c, const char *const *leave_out, struct buf *out)
{
	struct json_w w = { .out = out };

	json_w_obj(&w);
	for (size_t i = 0; i < cfg_nrows; i++) {
		const struct cfg_row *row = &cfg_rows[i];
		const struct cfg_value *v = &c->values[i];

		if (left_out(row->path, leave_out))
			continue;
		json_w_name(&w, row->path);
		if (!v->has)
			json_w_null(&w);
		else if (row->type == CFG_MAP || cfg_is_list(row->type))
			json_items(&w, row, v);
		else if (row->type == CFG_BOOL)
			json_w_bool(&w, v->i);
		else if (row->type == CFG_INT || row->type == CFG_SIZE)
			json_w_int(&w, v->i);
		else if (row->type == CFG_NUM || (row->type == CFG_NUM_OR_ENUM && v->num == v->num))
			json_w_num(&w, v->num);
		else
			json_w_str(&w, v->text);
	}
	json_w_end(&w);
}

int cfg_hash(
	const struct config *c, const char *const *leave_out, char hex[SHA256_HEX], struct err *err)
{
	struct buf text = {0};
	struct sha256 *h;
	int rc = -1;

	cfg_to_json(c, leave_out, &text);
	h = buf_ok(&text, err) < 0 ? NULL : sha256_new(err);
	if (h) {
		sha256_add(h, text.p, text.n);
		sha256_end(h, hex);
		rc = 0;
	}
	buf_release(&text);
	return rc;
}
