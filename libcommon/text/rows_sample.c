/* rows_sample: a row through the chat template, or without one. */
#include <stdio.h>
#include <string.h>

#include "libcommon/text/rows_int.h"

/* Stanford Alpaca's prompts (train.py of that project). */
static const char with_input[] =
	"Below is an instruction that describes a task, paired with an input that provides further "
	"context. "
	"Write a response that appropriately completes the request.\n\n### Instruction:\n";
static const char without_input[] = "Below is an instruction that describes a task. "
	"Write a response that appropriately completes the request.\n\n### Instruction:\n";
static const char between[] = "\n\n### Input:\n", response[] = "\n\n### Response:";

/* The text is made in the sample's scratch, which no template uses here. */
static int stanford(const struct row *row, struct buf *out, struct err *err)
{
	if (row->system)
		return err_set(err, EX_DATAERR, "system: has no place without a chat template");
	buf_clear(out);
	buf_puts(out, row->ninput ? with_input : without_input);
	buf_put(out, row->instruction, row->ninstruction);
	if (row->ninput) {
		buf_puts(out, between);
		buf_put(out, row->input, row->ninput);
	}
	buf_puts(out, response);
	return buf_ok(out, err);
}

const struct message *row_answer(const struct row *row)
{
	return row->n && row->m[row->n - 1].role == ROLE_ASSISTANT ? &row->m[row->n - 1] : NULL;
}

static int needs_template(struct err *err)
{
	return err_set(err, EX_CONFIG,
		"rows of conversations need a chat template and the model has none; use "
		"data.template=chatml or llama3");
}

/* chat.c names "messages[1].role"; say what the row calls it. */
static void rename_path(const struct rows *r, const struct row *row, struct err *err)
{
	const struct columns *c = rows_columns(r);
	bool pair = row->shape == SHAPE_ALPACA || row->shape == SHAPE_COMPLETION;
	char rest[sizeof(err->msg)];
	size_t i;
	int at = 0, code = err->code;
	enum column list = row->shape == SHAPE_SHAREGPT ? COL_CONVERSATIONS : COL_MESSAGES;
	bool role;

	if (!strncmp(err->msg, "messages: ", 10)) {
		memcpy(rest, err->msg, sizeof(rest));
		if (!pair)
			err_set(err, code, "%s%s", c->name[list], rest + 8);
		return;
	}
	if (sscanf(err->msg, "messages[%zu].%n", &i, &at) != 1 || !at || i < row->system)
		return;
	memcpy(rest, err->msg, sizeof(rest));
	role = !strncmp(rest + at, "role", 4);
	i -= row->system;
	if (pair)
		err_set(err, code, "%s%s",
			c->name[row->shape == SHAPE_ALPACA ? (i ? COL_OUTPUT : COL_INSTRUCTION)
											   : (i ? COL_COMPLETION : COL_PROMPT)],
			strchr(rest + at, ':'));
	else
		err_set(err, code, "%s[%zu].%s%s", c->name[list], i,
			c->name[row->shape == SHAPE_SHAREGPT ? (role ? COL_FROM : COL_VALUE)
												 : (role ? COL_ROLE : COL_CONTENT)],
			strchr(rest + at, ':'));
}

static int without_template(const struct row *row, struct sample *s, struct encoder *e,
	const struct tokenizer *t, const struct chat_opts *o, struct err *err)
{
	struct buf *prompt = &s->scratch.text;

	if (row->shape == SHAPE_COMPLETION)
		return sample_plain(
			s, e, t, row->instruction, row->ninstruction, row->output, row->noutput, o, err);
	if (row->shape != SHAPE_ALPACA)
		return needs_template(err);
	if (stanford(row, prompt, err) < 0)
		return -1;
	return sample_plain(s, e, t, prompt->p, prompt->n, row->output, row->noutput, o, err);
}

static int some_trained(const struct sample *s, struct err *err)
{
	return s->n && memchr(s->mask, 1, s->n)
		? 0
		: err_set(err, EX_DATAERR, "no token to train on: the first of a row is never a target");
}

static int sample_of(const struct rows *r, const struct row *row, struct sample *s,
	struct encoder *e, const struct tokenizer *t, const struct chat_template *c,
	const struct chat_opts *o, struct err *err)
{
	enum column answer = row->shape == SHAPE_ALPACA ? COL_OUTPUT : COL_COMPLETION;
	bool pair = row->shape == SHAPE_ALPACA || row->shape == SHAPE_COMPLETION;

	if (row->shape == SHAPE_TEXT)
		return sample_text(s, e, t, row->text, row->ntext, o, err) < 0 ? -1 : some_trained(s, err);
	if (pair && !row_answer(row))
		return missing_column(rows_columns(r), answer, row->json, err);
	if (pair && !row->noutput)
		return err_set(err, EX_DATAERR, "%s: the answer is empty", rows_columns(r)->name[answer]);
	if ((c ? sample_chat(s, e, t, c, row->m, row->n, o, err)
		   : without_template(row, s, e, t, o, err)) < 0)
		return -1;
	return some_trained(s, err);
}

/* Only a fault of the row is a row's error; a fault of the set-up would be every row's. */
static int located(const struct rows *r, const struct row *row, int rc, struct err *err)
{
	if (rc == 0 || err->code != EX_DATAERR)
		return rc;
	rename_path(r, row, err);
	rows_where(r, row->line, err);
	return -2;
}

int row_sample(const struct rows *r, const struct row *row, struct sample *s, struct encoder *e,
	const struct tokenizer *t, const struct chat_template *c, const struct chat_opts *o,
	struct err *err)
{
	return located(r, row, sample_of(r, row, s, e, t, c, o, err), err);
}

static int prompt_of(const struct row *row, struct sample *s, struct encoder *e,
	const struct tokenizer *t, const struct chat_template *c, const struct chat_opts *o,
	struct err *err)
{
	const struct message *answer = row_answer(row);
	struct message one = { .role = ROLE_USER };

	if (row->shape != SHAPE_TEXT &&
		(c || row->shape == SHAPE_MESSAGES || row->shape == SHAPE_SHAREGPT)) {
		if (!c)
			return needs_template(err);
		return sample_prompt(
			s, e, t, c, row->m, answer ? (size_t)(answer - row->m) : row->n, o, err);
	}
	if (row->shape == SHAPE_ALPACA) {
		if (stanford(row, &s->scratch.text, err) < 0)
			return -1;
		one.text = s->scratch.text.p;
		one.n = s->scratch.text.n;
	} else {
		one.text = row->shape == SHAPE_TEXT ? row->text : row->instruction;
		one.n = row->shape == SHAPE_TEXT ? row->ntext : row->ninstruction;
	}
	return sample_prompt(s, e, t, NULL, &one, 1, o, err);
}

int row_prompt(const struct rows *r, const struct row *row, struct sample *s, struct encoder *e,
	const struct tokenizer *t, const struct chat_template *c, const struct chat_opts *o,
	struct err *err)
{
	return located(r, row, prompt_of(row, s, e, t, c, o, err), err);
}
