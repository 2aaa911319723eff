#ifndef TUNE_TOKENIZE_H
#define TUNE_TOKENIZE_H
/*
 * tune-tokenize: rows or text in, documents of ids with a mask out.
 *
 * encode.c reads rows, lets threads turn them into ids, and hands the documents on in the order of
 * the input, whatever the number of threads.  Where they go is a sink: the stream (output.c) or the
 * preview (preview.c).
 */
#include "libcommon/stream/stream.h"
#include "libcommon/text/rows.h"
#include "libcommon/tool.h"

struct doc {
	uint32_t src;                      /* index of the input */
	uint64_t line;
	const uint32_t *ids; const uint8_t *mask; size_t n;
	uint64_t special;                  /* special-token strings in its content */
};
/* 0: go on; 1: enough; -1: err (-2: this document can't be used). */
typedef int sink_fn(void *ctx, const struct doc *d, struct err *err);
/* Standard input has nothing more at the moment: pass on what waits. */
typedef int pause_fn(void *ctx, struct err *err);

/* ---- report.c: what could not be used, and the sums ---- */
enum { REASONS_MAX = 32, REASON_LINES = 10, SPECIAL_WARNINGS = 10 };
struct reason { char *text; uint32_t src; uint64_t count, lines[REASON_LINES]; };
struct report {
	uint64_t rows, docs, tokens, trained, skipped, special, special_docs;
	struct reason reasons[REASONS_MAX];
	size_t nreasons;
	uint64_t other;                    /* skipped for a reason that is not in the list */
	char *first;                       /* why the first row was skipped, with its place */
};

struct tokenize {
	struct tool *tool;
	const struct config *cfg;
	struct tokenizer *tok;
	struct chat_template *chat;        /* NULL: none */
	struct chat_opts opts;
	char **inputs; size_t ninputs;     /* borrowed */
	struct stream_input_sum *sums;     /* of the inputs that were read to their end */
	bool *in_array;                    /* the input's rows are counted, not lines */
	bool raw;
	struct report report;
	struct progress progress;
	sink_fn *sink; pause_fn *pause; void *sink_ctx;
};

void report_skip(struct tokenize *z, uint32_t src, uint64_t line, const struct err *why);
void report_doc(struct tokenize *z, const struct doc *d);
void report_print(struct tokenize *z);
/* EX_DATAERR if no row could be used. */
int report_check(const struct tokenize *z, struct err *err);
void report_release(struct report *r);

/* ---- setup.c ---- */
/* rows: the inputs are rows, for the chat template; else each is one text or, for decode, ids. */
int tokenize_open(struct tokenize *z, struct tool *t, bool rows, struct err *err);
void tokenize_close(struct tokenize *z);
const char *input_name(const struct tokenize *z, uint32_t src);       /* "stdin" for "-" */
/* The header that the settings and the tokenizer make. */
int tokenize_header(const struct tokenize *z, struct stream_header *h, struct err *err);

/* ---- the work ---- */
/* every input through rows */
int encode_rows(struct tokenize *z, struct err *err);
int encode_raw(struct tokenize *z, struct err *err);                   /* every input as one text */
int write_stream(struct tokenize *z, const char *path, bool force, struct err *err);
int preview(struct tokenize *z, uint64_t samples, struct err *err);
int decode_inputs(struct tokenize *z, struct err *err);
#endif
