/*
 * hints: what the writer of an unknown key may have meant: another spelling, another section,
 * another program's name.
 */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "libcommon/config_int.h"

enum { NAME_MAX_LEN = 63 };

/*
 * Names that other programs use.  A dotted name is looked up whole, others also as the last part of
 * a path.
 */
static const struct foreign { const char *name, *ours, *note; } foreign[] = {
	{ "learning_rate", "optim.lr" },
	{ "batch_size", "train.batch", "records a step, over all ranks" },
	{ "per_device_train_batch_size", "train.batch", "records a step, over all ranks" },
	{ "micro_batch_size", "train.micro_tokens",
		"tokens at once; train.batch is the step's records" },
	{ "global_batch_size", "train.batch" },
	{ "per_device_eval_batch_size", NULL, "validation batches follow from train.micro_tokens" },
	{ "eval_batch_size", NULL, "validation batches follow from train.micro_tokens" },
	{ "gradient_accumulation_steps", NULL,
		"accumulation follows from train.batch and train.micro_tokens" },
	{ "num_train_epochs", "train.epochs" },
	{ "num_epochs", "train.epochs" },
	{ "n_epochs", "train.epochs" },
	{ "max_steps", "train.steps" },
	{ "max_steps_per_epoch", "train.steps" },
	{ "max_seq_length", "shard.seq_len" },
	{ "max_seq_len", "shard.seq_len" },
	{ "max_length", "shard.seq_len" },
	{ "sequence_len", "shard.seq_len" },
	{ "sequence_length", "shard.seq_len" },
	{ "cutoff_len", "shard.seq_len" },
	{ "block_size", "shard.seq_len" },
	{ "lora.r", "lora.rank" },
	{ "lora_r", "lora.rank" },
	{ "lora_rank", "lora.rank" },
	{ "lora_alpha", "lora.alpha" },
	{ "lora_dropout", "lora.dropout" },
	{ "lora_target", "lora.targets" },
	{ "lora_target_modules", "lora.targets" },
	{ "lora_target_linear", "lora.targets", "all linears are the default" },
	{ "lora_attn_modules", "lora.targets" },
	{ "target_modules", "lora.targets" },
	{ "use_rslora", "lora.rslora" },
	{ "adapter", "model.adapter", "lora.rank > 0 makes a new adapter" },
	{ "finetuning_type", "lora.rank", "0 = full, > 0 = LoRA" },
	{ "optimizer", "optim.name" },
	{ "adam_beta1", "optim.betas" },
	{ "adam_beta2", "optim.betas" },
	{ "adam_epsilon", "optim.eps" },
	{ "lr_scheduler", "schedule.name" },
	{ "lr_scheduler_type", "schedule.name" },
	{ "num_warmup_steps", "schedule.warmup_steps" },
	{ "min_lr_ratio", "schedule.min_ratio" },
	{ "cosine_min_lr_ratio", "schedule.min_ratio" },
	{ "min_lr", "schedule.min_ratio", "a share of optim.lr" },
	{ "max_grad_norm", "optim.grad_clip" },
	{ "clip_grad_norm", "optim.grad_clip" },
	{ "gradient_clipping", "optim.grad_clip" },
	{ "output_dir", "save.dir" },
	{ "save_steps", "save.every" },
	{ "save_strategy", "save.every" },
	{ "saves_per_epoch", "save.every", "steps between checkpoints" },
	{ "save_total_limit", "save.keep" },
	{ "load_best_model_at_end", "save.best" },
	{ "eval_steps", "eval.every" },
	{ "eval_strategy", "eval.every" },
	{ "evaluation_strategy", "eval.every" },
	{ "evals_per_epoch", "eval.every", "steps between validations" },
	{ "run_val_every_n_steps", "eval.every" },
	{ "early_stopping_patience", "eval.patience" },
	{ "metric_for_best_model", "eval.metric" },
	{ "logging_steps", "log.every" },
	{ "log_every_n_steps", "log.every" },
	{ "report_to", NULL, "the metrics are JSON Lines, in RUN/metrics.jsonl" },
	{ "model_name_or_path", "model.path" },
	{ "base_model", "model.path" },
	{ "model_name", "model.path" },
	{ "checkpoint_dir", "model.path" },
	{ "adapter_name_or_path", "model.adapter" },
	{ "tokenizer_name", "model.tokenizer" },
	{ "dataset", "data.train" },
	{ "datasets", "data.train" },
	{ "dataset_path", "data.train" },
	{ "dataset_name", "data.train" },
	{ "train_file", "data.train" },
	{ "validation_file", "data.val" },
	{ "eval_dataset", "data.val" },
	{ "dataset_val", "data.val" },
	{ "val_set_size", "shard.val_fraction" },
	{ "val_size", "shard.val_fraction" },
	{ "chat_template", "data.template" },
	{ "train_on_inputs", "data.train_on", "assistant, last or all" },
	{ "train_on_input", "data.train_on", "assistant, last or all" },
	{ "train_on_prompt", "data.train_on", "assistant, last or all" },
	{ "assistant_only_loss", "data.train_on", "assistant, last or all" },
	{ "column_map", "data.columns" },
	{ "bf16", "model.dtype" },
	{ "fp16", "model.dtype" },
	{ "torch_dtype", "model.dtype" },
	{ "gradient_checkpointing", "train.recompute" },
	{ "enable_activation_checkpointing", "train.recompute" },
	{ "packing", NULL, "documents are always packed, and never see each other" },
	{ "sample_packing", NULL, "documents are always packed, and never see each other" },
	{ "packed", NULL, "documents are always packed, and never see each other" },
	{ "pad_to_sequence_len", NULL, "there is no padding" },
	{ "pad_token", NULL, "there is no padding" },
	{ "flash_attention", NULL, "attention needs no setting" },
	{ "attn_implementation", NULL, "attention needs no setting" },
	{ "load_in_4bit", NULL, "models are not quantised for training" },
	{ "load_in_8bit", NULL, "models are not quantised for training" },
	{ "data_seed", "shard.seed" },
	{ "resume_from_checkpoint", NULL, "tune-train --resume goes on with save.dir" },
	{ "_component_", NULL,
		"nothing is built by class name; train.loss, optim.name and model.path choose" },
	{ "max_tokens", "generate.max_new_tokens" },
};
enum { N_FOREIGN = sizeof(foreign) / sizeof(foreign[0]) };

/* Optimal string alignment: insertions, deletions, changes and swaps of neighbours. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
	uint8_t row[3][NAME_MAX_LEN + 1];   /* of i-2, i-1, i, in turn */

	for (size_t j = 0; j <= nb; j++)
		row[0][j] = (uint8_t)j;
	for (size_t i = 1; i <= na; i++) {
		uint8_t *d = row[i % 3];
		const uint8_t *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];

		d[0] = (uint8_t)i;
		for (size_t j = 1; j <= nb; j++) {
			uint8_t v = (uint8_t)(up[j - 1] + (a[i - 1] != b[j - 1]));

			if (up[j] + 1 < v)
				v = (uint8_t)(up[j] + 1);
			if (d[j - 1] + 1 < v)
				v = (uint8_t)(d[j - 1] + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				up2[j - 2] + 1 < v)
				v = (uint8_t)(up2[j - 2] + 1);
			d[j] = v;
		}
	}
	return row[na % 3][nb];
}

const char *nearest_name(const char *name, const char *const *names, size_t n)
{
	size_t len = strlen(name), best = len / 3 + 1;
	const char *found = NULL;

	if (!len || len > NAME_MAX_LEN)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t k = strlen(names[i]), d;

		if (k > NAME_MAX_LEN)
			continue;
		d = distance(name, len, names[i], k);
		if (d < best) {
			best = d;
			found = names[i];
		}
	}
	return found;
}

static const char *last_part(const char *path)
{
	const char *dot = strchr(path, '.');

	return dot ? dot + 1 : path;
}

static const struct foreign *find_foreign(const char *path)
{
	for (size_t i = 0; i < N_FOREIGN; i++)
		if (!strcmp(foreign[i].name, path))
			return &foreign[i];
	return last_part(path) != path ? find_foreign(last_part(path)) : NULL;
}

bool cfg_is_foreign(const char *name)
{
	return !strchr(name, '.') && find_foreign(name) != NULL;
}

static void foreign_hint(const struct foreign *f, const char *asked, char *out, size_t n)
{
	char seen[96] = "";

	if (asked)   /* it was itself misspelt */
		snprintf(seen, sizeof(seen), "did you mean '%s'? ", f->name);
	if (!f->ours)
		snprintf(out, n, " (%s%s)", seen, f->note);
	else
		snprintf(out, n, " (%shere it is '%s'%s%s)", seen, f->ours, f->note ? ": " : "",
			f->note ? f->note : "");
}

/* Keys of any section with this last part: " ('lr' belongs under optim: 'optim.lr')". */
static bool other_section(const char *name, char *out, size_t n)
{
	const char *found[8];
	size_t k = 0, at;

	for (size_t i = 0; i < cfg_nrows && k < 8; i++)
		if (!strcmp(last_part(cfg_rows[i].path), name))
			found[k++] = cfg_rows[i].path;
	if (!k)
		return false;
	if (k == 1) {
		snprintf(out, n, " ('%s' belongs under %.*s: '%s')", name, (int)strcspn(found[0], "."),
			found[0], found[0]);
		return true;
	}
	at = (size_t)snprintf(out, n, " (did you mean ");
	for (size_t i = 0; i < k && at < n; i++)
		at += (size_t)snprintf(out + at, n - at, "%s'%s'",
			!i              ? ""
				: i + 1 < k ? ", "
							: " or ",
			found[i]);
	if (at < n)
		snprintf(out + at, n - at, "?)");
	return true;
}

static void nearest_key(const char *path, char *out, size_t n)
{
	const char *names[512] = {0}, *near;
	size_t k = 0;

	for (size_t i = 0; i < cfg_nrows && k < 512; i++)
		names[k++] = cfg_rows[i].path;
	near = nearest_name(path, names, k);
	if (near) {
		snprintf(out, n, " (did you mean '%s'?)", near);
		return;
	}
	for (k = 0; k < cfg_nrows && k < 512; k++)
		names[k] = last_part(cfg_rows[k].path);
	near = nearest_name(last_part(path), names, k);
	if (near && strlen(near) > 3) {   /* two-letter words are near to anything */
		other_section(near, out, n);
		return;
	}
	for (k = 0; k < N_FOREIGN; k++)
		names[k] = foreign[k].name;
	near = nearest_name(last_part(path), names, k);
	if (near)
		foreign_hint(find_foreign(near), path, out, n);
}

static bool nearest_section(const char *name, char *out, size_t n)
{
	char sections[32][NAME_MAX_LEN + 1];
	const char *names[32], *near;
	size_t k = 0;

	for (size_t i = 0; i < cfg_nrows && k < 32; i++) {
		if (i &&
			!strncmp(cfg_rows[i].path, cfg_rows[i - 1].path, strcspn(cfg_rows[i].path, ".") + 1))
			continue;
		snprintf(sections[k], sizeof(sections[k]), "%.*s", (int)strcspn(cfg_rows[i].path, "."),
			cfg_rows[i].path);
		names[k] = sections[k];
		k++;
	}
	near = nearest_name(name, names, k);
	if (near)
		snprintf(out, n, " (did you mean the section '%s'?)", near);
	return near != NULL;
}

/* "data.columns.prompt": an item of a map, which is one value. */
static bool map_item(const char *path, char *out, size_t n)
{
	const char *item = strrchr(path, '.'), *names[512], *near;
	char map[NAME_MAX_LEN + 1];
	size_t k = 0;

	if (!item || strchr(path, '.') == item)
		return false;
	snprintf(map, sizeof(map), "%.*s", (int)(item - path), path);
	for (size_t i = 0; i < cfg_nrows && k < 512; i++)
		if (cfg_rows[i].type == CFG_MAP)
			names[k++] = cfg_rows[i].path;
	near = nearest_name(map, names, k);
	if (near)
		snprintf(out, n, " (did you mean %s='{%s: VALUE}'?)", near, item + 1);
	return near != NULL;
}

void cfg_hint(const char *path, char *out, size_t n)
{
	char norm[NAME_MAX_LEN + 1];
	const struct foreign *f;
	size_t i;

	*out = 0;
	if (strlen(path) > NAME_MAX_LEN)
		return;
	for (i = 0; path[i]; i++)
		norm[i] = path[i] == '-' ? '_' : (char)tolower((unsigned char)path[i]);
	norm[i] = 0;
	f = find_foreign(norm);
	if (cfg_known_section(norm, i))
		snprintf(out, n, " (a section; its keys are written %s.KEY)", norm);
	else if (cfg_find_row(norm))
		snprintf(out, n, " (did you mean '%s'?)", norm);
	else if (f)
		foreign_hint(f, NULL, out, n);
	else if (!map_item(norm, out, n) && !other_section(last_part(norm), out, n) &&
		(strchr(norm, '.') || !nearest_section(norm, out, n)))
		nearest_key(norm, out, n);
}
