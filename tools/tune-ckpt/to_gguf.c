/*
 * A model as one GGUF file: keys, the whole tokenizer, matrices in the wanted type, vectors in F32
 * as llama.cpp wants them.
 */
#include <stdlib.h>
#include <string.h>

#include "libcommon/arch/family.h"
#include "libcommon/outfile.h"
#include "tools/tune-ckpt/ckpt.h"

/* --dtype, else the source's type, bf16 if that is a quantised one. */
static enum dtype matrix_type(const struct job *j)
{
	enum dtype t = j->dtype != DT_NONE ? j->dtype : modelfile_dtype(&j->m);

	return dtype_is_float(t) || t == DT_Q8_0 ? t : DT_BF16;
}

/* Rows that are no whole blocks stay in F16, as llama.cpp's converter has it. */
static enum dtype type_of(const struct job *j, size_t i)
{
	const struct arch_tensor *t = &j->m.tensors[i];
	enum dtype type = matrix_type(j);

	if (t->ndim == 1)
		return DT_F32;
	return t->shape[1] % (uint64_t)dtype_info[type].block ? DT_F16 : type;
}

static int put(void *ctx, const void *p, size_t n, struct err *err)
{
	return gguf_w_data(ctx, p, n, err);
}

/* Name the tensors; *freqs (owned by the caller) are rope's divisors if there are any (R8). */
static int declare(
	const struct job *j, struct gguf_w *w, float **freqs, uint64_t *bytes, struct err *err)
{
	const struct modelfile *m = &j->m;
	uint64_t half = (uint64_t)m->arch.head_dim / 2;

	if (!(*freqs = mem_zalloc(half, sizeof(**freqs), err)))
		return -1;
	if (!arch_rope_freqs(&m->arch, *freqs)) {
		free(*freqs);
		*freqs = NULL;
	} else if (gguf_w_tensor(w, "rope_freqs.weight", DT_F32, 1, &half, err) < 0) {
		return -1;
	}
	for (size_t i = 0; i < m->ntensors; i++) {
		*bytes += dtype_bytes(type_of(j, i), tensor_count(m->src[i]));
		if (gguf_w_tensor(w, m->tensors[i].gguf_name, type_of(j, i), m->tensors[i].ndim,
				m->tensors[i].shape, err) < 0)
			return -1;
	}
	return 0;
}

static int write_data(
	const struct job *j, struct gguf_w *g, const float *freqs, uint64_t total, struct err *err)
{
	struct weights w = {0};
	struct progress bar;
	uint64_t written = 0;
	int rc = -1;

	if (weights_init(&w, &j->m, j->ad, true, err) < 0)
		return -1;
	if (freqs && gguf_w_data(g, freqs, (size_t)j->m.arch.head_dim / 2 * sizeof(*freqs), err) < 0)
		goto done;
	progress_start(&bar, j->tool->name, "B", 0, total, j->tool->progress, j->tool->quiet);
	for (size_t i = 0; i < j->m.ntensors; i++) {
		if (weights_put(&w, i, type_of(j, i), put, g, err) < 0)
			break;
		progress_update(&bar, written += dtype_bytes(type_of(j, i), tensor_count(j->m.src[i])), "");
	}
	progress_end(&bar);
	rc = written < total ? -1 : gguf_w_finish(g, err);
done:
	weights_release(&w);
	return rc;
}

/* What a reader of the file will not see as it is here. */
static void say_limits(const struct job *j, const float *freqs)
{
	struct arch a = j->m.arch;
	struct err err = {0};

	if (a.window)
		tool_warn(j->tool,
			"llama.cpp attends to all tokens of this family, whatever the window of %d: longer "
			"texts get other answers there",
			a.window);
	if (freqs && rope_from_freqs(&a, freqs, j->args->out, &err) < 0)
		tool_warn(j->tool,
			"this rope scaling can't be read back from a GGUF by these programs; keep '%s' too",
			j->m.path);
}

int write_gguf(const struct job *j, struct err *err)
{
	struct outfile f = { .slot = -1 };
	struct gguf_w *w = NULL;
	struct buf name = {0};
	float *freqs = NULL;
	uint64_t bytes = 0;
	int rc = -1;

	model_name(&j->m, &name);
	if (buf_ok(&name, err) < 0 || gguf_w_new(&w, err) < 0 ||
		arch_to_gguf(&j->m.arch, w, name.p, matrix_type(j), err) < 0 ||
		gguf_tokenizer(w, j, err) < 0 || declare(j, w, &freqs, &bytes, err) < 0)
		goto done;
	say_limits(j, freqs);
	if (outfile_open(&f, j->args->out, j->args->force, err) < 0)
		goto done;
	say_size(j, j->m.ntensors, arch_param_count(&j->m.arch), dtype_word(matrix_type(j)), bytes);
	if (gguf_w_begin(w, f.fp, j->args->out, err) < 0 || write_data(j, w, freqs, bytes, err) < 0)
		goto done;
	rc = outfile_commit(&f, err);
done:
	outfile_abort(&f);
	gguf_w_free(w);
	buf_release(&name);
	free(freqs);
	return rc;
}
