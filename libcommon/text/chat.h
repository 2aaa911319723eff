#ifndef TUNE_CHAT_H
#define TUNE_CHAT_H
/*
 * chat: messages -> text with provenance -> ids and a loss mask.
 *
 * A chat_template renders messages as pieces; each byte knows whether it is the template's or a
 * message's content, so that special tokens are matched only in template text (D8) and the mask
 * follows turns, never string search (D4).  The whole text is tokenised once. Known templates are
 * rendered by code (chatml, llama3 and variants such as SmolLM2's default system prompt),
 * recognised by the content of the model's own template; an unknown one is EX_CONFIG with the way
 * out (data.template=chatml).
 */
#include "libcommon/json.h"
#include "libcommon/text/tokenizer.h"

enum role { ROLE_SYSTEM, ROLE_USER, ROLE_ASSISTANT, ROLE_TOOL };
const char *role_name(enum role r);
struct message { enum role role; const char *text; size_t n; };   /* borrowed */

struct chat_template;
/*
 * name: data.template: "" = the model's own (tokenizer_chat_template), "chatml", "llama3", "none",
 * or a file that holds a known template. vars: data.template_vars as pairs name, value; one that
 * the template does not know is EX_CONFIG.  *c is NULL if there is no template
 * ("none", or the model has none).  The tokens that the template writes must be in the tokenizer.
 * t must outlive *c.
 */
int chat_open(struct chat_template **c, const struct tokenizer *t, const char *name,
	const char *const (*vars)[2], size_t nvars, struct err *err);
void chat_close(struct chat_template *c);
const char *chat_name(const struct chat_template *c);       /* "chatml", "smollm2", "llama3" ... */
const char *chat_source(const struct chat_template *c);     /* template text, for exports */
const char *chat_sha256(const struct chat_template *c);     /* of chat_source */

/* bytes of content and end-of-turn token of an assistant's turn */
struct answer { size_t begin, end; uint32_t message; bool empty; };
struct rendered {
	struct buf text;
	/*
	 * one byte a byte of text: 1 = the template's own, 0 = content, where special tokens are only
	 * text (D8)
	 */
	struct buf allowed;
	struct answer *answers; size_t nanswers, cap;
};
void rendered_release(struct rendered *r);
/*
 * generation_prompt: end with the assistant's header.  EX_DATAERR "messages[1].role: ..." if the
 * template does not allow the sequence.
 */
int chat_render(const struct chat_template *c, const struct message *m, size_t n,
	bool generation_prompt, struct rendered *out, struct err *err);

/*
 * What is trained.  ASSISTANT: every answer's content and its end-of-turn token (never the header
 * before it nor the newline after it); LAST: the last answer only; ALL: everything but the first
 * token.  A token is trained if at least one of its bytes is in a trained span, so a token that
 * joins the end of a header with the start of an answer is trained.  Nothing is ever masked by its
 * id.
 */
enum train_on { TRAIN_ASSISTANT, TRAIN_LAST, TRAIN_ALL };
/*
 * A row, ready: ids, mask (mask[0] = 0), owned; used again by the next call.  {0} is an empty one.
 */
struct sample {
	uint32_t *ids; uint8_t *mask; size_t n, cap, mask_cap;
	uint64_t special_in_content;     /* strings of special tokens found in content */
	struct rendered scratch;
	struct specials *specials;
};
void sample_release(struct sample *s);

struct chat_opts {
	enum train_on train_on;
	/* text rows and template-less rows end with a trained EOS */
	bool eos;
	enum { SPECIAL_TEXT, SPECIAL_ALLOW, SPECIAL_ERROR } special;
};
/*
 * Messages through the template (c not NULL).  The first id is BOS if the template writes it or the
 * tokenizer adds it, once. EX_DATAERR if there is no answer to train on, or every trained answer is
 * empty (D13).
 */
int sample_chat(struct sample *s, struct encoder *e, const struct tokenizer *t,
	const struct chat_template *c, const struct message *m, size_t n, const struct chat_opts *o,
	struct err *err);
/*
 * Prompt and answer without a template: prompt ids are those of the prompt alone (K3), BOS as the
 * tokenizer says, EOS by opts.
 */
int sample_plain(struct sample *s, struct encoder *e, const struct tokenizer *t, const char *prompt,
	size_t np, const char *answer, size_t na, const struct chat_opts *o, struct err *err);
/* Text: all trained but the first token. */
int sample_text(struct sample *s, struct encoder *e, const struct tokenizer *t, const char *text,
	size_t n, const struct chat_opts *o, struct err *err);
/* The ids that generation starts from (BOS and special tokens as the training side has them). */
int sample_prompt(struct sample *s, struct encoder *e, const struct tokenizer *t,
	const struct chat_template *c, const struct message *m, size_t n, const struct chat_opts *o,
	struct err *err);
#endif
