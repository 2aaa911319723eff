/* From MODEL to a model that can score and answer. */
#include <stdlib.h>
#include <string.h>

#include "eval.h"
#include "libcommon/file.h"

enum { ROOM_MIN = 1024 };   /* below, a conversation is not worth while: the plan says so */

int eval_open(struct eval *e, struct tool *t, struct err *err)
{
	e->tool = t;
	e->cfg = t->cfg;
	return device_open(&e->dev, cfg_str(e->cfg, "train.device"),
			   (int)cfg_int(e->cfg, "train.threads"), err) < 0
		? -1
		: comm_open_self(&e->comm, e->dev, err);
}

void eval_close(struct eval *e)
{
	eval_unload(e);
	if (e->comm)
		e->comm->free(e->comm);
	device_close(e->dev);
}

void eval_unload(struct eval *e)
{
	model_free(e->model);
	encoder_free(e->enc);
	chat_close(e->chat);
	tokenizer_close(e->tok);
	peft_release(&e->peft);
	modelfile_close(&e->file);
	e->model = NULL;
	e->enc = NULL;
	e->chat = NULL;
	e->tok = NULL;
	e->peft = (struct peft){0};
	e->file = (struct modelfile){0};
}

/* An adapter's own tokenizer files win over its base's, as its template may be another. */
static const char *tokenizer_path(const struct eval *e)
{
	const char *own = cfg_str(e->cfg, "model.tokenizer");
	char *carried;
	bool there = false;

	if (own[0])
		return own;
	if (e->file.adapter_dir && (carried = path_join(e->file.adapter_dir, "tokenizer.json"))) {
		there = is_file(carried);
		free(carried);
	}
	return there ? e->file.adapter_dir : e->file.gguf_path ? e->file.gguf_path : e->file.dir;
}

static const char *adapter_path(const struct eval *e)
{
	const char *adapter = cfg_str(e->cfg, "model.adapter");

	if (e->o.each)     /* model.adapter is what the run began with, or nothing to it */
		return e->file.adapter_dir;
	return adapter[0] ? adapter : e->file.adapter_dir;
}

int eval_load(struct eval *e, const char *path, struct err *err)
{
	if (!path[0])
		return err_set(err, EX_USAGE, "need a model: -m MODEL (or model.path in the config)");
	if (modelfile_open(&e->file, path, NULL, true, err) < 0)
		return -1;
	if (adapter_path(e) && (peft_read(&e->peft, adapter_path(e), err) < 0 ||
							   modelfile_check_base(&e->file, e->peft.dir, err) < 0))
		return -1;
	if (tokenizer_open(&e->tok, tokenizer_path(e), err) < 0 ||
		chat_open_config(&e->chat, e->tok, e->cfg, err) < 0 ||
		encoder_new(&e->enc, e->tok, err) < 0)
		return -1;
	if (tokenizer_vocab(e->tok) > (uint32_t)e->file.arch.vocab)
		return err_set(err, EX_DATAERR,
			"the tokenizer has %u ids, the model's embedding has %d rows: '%s' is not this model's "
			"tokenizer",
			tokenizer_vocab(e->tok), e->file.arch.vocab, tokenizer_source(e->tok));
	e->nstop = tokenizer_stop_ids(e->tok, e->stop);
	return 0;
}

long eval_window(const struct eval *e)
{
	return e->file.arch.max_positions > 0 ? e->file.arch.max_positions : 1L << 20;
}

static struct model_opts options(const struct eval *e, long max_record, int slots, long gen_len)
{
	const char *dtype = cfg_str(e->cfg, "model.dtype");
	struct model_opts o = { .max_record = max_record,
		.micro_tokens = (long)cfg_int(e->cfg, "train.micro_tokens"),
		.memory = (uint64_t)cfg_int(e->cfg, "train.memory"),
		.gen_slots = slots,
		.gen_len = gen_len };

	o.dtype = strcmp(dtype, "auto")            ? dtype_from_word(dtype)
		: modelfile_dtype(&e->file) == DT_BF16 ? DT_BF16
											   : DT_F32;
	o.lora = (struct lora_opts){ e->peft.rank, e->peft.alpha, 0, e->peft.rslora,
		(const char *const *)e->peft.targets, e->peft.ntargets,
		(const char *const *)e->peft.modules_to_save, e->peft.nmodules };
	return o;
}

long eval_room(const struct eval *e)
{
	struct model_opts o = options(e, 0, 1, eval_window(e));
	struct plan plan;
	struct err err = {0};

	while (o.gen_len > ROOM_MIN &&
		plan_make(&plan, &e->file.arch, &o, e->dev, e->comm, &err) < 0 && err.code == EX_OSERR) {
		o.gen_len /= 2;
		err = (struct err){0};
	}
	return o.gen_len;
}

int eval_model(struct eval *e, long max_record, int slots, long gen_len, struct err *err)
{
	struct model_opts o = options(e, max_record, slots, gen_len);

	if (plan_make(&e->plan, &e->file.arch, &o, e->dev, e->comm, err) < 0 ||
		model_new(&e->model, &e->file.arch, &o, &e->plan, e->dev, e->comm, err) < 0 ||
		model_load(e->model, &e->file, err) < 0)
		return -1;
	return e->peft.rank ? model_load_adapter(e->model, e->peft.dir, err) : 0;
}

struct sampling eval_sampling(const struct eval *e)
{
	const struct config *c = e->cfg;

	return (struct sampling){ (long)cfg_int(c, "generate.max_new_tokens"),
		cfg_num(c, "generate.temperature"), (int)cfg_int(c, "generate.top_k"),
		cfg_num(c, "generate.top_p"), (uint64_t)cfg_int(c, "generate.seed") };
}

void eval_settings_json(const struct eval *e, struct json_w *w)
{
	json_w_name(w, "model"); json_w_str(w, e->file.path);
	json_w_name(w, "adapter");
	if (adapter_path(e))
		json_w_str(w, adapter_path(e));
	else
		json_w_null(w);
	json_w_name(w, "dtype");
	json_w_str(w,
		dtype_word(strcmp(cfg_str(e->cfg, "model.dtype"), "auto")
				? dtype_from_word(cfg_str(e->cfg, "model.dtype"))
				: modelfile_dtype(&e->file) == DT_BF16 ? DT_BF16
													   : DT_F32));
	json_w_name(w, "tokenizer_sha256"); json_w_str(w, tokenizer_sha256(e->tok));
	json_w_name(w, "template"); json_w_str(w, e->chat ? chat_name(e->chat) : "none");
	json_w_name(w, "template_sha256"); json_w_str(w, e->chat ? chat_sha256(e->chat) : "");
	json_w_name(w, "add_bos"); json_w_bool(w, tokenizer_add_bos(e->tok));
	json_w_name(w, "stop_ids");
	json_w_arr(w);
	for (size_t i = 0; i < e->nstop; i++)
		json_w_int(w, e->stop[i]);
	json_w_end(w);
}
