/* A checkpoint at this step, and its event. */
#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "train.h"

static int write_tokenizer(void *ctx, const char *dir, struct err *err)
{
	const struct run *r = ctx;

	return tokenizer_write_hf(r->tok, dir, err);
}

/* Saved weights keep the base's dtype; a quantised base becomes bf16. */
static enum dtype saved_dtype(const struct run *r)
{
	const char *word = cfg_str(r->cfg, "save.dtype");
	enum dtype t = strcmp(word, "auto") ? dtype_from_word(word) : r->s.base_dtype;

	return dtype_is_float(t) ? t : DT_BF16;
}

static int event(struct run *r, const char *path, bool best, struct err *err)
{
	struct json_w w;
	struct buf b;
	char *whole = path_join(r->dir, path);
	int rc;

	if (!whole)
		return err_oom(err, 256);
	metrics_begin(&w, &b, "save");
	json_w_name(&w, "step"); json_w_int(&w, (int64_t)r->s.step);
	json_w_name(&w, "path"); json_w_str(&w, whole);
	json_w_name(&w, "best"); json_w_bool(&w, best);
	rc = metrics_end(&r->metrics, &w, &b, err);
	free(whole);
	return rc;
}

static int save_as(struct run *r, bool best, bool must, struct err *err)
{
	struct ckpt_opts o = { .run = r->dir,
		.base = &r->base,
		.files = &r->carried,
		.write_tokenizer = r->gguf_tokenizer ? write_tokenizer : NULL,
		.ctx = r,
		.peft = r->peft.rank ? &r->peft : NULL,
		.dtype = saved_dtype(r),
		.keep = (int)cfg_int(r->cfg, "save.keep"),
		.best = best };
	char *path;
	int rc;

	r->s.config = r->config_json;
	rc = checkpoint_save(r->model, &r->s, &o, &path, err);
	r->s.config = NULL;
	if (rc < 0) {
		if (must || strcmp(cfg_str(r->cfg, "save.on_error"), "continue"))
			return -1;
		r->not_saved = r->s.step;
		progress_clear(&r->progress);
		tool_warn(r->tool, "step %llu is not saved, training goes on: %s",
			(unsigned long long)r->s.step, err->msg);
		*err = (struct err){0};
		return 0;
	}
	r->last_saved = r->s.step;
	r->last_save_s = now_s();
	rc = event(r, path, best, err);
	free(path);
	return rc;
}

int save(struct run *r, bool best, struct err *err)
{
	return save_as(r, best, false, err);
}

int save_last(struct run *r, struct err *err)
{
	return save_as(r, false, true, err);
}
