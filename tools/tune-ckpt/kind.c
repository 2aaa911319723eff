/* What a path is: a model, an adapter, tensors, a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "tools/tune-ckpt/ckpt.h"

const char *kind_name(const struct thing *x)
{
	static const char *const names[][2] = {
		[KIND_MODEL] = { "Hugging Face model", "checkpoint (Hugging Face model)" },
		[KIND_GGUF] = { "GGUF model", "" },
		[KIND_ADAPTER] = { "PEFT adapter", "checkpoint (PEFT adapter)" },
		[KIND_ADAPTER_GGUF] = { "GGUF adapter", "" },
		[KIND_TENSORS] = { "safetensors", "" },
		[KIND_RUN] = { "run", "" },
	};

	return names[x->kind][x->checkpoint];
}

static bool has_folder(const char *dir, const char *name)
{
	char *path = path_join(dir, name);
	bool yes = path && is_dir(path);

	free(path);
	return yes;
}

static int kind_of_dir(struct thing *x, const char *path, struct err *err)
{
	x->checkpoint = dir_has(path, "tune.json");
	x->unfinished = !x->checkpoint && has_folder(path, "state");
	if (dir_has(path, "adapter_config.json"))
		x->kind = KIND_ADAPTER;
	else if (dir_has(path, "config.json"))
		x->kind = KIND_MODEL;
	else if (!x->checkpoint && (has_folder(path, "steps") || has_folder(path, "latest")))
		x->kind = KIND_RUN;
	else
		return err_set(err, EX_DATAERR,
			"'%s' is neither a model nor an adapter nor a run: it has no config.json, "
			"adapter_config.json or "
			"steps folder",
			path);
	return 0;
}

static int kind_of_gguf(struct thing *x, const char *path, struct err *err)
{
	struct gguf_str s = {0};
	struct gguf *g;
	int rc = gguf_open(&g, path, err);

	if (rc < 0)
		return -1;
	rc = gguf_get_str(g, "general.type", &s, err);
	x->kind = rc > 0 && s.n == 7 && !memcmp(s.s, "adapter", 7) ? KIND_ADAPTER_GGUF : KIND_GGUF;
	gguf_close(g);
	return rc < 0 ? -1 : 0;
}

int kind_of(struct thing *x, const char *path, struct err *err)
{
	*x = (struct thing){0};
	if (!file_exists(path))
		return err_set(err, EX_NOINPUT, "cannot open '%s': there is no such file or folder", path);
	if (is_dir(path))
		return kind_of_dir(x, path, err);
	x->kind = KIND_TENSORS;
	return is_gguf(path) ? kind_of_gguf(x, path, err) : 0;
}
