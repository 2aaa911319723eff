/* state.json: what a run must know to go on as if it had never stopped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_int.h"
#include "libcommon/file.h"
#include "libcommon/json.h"
#include "libcommon/outfile.h"

enum { STATE_MAX = 4 << 20 };

/* 64-bit counts by name; jq and others round above 2^53, so hashes go as hex strings instead. */
static const struct { const char *name; size_t off; } counts[] = {
	{ "step", offsetof(struct ckpt_state, step) },
	{ "epoch", offsetof(struct ckpt_state, epoch) },
	{ "position", offsetof(struct ckpt_state, position) },
	{ "updates", offsetof(struct ckpt_state, updates) },
	{ "consumed", offsetof(struct ckpt_state, consumed) },
	{ "skipped_in_row", offsetof(struct ckpt_state, skipped_in_row) },
	{ "bad_evals", offsetof(struct ckpt_state, bad_evals) },
	{ "micro_tokens", offsetof(struct ckpt_state, micro_tokens) },
};
enum { COUNTS = sizeof(counts) / sizeof(counts[0]) };

void ckpt_state_release(struct ckpt_state *s)
{
	free(s->data_identity);
	free(s->base);
	free(s->config);
	*s = (struct ckpt_state){0};
}

static void text_member(struct json_w *w, const char *name, const char *s)
{
	json_w_name(w, name);
	json_w_str(w, s);
}

int ckpt_write_state(const struct ckpt_state *s, const char *dir, struct err *err)
{
	struct buf text = {0};
	struct json_w w = { .out = &text, .indent = 1 };
	struct json_doc config = {0};
	struct outfile f = { .slot = -1 };
	char *path = path_join(dir, "state.json"), hex[XXH64_HEX];
	int rc = -1;

	if (!path) {
		err_oom(err, 256);
		goto done;
	}
	if (json_parse(&config, s->config, strlen(s->config), "config", 1, err) < 0)
		goto done;
	json_w_obj(&w);
	json_w_name(&w, "v");
	json_w_int(&w, 1);
	for (int i = 0; i < COUNTS; i++) {
		json_w_name(&w, counts[i].name);
		json_w_int(&w, *(const int64_t *)((const char *)s + counts[i].off));
	}
	hash64_hex(s->stream_hash, hex);
	text_member(&w, "stream_hash", hex);
	json_w_name(&w, "best");
	if (s->has_best) {
		json_w_obj(&w);
		json_w_name(&w, "step");
		json_w_int(&w, (int64_t)s->best_step);
		json_w_name(&w, "value");
		json_w_num(&w, s->best);
		json_w_end(&w);
	} else {
		json_w_null(&w);
	}
	text_member(&w, "data", s->data_identity);
	text_member(&w, "base", s->base);
	text_member(&w, "base_dtype", s->base_dtype == DT_NONE ? "" : dtype_word(s->base_dtype));
	json_w_name(&w, "config");
	json_w_value(&w, &config.root);
	json_w_end(&w);
	buf_putc(&text, '\n');
	if (buf_ok(&text, err) < 0 || outfile_open(&f, path, true, err) < 0)
		goto done;
	fwrite(text.p, 1, text.n, f.fp);
	rc = outfile_commit(&f, err);
done:
	outfile_abort(&f);
	json_release(&config);
	buf_release(&text);
	free(path);
	return rc;
}

static int read_fields(
	struct ckpt_state *s, const struct json *o, const char *path, struct err *err)
{
	const struct json *best = json_get(o, "best"), *config = json_get(o, "config");
	const char *hex = "0", *data = "", *base = "", *dtype = "";
	struct buf text = {0};
	struct json_w w = { .out = &text };
	int64_t v = 0;

	if (json_get_int(o, "v", &v, path, err) < 0)
		return -1;
	if (v != 1)
		return err_set(
			err, EX_DATAERR, "%s: version %lld, this program reads version 1", path, (long long)v);
	for (int i = 0; i < COUNTS; i++)
		if (json_get_int(o, counts[i].name, (int64_t *)((char *)s + counts[i].off), path, err) < 0)
			return -1;
	if (json_get_str(o, "stream_hash", &hex, path, err) < 0 ||
		json_get_str(o, "data", &data, path, err) < 0 ||
		json_get_str(o, "base", &base, path, err) < 0 ||
		json_get_str(o, "base_dtype", &dtype, path, err) < 0)
		return -1;
	s->stream_hash = strtoull(hex, NULL, 16);
	s->base_dtype = dtype_from_word(dtype);
	if (json_is(best, JSON_OBJ)) {
		int64_t step = 0;

		s->has_best = true;
		if (json_get_num(best, "value", &s->best, path, err) < 0 ||
			json_get_int(best, "step", &step, path, err) < 0)
			return -1;
		s->best_step = (uint64_t)step;
	}
	if (!json_is(config, JSON_OBJ))
		return err_set(err, EX_DATAERR, "%s: it has no config", path);
	json_w_value(&w, config);
	s->config = buf_detach(&text);
	s->data_identity = mem_strdup(data, err);
	s->base = mem_strdup(base, err);
	return s->config && s->data_identity && s->base ? 0 : err_oom(err, 4096);
}

int checkpoint_read_state(struct ckpt_state *s, const char *dir, struct err *err)
{
	struct json_doc doc = {0};
	char *state = path_join(dir, "state"), *path = state ? path_join(state, "state.json") : NULL;
	int rc = -1;

	*s = (struct ckpt_state){0};
	if (!path)
		err_oom(err, 256);
	else if (!json_parse_file(&doc, path, STATE_MAX, err))
		rc = read_fields(s, &doc.root, path, err);
	if (rc < 0)
		ckpt_state_release(s);
	json_release(&doc);
	free(state);
	free(path);
	return rc;
}
