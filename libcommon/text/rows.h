#ifndef TUNE_ROWS_H
#define TUNE_ROWS_H
/*
 * rows: files of rows in the shapes that users have -> messages, or prompt and answer, or text.
 *
 * A file is JSON Lines, a JSON array of objects, or plain text (.txt; one document a file; or a text line a row never).  Shapes: openai `messages`,
 * sharegpt `conversations`, alpaca, prompt/completion, `text`; detected from the first row and said, or data.format.  Content that is a
 * list of {type:text} parts is joined.  Every row knows its line (JSON Lines) or index (array), from 1.
 */
#include "libcommon/config.h"
#include "libcommon/text/chat.h"

enum row_shape { SHAPE_AUTO, SHAPE_MESSAGES, SHAPE_SHAREGPT, SHAPE_ALPACA, SHAPE_COMPLETION, SHAPE_TEXT };
const char *row_shape_name(enum row_shape s);

struct row {
	enum row_shape shape;
	uint64_t line;                    /* from 1 */
	struct message *m; size_t n;      /* MESSAGES, SHAREGPT; ALPACA and COMPLETION: user and assistant */
	const char *text; size_t ntext;   /* TEXT */
	const char *instruction, *input, *output; size_t ninstruction, ninput, noutput;   /* ALPACA (Stanford's text without a template) */
	const struct json *json;          /* the whole row, for tools that copy it (tune-eval generate) */
};
struct rows;
int rows_open(struct rows **r, const char *path, const struct config *cfg, struct err *err);   /* "-" = stdin */
/* 1: *row; 0: end; -1: the file can't be read on (I/O, a broken array); -2: this row is bad ("FILE:LINE: why"), the next may be good. Views last until the next call. */
int rows_next(struct rows *r, struct row *row, struct err *err);
enum row_shape rows_shape(const struct rows *r);
const char *rows_name(const struct rows *r);
void rows_sum(const struct rows *r, uint64_t *bytes, uint64_t *xxh64);   /* of the input, after the end */
bool rows_would_block(const struct rows *r);      /* stdin has nothing to read now */
void rows_close(struct rows *r);
/* Row -> sample by its shape; c may be NULL.  EX_DATAERR messages have FILE:LINE in front. */
int row_sample(const struct rows *r, const struct row *row, struct sample *s, struct encoder *e, const struct tokenizer *t,
	const struct chat_template *c, const struct chat_opts *o, struct err *err);
#endif
