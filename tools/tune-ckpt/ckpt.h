#ifndef TUNE_CKPT_H
#define TUNE_CKPT_H
/*
 * ckpt: what the verbs of tune-ckpt share.
 *
 * A verb returns the exit status (0, or 1 where its check said no), or -1 with err filled.
 */
#include "libcommon/arch/modelfile.h"
#include "libcommon/tool.h"

struct args {
	const char *to, *dtype, *out, *base, *adapter, *each;
	bool force, hash;
};
int verb_inspect(const struct tool *t, const struct args *a, struct err *err);
int verb_convert(const struct tool *t, const struct args *a, struct err *err);
int verb_merge(const struct tool *t, const struct args *a, struct err *err);
int verb_verify(const struct tool *t, const struct args *a, struct err *err);
int verb_diff(const struct tool *t, const struct args *a, struct err *err);

/* ---- kind.c: what a path is ---- */
enum kind { KIND_MODEL, KIND_GGUF, KIND_ADAPTER, KIND_ADAPTER_GGUF, KIND_TENSORS, KIND_RUN };
struct thing {
	enum kind kind;
	bool checkpoint;       /* a folder with a tune.json: a step of a run */
	bool unfinished;       /* one with a step's state, but no tune.json */
};
const char *kind_name(const struct thing *x);
/* EX_NOINPUT if path is not there, EX_DATAERR if it is none of these. */
int kind_of(struct thing *x, const char *path, struct err *err);

/* ---- adapter.c: a PEFT folder beside its base ---- */
/* a and b, or full (modules_to_save), or nothing */
struct lora { const struct tensor *a, *b, *full; };
struct adapter {
	struct peft peft;
	struct safetensors *st;
	struct lora *at;       /* one for each of the base's tensors */
	double scale;
};
/*
 * Every tensor must have its place and its shape, every target its pair (R4): all that is wrong is
 * listed; and every number be finite.
 */
int adapter_open(struct adapter *ad, const char *dir, const struct modelfile *m, struct err *err);
void adapter_close(struct adapter *ad);
/* adapter_model.safetensors of dir; a pickled one is refused with the remedy (S5). */
int adapter_weights(struct safetensors **st, const char *dir, struct err *err);

/* ---- weights.c: a model's tensors, one after the other, in another type or order ---- */
struct weights {
	const struct modelfile *m;
	const struct adapter *ad;    /* to be merged in, or NULL */
	bool gguf;                   /* rows in GGUF's order */
	struct pool *pool;
	float *x; void *y;           /* a chunk, before and after conversion */
	size_t cap;                  /* elements of each */
};
typedef int put_fn(void *ctx, const void *p, size_t n, struct err *err);
int weights_init(struct weights *w, const struct modelfile *m, const struct adapter *ad, bool gguf,
	struct err *err);
/* All bytes of tensor i as type t.  EX_DATAERR names a tensor whose numbers t can't hold. */
int weights_put(struct weights *w, size_t i, enum dtype t, put_fn *put, void *ctx, struct err *err);
void weights_release(struct weights *w);
/* EX_DATAERR says how many of its numbers are NaN or Inf. */
int tensor_finite(const struct tensor *t, struct err *err);

/* ---- writers of whole models ---- */
struct job {
	const struct tool *tool;
	const struct args *args;
	struct modelfile m;
	struct adapter *ad;          /* NULL: none */
	enum dtype dtype;            /* of the result; DT_NONE: as the source is */
};
int write_hf(const struct job *j, struct err *err);             /* to_hf.c */
int write_gguf(const struct job *j, struct err *err);           /* to_gguf.c */
int write_adapter_gguf(const struct job *j, struct err *err);   /* to_gguf_adapter.c */
int gguf_tokenizer(struct gguf_w *w, const struct job *j, struct err *err);   /* gguf_tokenizer.c */
/* --to, or the name of --output: true for GGUF. */
int wants_gguf(const struct args *a, bool *gguf, struct err *err);
/* --dtype, one of the given words; DT_NONE without it. */
int wanted_dtype(const struct args *a, bool gguf, enum dtype *t, struct err *err);
/* "writing 'x': 3 tensors, 1,234 parameters, bf16, 2.5 kB" before the first byte (C8). */
void say_size(
	const struct job *j, size_t tensors, uint64_t params, const char *type, uint64_t bytes);
void size_text(uint64_t bytes, char out[24]);
/*
 * Name a GGUF result: the source's own name, never a path, so that equal models give equal files.
 */
void model_name(const struct modelfile *m, struct buf *out);
#endif
