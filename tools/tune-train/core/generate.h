#ifndef TUNE_GENERATE_H
#define TUNE_GENERATE_H
/* generate: answers from a model: greedy or sampled, many prompts at once through gen_slots. */
#include "model.h"

struct sampling {
	long max_new_tokens;
	double temperature;
	int top_k;
	double top_p;
	uint64_t seed;
	uint64_t first;     /* the number of the first prompt: each has random numbers of its own */
};
/*
 * One token from logits[v]: greedy at temperature 0 (first of equals); else top-k, then top-p over
 * the sorted distribution, drawn with Philox key (seed, RNG_SAMPLE), counter (n, prompt, 0, 0).
 * scratch: v entries.
 */
uint32_t sample_token(const float *logits, long v, const struct sampling *s, uint64_t prompt,
	uint64_t n, uint32_t *scratch);

struct gen_prompt { const uint32_t *ids; size_t n; };
/*
 * ids owned by the caller (free); the stop token is not in ids; stopped: by a stop token, else by
 * length or the callback
 */
struct gen_result { uint32_t *ids; size_t n; bool stopped; };
/*
 * on_token (may be NULL) is called for each new token; a non-zero return ends that answer (stop
 * strings, Ctrl-C).  Prompts longer than gen_len - 1 are EX_DATAERR naming the prompt's index.
 */
typedef int gen_token_fn(void *ctx, size_t prompt, uint32_t id);
int generate(struct model *m, const struct gen_prompt *prompts, size_t n, const struct sampling *s,
	const uint32_t *stop, size_t nstop, gen_token_fn *on_token, void *ctx,
	struct gen_result *results, struct err *err);
#endif
