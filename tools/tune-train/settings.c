/* Settings that must fit together, checked before any weight is opened (fault U5). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train.h"

int settings_check(const struct run *r, struct err *err)
{
	const struct config *c = r->cfg;
	bool random = cfg_str(c, "model.init")[0],
		 adapter = cfg_int(c, "lora.rank") || cfg_str(c, "model.adapter")[0];

	if (!cfg_str(c, "save.dir")[0] && !r->o.dry_run && !r->o.rows_step)
		return err_set(
			err, EX_USAGE, "need a folder for the run: -o RUN (or save.dir in the config)");
	if (!cfg_str(c, "model.path")[0] && !random)
		return err_set(err, EX_USAGE, "need a model: -m MODEL (or model.path in the config)");
	if (random && !cfg_str(c, "model.path")[0] && !cfg_str(c, "model.config")[0])
		return cfg_error(
			c, err, "model.init", "needs model.config, or model.path with a config.json");
	if (random && cfg_int(c, "lora.rank"))
		return cfg_error(c, err, "lora.rank",
			"an adapter on random weights learns nothing; use lora.rank=0 with model.init=random");
	if (random && cfg_str(c, "model.adapter")[0])
		return cfg_error(c, err, "model.adapter", "does not go with model.init=random");
	if (!strcmp(cfg_str(c, "model.dtype"), "fp16"))
		return cfg_error(c, err, "model.dtype",
			"fp16 training needs loss scaling, which this version does not have; use bf16 or fp32");
	if (cfg_num(c, "schedule.warmup_ratio") > 0 && cfg_int(c, "schedule.warmup_steps") > 0)
		return cfg_error(
			c, err, "schedule.warmup_ratio", "set either warmup_steps or warmup_ratio");
	for (size_t i = 0; cfg_is_set(c, "save.export") && i < cfg_count(c, "save.export"); i++)
		if (!adapter && !strncmp(cfg_item(c, "save.export", i), "adapter", 7))
			return cfg_error(c, err, "save.export",
				"'%s' needs an adapter: lora.rank or model.adapter", cfg_item(c, "save.export", i));
	if (r->o.extend && !r->o.resume)
		return err_set(err, EX_USAGE, "--extend goes with --resume");
	if (cfg_count(c, "optim.betas") != 2)
		return cfg_error(c, err, "optim.betas", "needs two numbers");
	if (r->o.resume && r->o.stop_after == 0)
		return err_set(
			err, EX_USAGE, "--stop-after 0 writes the initial state; it does not go with --resume");
	return 0;
}

/* Checks that need to know the data: what a stream can't do, and what validation decides. */
static int check_data(const struct run *r, struct err *err)
{
	const struct config *c = r->cfg;
	bool stream = feed_sequential(r->feed),
		 constant = !strcmp(cfg_str(c, "schedule.name"), "constant");

	if (stream && r->o.rows_step)
		return err_set(err, EX_USAGE,
			"--rows needs a shard folder or an indexed file; a stream can be read only once");
	if (stream && cfg_num(c, "train.epochs") != 1)
		return cfg_error(c, err, "train.epochs",
			"a stream is read once, in its order; tune-shard makes a folder that can be read again "
			"(for a token file: tune-stream index)");
	if (stream && !cfg_int(c, "train.steps") && !constant)
		return cfg_error(c, err, "train.steps",
			"needed with a stream, whose length is not known (or schedule.name=constant)");
	if (!r->val && cfg_bool(c, "save.best"))
		return cfg_error(c, err, "save.best",
			"needs validation data: data.val, or shard.val_fraction when the shards are made");
	if (!r->val && cfg_int(c, "eval.patience"))
		return cfg_error(c, err, "eval.patience",
			"needs validation data: data.val, or shard.val_fraction when the shards are made");
	if (cfg_int(c, "eval.patience") && !cfg_int(c, "eval.every"))
		return cfg_error(c, err, "eval.patience", "needs eval.every");
	return 0;
}

/* Settings that say nothing in this run: whoever wrote them should know. */
static void warn_idle(const struct run *r, uint64_t warmup)
{
	static const char *const lora[] = { "lora.alpha", "lora.dropout", "lora.targets", "lora.rslora",
		"lora.modules_to_save" };
	const struct config *c = r->cfg;

	for (size_t i = 0; i < sizeof(lora) / sizeof(lora[0]); i++)
		if (cfg_is_set(c, lora[i]) && !cfg_int(c, "lora.rank") && !cfg_str(c, "model.adapter")[0])
			tool_warn(
				r->tool, "%s has no effect with lora.rank=0: all weights are trained", lora[i]);
	if (cfg_int(c, "eval.every") && !r->val && !cfg_count(c, "eval.prompts"))
		tool_warn(r->tool,
			"eval.every has no effect: there is no validation data (data.val, or "
			"shard.val_fraction when the shards are made) and no eval.prompts");
	if (r->steps && warmup >= r->steps)
		tool_warn(r->tool,
			"the warmup of %llu steps is as long as the run: optim.lr is never reached",
			(unsigned long long)warmup);
}

int settings_steps(struct run *r, struct err *err)
{
	const struct config *c = r->cfg;
	double epochs = cfg_num(c, "train.epochs"), whole = floor(epochs), frac = epochs - whole;
	double noise;   /* of 2.1 - 2 */
	uint64_t n = feed_count(r->feed), warmup = (uint64_t)cfg_int(c, "schedule.warmup_steps");

	if (check_data(r, err) < 0)
		return -1;
	r->batch = (uint64_t)cfg_int(c, "train.batch");
	r->seed = (uint64_t)cfg_int(c, "train.seed");
	r->steps = (uint64_t)cfg_int(c, "train.steps");
	noise = 1e-12 * epochs * (double)n;
	if (!r->steps && n)
		r->steps = (uint64_t)whole * ((n + r->batch - 1) / r->batch) +
			(uint64_t)ceil(ceil(frac * (double)n - noise) / (double)r->batch);
	if (n && !r->steps)
		return cfg_error(c, err, "train.epochs", "gives no step at all");
	if (!warmup)
		warmup = (uint64_t)ceil(
			cfg_num(c, "schedule.warmup_ratio") * (double)r->steps * (1 - 1e-12));
	r->schedule = (struct schedule){ .lr = cfg_num(c, "optim.lr"),
		.min_ratio = cfg_num(c, "schedule.min_ratio"),
		.warmup = warmup,
		.steps = r->steps };
	if (!r->o.rows_step)
		warn_idle(r, warmup);
	if (schedule_kind(cfg_str(c, "schedule.name"), &r->schedule.kind) < 0)
		return cfg_error(c, err, "schedule.name", "unknown");
	r->adamw =
		(struct adamw_opts){ cfg_item_num(c, "optim.betas", 0), cfg_item_num(c, "optim.betas", 1),
			cfg_num(c, "optim.eps"), cfg_num(c, "optim.weight_decay") };
	r->grad_clip = cfg_num(c, "optim.grad_clip");
	r->loss = loss_find(cfg_str(c, "train.loss"));
	return r->loss ? 0 : cfg_error(c, err, "train.loss", "unknown");
}

int settings_json(struct run *r, struct err *err)
{
	/*
	 * These may differ on a resume (tune-run(5)); steps and epochs with --extend.  Where the model
	 * lies may change, what it is may not: the base's identity is compared instead.  data.train and
	 * data.val are compared by the data's identity.
	 */
	static const char *const free_keys[] = { "log.", "save.", "eval.", "generate.", "train.threads",
		"train.memory", "train.micro_tokens", "train.device", "train.recompute", "model.path",
		"model.config", "model.tokenizer", "model.adapter", "data.train", "data.val", NULL };
	struct buf b = {0};

	cfg_to_json(r->cfg, free_keys, &b);
	/* data.val may lie elsewhere, but must be what it was: best and patience follow it. */
	if (r->val && cfg_count(r->cfg, "data.val")) {
		while (b.n && b.p[b.n - 1] != '}')
			b.n--;
		b.n--;
		buf_printf(&b, ", \"data.val\": \"%s\"}", feed_identity(r->val));
	}
	if (buf_ok(&b, err) < 0)
		return -1;
	r->config_json = buf_detach(&b);
	return r->config_json ? 0 : err_oom(err, 4096);
}
