/* setup: the tokenizer, the template and the inputs that the config names. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcommon/arch/modelfile.h"
#include "libcommon/file.h"
#include "libcommon/text/settings.h"
#include "tokenize.h"

static bool has_tokenizer(const char *dir)
{
	char *file = path_join(dir, "tokenizer.json");
	bool there = file && is_file(file);

	free(file);
	return there;
}

/* A PEFT folder that carries no tokenizer has its base's.  Caller frees. */
static char *base_of(const char *dir, struct err *err)
{
	struct peft p = {0};
	char *path = NULL;

	if (!peft_read(&p, dir, err)) {
		path = path_join(dir, p.base);
		if (!path)
			err_oom(err, strlen(dir));
		peft_release(&p);
	}
	return path;
}

/* Where the tokenizer is: model.tokenizer, else what MODEL means.  Caller frees. */
static char *tokenizer_path(const struct config *cfg, struct err *err)
{
	const char *own = cfg_str(cfg, "model.tokenizer"), *model = cfg_str(cfg, "model.path");
	char *path, *adapter, *base = NULL;

	if (own[0])
		return mem_strdup(own, err);
	if (!model[0]) {
		err_set(err, EX_USAGE,
			"need a model: -m MODEL (or model.path or model.tokenizer in the config)");
		return NULL;
	}
	if (!(path = resolve_checkpoint(model, err)) || !is_dir(path) || has_tokenizer(path))
		return path;
	if (!(adapter = path_join(path, "adapter_config.json"))) {
		err_oom(err, strlen(path));
	} else if (!is_file(adapter)) {
		free(adapter);
		return path;   /* tokenizer_open says what is missing */
	} else {
		base = base_of(path, err);
	}
	free(adapter);
	free(path);
	return base;
}

/* The operands; without any data.train (of rows only); without that standard input. */
static int find_inputs(struct tokenize *z, bool rows, struct err *err)
{
	size_t i, operands = (size_t)z->tool->argc, listed = rows ? cfg_count(z->cfg, "data.train") : 0;
	size_t n = operands ? operands : listed ? listed : 1;

	if (!operands && !listed && isatty(STDIN_FILENO))
		return err_set(err, EX_USAGE,
			rows ? "need a FILE (- = standard input), or data.train in the config"
				 : "need a FILE (- = standard input)");
	if (!(z->inputs = mem_zalloc(n, sizeof(*z->inputs), err)) ||
		!(z->sums = mem_zalloc(n, sizeof(*z->sums), err)) ||
		!(z->in_array = mem_zalloc(n, sizeof(*z->in_array), err)))
		return -1;
	for (i = 0; i < n; i++) {
		const char *name = operands ? z->tool->argv[i]
			: listed                ? cfg_item(z->cfg, "data.train", i)
									: "-";

		if (!(z->inputs[i] = mem_strdup(name, err)))
			return -1;
		z->ninputs++;
	}
	return 0;
}

int tokenize_open(struct tokenize *z, struct tool *t, bool rows, struct err *err)
{
	char *path;
	int rc;

	*z = (struct tokenize){
		.tool = t, .cfg = t->cfg, .raw = !rows, .opts = chat_opts_config(t->cfg)
	};
	if (find_inputs(z, rows, err) < 0 || !(path = tokenizer_path(z->cfg, err)))
		return -1;
	rc = tokenizer_open(&z->tok, path, err);
	free(path);
	return rc < 0 || !rows ? rc : chat_open_config(&z->chat, z->tok, z->cfg, err);
}

void tokenize_close(struct tokenize *z)
{
	size_t i;

	for (i = 0; i < z->ninputs; i++)
		free(z->inputs[i]);
	free(z->inputs);
	free(z->sums);
	free(z->in_array);
	report_release(&z->report);
	chat_close(z->chat);
	tokenizer_close(z->tok);
}

const char *input_name(const struct tokenize *z, uint32_t src)
{
	return strcmp(z->inputs[src], "-") ? z->inputs[src] : "stdin";
}

/* The settings that decide what the ids and the mask are. */
static void settings_json(const struct tokenize *z, struct buf *out)
{
	static const char *const others[] = { "model.", "shard.", "train.", "lora.", "optim.",
		"schedule.", "save.", "eval.", "generate.", "log.", "data.train", "data.val", NULL };

	if (z->raw)
		buf_printf(out, "{\"raw\":true,\"data.special_in_content\":\"%s\"}",
			cfg_str(z->cfg, "data.special_in_content"));
	else
		cfg_to_json(z->cfg, others, out);
}

static int header_tok(const struct tokenize *z, struct stream_tok *k, struct err *err)
{
	uint32_t stop[32];

	*k = (struct stream_tok){
		.vocab = tokenizer_vocab(z->tok), .bos = tokenizer_bos(z->tok), .pad = tokenizer_pad(z->tok)
	};
	memcpy(k->sha256, tokenizer_sha256(z->tok), sizeof(k->sha256));
	if (z->chat)
		memcpy(k->template_sha256, chat_sha256(z->chat), sizeof(k->template_sha256));
	k->neos = tokenizer_stop_ids(z->tok, stop);
	if (!(k->eos = mem_zalloc(k->neos, sizeof(*k->eos), err)))
		return -1;
	memcpy(k->eos, stop, k->neos * sizeof(*stop));
	return 0;
}

int tokenize_header(const struct tokenize *z, struct stream_header *h, struct err *err)
{
	struct buf set = {0};
	uint32_t i;
	int rc = -1;

	*h = (struct stream_header){ .major = STREAM_MAJOR, .minor = STREAM_MINOR, .kind = KIND_TOKS };
	if (header_tok(z, &h->tok, err) < 0 ||
		!(h->inputs = mem_zalloc(z->ninputs, sizeof(*h->inputs), err)))
		return -1;
	for (i = 0; i < z->ninputs; i++, h->ninputs++)
		if (!(h->inputs[i] = mem_strdup(input_name(z, i), err)))
			return -1;
	settings_json(z, &set);
	if (!buf_ok(&set, err))
		rc = stream_add_prov(h, "tune-tokenize", TUNE_VERSION, set.p, NULL, 0, err);
	buf_release(&set);
	return rc;
}
