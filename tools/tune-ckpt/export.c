/*
 * convert and merge: open what is asked for, settle the type, hand it to the writer of the format.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "libcommon/tunejson.h"
#include "tools/tune-ckpt/ckpt.h"

int wants_gguf(const struct args *a, bool *gguf, struct err *err)
{
	if (a->to && a->out && !strcmp(a->to, "hf") && has_suffix(a->out, ".gguf"))
		return err_set(err, EX_USAGE, "--to hf makes a folder, whose name can't end in .gguf");
	*gguf = a->to ? !strcmp(a->to, "gguf") : has_suffix(a->out, ".gguf");
	if (a->to && !*gguf && strcmp(a->to, "hf"))
		return err_set(err, EX_USAGE, "--to '%s' is neither hf nor gguf", a->to);
	if (!*gguf && !strcmp(a->out, "-"))
		return err_set(
			err, EX_USAGE, "a Hugging Face model is a folder: it can't go to standard output");
	return *gguf ? refuse_terminal(a->out, err) : 0;
}

int wanted_dtype(const struct args *a, bool gguf, enum dtype *t, struct err *err)
{
	*t = a->dtype ? dtype_from_word(a->dtype) : DT_NONE;
	if (a->dtype && !(*t != DT_NONE && (dtype_is_float(*t) || (gguf && *t == DT_Q8_0))))
		return err_set(err, EX_USAGE, "--dtype '%s' is none of fp32, bf16, fp16%s", a->dtype,
			gguf ? ", q8_0" : " (q8_0 is for GGUF only)");
	return 0;
}

void size_text(uint64_t bytes, char out[24])
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
	double v = (double)bytes;
	int u = 0;

	for (; v >= 1000 && u < 4; u++)
		v /= 1000;
	snprintf(out, 24, u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

void say_size(
	const struct job *j, size_t tensors, uint64_t params, const char *type, uint64_t bytes)
{
	char count[16], size[24];

	format_count((double)params, count);
	size_text(bytes, size);
	tool_say(j->tool, "writing '%s': %zu tensors, %s parameters, %s, %s", j->args->out, tensors,
		count, type, size);
}

void model_name(const struct modelfile *m, struct buf *out)
{
	const struct json *v = json_get(&m->config.root, "_name_or_path");
	struct gguf_str s = {0};
	struct err ignored = {0};

	if (m->gguf && gguf_get_str(m->gguf, "general.name", &s, &ignored) > 0 && s.n)
		buf_put(out, s.s, s.n);
	else if (json_is(v, JSON_STR) && *path_base(v->s))
		buf_puts(out, path_base(v->s));
	else
		buf_puts(out, m->arch.family);
}

static int write_model(struct job *j, bool gguf, struct err *err)
{
	return gguf ? write_gguf(j, err) : write_hf(j, err);
}

/* A PEFT folder, or a checkpoint or run that is one: 1, something else: 0. */
static int is_adapter(const char *path, struct err *err)
{
	char *at = resolve_checkpoint(path, err);
	int yes = at ? dir_has(at, "adapter_config.json") : -1;

	free(at);
	return yes;
}

int verb_convert(const struct tool *t, const struct args *a, struct err *err)
{
	struct job j = { .tool = t, .args = a };
	bool gguf;
	int rc = -1, adapter;

	if (wants_gguf(a, &gguf, err) < 0 || wanted_dtype(a, gguf, &j.dtype, err) < 0 ||
		(adapter = is_adapter(t->argv[0], err)) < 0)
		return -1;
	/* An adapter's conversion needs its base's config, not the weights. */
	if (modelfile_open(&j.m, t->argv[0], a->base, !adapter, err) < 0)
		return -1;
	if (j.m.adapter_dir && !gguf)
		err_set(err, EX_DATAERR,
			"'%s' is an adapter: convert makes it a GGUF adapter (--to gguf); merge makes a model "
			"of it",
			t->argv[0]);
	else if (a->base && !j.m.adapter_dir)
		err_set(err, EX_USAGE, "-m is for an adapter's base, and '%s' is no adapter", t->argv[0]);
	else
		rc = j.m.adapter_dir ? write_adapter_gguf(&j, err) : write_model(&j, gguf, err);
	modelfile_close(&j.m);
	return rc;
}

int verb_merge(const struct tool *t, const struct args *a, struct err *err)
{
	struct job j = { .tool = t, .args = a };
	struct adapter ad;
	bool gguf;
	int rc = -1, adapter;

	if (wants_gguf(a, &gguf, err) < 0 || wanted_dtype(a, gguf, &j.dtype, err) < 0 ||
		(adapter = is_adapter(a->adapter, err)) < 0)
		return -1;
	if (!adapter && file_exists(a->adapter))
		return err_set(
			err, EX_DATAERR, "'%s' is no PEFT folder: it has no adapter_config.json", a->adapter);
	if (modelfile_open(&j.m, a->adapter, a->base, true, err) < 0)
		return -1;
	if (!modelfile_check_base(&j.m, j.m.adapter_dir, err) &&
		!adapter_open(&ad, j.m.adapter_dir, &j.m, err)) {
		j.ad = &ad;
		rc = write_model(&j, gguf, err);
		adapter_close(&ad);
	}
	modelfile_close(&j.m);
	return rc;
}
