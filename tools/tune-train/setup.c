/* From config and files to a model that is ready to train. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "libcommon/file.h"
#include "libcommon/outfile.h"
#include "train.h"

/* Training data, and validation data: data.val, else the val split of the same folder. */
static int open_data(struct run *r, struct err *err)
{
	const struct config *c = r->cfg;
	size_t nval = cfg_count(c, "data.val");

	if (!r->o.data)
		return err_set(err, EX_USAGE, "need data: a shard folder, a token stream, or '-'");
	if (feed_open(&r->feed, r->o.data, "train", err) < 0)
		return -1;
	if (nval > 1)
		return cfg_error(c, err, "data.val", "tune-train takes one folder or stream");
	if (nval == 1) {
		if (feed_open(&r->val, cfg_item(c, "data.val", 0),
				feed_has_split(cfg_item(c, "data.val", 0), "val") ? "val" : "train", err) < 0)
			return -1;
		if (feed_sequential(r->val))
			return cfg_error(c, err, "data.val",
				"'%s' can be read only once; tune-shard makes a folder of it, tune-stream index "
				"an indexed file",
				cfg_item(c, "data.val", 0));
	} else if (feed_has_split(r->o.data, "val") && feed_open(&r->val, r->o.data, "val", err) < 0) {
		return -1;
	}
	r->max_record =
		feed_max_record(r->feed) ? feed_max_record(r->feed) : (long)cfg_int(c, "shard.seq_len");
	if (r->val && feed_max_record(r->val) > r->max_record)
		r->max_record = feed_max_record(r->val);
	return 0;
}

/*
 * A full run that goes on needs nothing of the model that it began with; but where that is given
 * and there, it must not be another one.
 */
static int same_sizes(const struct run *r, struct err *err)
{
	const struct config *c = r->cfg;
	const char *key = cfg_str(c, "model.config")[0] && cfg_str(c, "model.init")[0] ? "model.config"
																				   : "model.path";
	struct modelfile m;
	struct err not_there = {0};
	const struct arch *a = &r->base.arch, *b = &m.arch;
	char *dir = is_dir(cfg_str(c, key)) || is_gguf(cfg_str(c, key))
		? mem_strdup(cfg_str(c, key), err)
		: path_dir(cfg_str(c, key));
	int rc = 0;

	if (!dir)
		return err_oom(err, 256);
	if (cfg_str(c, key)[0] && modelfile_open(&m, dir, NULL, false, &not_there) == 0) {
		if (strcmp(a->family, b->family) || a->dim != b->dim || a->layers != b->layers ||
			a->heads != b->heads || a->kv_heads != b->kv_heads || a->ffn_dim != b->ffn_dim ||
			a->vocab != b->vocab || a->tied != b->tied)
			rc = cfg_error(c, err, key,
				"'%s' is another model than the run's (%s of %d layers, dim %d, vocab %d; the "
				"run's: %s, %d, %d, %d)",
				cfg_str(c, key), b->family, b->layers, b->dim, b->vocab, a->family, a->layers,
				a->dim, a->vocab);
		modelfile_close(&m);
	}
	free(dir);
	return rc;
}

/* Where the weights come from: the checkpoint of a full run that goes on, else the model. */
static int open_base(struct run *r, const char *step_dir, struct err *err)
{
	const struct config *c = r->cfg;
	const char *path = cfg_str(c, "model.path"), *config = cfg_str(c, "model.config");
	bool random = cfg_str(c, "model.init")[0],
		 adapter = cfg_int(c, "lora.rank") || cfg_str(c, "model.adapter")[0];
	char *dir = NULL;
	int rc;

	if (step_dir && !adapter)
		return modelfile_open(&r->base, step_dir, NULL, true, err) < 0 ? -1
																	   : same_sizes(r, err);
	if (random && config[0] && !is_dir(config) && strcmp(path_base(config), "config.json"))
		return cfg_error(c, err, "model.config",
			"must be a config.json or the folder of one, found '%s'", config);
	if (random && config[0])
		path = dir = is_dir(config) ? mem_strdup(config, err) : path_dir(config);
	rc = path ? modelfile_open(&r->base, path, NULL, !random, err) : -1;
	free(dir);
	return rc;
}

static int peft_from_config(struct run *r, struct err *err)
{
	const struct config *c = r->cfg;
	struct peft *p = &r->peft;
	struct { const char *key; char ***list; size_t *n; } lists[] = {
		{ "lora.targets", &p->targets, &p->ntargets },
		{ "lora.modules_to_save", &p->modules_to_save, &p->nmodules },
	};

	p->rank = (int)cfg_int(c, "lora.rank");
	p->alpha = cfg_num(c, "lora.alpha");
	p->dropout = cfg_num(c, "lora.dropout");
	p->rslora = cfg_bool(c, "lora.rslora");
	for (size_t k = 0; k < 2; k++) {
		size_t n = cfg_count(c, lists[k].key);

		if (!(*lists[k].list = mem_zalloc(n, sizeof(char *), err)))
			return -1;
		for (*lists[k].n = 0; *lists[k].n < n; ++*lists[k].n)
			if (!((*lists[k].list)[*lists[k].n] =
						mem_strdup(cfg_item(c, lists[k].key, *lists[k].n), err)))
				return -1;
	}
	return 0;
}

/* Is a list of the config, where it is set, what an adapter has, in any order? */
static bool same_items(const struct config *c, const char *key, char **have, size_t n)
{
	size_t k = cfg_count(c, key), found = 0;

	for (size_t i = 0; i < k; i++)
		for (size_t j = 0; j < n; j++)
			if (!strcmp(cfg_item(c, key, i), have[j])) {
				found++;
				break;
			}
	return !cfg_is_set(c, key) || (k == n && found == n);
}

/*
 * An adapter that is continued brings its own settings; those of the config must not contradict it.
 */
static int peft_from_adapter(struct run *r, const char *dir, struct err *err)
{
	const struct config *c = r->cfg;

	if (peft_read(&r->peft, dir, err) < 0 || modelfile_check_base(&r->base, r->peft.dir, err) < 0)
		return -1;
	if (cfg_is_set(c, "lora.rank") && cfg_int(c, "lora.rank") != r->peft.rank)
		return cfg_error(c, err, "lora.rank", "is %lld, the adapter in '%s' has rank %d",
			(long long)cfg_int(c, "lora.rank"), dir, r->peft.rank);
	if (cfg_is_set(c, "lora.alpha") && cfg_num(c, "lora.alpha") != r->peft.alpha)
		return cfg_error(c, err, "lora.alpha", "is %g, the adapter in '%s' has %g",
			cfg_num(c, "lora.alpha"), dir, r->peft.alpha);
	if (!same_items(c, "lora.targets", r->peft.targets, r->peft.ntargets))
		return cfg_error(c, err, "lora.targets", "are not those of the adapter in '%s'", dir);
	if (!same_items(c, "lora.modules_to_save", r->peft.modules_to_save, r->peft.nmodules))
		return cfg_error(
			c, err, "lora.modules_to_save", "are not those of the adapter in '%s'", dir);
	if (cfg_is_set(c, "lora.rslora") && cfg_bool(c, "lora.rslora") != r->peft.rslora)
		return cfg_error(c, err, "lora.rslora", "is not that of the adapter in '%s'", dir);
	if (cfg_is_set(c, "lora.dropout"))
		r->peft.dropout = cfg_num(c, "lora.dropout");
	return 0;
}

static int open_peft(struct run *r, struct err *err)
{
	const char *adapter = cfg_str(r->cfg, "model.adapter");
	const char *path = r->base.gguf_path ? r->base.gguf_path : r->base.dir;
	char *whole;

	if (!adapter[0] && r->base.adapter_dir)
		adapter = r->base.adapter_dir;
	if (adapter[0] ? peft_from_adapter(r, adapter, err) < 0
				   : cfg_int(r->cfg, "lora.rank") && peft_from_config(r, err) < 0)
		return -1;
	if (!r->peft.rank)
		return 0;
	if (!(whole = realpath(path, NULL)))
		return err_errno(err, EX_NOINPUT, "cannot find '%s'", path);
	free(r->peft.base);
	r->peft.base = whole;
	return 0;
}

/* What goes along with each checkpoint, while it is there: the base's folder may be moved. */
static int carry(struct run *r, struct err *err)
{
	const char *source = tokenizer_source(r->tok);
	char *dir;
	int rc;

	r->gguf_tokenizer = is_gguf(source);
	if (r->gguf_tokenizer)
		return 0;
	if (!(dir = path_dir(source)))
		return err_oom(err, 256);
	rc = carry_read(&r->carried, dir, err);
	/* How answers end is the model's to say, wherever its tokenizer comes from. */
	if (!rc && r->base.dir)
		rc = carry_missing(&r->carried, r->base.dir, "generation_config.json", err);
	free(dir);
	return rc;
}

/*
 * The data's tokenizer must be the model's, and the model must have a row for each id (fault K5).
 */
static int open_tokenizer(struct run *r, struct err *err)
{
	const struct stream_header *h = feed_header(r->feed);
	const char *own = cfg_str(r->cfg, "model.tokenizer"),
			   *path = own[0] ? own
		: r->base.gguf_path   ? r->base.gguf_path
							  : r->base.dir;
	struct stream_tok mine = { .bos = -1, .pad = -1 };

	if (tokenizer_open(&r->tok, path, err) < 0)
		return -1;
	if (tokenizer_vocab(r->tok) > (uint32_t)r->base.arch.vocab)
		return err_set(err, EX_DATAERR,
			"the tokenizer has %u ids, the model's embedding has %d rows: '%s' is not this model's "
			"tokenizer",
			tokenizer_vocab(r->tok), r->base.arch.vocab, tokenizer_source(r->tok));
	mine.vocab = tokenizer_vocab(r->tok);
	memcpy(mine.sha256, tokenizer_sha256(r->tok), sizeof(mine.sha256));
	if (!h->tok.sha256[0])
		tool_warn(r->tool,
			"%s does not say which tokenizer made it; only its vocabulary size is checked",
			feed_name(r->feed));
	if (h->tok.vocab > (uint32_t)r->base.arch.vocab)
		return err_set(err, EX_DATAERR,
			"%s: its tokenizer has %u ids, the model's embedding has %d rows", feed_name(r->feed),
			h->tok.vocab, r->base.arch.vocab);
	if (stream_same_tokenizer(&h->tok, feed_name(r->feed), &mine, tokenizer_source(r->tok), err) <
			0 ||
		(r->val &&
			stream_same_tokenizer(&feed_header(r->val)->tok, feed_name(r->val), &mine,
				tokenizer_source(r->tok), err) < 0))
		return -1;
	if (carry(r, err) < 0)
		return -1;
	if (!cfg_count(r->cfg, "eval.prompts"))
		return 0;
	return chat_open_config(&r->chat, r->tok, r->cfg, err);
}

/*
 * A resumed run keeps the micro-batches that it was planned with, whatever memory is free today:
 * sums over micro-batches are rounded where these end.  Where they no longer fit, smaller ones do,
 * and that is said.
 */
static int plan_again(struct run *r, struct err *err)
{
	struct err no_room = {0};

	r->mo.micro_tokens = (long)r->s.micro_tokens;
	if (plan_make(&r->plan, &r->base.arch, &r->mo, r->dev, r->comm, &no_room) == 0)
		return 0;
	if (no_room.code != EX_OSERR) {
		*err = no_room;
		return -1;
	}
	tool_warn(r->tool,
		"%s; smaller micro-batches than the run's: results differ in their last bits",
		no_room.msg);
	r->mo.micro_tokens = 0;
	return plan_make(&r->plan, &r->base.arch, &r->mo, r->dev, r->comm, err);
}

static int make_plan(struct run *r, struct err *err)
{
	const struct config *c = r->cfg;
	const char *dtype = cfg_str(c, "model.dtype"), *recompute = cfg_str(c, "train.recompute");
	enum dtype own = r->base.src ? modelfile_dtype(&r->base) : r->base.arch.dtype;
	struct model_opts *o = &r->mo;

	*o = (struct model_opts){ .train = true,
		.max_record = r->max_record,
		.micro_tokens = (long)cfg_int(c, "train.micro_tokens"),
		.step_tokens = (long)r->batch * r->max_record,
		.memory = (uint64_t)cfg_int(c, "train.memory"),
		.seed = (uint64_t)cfg_int(c, "train.seed") };
	/* A checkpoint may be of another type than the base that the run began with. */
	if (r->resumed && r->s.base_dtype != DT_NONE)
		own = r->s.base_dtype;
	/* fp16 and quantised weights are widened to fp32, which holds them exactly. */
	o->dtype = strcmp(dtype, "auto") ? dtype_from_word(dtype) : own == DT_BF16 ? DT_BF16 : DT_F32;
	r->s.base_dtype = r->base.src ? own : o->dtype;
	o->recompute = !strcmp(recompute, "on") ? RECOMPUTE_ON
		: !strcmp(recompute, "off")         ? RECOMPUTE_OFF
											: RECOMPUTE_AUTO;
	o->lora = (struct lora_opts){ r->peft.rank, r->peft.alpha, r->peft.dropout, r->peft.rslora,
		(const char *const *)r->peft.targets, r->peft.ntargets,
		(const char *const *)r->peft.modules_to_save, r->peft.nmodules };
	if (sample_room(r, &o->gen_len, err) < 0)
		return -1;
	o->gen_slots = o->gen_len ? 1 : 0;
	if (r->s.micro_tokens && !o->micro_tokens)
		return plan_again(r, err);
	return plan_make(&r->plan, &r->base.arch, o, r->dev, r->comm, err);
}

static int fill_model(struct run *r, const char *step_dir, struct err *err)
{
	const struct config *c = r->cfg;
	const char *adapter = step_dir       ? step_dir
		: cfg_str(c, "model.adapter")[0] ? r->peft.dir
										 : r->base.adapter_dir;
	double std = cfg_num(c, "model.init_std");
	struct init_opts init = { .depth_by_layer = !strcmp(cfg_str(c, "model.init_depth"), "layer"),
		.fan_in = std != std,
		.std = std,
		.embed = cfg_is_set(c, "model.init_embed") ? cfg_num(c, "model.init_embed") : 0,
		.seed = (uint64_t)cfg_int(c, "train.seed") };

	if (r->base.src ? model_load(r->model, &r->base, err) < 0
					: model_init_random(r->model, &init, err) < 0)
		return -1;
	if (!r->peft.rank)
		return 0;
	return adapter ? model_load_adapter(r->model, adapter, err)
				   : model_init_adapter(r->model, init.seed, err);
}

/* Two processes must not write into one run; the lock goes with the process, however it ends. */
static int lock_run(struct run *r, struct err *err)
{
	r->lock = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->lock < 0)
		return err_errno(err, EX_CANTCREAT, "cannot open folder '%s'", r->dir);
	if (flock(r->lock, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, EX_CANTCREAT, "another tune-train is at work in '%s'", r->dir);
	return 0;
}

/*
 * The RUN folder: config.yaml as it was resolved, metrics, and no leftovers of an interrupted save.
 */
static int open_run_dir(struct run *r, bool resumed, struct err *err)
{
	char *path = path_join(r->dir, "config.yaml");
	struct outfile f = { .slot = -1 };
	struct buf text = {0};
	int rc = -1;

	if (!path)
		return err_oom(err, 256);
	if (make_dirs(r->dir, err) < 0 || lock_run(r, err) < 0 || checkpoint_clean(r->dir, err) < 0)
		goto done;
	cfg_print(r->cfg, &text);
	if (buf_ok(&text, err) < 0)
		goto done;
	/* A resumed run keeps the config that it was started with, unless its length is another. */
	if (!resumed || r->o.extend) {
		if (outfile_open(&f, path, true, err) < 0)
			goto done;
		fwrite(text.p, 1, text.n, f.fp);
		if (outfile_commit(&f, err) < 0)
			goto done;
	}
	rc = metrics_open(&r->metrics, r->tool, r->dir, err);
done:
	outfile_abort(&f);
	buf_release(&text);
	free(path);
	return rc;
}

static int event_start(struct run *r, struct err *err)
{
	const struct plan *p = &r->plan;
	long asked = (long)cfg_int(r->cfg, "train.micro_tokens");
	struct json_w w;
	struct buf b;

	tool_say(r->tool,
		"%llu parameters, %llu trained; %s, %s; micro-batch %ld tokens, recompute %s; %.0f MB "
		"planned",
		(unsigned long long)p->params, (unsigned long long)p->trained_params,
		dtype_word(r->mo.dtype), r->dev->what, p->micro_tokens, p->recompute ? "on" : "off",
		(double)p->total / 1048576);
	if (asked && asked < p->micro_tokens)
		tool_say(r->tool,
			"train.micro_tokens=%ld is below the longest record: %ld tokens run at once", asked,
			p->micro_tokens);
	metrics_begin(&w, &b, "start");
	json_w_name(&w, "version"); json_w_str(&w, TUNE_VERSION);
	json_w_name(&w, "params"); json_w_int(&w, (int64_t)p->params);
	json_w_name(&w, "trained_params"); json_w_int(&w, (int64_t)p->trained_params);
	json_w_name(&w, "steps"); json_w_int(&w, (int64_t)r->steps);
	json_w_name(&w, "batch"); json_w_int(&w, (int64_t)r->batch);
	json_w_name(&w, "records"); json_w_int(&w, (int64_t)feed_count(r->feed));
	json_w_name(&w, "dtype"); json_w_str(&w, dtype_word(r->mo.dtype));
	json_w_name(&w, "device"); json_w_str(&w, r->dev->what);
	json_w_name(&w, "micro_tokens"); json_w_int(&w, p->micro_tokens);
	json_w_name(&w, "planned_bytes"); json_w_int(&w, (int64_t)p->total);
	return metrics_end(&r->metrics, &w, &b, err);
}

/* Identities go into every checkpoint: of the data, and of the base that an adapter needs. */
static int identities(struct run *r, bool resumed, struct err *err)
{
	char base[SHA256_HEX] = "";

	if (r->base.src && r->peft.rank && modelfile_identity(&r->base, base, err) < 0)
		return -1;
	if (resumed)
		return !r->peft.rank || !strcmp(r->s.base, base)
			? 0
			: err_set(err, EX_DATAERR,
				  "the base model is not the one that this run's adapter was trained on (%s, then "
				  "%s)",
				  base, r->s.base);
	r->s.data_identity = mem_strdup(feed_identity(r->feed), err);
	r->s.base = mem_strdup(base, err);
	return r->s.data_identity && r->s.base ? 0 : -1;
}

int run_open(struct run *r, struct err *err)
{
	char *step_dir = NULL;
	int resumed = 0, rc = -1;
	bool only_look = r->o.dry_run || r->o.rows_step;

	r->cfg = r->tool->cfg;
	r->dir = cfg_str(r->cfg, "save.dir");
	r->last_saved = r->not_saved = UINT64_MAX;
	if (settings_check(r, err) < 0 ||
		(!only_look && (resumed = resume_find(r, &step_dir, err)) < 0) || open_data(r, err) < 0 ||
		settings_steps(r, err) < 0)
		goto done;
	if (r->o.rows_step) {
		rc = 0;
		goto done;
	}
	if (settings_json(r, err) < 0 || (resumed && resume_read(r, step_dir, err) < 0) ||
		device_open(&r->dev, cfg_str(r->cfg, "train.device"), (int)cfg_int(r->cfg, "train.threads"),
			err) < 0 ||
		comm_open_self(&r->comm, r->dev, err) < 0 || open_base(r, step_dir, err) < 0 ||
		open_peft(r, err) < 0 || open_tokenizer(r, err) < 0 || make_plan(r, err) < 0)
		goto done;
	if (!only_look &&
		(open_run_dir(r, resumed, err) < 0 || identities(r, resumed, err) < 0 ||
			model_new(&r->model, &r->base.arch, &r->mo, &r->plan, r->dev, r->comm, err) < 0 ||
			fill_model(r, step_dir, err) < 0 || event_start(r, err) < 0 ||
			(resumed && resume_apply(r, step_dir, err) < 0)))
		goto done;
	r->s.micro_tokens = (uint64_t)r->plan.micro_tokens;
	if (!resumed)
		r->s.stream_hash = feed_running_hash(r->feed);
	rc = 0;
done:
	free(step_dir);
	return rc;
}

void run_close(struct run *r)
{
	model_free(r->model);
	if (r->comm)
		r->comm->free(r->comm);
	device_close(r->dev);
	feed_close(r->feed);
	feed_close(r->val);
	step_data_release(&r->data);
	step_data_release(&r->val_data);
	free(r->val_logp);
	free(r->val_greedy);
	chat_close(r->chat);
	tokenizer_close(r->tok);
	carry_release(&r->carried);
	modelfile_close(&r->base);
	peft_release(&r->peft);
	metrics_close(&r->metrics);
	if (r->lock >= 0)
		close(r->lock);
	ckpt_state_release(&r->s);
	free(r->config_json);
}
