#ifndef TUNE_ROWS_H
#define TUNE_ROWS_H
/*
 * rows: files of rows in the shapes that users have -> messages, or prompt and answer, or text.
 *
 * A file is JSON Lines, a JSON array of objects (read element by element, never as a whole), or
 * plain text (.txt, or data.format=text where the first byte is no '{' or '['): one document a
 * file.  The first byte that is not blank decides, a file of another kind is EX_DATAERR.  Shapes:
 * openai `messages`, sharegpt `conversations`, alpaca, prompt/completion, `text`; detected from the
 * first row that has one and kept for the file, or data.format.  data.columns renames.  Content
 * that is a list of {type: text} parts is joined.  What a row says and we can't honour (tools, tool
 * calls, images, preference pairs) is refused by name.  Every row knows its line (JSON Lines) or
 * index (array), from 1.  A row is at most ROW_MAX bytes, as is a text file.
 *
 * Messages: "FILE:LINE: messages[1].role: ..." (JSON Lines), "FILE: row N: ..." (array); broken
 * JSON "FILE:LINE:COLUMN: ..." in both.
 */
#include "libcommon/config.h"
#include "libcommon/text/chat.h"

enum { ROW_MAX = 200 << 20 };
enum row_shape {
	SHAPE_AUTO, SHAPE_MESSAGES, SHAPE_SHAREGPT, SHAPE_ALPACA, SHAPE_COMPLETION, SHAPE_TEXT
};
const char *row_shape_name(enum row_shape s);    /* "openai messages" ..., to be said */

struct row {
	enum row_shape shape;
	uint64_t line;                    /* from 1 */
	/* all but TEXT; ALPACA and COMPLETION: system?, user and, where the row has it, assistant */
	struct message *m; size_t n;
	bool system;                      /* m[0] comes from a column `system` beside the others */
	const char *text; size_t ntext;   /* TEXT */
	/* ALPACA (Stanford's text without a template) */
	const char *instruction, *input, *output; size_t ninstruction, ninput, noutput;
	/* the whole row, for tools that copy it (tune-eval generate); NULL for a text file */
	const struct json *json;
};
struct rows;
/* "-" = stdin */
int rows_open(struct rows **r, const char *path, const struct config *cfg, struct err *err);
/* Take over an input that file_peek has opened. */
struct peeked;
int rows_take(
	struct rows **r, const struct peeked *p, const struct config *cfg, struct err *err);
/*
 * 1: *row; 0: end; -1: the file can't be read on (I/O, a broken array); -2: this row is bad
 * ("FILE:LINE: why"), the next may be good. Views last until the next call.
 */
int rows_next(struct rows *r, struct row *row, struct err *err);
enum row_shape rows_shape(const struct rows *r);   /* AUTO until a row had one */
const char *rows_name(const struct rows *r);       /* the path; "stdin" for "-" */
bool rows_in_array(const struct rows *r);          /* rows are counted, not lines */
uint64_t rows_bytes(const struct rows *r);         /* read so far, for progress */
/* of the input, after the end */
void rows_sum(const struct rows *r, uint64_t *bytes, uint64_t *xxh64);
bool rows_would_block(const struct rows *r);       /* stdin has nothing to read now */
void rows_close(struct rows *r);

/*
 * The two halves of rows_next, so that several threads can parse what one reads.  rows_read: as
 * rows_next; the view lasts until the next call.  row_parse: 0, -1 or -2 as above; *row lasts until
 * the parser's next call and does not need raw any more.
 */
struct raw_row { const char *text; size_t n; uint64_t line, file_line; enum row_shape shape; };
struct row_parser;
int row_parser_new(struct row_parser **p, struct err *err);
void row_parser_free(struct row_parser *p);
int rows_read(struct rows *r, struct raw_row *raw, struct err *err);
int row_parse(const struct rows *r, struct row_parser *p, const struct raw_row *raw,
	struct row *row, struct err *err);

/*
 * Row -> sample by its shape; c may be NULL: then ALPACA takes Stanford's text, COMPLETION plain
 * concatenation, and conversations are EX_CONFIG.  0, -1 or -2 as above.
 */
int row_sample(const struct rows *r, const struct row *row, struct sample *s, struct encoder *e,
	const struct tokenizer *t, const struct chat_template *c, const struct chat_opts *o,
	struct err *err);
/*
 * The ids that an answer starts from: of all before a last assistant message, exactly as
 * row_sample has them; of a text row, the text.
 */
int row_prompt(const struct rows *r, const struct row *row, struct sample *s, struct encoder *e,
	const struct tokenizer *t, const struct chat_template *c, const struct chat_opts *o,
	struct err *err);
/* The last message, if it is an assistant's (the reference of a prompt), or NULL. */
const struct message *row_answer(const struct row *row);
#endif
