/* rows_json: one JSON object in one of the shapes -> messages or text. */
#include <stdlib.h>
#include <string.h>

#include "libcommon/text/rows_int.h"

static const char *const our_names[COL_COUNT] = {
	"messages",
	"role",
	"content",
	"conversations",
	"from",
	"value",
	"instruction",
	"input",
	"output",
	"prompt",
	"completion",
	"text",
	"system",
};

int columns_read(struct columns *c, const struct config *cfg, struct err *err)
{
	size_t i, k, n = cfg_count(cfg, "data.columns");

	memcpy(c->name, our_names, sizeof(our_names));
	for (i = 0; i < n; i++) {
		const char *name = cfg_item_name(cfg, "data.columns", i), *near;

		for (k = 0; k < COL_COUNT && strcmp(name, our_names[k]); k++)
			;
		if (k == COL_COUNT) {
			near = nearest_name(name, our_names, COL_COUNT);
			return cfg_error(cfg, err, "data.columns",
				"unknown column '%s'%s%s%s (our name comes first: {prompt: question})", name,
				near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
		}
		c->name[k] = cfg_item(cfg, "data.columns", i);
	}
	return 0;
}

static const struct json *get(const struct columns *c, enum column col, const struct json *obj)
{
	return json_get(obj, c->name[col]);
}

enum row_shape shape_of(const struct columns *c, const struct json *obj)
{
	static const struct { enum column col; enum row_shape shape; } of[] = {
		{ COL_MESSAGES, SHAPE_MESSAGES }, { COL_CONVERSATIONS, SHAPE_SHAREGPT },
		{ COL_INSTRUCTION, SHAPE_ALPACA },
		{ COL_PROMPT, SHAPE_COMPLETION }, { COL_TEXT, SHAPE_TEXT },
	};
	size_t i;

	for (i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (get(c, of[i].col, obj))
			return of[i].shape;
	return SHAPE_AUTO;
}

/* "a, b, c": the names of obj's columns, for messages. */
static void list_names(const struct json *obj, char *out, size_t size)
{
	size_t n = 0;
	uint32_t i;

	out[0] = 0;
	for (i = 0; i < obj->n && n + 40 < size; i++) {
		int k = snprintf(out + n, size - n, "%s%.32s", i ? ", " : "", obj->members[i].name.s);

		n += k > 0 ? (size_t)k : 0;
	}
	if (i < obj->n)
		snprintf(out + n, size - n, ", ...");
}

int missing_column(
	const struct columns *c, enum column col, const struct json *obj, struct err *err)
{
	char names[400];

	list_names(obj, names, sizeof(names));
	return err_set(err, EX_DATAERR,
		"%s: missing (the row has %s); data.columns='{%s: NAME}' names the column", c->name[col],
		*names ? names : "nothing", our_names[col]);
}

static int no_shape(const struct json *obj, struct err *err)
{
	char names[400];

	list_names(obj, names, sizeof(names));
	return err_set(err, EX_DATAERR,
		"the row is of no known shape: it has %s, and neither messages, conversations, "
		"instruction, prompt nor "
		"text; rename columns, as in data.columns='{prompt: question, completion: answer}'",
		*names ? names : "nothing");
}

/* A path into the row, such as messages[1].content[0], for messages. */
struct where { const char *list; uint32_t i; const char *field; };

static int bad_value(
	const struct where *w, const struct json *v, const char *wanted, struct err *err)
{
	if (!v)
		return err_set(err, EX_DATAERR, "%s[%u].%s: missing", w->list, w->i, w->field);
	return err_set(err, EX_DATAERR, "%s[%u].%s: must be %s, found %s", w->list, w->i, w->field,
		wanted, json_type_name(v->type));
}

/* A list of {type: text, text: ...} parts, joined as the model would read them. */
static int join_parts(struct row_scratch *s, const struct where *w, const struct json *parts,
	struct message *m, struct err *err)
{
	size_t total = 0;
	uint32_t i;
	char *to;

	for (i = 0; i < parts->n; i++) {
		const struct json *p = &parts->items[i], *type = json_get(p, "type"),
						  *text = json_get(p, "text");

		if (!json_is(p, JSON_OBJ))
			return err_set(err, EX_DATAERR, "%s[%u].%s[%u]: must be an object, found %s", w->list,
				w->i, w->field, i, json_type_name(p->type));
		if (!json_str_eq(type, "text"))
			return err_set(err, EX_DATAERR,
				"%s[%u].%s[%u].type: '%.40s' is not supported, only 'text'", w->list, w->i,
				w->field, i, json_is(type, JSON_STR) ? type->s : "");
		if (!json_is(text, JSON_STR))
			return err_set(err, EX_DATAERR, "%s[%u].%s[%u].text: %s", w->list, w->i, w->field, i,
				text ? "must be a string" : "missing");
		total += text->n;
	}
	if (!(to = arena_alloc(&s->arena, total + 1)))
		return err_oom(err, total);
	m->text = to;
	m->n = total;
	for (i = 0; i < parts->n; i++) {
		const struct json *text = json_get(&parts->items[i], "text");

		memcpy(to, text->s, text->n);
		to += text->n;
	}
	*to = 0;
	return 0;
}

/* Says more than an empty value: null, "", [], {} and false do not. */
static bool says_something(const struct json *v)
{
	if (!v || v->type == JSON_NULL || (v->type == JSON_BOOL && !v->b))
		return false;
	if (v->type == JSON_STR)
		return v->n && !json_str_eq(v, "[]");
	return (v->type != JSON_ARR && v->type != JSON_OBJ) || v->n;
}

static int read_role(
	const struct where *w, bool sharegpt, const struct json *v, struct message *m, struct err *err)
{
	/* shape: 0 both, 1 openai, 2 sharegpt */
	static const struct { const char *name; enum role role; int shape; } roles[] = {
		{ "system", ROLE_SYSTEM, 0 }, { "user", ROLE_USER, 0 }, { "assistant", ROLE_ASSISTANT, 0 },
		{ "human", ROLE_USER, 2 }, { "gpt", ROLE_ASSISTANT, 2 },
		{ "tool", ROLE_TOOL, 0 }, { "function", ROLE_TOOL, 0 }, { "function_call", ROLE_TOOL, 0 },
			{ "observation", ROLE_TOOL, 0 },
		{ "ipython", ROLE_TOOL, 0 },
	};
	size_t i;

	if (!json_is(v, JSON_STR))
		return bad_value(w, v, "a string", err);
	for (i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		if (!json_str_eq(v, roles[i].name) || (roles[i].shape && (roles[i].shape == 2) != sharegpt))
			continue;
		if (roles[i].role == ROLE_TOOL)
			return err_set(err, EX_DATAERR, "%s[%u].%s: '%s' messages are not supported", w->list,
				w->i, w->field, v->s);
		m->role = roles[i].role;
		return 0;
	}
	return err_set(err, EX_DATAERR, "%s[%u].%s: unknown role '%.40s'; known are %s", w->list, w->i,
		w->field, v->s,
		sharegpt ? "system, human (user) and gpt (assistant)" : "system, user and assistant");
}

/* What changes the meaning of a message and has no place here. */
static int refuse_extras(const struct where *w, const struct json *msg, struct err *err)
{
	static const char *const names[] = { "tool_calls", "function_call", "images", "audios",
		"videos" };
	const struct json *weight = json_get(msg, "weight");
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (says_something(json_get(msg, names[i])))
			return err_set(err, EX_DATAERR, "%s[%u].%s: is not supported", w->list, w->i, names[i]);
	if (weight && !(json_is(weight, JSON_INT) && weight->i == 1) &&
		!(json_is(weight, JSON_NUM) && weight->d == 1))
		return err_set(err, EX_DATAERR, "%s[%u].weight: weights other than 1 are not supported",
			w->list, w->i);
	return 0;
}

static int read_message(struct row_scratch *s, const struct columns *c, bool sharegpt,
	struct where *w, const struct json *msg, struct message *m, struct err *err)
{
	enum column role = sharegpt ? COL_FROM : COL_ROLE, content = sharegpt ? COL_VALUE : COL_CONTENT;
	const struct json *v;

	if (!json_is(msg, JSON_OBJ))
		return err_set(err, EX_DATAERR, "%s[%u]: must be an object, found %s", w->list, w->i,
			json_type_name(msg->type));
	w->field = c->name[role];
	if (read_role(w, sharegpt, get(c, role, msg), m, err) < 0 || refuse_extras(w, msg, err) < 0)
		return -1;
	w->field = c->name[content];
	v = get(c, content, msg);
	if (json_is(v, JSON_ARR))
		return join_parts(s, w, v, m, err);
	if (!json_is(v, JSON_STR))
		return bad_value(w, v, "a string", err);
	m->text = v->s;
	m->n = v->n;
	return 0;
}

static int add_message(struct row_scratch *s, struct row *row, struct message m, struct err *err)
{
	if (grow(&s->m, &s->cap, row->n + 1, sizeof(*s->m), err) < 0)
		return -1;
	s->m[row->n++] = m;
	row->m = s->m;
	return 0;
}

static int from_conversation(struct row_scratch *s, const struct columns *c, bool sharegpt,
	const struct json *obj, struct row *row, struct err *err)
{
	enum column col = sharegpt ? COL_CONVERSATIONS : COL_MESSAGES;
	const struct json *list = get(c, col, obj);
	struct where w = { .list = c->name[col] };
	struct message m = {0};

	if (!list)
		return missing_column(c, col, obj, err);
	if (!json_is(list, JSON_ARR))
		return err_set(err, EX_DATAERR, "%s: must be an array of messages, found %s", w.list,
			json_type_name(list->type));
	if (!list->n)
		return err_set(err, EX_DATAERR, "%s: empty", w.list);
	for (; w.i < list->n; w.i++)
		if (read_message(s, c, sharegpt, &w, &list->items[w.i], &m, err) < 0 ||
			add_message(s, row, m, err) < 0)
			return -1;
	return 0;
}

/* A column that is a string: 1, 0 if it is absent or null, -1. */
static int read_string(const struct columns *c, enum column col, const struct json *obj,
	const char **s, size_t *n, struct err *err)
{
	const struct json *v = get(c, col, obj);

	*s = "";
	*n = 0;
	if (!v || v->type == JSON_NULL)
		return 0;
	if (v->type != JSON_STR)
		return err_set(err, EX_DATAERR, "%s: must be a string, found %s", c->name[col],
			json_type_name(v->type));
	*s = v->s;
	*n = v->n;
	return 1;
}

static int from_pair(struct row_scratch *s, const struct columns *c, enum column ask,
	enum column answer, const struct json *obj, struct row *row, struct err *err)
{
	struct message q = { .role = ROLE_USER }, a = { .role = ROLE_ASSISTANT };
	int got = read_string(c, ask, obj, &q.text, &q.n, err);
	char *joined;

	if (got <= 0)
		return got < 0 ? -1 : missing_column(c, ask, obj, err);
	row->instruction = q.text;
	row->ninstruction = q.n;
	if (ask == COL_INSTRUCTION &&
		read_string(c, COL_INPUT, obj, &row->input, &row->ninput, err) < 0)
		return -1;
	if (row->ninput) {
		if (!(joined = arena_alloc(&s->arena, q.n + row->ninput + 2)))
			return err_oom(err, q.n + row->ninput);
		memcpy(joined, q.text, q.n);
		joined[q.n] = '\n';
		memcpy(joined + q.n + 1, row->input, row->ninput + 1);
		q.text = joined;
		q.n += row->ninput + 1;
	}
	if (add_message(s, row, q, err) < 0 ||
		(got = read_string(c, answer, obj, &a.text, &a.n, err)) < 0)
		return -1;
	row->output = a.text;
	row->noutput = a.n;
	return got ? add_message(s, row, a, err) : 0;
}

/* Columns beside the shape's own that would be lost without a word. */
static int refuse_columns(enum row_shape shape, const struct json *obj, struct err *err)
{
	static const char *const names[] = { "tools", "functions", "images", "videos", "audios",
		"history" };
	const struct json *label = json_get(obj, "label");
	size_t i;

	if (shape != SHAPE_TEXT && json_is(label, JSON_BOOL) && !label->b)
		return err_set(err, EX_DATAERR, "label: an answer judged bad (false) is not supported");
	if (json_get(obj, "chosen") && json_get(obj, "rejected"))
		return err_set(err, EX_DATAERR, "preference pairs (chosen, rejected) are not supported");
	for (i = 0; shape != SHAPE_TEXT && i < sizeof(names) / sizeof(names[0]); i++)
		if (says_something(json_get(obj, names[i])))
			return err_set(err, EX_DATAERR, "%s: is not supported", names[i]);
	return 0;
}

static int read_system(struct row_scratch *s, const struct columns *c, const struct json *obj,
	struct row *row, struct err *err)
{
	struct message m = { .role = ROLE_SYSTEM };

	if (read_string(c, COL_SYSTEM, obj, &m.text, &m.n, err) < 0)
		return -1;
	row->system = m.n > 0;
	return m.n ? add_message(s, row, m, err) : 0;
}

int row_from_json(struct row_scratch *s, const struct columns *c, enum row_shape shape,
	const struct json *obj, struct row *row, struct err *err)
{
	int got;

	arena_reset(&s->arena);
	if (!json_is(obj, JSON_OBJ))
		return err_set(
			err, EX_DATAERR, "a row must be an object, found %s", json_type_name(obj->type));
	row->json = obj;
	row->shape = shape ? shape : shape_of(c, obj);
	if (refuse_columns(row->shape, obj, err) < 0)
		return -1;
	if ((row->shape == SHAPE_SHAREGPT || row->shape == SHAPE_ALPACA) &&
		read_system(s, c, obj, row, err) < 0)
		return -1;
	switch (row->shape) {
	case SHAPE_MESSAGES:
		return from_conversation(s, c, false, obj, row, err);
	case SHAPE_SHAREGPT:
		return from_conversation(s, c, true, obj, row, err);
	case SHAPE_ALPACA:
		return from_pair(s, c, COL_INSTRUCTION, COL_OUTPUT, obj, row, err);
	case SHAPE_COMPLETION:
		return from_pair(s, c, COL_PROMPT, COL_COMPLETION, obj, row, err);
	case SHAPE_TEXT:
		got = read_string(c, COL_TEXT, obj, &row->text, &row->ntext, err);
		return got > 0 ? 0 : got < 0 ? -1 : missing_column(c, COL_TEXT, obj, err);
	default:
		return no_shape(obj, err);
	}
}
