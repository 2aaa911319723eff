/* A model as a Hugging Face folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "libcommon/outfile.h"
#include "libcommon/text/tokenizer.h"
#include "tools/tune-ckpt/ckpt.h"

static const uint64_t SHARD_MAX = 5ull << 30;   /* bytes a file, as others split */

/*
 * --dtype; else a Hugging Face source's own types, a GGUF's commonest one, bf16 if that is
 * quantised.
 */
static enum dtype type_of(const struct job *j, size_t i)
{
	enum dtype t = j->m.gguf ? modelfile_dtype(&j->m) : j->m.src[i]->dtype;

	if (j->dtype != DT_NONE)
		return j->dtype;
	return dtype_is_float(t) ? t : DT_BF16;
}

static int put(void *ctx, const void *p, size_t n, struct err *err)
{
	return st_writer_data(ctx, p, n, err);
}

static int write_weights(const struct job *j, const char *dir, struct err *err)
{
	const struct modelfile *m = &j->m;
	struct weights w = {0};
	struct st_writer *st = NULL;
	struct progress bar;
	uint64_t total = 0, written = 0;
	int rc = -1;

	if (weights_init(&w, m, j->ad, false, err) < 0 ||
		st_writer_new(&st, dir, "model", SHARD_MAX, err) < 0)
		goto done;
	for (size_t i = 0; i < m->ntensors; i++) {
		total += tensor_count(m->src[i]) * (uint64_t)dtype_info[type_of(j, i)].bytes;
		if (st_writer_add(st, m->tensors[i].name, type_of(j, i), m->tensors[i].ndim,
				m->tensors[i].shape, err) < 0)
			goto done;
	}
	say_size(j, m->ntensors, arch_param_count(&m->arch), dtype_word(type_of(j, 0)), total);
	if (st_writer_begin(st, err) < 0)
		goto done;
	progress_start(&bar, j->tool->name, "B", 0, total, j->tool->progress, j->tool->quiet);
	for (size_t i = 0; i < m->ntensors; i++) {
		if (weights_put(&w, i, type_of(j, i), put, st, err) < 0)
			break;
		progress_update(&bar,
			written += tensor_count(m->src[i]) * (uint64_t)dtype_info[type_of(j, i)].bytes, "");
	}
	progress_end(&bar);
	rc = written < total ? -1 : st_writer_finish(st, err);
done:
	st_writer_free(st);
	weights_release(&w);
	return rc;
}

static int write_text(const char *dir, const char *name, const struct buf *text, struct err *err)
{
	struct outfile f = { .slot = -1 };
	char *path = path_join(dir, name);
	int rc = -1;

	if (!path)
		err_oom(err, strlen(dir));
	else if (buf_ok(text, err) == 0 && outfile_open(&f, path, true, err) == 0) {
		fwrite(text->p, 1, text->n, f.fp);      /* commit looks at ferror */
		rc = outfile_commit(&f, err);
	}
	outfile_abort(&f);
	free(path);
	return rc;
}

/* The source's config.json with another dtype: all else as it is written there. */
static void rewrite_config(const struct json *config, enum dtype t, struct buf *out)
{
	static const char *const names[] = {
		[DT_F32] = "float32", [DT_F16] = "float16", [DT_BF16] = "bfloat16"
	};
	struct json_w w = { .out = out, .indent = 2 };
	bool said = false;

	json_w_obj(&w);
	for (uint32_t i = 0; i < config->n; i++) {
		const struct json_member *m = &config->members[i];
		bool is_dtype = json_str_eq(&m->name, "torch_dtype") || json_str_eq(&m->name, "dtype");

		json_w_namen(&w, m->name.s, m->name.n);
		if (is_dtype)
			json_w_str(&w, names[t]);
		else
			json_w_value(&w, &m->value);
		said = said || is_dtype;
	}
	if (!said) {
		json_w_name(&w, "torch_dtype");
		json_w_str(&w, names[t]);
	}
	json_w_end(&w);
	buf_putc(out, '\n');
}

static int write_config(const struct job *j, const char *dir, struct err *err)
{
	const struct modelfile *m = &j->m;
	struct buf text = {0};
	char *path = NULL;
	int rc = -1;

	if (m->gguf) {
		arch_to_config(&m->arch, type_of(j, 0), &text);
	} else if (j->dtype != DT_NONE) {
		rewrite_config(&m->config.root, j->dtype, &text);
	} else if (!(path = path_join(m->dir, "config.json"))) {
		err_oom(err, strlen(dir));
		goto done;
	} else if (file_read(path, 64 << 20, &text, err) < 0) {
		goto done;
	}
	rc = write_text(dir, "config.json", &text, err);
done:
	buf_release(&text);
	free(path);
	return rc;
}

/*
 * generation_config.json: every id that ends an answer, so that other programs stop where the
 * GGUF's would (E4).
 */
static int write_generation_config(const struct tokenizer *tok, const char *dir, struct err *err)
{
	uint32_t stops[32];
	size_t n = tokenizer_stop_ids(tok, stops);
	struct buf text = {0};
	struct json_w w = { .out = &text, .indent = 2 };
	int rc;

	json_w_obj(&w);
	if (tokenizer_bos(tok) >= 0) {
		json_w_name(&w, "bos_token_id");
		json_w_int(&w, tokenizer_bos(tok));
	}
	json_w_name(&w, "eos_token_id");
	json_w_arr(&w);
	for (size_t i = 0; i < n; i++)
		json_w_int(&w, stops[i]);
	json_w_end(&w);
	if (tokenizer_pad(tok) >= 0) {
		json_w_name(&w, "pad_token_id");
		json_w_int(&w, tokenizer_pad(tok));
	}
	json_w_end(&w);
	buf_putc(&text, '\n');
	rc = write_text(dir, "generation_config.json", &text, err);
	buf_release(&text);
	return rc;
}

/* The base's files byte for byte (D10), and over them what the adapter was trained with. */
static int write_tokenizer(const struct job *j, const char *dir, struct err *err)
{
	struct tokenizer *tok;
	int rc;

	if (j->m.gguf) {
		if (tokenizer_open(&tok, j->m.gguf_path, err) < 0)
			return -1;
		rc = tokenizer_write_hf(tok, dir, err) < 0 ? -1 : write_generation_config(tok, dir, err);
		tokenizer_close(tok);
	} else {
		rc = carry_files(j->m.dir, dir, err);
	}
	return rc < 0 || !j->ad ? rc : carry_files(j->m.adapter_dir, dir, err);
}

int write_hf(const struct job *j, struct err *err)
{
	struct outdir d = { .slot = -1 };
	int rc = -1;

	if (outdir_open(&d, j->args->out, j->args->force, err) < 0)
		goto done;
	if (write_tokenizer(j, d.tmp, err) < 0 || write_config(j, d.tmp, err) < 0 ||
		write_weights(j, d.tmp, err) < 0)
		goto done;
	rc = outdir_commit(&d, err);
done:
	outdir_abort(&d);
	return rc;
}
