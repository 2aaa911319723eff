/*
 * Rows -> prompts: all before the last assistant message; that message, if there is one, is the
 * reference.
 */
#include <stdlib.h>
#include <string.h>

#include "eval.h"

void prompts_release(struct prompts *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->p[i].ids);
		free(p->p[i].head);
		free(p->p[i].tail);
		free(p->p[i].question);
		free(p->p[i].reference);
	}
	free(p->p);
	*p = (struct prompts){0};
}

static void member(struct json_w *w, const char *name, const char *s, size_t n)
{
	json_w_name(w, name);
	json_w_strn(w, s, n);
}

/*
 * {"messages":[..., {"role":"assistant","content":   or, for a text, {"prompt":"...","completion":
 */
static char *head(const struct row *row, const struct message *answer)
{
	struct buf b = {0};
	struct json_w w = { .out = &b };
	size_t n = answer ? (size_t)(answer - row->m) : row->n;

	json_w_obj(&w);
	if (row->shape == SHAPE_TEXT) {
		member(&w, "prompt", row->text, row->ntext);
		buf_puts(&b, ",\"completion\":");
		return buf_detach(&b);
	}
	json_w_name(&w, "messages");
	json_w_arr(&w);
	for (size_t i = 0; i < n; i++) {
		json_w_obj(&w);
		member(&w, "role", role_name(row->m[i].role), strlen(role_name(row->m[i].role)));
		member(&w, "content", row->m[i].text, row->m[i].n);
		json_w_end(&w);
	}
	buf_puts(
		&b, n ? ",{\"role\":\"assistant\",\"content\":" : "{\"role\":\"assistant\",\"content\":");
	return buf_detach(&b);
}

/* What follows the answer: the row's other members, carried along. */
static char *tail(const struct row *row)
{
	static const char *const used[] = { "messages", "conversations", "prompt", "completion",
		"instruction", "input", "output", "text", "system", "finish" };
	struct buf b = {0};

	buf_puts(&b, row->shape == SHAPE_TEXT ? "" : "}]");
	for (uint32_t i = 0; row->json && i < row->json->n; i++) {
		const struct json_member *m = &row->json->members[i];
		struct json_w w = { .out = &b };
		size_t k = 0;

		while (k < sizeof(used) / sizeof(used[0]) && strcmp(used[k], m->name.s))
			k++;
		if (k < sizeof(used) / sizeof(used[0]))
			continue;
		buf_putc(&b, ',');
		json_w_value(&w, &m->name);
		buf_putc(&b, ':');
		w = (struct json_w){ .out = &b };
		json_w_value(&w, &m->value);
	}
	return buf_detach(&b);
}

static int push(struct prompts *p, const struct row *row, const struct sample *s, struct err *err)
{
	const struct message *answer = row_answer(row), *last = answer ? answer : row->m + row->n;
	struct prompt *o;

	if (grow(&p->p, &p->cap, p->n + 1, sizeof(*p->p), err) < 0)
		return -1;
	o = &p->p[p->n++];
	*o = (struct prompt){ .n = s->n, .head = head(row, answer), .tail = tail(row) };
	o->ids = mem_zalloc(s->n, sizeof(*o->ids), err);
	o->question = row->shape == SHAPE_TEXT ? mem_strndup(row->text, row->ntext, err) :
		last > row->m ? mem_strndup(last[-1].text, last[-1].n, err) : mem_strdup("", err);
	if (answer) {
		o->reference = mem_strndup(answer->text, answer->n, err);
		o->nreference = answer->n;
	}
	if (!o->head || !o->tail || !o->ids || !o->question || (answer && !o->reference))
		return err_oom(err, s->n);
	memcpy(o->ids, s->ids, s->n * sizeof(*o->ids));
	if (s->n > p->longest)
		p->longest = s->n;
	return 0;
}

static int one_row(struct prompts *p, struct eval *e, const struct rows *r, const struct row *row,
	struct sample *s, bool need, struct err *err)
{
	struct chat_opts o = chat_opts_config(e->cfg);
	struct row to_answer = *row;
	int rc;

	/* match looks at the last answer, whatever comes after it */
	while (need && to_answer.n && !row_answer(&to_answer))
		to_answer.n--;
	row = need ? &to_answer : row;
	if (need && !row_answer(row)) {
		err_set(err, EX_DATAERR, "%s:%llu: no assistant message to compare with", rows_name(r),
			(unsigned long long)row->line);
		return -2;
	}
	rc = row_prompt(r, row, s, e->enc, e->tok, e->chat, &o, err);
	if (rc < 0)
		return rc;
	if (s->n + 1 > (size_t)eval_window(e)) {
		err_set(err, EX_DATAERR, "%s:%llu: the prompt has %zu tokens, the model's window is %ld",
			rows_name(r), (unsigned long long)row->line, s->n, eval_window(e));
		return -2;
	}
	return push(p, row, s, err);
}

static int read_file(
	struct prompts *p, struct eval *e, const char *path, bool need, struct err *err)
{
	bool skip = !strcmp(cfg_str(e->cfg, "data.on_error"), "skip");
	struct sample s = {0};
	struct rows *r = NULL;
	struct row row;
	int rc;

	if (rows_open(&r, path, e->cfg, err) < 0)
		return -1;
	while ((rc = rows_next(r, &row, err)) != 0 && rc != -1) {
		if (rc > 0)
			rc = one_row(p, e, r, &row, &s, need, err);
		if (rc == -2 && skip) {
			p->skipped++;
			tool_warn(e->tool, "skipped: %s", err->msg);
		} else if (rc < 0) {
			break;
		}
	}
	sample_release(&s);
	rows_close(r);
	return rc < 0 ? -1 : 0;
}

int prompts_read(struct prompts *p, struct eval *e, bool need, struct err *err)
{
	if (!e->tool->argc && read_file(p, e, "-", need, err) < 0)
		return -1;
	for (int i = 0; i < e->tool->argc; i++)
		if (read_file(p, e, e->tool->argv[i], need, err) < 0)
			return -1;
	return p->n ? 0 : err_set(err, EX_DATAERR, "no prompt to answer");
}
