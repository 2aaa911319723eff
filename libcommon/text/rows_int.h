#ifndef TUNE_ROWS_INT_H
#define TUNE_ROWS_INT_H
/* What the files of rows share. */
#include "libcommon/text/rows.h"

/* ---- input: the bytes of a file, cut into rows ---- */
enum input_kind { INPUT_UNKNOWN, INPUT_LINES, INPUT_ARRAY, INPUT_TEXT };
struct input {
	int fd;                   /* -1: closed */
	char *name;               /* owned */
	enum input_kind kind;
	bool text;                /* what is no JSON is one document of text */
	bool txt;                 /* named .txt: is one whatever it holds */
	char *p;                  /* owned: bytes [pos, n) are not consumed yet */
	size_t pos, n, cap;
	bool eof, after_row, ended, may_block;
	uint64_t bytes, line, index;   /* line: of pos, from 1; index: rows returned */
	struct hash64_state *hash;
};
/* p: NULL, or path opened already */
int input_open(struct input *in, const char *path, const struct peeked *p, bool text,
	struct err *err);
/* As rows_read; fills text, n, line and file_line of *raw. */
int input_next(struct input *in, struct raw_row *raw, struct err *err);
bool input_would_block(const struct input *in);
void input_release(struct input *in);

/* ---- columns: our names and the file's ---- */
enum column {
	COL_MESSAGES, COL_ROLE, COL_CONTENT, COL_CONVERSATIONS, COL_FROM, COL_VALUE, COL_INSTRUCTION,
	COL_INPUT, COL_OUTPUT, COL_PROMPT, COL_COMPLETION, COL_TEXT, COL_SYSTEM, COL_COUNT
};
struct columns { const char *name[COL_COUNT]; };   /* borrowed from the config */
int columns_read(struct columns *c, const struct config *cfg, struct err *err);

/* ---- one JSON object -> a row ---- */
enum row_shape shape_of(const struct columns *c, const struct json *obj);   /* AUTO if none */
/* Messages are views into obj and memory of arena and *m.  Errors have no FILE:LINE yet. */
struct row_scratch { struct message *m; size_t cap; struct arena arena; };
int row_from_json(struct row_scratch *s, const struct columns *c, enum row_shape shape,
	const struct json *obj, struct row *row, struct err *err);
/* "output: missing (the row has a, b); ..." */
int missing_column(
	const struct columns *c, enum column col, const struct json *obj, struct err *err);

/* "FILE:3: " in front of err's message. */
void rows_where(const struct rows *r, uint64_t line, struct err *err);
const struct columns *rows_columns(const struct rows *r);
#endif
