#include "libcommon/config.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/config_int.h"
#include "libcommon/file.h"

const struct cfg_row *cfg_find_row(const char *path)
{
	for (size_t i = 0; i < cfg_nrows; i++)
		if (!strcmp(cfg_rows[i].path, path))
			return &cfg_rows[i];
	return NULL;
}

bool cfg_known_section(const char *name, size_t n)
{
	for (size_t i = 0; i < cfg_nrows; i++)
		if (!strncmp(cfg_rows[i].path, name, n) && cfg_rows[i].path[n] == '.')
			return true;
	return false;
}

int cfg_src_error(const struct cfg_src *src, const struct cfg_node *at, const char *fmt, ...)
{
	char msg[896];   /* err_more holds lines of 1024 */
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	if (src->is_file && at)
		return err_more(src->err, EX_CONFIG, "%s:%zu:%zu: %s", src->name, at->line, at->col, msg);
	return err_more(src->err, EX_CONFIG, "%.*s: %s", CFG_SHOWN, src->name, msg);
}

/* ---- reading ---- */

static const char *make_origin(
	struct config *c, const struct cfg_src *src, const struct cfg_node *at)
{
	char s[4096 + 48];

	if (!src->is_file)
		return src->origin;   /* a literal, or an option's name from the command line */
	snprintf(s, sizeof(s), "%s:%zu:%zu", src->name, at->line, at->col);
	return arena_strndup(&c->arena, s, strlen(s));
}

static int set_default(struct config *c, const struct cfg_row *row, struct err *err)
{
	const struct cfg_src src = { .name = row->path, .origin = "default", .err = err };
	struct cfg_node scalar = { .kind = *row->def ? CFG_SCALAR : CFG_NULL, .text = row->def },
					*node = &scalar;
	struct cfg_value *v = &c->values[row - cfg_rows];

	if ((*row->def == '[' || *row->def == '{') &&
		cfg_yaml_tree(&c->arena, &src, row->def, strlen(row->def), &node) < 0)
		return -1;
	if (cfg_type_node(&c->arena, &src, row, node, false, v) < 0)
		return -1;
	v->origin = "default";
	return 0;
}

static int set_row(struct config *c, const struct cfg_src *src, const struct cfg_row *row,
	const struct cfg_node *node)
{
	struct cfg_value v;

	if (cfg_type_node(&c->arena, src, row, node, true, &v) < 0)
		return -1;
	if (!v.has)   /* null: as if it had not been set */
		return set_default(c, row, src->err);
	v.set = true;
	v.origin = make_origin(c, src, node);
	if (!v.origin)
		return err_oom(src->err, strlen(src->name));
	c->values[row - cfg_rows] = v;
	return 0;
}

int cfg_new(struct config **out, struct err *err)
{
	struct config *c = mem_zalloc(1, sizeof(*c), err);

	*out = NULL;
	if (!c)
		return -1;
	c->values = mem_zalloc(cfg_nrows, sizeof(*c->values), err);
	if (!c->values)
		goto fail;
	for (size_t i = 0; i < cfg_nrows; i++)
		if (set_default(c, &cfg_rows[i], err) < 0)
			goto fail;
	*out = c;
	return 0;
fail:
	cfg_free(c);
	return -1;
}

void cfg_free(struct config *c)
{
	if (!c)
		return;
	arena_release(&c->arena);
	free(c->values);
	free(c);
}

const struct cfg_free_key *cfg_find_free(const struct config *c, const char *path)
{
	for (const struct cfg_free_key *k = c->free_keys; k; k = k->next)
		if (!strcmp(k->path, path))
			return k;
	return NULL;
}

/* True if one is the other or its section: then the later one replaces it. */
static bool same_free(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b), n = na < nb ? na : nb;

	return !strncmp(a, b, n) && (na == nb || (a[n] | b[n]) == '.') &&
		(na == nb || !memchr(a, '.', n) || !memchr(b, '.', n));
}

static int set_free(
	struct config *c, const struct cfg_src *src, const char *path, const struct cfg_node *node)
{
	struct cfg_free_key **tail = &c->free_keys, *k = arena_alloc(&c->arena, sizeof(*k));

	if (!k)
		return err_oom(src->err, sizeof(*k));
	*k = (struct cfg_free_key){ arena_strndup(&c->arena, path, strlen(path)),
		make_origin(c, src, node), node, NULL };
	if (!k->path || !k->origin)
		return err_oom(src->err, strlen(path));
	while (*tail)
		if (same_free((*tail)->path, path))
			*tail = (*tail)->next;
		else
			tail = &(*tail)->next;
	*tail = k;
	return 0;
}

static bool free_name(const char *s, size_t n)
{
	return n > 2 && n < 64 && !strncmp(s, "x-", 2) &&
		strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") >= n;
}

static void unknown(const struct cfg_src *src, const struct cfg_node *at, const char *path)
{
	char hint[512];

	cfg_hint(path, hint, sizeof(hint));
	cfg_src_error(src, at, "unknown key '%.*s'%s", CFG_SHOWN, path, hint);
}

static int apply_free(struct config *c, const struct cfg_src *src, const struct cfg_node *key)
{
	char path[256];

	if (key->value->kind != CFG_MAPPING || !key->value->n)
		return set_free(c, src, key->text, key->value);
	for (const struct cfg_node *k = key->value->child; k; k = k->next) {
		if ((size_t)snprintf(path, sizeof(path), "%s.%s", key->text, k->text) >= sizeof(path))
			return cfg_src_error(src, k, "the key's name is too long");
		if (set_free(c, src, path, k->value) < 0)
			return -1;
	}
	return 0;
}

static void apply_section(struct config *c, const struct cfg_src *src, const struct cfg_node *key)
{
	const struct cfg_node *v = key->value;
	const struct cfg_row *row;
	char path[256];

	if (v->kind == CFG_NULL)
		return;
	if (v->kind != CFG_MAPPING) {
		cfg_src_error(src, v, "'%s' is a section; its keys stand below it, indented", key->text);
		return;
	}
	for (const struct cfg_node *k = v->child; k; k = k->next) {
		snprintf(path, sizeof(path), "%s.%s", key->text, k->text);
		row = strchr(k->text, '.') ? NULL : cfg_find_row(path);
		if (row)
			set_row(c, src, row, k->value);
		else
			unknown(src, k, path);
	}
}

static void apply_file(struct config *c, const struct cfg_src *src, const struct cfg_node *root)
{
	if (root->kind == CFG_NULL)
		return;
	if (root->kind != CFG_MAPPING) {
		cfg_src_error(src, root, "a config is made of sections such as 'optim:'");
		return;
	}
	for (const struct cfg_node *k = root->child; k; k = k->next) {
		size_t n = strlen(k->text);

		if (free_name(k->text, n))
			apply_free(c, src, k);
		else if (cfg_known_section(k->text, n))
			apply_section(c, src, k);
		else if (cfg_find_row(k->text))
			cfg_src_error(src, k, "unknown key '%s' (in a file it is written '%s' below '%.*s:')",
				k->text, strchr(k->text, '.') + 1, (int)strcspn(k->text, "."), k->text);
		else
			unknown(src, k, k->text);
	}
}

void cfg_read_text(struct config *c, const struct cfg_src *src, const char *text, size_t n)
{
	struct cfg_node *root;

	if (cfg_yaml_tree(&c->arena, src, text, n, &root) == 0 && root)
		apply_file(c, src, root);
}

int cfg_read_file(struct config *c, const char *path, struct err *err)
{
	struct cfg_src src = {
		.name = strcmp(path, "-") ? path : "stdin", .is_file = true, .err = err
	};
	struct buf text = {0};
	struct err e = {0};
	char *dir = path_dir(path);

	if (!dir)
		return err_oom(err, strlen(path));
	src.dir = strcmp(dir, ".") ? dir : NULL;
	if (file_read(path, CFG_FILE_MAX, &text, &e) < 0)
		err_more(err, e.code == EX_DATAERR ? EX_CONFIG : e.code, "%s", e.msg);
	else
		cfg_read_text(c, &src, text.p, text.n);
	buf_release(&text);
	free(dir);
	return err->code ? -1 : 0;
}

/* ---- one setting ---- */

/*
 * Value text of the command line as a node.  What is one string is taken as it is typed, unless it
 * is quoted; the rest is YAML.
 */
static int value_node(struct config *c, const struct cfg_src *src, const struct cfg_row *row,
	const char *text, struct cfg_node **out)
{
	bool one = row && (row->type == CFG_STR || row->type == CFG_PATH || row->type == CFG_ENUM);
	bool many = row && (row->type == CFG_STRS || row->type == CFG_PATHS);
	size_t n = strlen(text);
	struct cfg_node *node;

	if (!cfg_utf8_valid(text))
		return cfg_src_error(src, NULL, "the value is not UTF-8 text");
	if (n > CFG_FILE_MAX)
		return cfg_src_error(src, NULL, "the value is too long");
	node = arena_alloc(&c->arena, sizeof(*node));
	if (!node)
		return err_oom(src->err, sizeof(*node));
	*node = (struct cfg_node){ .kind = cfg_null_word(text) ? CFG_NULL : CFG_SCALAR };
	*out = node;
	if (node->kind == CFG_NULL)
		return 0;
	if ((one || many) && !strchr(one ? "\"'" : "\"'[{", *text)) {
		node->text = arena_strndup(&c->arena, text, n);
		return node->text ? 0 : err_oom(src->err, n);
	}
	if (cfg_yaml_tree(&c->arena, src, text, n, out) < 0)
		return -1;
	if (!*out)   /* nothing but a comment */
		*out = node, node->kind = CFG_NULL;
	return src->err->code ? -1 : 0;
}

int cfg_set_arg(struct config *c, const char *arg, struct err *err)
{
	struct err e = {0};
	const struct cfg_src src = { .name = arg, .origin = "command line", .err = &e };
	size_t n = strcspn(arg, "=");
	const struct cfg_row *row;
	struct cfg_node *node = NULL;
	char path[256];

	snprintf(path, sizeof(path), "%.*s", (int)(n < sizeof(path) ? n : sizeof(path) - 1), arg);
	row = cfg_find_row(path);
	if (!arg[n])
		cfg_src_error(&src, NULL, "a setting is KEY=VALUE");
	else if (!row && !free_name(path, strcspn(path, ".")))
		unknown(&src, NULL, path);
	else if (value_node(c, &src, row, arg + n + 1, &node) == 0) {
		if (row)
			set_row(c, &src, row, node);
		else
			set_free(c, &src, path, node);
	}
	return e.code ? err_add(err, &e) : 0;
}

int cfg_set_option(
	struct config *c, const char *path, const char *value, const char *option, struct err *err)
{
	struct err e = {0};
	const struct cfg_src src = { .name = option, .origin = option, .err = &e };
	const struct cfg_row *row = cfg_find_row(path);
	struct cfg_node node = { .kind = CFG_SCALAR, .quoted = true, .text = value };

	assert(row);
	if (!cfg_utf8_valid(value))
		cfg_src_error(&src, NULL, "the value is not UTF-8 text");
	else
		set_row(c, &src, row, &node);
	return e.code ? err_add(err, &e) : 0;
}

bool cfg_is_setting(const char *arg)
{
	size_t n = strcspn(arg, "=");
	char path[256];

	if (!arg[n] || n >= sizeof(path) ||
	    strspn(arg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") < n)
		return false;
	snprintf(path, sizeof(path), "%.*s", (int)n, arg);
	if (cfg_find_row(path) || (free_name(path, strcspn(path, ".")) && path[strcspn(path, ".")]))
		return true;
	/*
	 * A misspelt key is far likelier than a data file of such a name, but an existing file is a
	 * file.
	 */
	return (strchr(path, '.') || cfg_is_foreign(path) || cfg_known_section(path, n)) &&
		isalpha((unsigned char)*path) && !file_exists(arg);
}

/* ---- values ---- */

static const struct cfg_value *get(const struct config *c, const char *path, unsigned types)
{
	const struct cfg_row *row = cfg_find_row(path);

	assert(row && (types >> row->type & 1));
	(void)types;
	return &c->values[row - cfg_rows];
}

#define T(type) (1u << (type))
enum { ANY = ~0 };

bool cfg_is_set(const struct config *c, const char *path)
{
	return get(c, path, (unsigned)ANY)->set;
}

const char *cfg_str(const struct config *c, const char *path)
{
	return get(c, path, T(CFG_STR) | T(CFG_PATH) | T(CFG_ENUM) | T(CFG_NUM_OR_ENUM))->text;
}

int64_t cfg_int(const struct config *c, const char *path)
{
	return get(c, path, T(CFG_INT) | T(CFG_SIZE))->i;
}

double cfg_num(const struct config *c, const char *path)
{
	return get(c, path, T(CFG_INT) | T(CFG_NUM) | T(CFG_SIZE) | T(CFG_NUM_OR_ENUM))->num;
}

bool cfg_bool(const struct config *c, const char *path)
{
	return get(c, path, T(CFG_BOOL))->i != 0;
}

enum { ITEMS = T(CFG_STRS) | T(CFG_PATHS) | T(CFG_NUMS) | T(CFG_MAP) };

size_t cfg_count(const struct config *c, const char *path)
{
	return get(c, path, ITEMS)->n;
}

const char *cfg_item(const struct config *c, const char *path, size_t i)
{
	const struct cfg_value *v = get(c, path, ITEMS);

	assert(i < v->n);
	return v->items[i];
}

const char *cfg_item_name(const struct config *c, const char *path, size_t i)
{
	const struct cfg_value *v = get(c, path, T(CFG_MAP));

	assert(i < v->n);
	return v->names[i];
}

double cfg_item_num(const struct config *c, const char *path, size_t i)
{
	const struct cfg_value *v = get(c, path, T(CFG_NUMS) | T(CFG_MAP));

	assert(i < v->n);
	return v->nums[i];
}

const char *cfg_origin(const struct config *c, const char *path)
{
	return get(c, path, (unsigned)ANY)->origin;
}

int cfg_error(const struct config *c, struct err *err, const char *path, const char *fmt, ...)
{
	const struct cfg_value *v = get(c, path, (unsigned)ANY);
	char msg[896];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	if (!v->set)
		return err_more(err, EX_CONFIG, "%s: %s", path, msg);
	return err_more(err, EX_CONFIG, "%s: %s: %s", v->origin, path, msg);
}
