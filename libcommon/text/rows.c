#include "libcommon/text/rows.h"

#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "libcommon/text/rows_int.h"

struct row_parser {
	struct json_doc doc;
	struct row_scratch scratch;
};

struct rows {
	struct input in;
	struct columns columns;
	enum row_shape shape;
	struct row_parser *parser;     /* rows_next's, and the detection's */
};

const char *row_shape_name(enum row_shape s)
{
	static const char *const names[] = {
		"unknown",
		"openai messages",
		"sharegpt conversations",
		"alpaca instructions",
		"prompt and completion",
		"text",
	};

	return names[s];
}

/* data.format's word -> shape. */
static enum row_shape shape_by_name(const char *s)
{
	static const char *const names[] = { "auto", "messages", "sharegpt", "alpaca", "completion",
		"text" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(s, names[i]))
			return (enum row_shape)i;
	return SHAPE_AUTO;
}

int row_parser_new(struct row_parser **p, struct err *err)
{
	*p = mem_zalloc(1, sizeof(**p), err);
	return *p ? 0 : -1;
}

void row_parser_free(struct row_parser *p)
{
	if (!p)
		return;
	json_release(&p->doc);
	arena_release(&p->scratch.arena);
	free(p->scratch.m);
	free(p);
}

static int start(struct rows **out, const char *path, const struct peeked *p,
	const struct config *cfg, struct err *err)
{
	struct rows *r = mem_zalloc(1, sizeof(*r), err);

	*out = NULL;
	if (!r)
		return -1;
	r->in.fd = -1;
	r->shape = shape_by_name(cfg_str(cfg, "data.format"));
	if (columns_read(&r->columns, cfg, err) < 0 || row_parser_new(&r->parser, err) < 0 ||
	    input_open(&r->in, path, p, r->shape == SHAPE_TEXT, err) < 0) {
		rows_close(r);
		return -1;
	}
	*out = r;
	return 0;
}

int rows_open(struct rows **r, const char *path, const struct config *cfg, struct err *err)
{
	return start(r, path, NULL, cfg, err);
}

int rows_take(struct rows **r, const struct peeked *p, const struct config *cfg, struct err *err)
{
	return start(r, p->path, p, cfg, err);
}

void rows_close(struct rows *r)
{
	if (!r)
		return;
	input_release(&r->in);
	row_parser_free(r->parser);
	free(r);
}

void rows_where(const struct rows *r, uint64_t line, struct err *err)
{
	if (r->in.kind == INPUT_TEXT)
		err_prefix(err, "%s: ", r->in.name);
	else if (r->in.kind == INPUT_ARRAY)
		err_prefix(err, "%s: row %llu: ", r->in.name, (unsigned long long)line);
	else
		err_prefix(err, "%s:%llu: ", r->in.name, (unsigned long long)line);
}

/*
 * The first row that has a shape decides for the file; a row that has none is its parser's to
 * refuse.
 */
static void detect(struct rows *r, const struct raw_row *raw)
{
	struct err ignored = {0};

	if (!json_parse(&r->parser->doc, raw->text, raw->n, r->in.name, raw->file_line, &ignored))
		r->shape = shape_of(&r->columns, &r->parser->doc.root);
}

int rows_read(struct rows *r, struct raw_row *raw, struct err *err)
{
	int got = input_next(&r->in, raw, err);

	if (got <= 0)
		return got;
	if (r->in.kind == INPUT_TEXT)
		r->shape = SHAPE_TEXT;
	else if (r->shape == SHAPE_AUTO)
		detect(r, raw);
	raw->shape = r->shape;
	return 1;
}

int row_parse(const struct rows *r, struct row_parser *p, const struct raw_row *raw,
	struct row *row, struct err *err)
{
	*row = (struct row){ .shape = raw->shape, .line = raw->line };
	if (r->in.kind == INPUT_TEXT) {
		if (!(row->text = (arena_reset(&p->scratch.arena),
				  arena_strndup(&p->scratch.arena, raw->text, raw->n))))
			return err_oom(err, raw->n);
		row->ntext = raw->n;
		return 0;
	}
	if (json_parse(&p->doc, raw->text, raw->n, r->in.name, raw->file_line, err) < 0)
		return err->code == EX_DATAERR ? -2 : -1;
	if (!row_from_json(&p->scratch, &r->columns, raw->shape, &p->doc.root, row, err))
		return 0;
	if (err->code != EX_DATAERR)
		return -1;
	rows_where(r, raw->line, err);
	return -2;
}

int rows_next(struct rows *r, struct row *row, struct err *err)
{
	struct raw_row raw;
	int got = rows_read(r, &raw, err);

	if (got <= 0)
		return got;
	got = row_parse(r, r->parser, &raw, row, err);
	return got < 0 ? got : 1;
}

enum row_shape rows_shape(const struct rows *r)
{
	return r->shape;
}

const char *rows_name(const struct rows *r)
{
	return r->in.name;
}

bool rows_in_array(const struct rows *r)
{
	return r->in.kind == INPUT_ARRAY;
}

uint64_t rows_bytes(const struct rows *r)
{
	return r->in.bytes;
}

void rows_sum(const struct rows *r, uint64_t *bytes, uint64_t *xxh64)
{
	*bytes = r->in.bytes;
	*xxh64 = hash64_value(r->in.hash);
}

bool rows_would_block(const struct rows *r)
{
	return input_would_block(&r->in);
}

const struct columns *rows_columns(const struct rows *r)
{
	return &r->columns;
}
