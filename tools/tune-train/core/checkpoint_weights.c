/* Weights, masters and moments of a checkpoint, streamed through one block of memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_int.h"
#include "libcommon/file.h"
#include "libcommon/outfile.h"

enum { BLOCK = 1 << 20 };                              /* elements */
/* bytes a safetensors file, as others split */
static const uint64_t SHARD_MAX = 5ull << 30;

/* Stream parameter i to the writer as dtype t. */
static int put_param(struct st_writer *w, struct model *m, size_t i, enum param_what what,
	enum dtype t, float *f32, void *out, struct err *err)
{
	uint64_t n = model_param(m, i)->n;

	for (uint64_t at = 0; at < n; at += BLOCK) {
		uint64_t k = n - at < BLOCK ? n - at : BLOCK;

		if (model_read(m, i, what, at, k, f32, err) < 0)
			return -1;
		if (dtype_from_f32(t, f32, k, out) < 0)
			return err_set(err, EX_SOFTWARE, "cannot save dtype %s", dtype_word(t));
		if (st_writer_data(w, out, dtype_bytes(t, k), err) < 0)
			return -1;
	}
	return 0;
}

/*
 * The name under which a parameter is saved: PEFT puts its prefix before modules that are trained
 * whole, too.
 */
static int save_name(const struct param *p, bool adapter, char name[160])
{
	const char *prefix = adapter && strncmp(p->name, "base_model.", 11) ? "base_model.model." : "";

	return snprintf(name, 160, "%s%s", prefix, p->name) < 160 ? 0 : -1;
}

static int write_tensors(
	struct model *m, const char *dir, const char *stem, bool adapter, enum dtype t, struct err *err)
{
	struct st_writer *w = NULL;
	float *f32 = mem_zalloc(BLOCK, sizeof(*f32), err);
	void *out = mem_zalloc(BLOCK, sizeof(*f32), err);
	char name[160];
	int rc = -1;

	if (!f32 || !out || st_writer_new(&w, dir, stem, SHARD_MAX, err) < 0)
		goto done;
	for (size_t i = 0; i < model_param_count(m); i++) {
		const struct param *p = model_param(m, i);

		if (adapter && !p->trained)
			continue;
		if (save_name(p, adapter, name) < 0) {
			err_set(err, EX_SOFTWARE, "tensor name too long: %s", p->name);
			goto done;
		}
		if (st_writer_add(w, name, t, p->ndim, p->shape, err) < 0)
			goto done;
	}
	if (st_writer_begin(w, err) < 0)
		goto done;
	for (size_t i = 0; i < model_param_count(m); i++)
		if ((!adapter || model_param(m, i)->trained) &&
			put_param(w, m, i, PARAM_VALUE, t, f32, out, err) < 0)
			goto done;
	rc = st_writer_finish(w, err);
done:
	st_writer_free(w);
	free(f32);
	free(out);
	return rc;
}

static int write_text(const char *dir, const char *name, const struct buf *text, struct err *err)
{
	struct outfile f = { .slot = -1 };
	char *path = path_join(dir, name);
	int rc = -1;

	if (!path)
		return err_oom(err, 256);
	if (!buf_ok(text, err) && !outfile_open(&f, path, true, err)) {
		fwrite(text->p, 1, text->n, f.fp);
		rc = outfile_commit(&f, err);
	}
	outfile_abort(&f);
	free(path);
	return rc;
}

int ckpt_write_weights(struct model *m, const struct ckpt_opts *o, const char *dir, struct err *err)
{
	struct buf config = {0};
	int rc;

	if (o->peft) {
		rc = write_tensors(m, dir, "adapter_model", true, DT_F32, err);
		if (!rc)
			rc = peft_write(o->peft, dir, err);
	} else {
		rc = write_tensors(m, dir, "model", false, o->dtype, err);
		arch_to_config(model_arch(m), o->dtype, &config);
		if (!rc)
			rc = write_text(dir, "config.json", &config, err);
	}
	if (!rc)
		rc = carry_write(o->files, dir, err);
	if (!rc && o->write_tokenizer)
		rc = o->write_tokenizer(o->ctx, dir, err);
	buf_release(&config);
	return rc;
}

/* The tensors of optim.safetensors, in this order for each trained parameter. */
static const struct { enum param_what what; const char *suffix; } parts[] = {
	{ PARAM_VALUE, ".master" }, { PARAM_EXP_AVG, ".exp_avg" }, { PARAM_EXP_AVG_SQ, ".exp_avg_sq" },
};
enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

/* A master is kept where the saved dtype is narrower than the fp32 that is trained. */
static bool has_part(const struct ckpt_opts *o, const struct param *p, int part)
{
	return p->trained && (part > 0 || (!o->peft && o->dtype != DT_F32));
}

int ckpt_write_optim(struct model *m, const struct ckpt_opts *o, const char *dir, struct err *err)
{
	struct st_writer *w = NULL;
	float *f32 = mem_zalloc(BLOCK, sizeof(*f32), err);
	char name[160];
	int rc = -1;

	if (!f32 || st_writer_new(&w, dir, "optim", UINT64_MAX, err) < 0)
		goto done;
	for (size_t i = 0; i < model_param_count(m); i++)
		for (int k = 0; k < PARTS; k++) {
			const struct param *p = model_param(m, i);

			if (!has_part(o, p, k))
				continue;
			snprintf(name, sizeof(name), "%s%s", p->name, parts[k].suffix);
			if (st_writer_add(w, name, DT_F32, p->ndim, p->shape, err) < 0)
				goto done;
		}
	if (st_writer_begin(w, err) < 0)
		goto done;
	for (size_t i = 0; i < model_param_count(m); i++)
		for (int k = 0; k < PARTS; k++)
			if (has_part(o, model_param(m, i), k) &&
				put_param(w, m, i, parts[k].what, DT_F32, f32, f32, err) < 0)
				goto done;
	rc = st_writer_finish(w, err);
done:
	st_writer_free(w);
	free(f32);
	return rc;
}

static int load_part(struct model *m, size_t i, enum param_what what, const struct tensor *t,
	float *f32, struct err *err)
{
	const struct param *p = model_param(m, i);

	if (t->dtype != DT_F32 || tensor_count(t) != p->n)
		return err_set(err, EX_DATAERR, "%s: '%s' is not %llu fp32 numbers", t->file, t->name,
			(unsigned long long)p->n);
	for (uint64_t at = 0; at < p->n; at += BLOCK) {
		uint64_t k = p->n - at < BLOCK ? p->n - at : BLOCK;

		memcpy(f32, t->data + at * sizeof(*f32), k * sizeof(*f32));
		if (model_write(m, i, what, at, k, f32, err) < 0)
			return -1;
	}
	return 0;
}

int checkpoint_load_optim(struct model *m, const char *dir, struct err *err)
{
	struct safetensors *st = NULL;
	float *f32 = mem_zalloc(BLOCK, sizeof(*f32), err);
	char *state = path_join(dir, "state"), name[160];
	int rc = -1;

	if (!f32 || !state || safetensors_open_dir(&st, state, "optim", err) < 0)
		goto done;
	for (size_t i = 0; i < model_param_count(m); i++)
		for (int k = 0; model_param(m, i)->trained && k < PARTS; k++) {
			const struct tensor *t;

			snprintf(name, sizeof(name), "%s%s", model_param(m, i)->name, parts[k].suffix);
			t = safetensors_find(st, name);
			if (!t && k == 0)   /* saved in full precision: the weights are the masters */
				continue;
			if (!t) {
				err_set(err, EX_DATAERR, "%s/optim.safetensors: '%s' is missing", state, name);
				goto done;
			}
			if (load_part(m, i, parts[k].what, t, f32, err) < 0)
				goto done;
		}
	rc = 0;
done:
	safetensors_close(st);
	free(state);
	free(f32);
	return rc;
}
