#ifndef TUNE_EVAL_H
#define TUNE_EVAL_H
/* eval: one model, ready to score and to answer. */
#include "core/generate.h"
#include "core/model.h"
#include "libcommon/text/rows.h"
#include "libcommon/text/settings.h"
#include "libcommon/tool.h"

struct eval_opts {
	const char *each;        /* "-": follow the save events on stdin */
	double min;              /* NAN = not given */
	bool per_row;
	const char *scores;      /* SCOR stream, or NULL */
	const char *system;      /* chat: a system message */
	const char *output;      /* generate: FILE or "-" */
	bool force;
};

struct eval {
	struct tool *tool;
	const struct config *cfg;
	struct eval_opts o;
	struct device *dev;
	struct comm *comm;
	/* of one model; eval_load fills it, eval_unload empties it */
	struct modelfile file;
	struct peft peft;
	struct tokenizer *tok;
	struct chat_template *chat;
	struct encoder *enc;
	uint32_t stop[32]; size_t nstop;
	struct plan plan;
	struct model *model;
};

/* Device and the rest that does not depend on the model. */
int eval_open(struct eval *e, struct tool *t, struct err *err);
void eval_close(struct eval *e);
/*
 * Files and tokenizer of a model (path as -m; model.adapter or a PEFT path brings an adapter), no
 * weights yet.
 */
int eval_load(struct eval *e, const char *path, struct err *err);
/*
 * Weights: room for micro-batches of up to max_record tokens, and for slots answers of gen_len
 * tokens (0 = none).
 */
int eval_model(struct eval *e, long max_record, int slots, long gen_len, struct err *err);
void eval_unload(struct eval *e);
/* Tokens that the model can attend to at once. */
long eval_window(const struct eval *e);
/* The window, or as much of it as the memory has room for: a half, a quarter ... */
long eval_room(const struct eval *e);
struct sampling eval_sampling(const struct eval *e);
/*
 * "dtype, device, template, hashes": what a result depends on, as members of an open JSON object
 * (fault E3).
 */
void eval_settings_json(const struct eval *e, struct json_w *w);

/* ---- the verbs: exit status or -1 ---- */
int verb_loss(struct eval *e, struct err *err);
int verb_generate(struct eval *e, struct err *err);
int verb_match(struct eval *e, struct err *err);
int verb_chat(struct eval *e, struct err *err);

/* ---- samples.c: what loss scores ---- */
/*
 * row: items of one row share it (windows of a long text).  seq is of the record that the item is
 * from, as 'tune-stream cat' of all operands numbers them, rows being counted; token i > 0 of the
 * item is token shift + i of that record's `whole` ones (a pack has several rows).
 */
struct item {
	uint32_t *ids;
	uint8_t *mask;
	size_t n, shift, whole;
	uint32_t src;
	uint64_t line, seq;
	uint64_t row, record;
};
struct items {
	struct item *item; size_t n, cap;
	char **inputs; size_t ninputs, inputs_cap;
	size_t longest, longest_record;
	uint64_t seq0, seq_end;        /* where this operand's begin; above every one so far */
	/* contexts cut from the left; rows whose answer is longer than the window; bad rows skipped */
	uint64_t rows, cut, invalid, skipped, records;
};
int items_read(struct items *it, struct eval *e, struct err *err);
void items_release(struct items *it);
/* score.c: sum of -log p and counts over all items; row(ctx, ...) and the SCOR stream get each. */
struct score { double nll; uint64_t tokens, greedy; };
int score_items(struct eval *e, const struct items *it, struct score *total, struct score *per_row,
	struct err *err);

/* ---- prompts.c: what generate and match answer ---- */
struct prompt {
	uint32_t *ids; size_t n;
	char *head, *tail;                   /* the output row around the answer's JSON string */
	char *question;                      /* the last user message (or the text), for people */
	char *reference; size_t nreference;  /* the last assistant message, or NULL */
};
struct prompts { struct prompt *p; size_t n, cap; size_t longest; uint64_t skipped; };
int prompts_read(struct prompts *p, struct eval *e, bool need_reference, struct err *err);
void prompts_release(struct prompts *p);

/* ---- answer.c ---- */
/*
 * Called for each prompt in order; text has stop strings cut off; stopped: by a stop token or
 * string, else by length.
 */
typedef int answer_fn(
	void *ctx, size_t i, const char *text, size_t n, bool stopped, struct err *err);
int answer_prompts(
	struct eval *e, const struct prompts *p, answer_fn *done, void *ctx, struct err *err);
/* Decoded answer so far, watched for the stop strings of generate.stop. */
struct watch { const struct eval *e; struct buf text; };
/*
 * Add a token: 1 if a stop string is complete (text is cut before it), 0 if not, -1 out of memory
 * or a bad id.
 */
int watch_add(struct watch *w, uint32_t id, struct err *err);
#endif
