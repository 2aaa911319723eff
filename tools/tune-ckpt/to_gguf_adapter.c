/*
 * A PEFT adapter as llama.cpp's GGUF adapter: NAME.lora_a [r, in], NAME.lora_b [out, r], alpha;
 * rows of q and k in GGUF's order (R7).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/arch/family.h"
#include "libcommon/outfile.h"
#include "tools/tune-ckpt/ckpt.h"

static enum dtype type_of(const struct job *j, const struct tensor *t)
{
	return j->dtype == DT_NONE ? t->dtype : j->dtype;
}

static int refuse(const struct job *j, const struct adapter *ad, struct err *err)
{
	if (ad->peft.nmodules)
		return err_set(err, EX_DATAERR,
			"a GGUF adapter can't hold modules_to_save ('%s'): merge '%s' into its base instead",
			ad->peft.modules_to_save[0], j->m.adapter_dir);
	if (j->dtype == DT_Q8_0)
		return err_set(err, EX_USAGE, "--dtype q8_0 is not for adapters");
	return 0;
}

/*
 * llama.cpp scales by alpha/rank: an rslora alpha is given so that this comes to alpha/sqrt(rank).
 */
static void put_keys(
	struct gguf_w *w, const struct job *j, const struct adapter *ad, const char *name)
{
	const struct family *f = family_by_type(j->m.arch.family, strlen(j->m.arch.family));

	gguf_w_str(w, "general.architecture", f->gguf, strlen(f->gguf));
	gguf_w_str(w, "general.type", "adapter", 7);
	gguf_w_str(w, "general.name", name, strlen(name));
	gguf_w_str(w, "adapter.type", "lora", 4);
	gguf_w_f32(w, "adapter.lora.alpha", (float)(ad->scale * ad->peft.rank));
}

static int declare_one(struct gguf_w *w, const struct job *j, size_t i, const char *suffix,
	const struct tensor *t, uint64_t *bytes, struct err *err)
{
	char name[96];

	snprintf(name, sizeof(name), "%s.%s", j->m.tensors[i].gguf_name, suffix);
	*bytes += dtype_bytes(type_of(j, t), tensor_count(t));
	return gguf_w_tensor(w, name, type_of(j, t), 2, t->shape, err);
}

/* heads > 0: rows in the order of that many heads of GGUF. */
static int put_one(
	struct gguf_w *w, const struct job *j, const struct tensor *t, int heads, struct err *err)
{
	uint64_t rows = t->shape[0], width = t->shape[1];
	float *x = mem_zalloc(tensor_count(t), sizeof(*x), err),
		  *y = mem_zalloc(tensor_count(t), sizeof(*y), err);
	int rc = -1;

	if (!x || !y)
		goto done;
	dtype_to_f32(t->dtype, t->data, tensor_count(t), x);
	for (uint64_t r = 0; r < rows; r++)
		memcpy(
			y + (heads ? gguf_row(r, heads, rows) : r) * width, x + r * width, width * sizeof(*x));
	for (size_t k = 0; type_of(j, t) == DT_F16 && k < tensor_count(t); k++)
		if (fabsf(y[k]) >= 65520 && isfinite(y[k])) {
			err_set(err, EX_DATAERR, "%s: tensor '%s' holds %g, which fp16 can't; use bf16 or fp32",
				t->file, t->name, (double)y[k]);
			goto done;
		}
	/* float types only, and none is wider than fp32 */
	dtype_from_f32(type_of(j, t), y, tensor_count(t), x);
	rc = gguf_w_data(w, x, dtype_bytes(type_of(j, t), tensor_count(t)), err);
done:
	free(x);
	free(y);
	return rc;
}

static int write_file(
	struct gguf_w *w, const struct job *j, const struct adapter *ad, struct err *err)
{
	struct outfile f = { .slot = -1 };
	uint64_t bytes = 0, params = 0;
	size_t n = 0;
	enum dtype t = DT_F32;
	int rc = -1;

	for (size_t i = 0; i < j->m.ntensors; i++) {
		const struct lora *l = &ad->at[i];

		if (!l->a)
			continue;
		if (declare_one(w, j, i, "lora_a", l->a, &bytes, err) < 0 ||
			declare_one(w, j, i, "lora_b", l->b, &bytes, err) < 0)
			return -1;
		n += 2;
		params += tensor_count(l->a) + tensor_count(l->b);
		t = type_of(j, l->a);
	}
	if (outfile_open(&f, j->args->out, j->args->force, err) < 0)
		goto done;
	say_size(j, n, params, dtype_word(t), bytes);
	if (gguf_w_begin(w, f.fp, j->args->out, err) < 0)
		goto done;
	for (size_t i = 0; i < j->m.ntensors; i++)
		if (ad->at[i].a &&
			(put_one(w, j, ad->at[i].a, 0, err) < 0 ||
				put_one(w, j, ad->at[i].b, j->m.tensors[i].gguf_heads, err) < 0))
			goto done;
	rc = gguf_w_finish(w, err) < 0 ? -1 : outfile_commit(&f, err);
done:
	outfile_abort(&f);
	return rc;
}

int write_adapter_gguf(const struct job *j, struct err *err)
{
	struct adapter ad;
	struct gguf_w *w = NULL;
	struct buf name = {0};
	int rc = -1;

	if (adapter_open(&ad, j->m.adapter_dir, &j->m, err) < 0)
		return -1;
	model_name(&j->m, &name);
	buf_puts(&name, " adapter");
	if (refuse(j, &ad, err) < 0 || buf_ok(&name, err) < 0 || gguf_w_new(&w, err) < 0)
		goto done;
	put_keys(w, j, &ad, name.p);
	rc = write_file(w, j, &ad, err);
done:
	gguf_w_free(w);
	buf_release(&name);
	adapter_close(&ad);
	return rc;
}
