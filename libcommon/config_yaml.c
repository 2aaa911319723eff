/*
 * config_yaml: libyaml's events made a tree with places, limits, and no tags, anchors or aliases.
 */
#include <string.h>
#include <yaml.h>

#include "libcommon/config_int.h"

struct reader {
	yaml_parser_t p;
	struct arena *arena;
	const struct cfg_src *src;
	const char *text;
	size_t size, nodes;
};

static struct cfg_node *new_node(struct reader *r, enum cfg_kind kind, const yaml_mark_t *at)
{
	struct cfg_node *n = arena_alloc(r->arena, sizeof(*n));

	if (!n) {
		err_oom(r->src->err, sizeof(*n));
		return NULL;
	}
	*n = (struct cfg_node){ .kind = kind, .line = at->line + 1, .col = at->column + 1 };
	return n;
}

static int error_at(struct reader *r, const yaml_mark_t *at, const char *msg)
{
	struct cfg_node n = { .line = at->line + 1, .col = at->column + 1 };

	return cfg_src_error(r->src, &n, "%s", msg);
}

/* The line and column of a byte; libyaml's reader gives no mark. */
static int reader_error(struct reader *r)
{
	yaml_mark_t at = {0};
	size_t end = r->p.problem_offset < r->size ? r->p.problem_offset : r->size;

	for (size_t i = 0; i < end; i++) {
		at.column++;
		if (r->text[i] == '\n') {
			at.line++;
			at.column = 0;
		}
	}
	return error_at(r, &at, "not valid YAML: a byte that is no UTF-8 text");
}

/* The line that holds mark starts with white space that has a tab in it. */
static bool tab_indents(const struct reader *r, const yaml_mark_t *at)
{
	const char *s = r->text, *end = r->text + r->size;

	for (size_t l = 0; l < at->line && s; l++) {
		s = memchr(s, '\n', (size_t)(end - s));
		s = s ? s + 1 : NULL;
	}
	for (; s && s < end && (*s == ' ' || *s == '\t'); s++)
		if (*s == '\t')
			return true;
	return false;
}

static int syntax_error(struct reader *r)
{
	const yaml_parser_t *p = &r->p;
	char msg[256];

	if (p->error == YAML_MEMORY_ERROR)
		return err_oom(r->src->err, r->size);
	if (p->error == YAML_READER_ERROR)
		return reader_error(r);
	if (tab_indents(r, &p->problem_mark))
		return error_at(r, &p->problem_mark, "not valid YAML: a tab indents this line; use spaces");
	snprintf(msg, sizeof(msg), "not valid YAML: %s%s%s", p->problem ? p->problem : "syntax error",
		p->context ? " " : "", p->context ? p->context : "");
	return error_at(r, &p->problem_mark, msg);
}

static int next_event(struct reader *r, yaml_event_t *e)
{
	if (!yaml_parser_parse(&r->p, e))
		return syntax_error(r);
	if (++r->nodes > CFG_NODES_MAX) {
		error_at(r, &e->start_mark, "too many values for a config");
		yaml_event_delete(e);
		return -1;
	}
	return 0;
}

bool cfg_null_word(const char *s)
{
	return !*s || !strcmp(s, "~") || !strcmp(s, "null") || !strcmp(s, "Null") || !strcmp(s, "NULL");
}

static void refuse_marks(
	struct reader *r, const yaml_event_t *e, const yaml_char_t *anchor, const yaml_char_t *tag)
{
	if (anchor)
		error_at(r, &e->start_mark,
			"anchors and aliases (&a, *a) are not read here; write the value out");
	if (tag)
		error_at(r, &e->start_mark, "tags (!!type) are not read here; the key decides the type");
}

static struct cfg_node *scalar(struct reader *r, const yaml_event_t *e)
{
	struct cfg_node *n = new_node(r, CFG_SCALAR, &e->start_mark);
	const char *s = (const char *)e->data.scalar.value;

	if (!n)
		return NULL;
	refuse_marks(r, e, e->data.scalar.anchor, e->data.scalar.tag);
	if (memchr(s, 0, e->data.scalar.length))
		error_at(r, &e->start_mark, "a value can't hold a NUL");
	n->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	if (!n->quoted && cfg_null_word(s))
		n->kind = CFG_NULL;
	n->text = arena_strndup(r->arena, s, strlen(s));
	if (!n->text) {
		err_oom(r->src->err, strlen(s));
		return NULL;
	}
	return n;
}

static void check_key(struct reader *r, const struct cfg_node *map, struct cfg_node *key)
{
	if (key->kind == CFG_LIST || key->kind == CFG_MAPPING) {
		cfg_src_error(r->src, key, "a list or map can't be a key");
		key->text = "";
		return;
	}
	/* longer ones could not be read back: libyaml wants the ':' within 1024 */
	if (strlen(key->text) > CFG_KEY_MAX)
		cfg_src_error(r->src, key, "a key of more than %d bytes", CFG_KEY_MAX);
	for (const struct cfg_node *k = map->child; k && k != key; k = k->next)
		if (!strcmp(k->text, key->text)) {
			cfg_src_error(r->src, key, "duplicate key '%.*s' (the first is on line %zu)", CFG_SHOWN,
				key->text, k->line);
			return;
		}
}

static struct cfg_node *read_node(struct reader *r, yaml_event_t *e, int depth);

/* The children of a list or map, up to its end. */
static int read_children(struct reader *r, struct cfg_node *parent, int depth)
{
	struct cfg_node **tail = &parent->child;
	yaml_event_t e;

	for (;;) {
		if (next_event(r, &e) < 0)
			return -1;
		if (e.type == YAML_SEQUENCE_END_EVENT || e.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&e);
			return 0;
		}
		if (parent->kind == CFG_MAPPING && parent->n == CFG_ITEMS_MAX) {
			error_at(r, &e.start_mark, "too many keys in one map");
			yaml_event_delete(&e);
			return -1;
		}
		*tail = read_node(r, &e, depth);
		if (!*tail)
			return -1;
		parent->n++;
		if (parent->kind == CFG_MAPPING) {
			check_key(r, parent, *tail);
			if (next_event(r, &e) < 0)
				return -1;
			(*tail)->value = read_node(r, &e, depth);
			if (!(*tail)->value)
				return -1;
		}
		tail = &(*tail)->next;
	}
}

/* Takes e over.  NULL: the error is said. */
static struct cfg_node *read_node(struct reader *r, yaml_event_t *e, int depth)
{
	struct cfg_node *n = NULL;

	if (e->type == YAML_SCALAR_EVENT) {
		n = scalar(r, e);
	} else if (e->type == YAML_ALIAS_EVENT) {
		refuse_marks(r, e, e->data.alias.anchor, NULL);
		n = new_node(r, CFG_NULL, &e->start_mark);
		if (n)
			n->text = "";
	} else if (depth >= CFG_DEPTH_MAX) {
		error_at(r, &e->start_mark, "lists and maps are nested too deep");
	} else if (e->type == YAML_SEQUENCE_START_EVENT) {
		refuse_marks(r, e, e->data.sequence_start.anchor, e->data.sequence_start.tag);
		n = new_node(r, CFG_LIST, &e->start_mark);
	} else {
		refuse_marks(r, e, e->data.mapping_start.anchor, e->data.mapping_start.tag);
		n = new_node(r, CFG_MAPPING, &e->start_mark);
	}
	yaml_event_delete(e);
	if (n && (n->kind == CFG_LIST || n->kind == CFG_MAPPING) && read_children(r, n, depth + 1) < 0)
		return NULL;
	return n;
}

static int read_stream(struct reader *r, struct cfg_node **root)
{
	yaml_event_t e;
	yaml_event_type_t type;

	do {
		if (next_event(r, &e) < 0)
			return -1;
		type = e.type;
		if (type == YAML_DOCUMENT_START_EVENT && *root) {
			error_at(r, &e.start_mark, "a second document starts here; a config is one document");
			yaml_event_delete(&e);
			return -1;
		}
		if (type == YAML_STREAM_START_EVENT || type == YAML_STREAM_END_EVENT ||
			type == YAML_DOCUMENT_START_EVENT || type == YAML_DOCUMENT_END_EVENT) {
			yaml_event_delete(&e);
			continue;
		}
		*root = read_node(r, &e, 0);
		if (!*root)
			return -1;
	} while (type != YAML_STREAM_END_EVENT);
	return 0;
}

int cfg_yaml_tree(
	struct arena *a, const struct cfg_src *src, const char *text, size_t n, struct cfg_node **root)
{
	struct reader r = { .arena = a, .src = src, .text = text, .size = n };
	int rc;

	*root = NULL;
	if (!yaml_parser_initialize(&r.p))
		return err_oom(src->err, sizeof(r.p));
	yaml_parser_set_encoding(&r.p, YAML_UTF8_ENCODING);
	/* with a set encoding, libyaml does not skip a BOM */
	if (n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		text += 3;
		n -= 3;
	}
	yaml_parser_set_input_string(&r.p, (const unsigned char *)text, n);
	rc = read_stream(&r, root);
	yaml_parser_delete(&r.p);
	return rc;
}
