#ifndef TUNE_MODELFILE_H
#define TUNE_MODELFILE_H
/*
 * modelfile: what MODEL means: a Hugging Face folder, a .gguf, a checkpoint (step folder), a RUN
 * (its latest), a PEFT folder (its base from base_model_name_or_path, absolute or relative to the
 * folder; the user's own file, so it may lead anywhere).  Gives the arch and every tensor by
 * Hugging Face name and row order, whatever the file.  A folder with only pickled weights is
 * refused with the remedy (S5).
 *
 * Tie flag and file content must agree (C4): tied without lm_head; tied with an lm_head of the
 * embedding's very bytes; not tied with an lm_head.  Missing, surplus and misshapen tensors are
 * refused by name, all at once; rotary_emb.inv_freq, which old files hold, is not read. arch.vocab
 * is the number of embedding rows; that the tokenizer's ids are below it is the caller's to check
 * (K5).
 */
#include "libcommon/arch/arch.h"
#include "libcommon/hash.h"

struct peft {                       /* adapter_config.json, read strictly (R5) */
	char *dir;
	int rank;
	double alpha, dropout;
	bool rslora;
	char **targets; size_t ntargets;               /* short names: "q_proj" */
	char **modules_to_save; size_t nmodules;
	/* base_model_name_or_path as written; may be "" */
	char *base;
};
struct modelfile {
	char *path;                     /* as given */
	char *dir;                      /* folder of the weights (NULL for a .gguf) */
	char *gguf_path;                /* or NULL */
	char *adapter_dir;              /* PATH was a PEFT folder (or a PEFT checkpoint), or NULL */
	struct arch arch;
	struct json_doc config;         /* config.json; root is JSON_NULL for a GGUF */
	struct arch_tensor *tensors; size_t ntensors;
	const struct tensor **src;      /* src[i]: where tensors[i] lies */
	struct safetensors *st; struct gguf *gguf;
};
/*
 * Errors: EX_NOINPUT what isn't there, EX_DATAERR what doesn't fit.  base_override: -m when path is
 * an adapter, or NULL.  weights = false: config only (model.init=random); path may then be the
 * config.json itself.
 */
int modelfile_open(struct modelfile *m, const char *path, const char *base_override, bool weights,
	struct err *err);
void modelfile_close(struct modelfile *m);
int modelfile_index(const struct modelfile *m, const char *hf_name);      /* -1 if absent */
/*
 * Rows [row0, row0 + rows) of tensor i as fp32 in Hugging Face order (each element of a 1-d tensor
 * is a row). May be called from several threads.
 */
int modelfile_read_f32(
	const struct modelfile *m, size_t i, uint64_t row0, uint64_t rows, float *dst, struct err *err);
/* of the matrices: F32, BF16, F16, or the commonest block type */
enum dtype modelfile_dtype(const struct modelfile *m);
/*
 * Identity of the base: SHA-256 over all tensors in the order of their Hugging Face names: the name
 * with its NUL, the dtype's word with its NUL, the number of dimensions, each dimension and the
 * XXH64 of the data as stored (u32le; 64-bit values low half first).  Reads every byte.
 */
int modelfile_identity(const struct modelfile *m, char hex[SHA256_HEX], struct err *err);
/*
 * An adapter knows its base only by name; a checkpoint of ours also by what it holds: EX_DATAERR if
 * that is not m.  An adapter of others, without a tune.json, passes.
 */
int modelfile_check_base(const struct modelfile *m, const char *adapter, struct err *err);

/*
 * Keys that we don't know, and known ones that we don't compute (use_dora, rank_pattern, bias,
 * patterns as target_modules, ...), are refused by name; EX_DATAERR.  Targets are the linears of
 * the blocks; modules_to_save: embed_tokens, lm_head.
 */
int peft_read(struct peft *p, const char *dir, struct err *err);   /* or a run: its latest */
int peft_write(const struct peft *p, const char *dir, struct err *err);   /* adapter_config.json */
void peft_release(struct peft *p);
double peft_scale(const struct peft *p);
/*
 * A RUN: the step folder of its `latest`, or, if that is broken, the newest one with a tune.json
 * (EX_NOINPUT if there is none); anything else: path unchanged.  Caller frees.
 */
char *resolve_checkpoint(const char *path, struct err *err);
/*
 * Copy what goes along with a model: tokenizer*, *.jinja, generation_config.json,
 * special_tokens_map.json, vocab.json, merges.txt, added_tokens.json, chat_template.json.
 */
int carry_files(const char *from_dir, const char *to_dir, struct err *err);
/* The same in two steps: what was read can be written again when from_dir has changed or gone. */
struct carried {
	struct carried_file { char *name; struct buf data; } *files;
	size_t n, cap;
};
int carry_read(struct carried *c, const char *dir, struct err *err);
/* One more file of another folder, where it is there and dir had none of that name. */
int carry_missing(struct carried *c, const char *dir, const char *name, struct err *err);
int carry_write(const struct carried *c, const char *dir, struct err *err);
void carry_release(struct carried *c);
#endif
