#ifndef TUNE_CHAT_H
#define TUNE_CHAT_H
/*
 * chat: messages -> text with provenance -> ids and a loss mask.
 *
 * A chat_template renders messages as pieces; each byte knows whether it is the template's or a message's content, so that special tokens
 * are matched only in template text (D8) and the mask follows turns, never string search (D4).  The whole text is tokenised once.
 * Known templates are rendered by code (chatml, llama3 and variants such as SmolLM2's default system prompt), recognised by the content
 * of the model's own template; an unknown one is EX_CONFIG with the way out (data.template=chatml).
 */
#include "libcommon/json.h"
#include "libcommon/text/tokenizer.h"

enum role { ROLE_SYSTEM, ROLE_USER, ROLE_ASSISTANT, ROLE_TOOL };
const char *role_name(enum role r);
struct message { enum role role; const char *text; size_t n; };   /* borrowed */

struct chat_template;
/*
 * source: the model's template text (tokenizer_chat_template), or NULL.  name: data.template: "" = the model's own, "chatml", "llama3", "none", or a file
 * holding a template.  vars: data.template_vars as pairs name, value.  *c is NULL if there is no template ("none", or the model has none).
 */
int chat_open(struct chat_template **c, const struct tokenizer *t, const char *name, const char *const (*vars)[2], size_t nvars, struct err *err);
void chat_close(struct chat_template *c);
const char *chat_name(const struct chat_template *c);       /* "chatml", "smollm2", "llama3" ... */
const char *chat_source(const struct chat_template *c);     /* template text, for exports */
const char *chat_sha256(const struct chat_template *c);

struct rendered {
	struct buf text;
	struct buf owner;      /* one byte a byte of text: 0 = template, 1 = content of a message */
	struct buf train;      /* one byte a byte of text: 1 = within an assistant span (content and end-of-turn token) */
	struct buf turn;       /* u32 a byte: index of the message, for train_on=last */
};
void rendered_release(struct rendered *r);
/* generation_prompt: end with the assistant's header.  EX_DATAERR "messages[1].role: ..." if the template does not allow the sequence. */
int chat_render(const struct chat_template *c, const struct message *m, size_t n, bool generation_prompt, struct rendered *out, struct err *err);

enum train_on { TRAIN_ASSISTANT, TRAIN_LAST, TRAIN_ALL };
/* A row, ready: ids, mask (mask[0] = 0), owned. */
struct sample { uint32_t *ids; uint8_t *mask; size_t n, cap; uint64_t special_in_content; };
void sample_release(struct sample *s);

struct chat_opts {
	enum train_on train_on;
	bool eos;                                /* text rows and template-less rows end with a trained EOS */
	enum { SPECIAL_TEXT, SPECIAL_ALLOW, SPECIAL_ERROR } special;
};
/* Messages through the template (c not NULL). */
int sample_chat(struct sample *s, struct encoder *e, const struct tokenizer *t, const struct chat_template *c,
	const struct message *m, size_t n, const struct chat_opts *o, struct err *err);
/* Prompt and answer without a template: prompt ids are those of the prompt alone (K3), BOS as the tokenizer says, EOS by opts. */
int sample_plain(struct sample *s, struct encoder *e, const struct tokenizer *t, const char *prompt, size_t np,
	const char *answer, size_t na, const struct chat_opts *o, struct err *err);
/* Text: all trained but the first token. */
int sample_text(struct sample *s, struct encoder *e, const struct tokenizer *t, const char *text, size_t n, const struct chat_opts *o, struct err *err);
/* The ids that generation starts from (BOS exactly as the training side has it). */
int sample_prompt(struct sample *s, struct encoder *e, const struct tokenizer *t, const struct chat_template *c,
	const struct message *m, size_t n, struct err *err);
#endif
