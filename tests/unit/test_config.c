#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcommon/config.h"
#include "tap.h"

static char dir[] = "/tmp/tune-config-XXXXXX";
static struct err err;

static const char *put(const char *name, const char *text, size_t n)
{
	static char path[256];
	FILE *fp;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fp = fopen(path, "wb");
	if (!fp || fwrite(text, 1, n, fp) != n || fclose(fp))
		abort();
	return path;
}

static struct config *fresh(void)
{
	struct config *c;

	err = (struct err){0};
	if (cfg_new(&c, &err) < 0) {
		printf("Bail out! %s\n", err.msg);
		exit(1);
	}
	return c;
}

/* Read text as a file; the message without the folder's name, or "". */
static const char *file_says(const char *text)
{
	static char said[4096];
	struct config *c = fresh();
	const char *path = put("f.yaml", text, strlen(text));
	size_t skip = strlen(dir) + 1;
	char *to = said;

	cfg_read_file(c, path, &err);
	for (const char *s = err.msg; *s; s++) {
		if (!strncmp(s, dir, skip - 1))
			s += skip;
		*to++ = *s;
	}
	*to = 0;
	cfg_free(c);
	return said;
}

static const char *arg_says(const char *arg)
{
	struct config *c = fresh();

	cfg_set_arg(c, arg, &err);
	cfg_free(c);
	return err.msg;
}

/* is(got, want): shows both when they differ. */
static void is(const char *got, const char *want, const char *what)
{
	ok(!strcmp(got, want), "%s", what);
	if (strcmp(got, want))
		printf("# got  '%s'\n# want '%s'\n", got, want);
}

static double num_of(const char *text)
{
	char yaml[128];
	struct config *c = fresh();
	double v;

	snprintf(yaml, sizeof(yaml), "optim:\n  lr: %s\n", text);
	v = cfg_read_file(c, put("n.yaml", yaml, strlen(yaml)), &err) < 0 ? NAN
																	  : cfg_num(c, "optim.lr");
	cfg_free(c);
	return v;
}

static void test_numbers(void)
{
	static const char *const equal[] = { "5e-5", "5.0e-5", "5E-5", ".00005", "0.00005", "'5e-5'",
		"+5e-05" };
	static const char *const bad[] = { "0.001.0.005", "true", "1e", "e5", ".", "-e", "0x10",
		"1_000", ".nan", ".inf", "inf", "1e999", "5e-5x", "1 2" };

	for (size_t i = 0; i < sizeof(equal) / sizeof(equal[0]); i++)
		ok(num_of(equal[i]) == 5e-5, "U2: %s is 5e-5", equal[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(isnan(num_of(bad[i])) && err.code == EX_CONFIG &&
				strstr(err.msg, "n.yaml:2:7: optim.lr must be a finite number, found '"),
			"U2: %s is no number, said with its place", bad[i]);
	is(file_says("train:\n  epochs: 3.5x\n"),
		"f.yaml:2:11: train.epochs must be a finite number, found '3.5x'", "U2: 3.5x");
	is(file_says("train:\n  steps: 3.5\n"),
		"f.yaml:2:10: train.steps must be a whole number, found '3.5'", "a fraction is no int");
	is(file_says("train:\n  steps: 99999999999999999999\n"),
		"f.yaml:2:10: train.steps must be a whole number, found '99999999999999999999'",
		"an int that does not fit");
	is(file_says("optim:\n  lr: -1\n"),
		"f.yaml:2:7: optim.lr must be between 0 and 1000, found '-1'", "out of range");
	is(file_says("train:\n  seed: 9007199254740993\n"),
		"f.yaml:2:9: train.seed must be between 0 and 9007199254740992, found '9007199254740993'",
		"a seed that a double can't hold");
	is(file_says("data:\n  eos: yes\n"), "f.yaml:2:8: data.eos must be true or false, found 'yes'",
		"U2: yes is no boolean");
}

static void test_strings(void)
{
	struct config *c = fresh();
	const char *text = "train:\n  recompute: off\neval:\n  prompts: [no, off, 1.50, ~a, 'null', "
					   "\"a\\nb\"]\ngenerate:\n  stop: yes\n";

	ok(!cfg_read_file(c, put("s.yaml", text, strlen(text)), &err),
		"U2: no, off, yes are strings where a string is wanted: %s", err.msg);
	is(cfg_str(c, "train.recompute"), "off", "U2: off is the choice off");
	ok(cfg_count(c, "eval.prompts") == 6, "six prompts");
	is(cfg_item(c, "eval.prompts", 0), "no", "no stays no");
	is(cfg_item(c, "eval.prompts", 2), "1.50", "1.50 stays as it is written");
	is(cfg_item(c, "eval.prompts", 4), "null", "a quoted null is a word");
	is(cfg_item(c, "eval.prompts", 5), "a\nb", "escapes of double quotes hold");
	ok(cfg_count(c, "generate.stop") == 1 && !strcmp(cfg_item(c, "generate.stop", 0), "yes"),
		"a scalar is a list of one");
	cfg_free(c);
}

static void test_unknown(void)
{
	is(file_says("learning_rte: 1e-4\n"),
		"f.yaml:1:1: unknown key 'learning_rte' (did you mean 'learning_rate'? here it is "
		"'optim.lr')",
		"U1: a misspelt name of another program");
	is(file_says("train:\n  lr: 1e-4\n"),
		"f.yaml:2:3: unknown key 'train.lr' ('lr' belongs under optim: 'optim.lr')",
		"U1: the right key in the wrong section");
	is(file_says("lora:\n  ranl: 8\n"),
		"f.yaml:2:3: unknown key 'lora.ranl' (did you mean 'lora.rank'?)", "U1: lora.ranl");
	is(file_says("lora-r: 8\n"), "f.yaml:1:1: unknown key 'lora-r' (here it is 'lora.rank')",
		"U1: lora-r");
	is(file_says("lora_r: 8\n"), "f.yaml:1:1: unknown key 'lora_r' (here it is 'lora.rank')",
		"U1: lora_r");
	is(file_says("lora:\n  r: 8\n"), "f.yaml:2:3: unknown key 'lora.r' (here it is 'lora.rank')",
		"U1: lora.r");
	is(file_says("optim:\n  weight-decay: 0\n"),
		"f.yaml:2:3: unknown key 'optim.weight-decay' (did you mean 'optim.weight_decay'?)",
		"U1: - for _");
	is(file_says("optim:\n  lr: 1\n  lr: 2\n"),
		"f.yaml:3:3: duplicate key 'lr' (the first is on line 2)", "U1: a duplicate key");
	is(file_says("optim:\n  lr: 1\noptim:\n  eps: 1\n"),
		"f.yaml:3:1: duplicate key 'optim' (the first is on line 1)", "U1: a duplicate section");
	is(arg_says("data.column.prompt=x"),
		"data.column.prompt=x: unknown key 'data.column.prompt' (did you mean "
		"data.columns='{prompt: VALUE}'?)",
		"U1: an item of a map, misspelt");
	is(file_says("optm:\n  lr: 1\n"),
		"f.yaml:1:1: unknown key 'optm' (did you mean the section 'optim'?)",
		"U1: a misspelt section");
	is(file_says("seed: 1\n"),
		"f.yaml:1:1: unknown key 'seed' (did you mean 'generate.seed', 'shard.seed' or "
		"'train.seed'?)",
		"a key of several sections");
	is(file_says("packing: true\n"),
		"f.yaml:1:1: unknown key 'packing' (documents are always packed, and never see each other)",
		"packing");
	is(file_says("gradient_accumulation_steps: 4\n"),
		"f.yaml:1:1: unknown key 'gradient_accumulation_steps' (accumulation follows from "
		"train.batch and train.micro_tokens)",
		"accumulation");
	is(file_says("model:\n  _component_: torchtune.models.llama3_2\n"),
		"f.yaml:2:3: unknown key 'model._component_' "
		"(nothing is built by class name; train.loss, optim.name and model.path choose)",
		"a torchtune component");
	is(file_says("optim.lr: 1\n"),
		"f.yaml:1:1: unknown key 'optim.lr' (in a file it is written 'lr' below 'optim:')",
		"a dotted key");
	is(file_says("optim: adamw\n"),
		"f.yaml:1:8: 'optim' is a section; its keys stand below it, indented",
		"a section that is a word");
	is(file_says("zzzzzzzz: 1\n"), "f.yaml:1:1: unknown key 'zzzzzzzz'", "nothing near, no hint");
	is(file_says("model:\n  dtype: bf61\noptim:\n  lr: fast\nsave:\n  keep: 0\nfoo: 1\n"),
		"f.yaml:2:10: model.dtype must be one of auto, fp32, bf16 or fp16, found 'bf61' (did you "
		"mean 'bf16'?)\n"
		"f.yaml:4:7: optim.lr must be a finite number, found 'fast'\n"
		"f.yaml:6:9: save.keep must be between 1 and 1000000, found '0'\n"
		"f.yaml:7:1: unknown key 'foo'",
		"U1: all that is wrong is said at once, each with its place");
}

/* Every name that others use points at a key that there is. */
static void test_hints(void)
{
	static const char *const names[][2] = {
		{ "learning_rate", "optim.lr" }, { "batch_size", "train.batch" },
			{ "per_device_train_batch_size", "train.batch" },
		{ "num_train_epochs", "train.epochs" }, { "num_epochs", "train.epochs" },
		{ "max_steps", "train.steps" },
		{ "max_seq_length", "shard.seq_len" }, { "max_seq_len", "shard.seq_len" },
		{ "sequence_len", "shard.seq_len" },
		{ "cutoff_len", "shard.seq_len" }, { "lora_alpha", "lora.alpha" },
		{ "lora_dropout", "lora.dropout" },
		{ "lora_target_modules", "lora.targets" }, { "target_modules", "lora.targets" },
			{ "warmup_steps", "schedule.warmup_steps" },
		{ "warmup_ratio", "schedule.warmup_ratio" }, { "lr_scheduler_type", "schedule.name" },
			{ "weight_decay", "optim.weight_decay" },
		{ "output_dir", "save.dir" }, { "save_steps", "save.every" },
		{ "eval_steps", "eval.every" }, { "logging_steps", "log.every" },
		{ "save_total_limit", "save.keep" }, { "model_name_or_path", "model.path" },
		{ "base_model", "model.path" },
		{ "dataset", "data.train" }, { "datasets", "data.train" }, { "dataset_path", "data.train" },
		{ "val_set_size", "shard.val_fraction" }, { "bf16", "model.dtype" },
		{ "fp16", "model.dtype" },
		{ "gradient_checkpointing", "train.recompute" }, { "max_grad_norm", "optim.grad_clip" },
			{ "clip_grad_norm", "optim.grad_clip" },
	};
	char text[128], want[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(text, sizeof(text), "%s: 1\n", names[i][0]);
		snprintf(want, sizeof(want), "'%s'", names[i][1]);
		ok(strstr(file_says(text), want) && cfg_find_row(names[i][1]), "U1: %s is %s here",
			names[i][0], names[i][1]);
	}
}

static void test_yaml(void)
{
	is(file_says("optim:\n\tlr: 1\n"),
		"f.yaml:2:1: not valid YAML: a tab indents this line; use spaces", "U2: a tab");
	is(file_says("optim:\n  lr: [1\n"),
		"f.yaml:3:1: not valid YAML: did not find expected ',' or ']' while parsing a flow "
		"sequence",
		"a bracket left open");
	is(file_says("optim:\n  lr: &a 1\n  eps: *a\n"),
		"f.yaml:2:7: anchors and aliases (&a, *a) are not read here; write the value out\n"
		"f.yaml:3:8: anchors and aliases (&a, *a) are not read here; write the value out",
		"anchors and aliases");
	is(file_says("optim:\n  lr: !!float 1\n"),
		"f.yaml:2:7: tags (!!type) are not read here; the key decides the type", "tags");
	is(file_says("- 1\n"), "f.yaml:1:1: a config is made of sections such as 'optim:'",
		"a list at the top");
	is(file_says("optim:\n  lr: 1\n---\na: 1\n"),
		"f.yaml:3:1: a second document starts here; a config is one document", "two documents");
	is(file_says("optim:\n  lr: 1\n  ? [a]\n  : 1\n"),
		"f.yaml:3:5: a list or map can't be a key\nf.yaml:3:5: unknown key 'optim.' (did you mean "
		"'optim.lr'?)",
		"a list as a key");
	is(file_says("optim:\n  lr: [1, 2]\n"), "f.yaml:2:7: optim.lr must be a number, found a list",
		"a list for a number");
	is(file_says("lora:\n  targets: {a: b}\n"),
		"f.yaml:2:12: lora.targets must be a list, found a map", "a map for a list");
	is(file_says("lora:\n  targets: [q_proj, [b]]\n"),
		"f.yaml:2:21: lora.targets must be a list of single values, found a list",
		"a list in a list");
	is(file_says("lora:\n  targets: [q_proj, ~]\n"),
		"f.yaml:2:21: lora.targets must be a list of single values, found null", "null in a list");
	is(file_says("data:\n  columns: [a]\n"),
		"f.yaml:2:12: data.columns must be a map (name: value), found a list", "a list for a map");
	is(file_says("optim:\n  betas: [0.9, 1.5]\n"),
		"f.yaml:2:16: optim.betas must be between 0 and 0.999999999, found '1.5'",
		"an item out of range");
	is(file_says("a: \xff\n"), "f.yaml:1:4: not valid YAML: a byte that is no UTF-8 text",
		"a byte that is no UTF-8");
	is(file_says("data:\n  template: \"a\\0b\"\n"), "f.yaml:2:13: a value can't hold a NUL",
		"a NUL");
	is(file_says(""), "", "an empty file sets nothing");
	is(file_says("# only this\n"), "", "nor does a comment");
	is(file_says("optim:\nlora:\n"), "", "nor empty sections");
	is(file_says("\xef\xbb\xbfoptim:\r\n  lr: 1\r\n"), "", "a BOM and CRLF are read");
}

static void test_limits(void)
{
	struct config *c;
	char deep[128] = "x-a: ";
	char *big;

	for (int i = 0; i < 20; i++)
		snprintf(deep + strlen(deep), sizeof(deep) - strlen(deep), "[");
	is(file_says(deep), "f.yaml:1:21: lists and maps are nested too deep", "depth has a limit");
	big = malloc(2 << 20);
	if (!big)
		abort();
	memset(big, '#', 2 << 20);
	c = fresh();
	ok(cfg_read_file(c, put("big.yaml", big, 2 << 20), &err) < 0 && err.code == EX_CONFIG &&
			strstr(err.msg, "larger than the limit"),
		"a file of 2 MiB is refused: %s", err.msg);
	snprintf(big, 8, "x-a: [");
	memset(big + 6, ',', 3);
	for (size_t i = 0; i < 100000; i++)
		memcpy(big + 6 + 2 * i, "1,", 2);
	err = (struct err){0};
	ok(cfg_read_file(c, put("many.yaml", big, 200006), &err) < 0 &&
			strstr(err.msg, "too many values"),
		"the number of values has a limit");
	ok(cfg_read_file(c, "/nonexistent/x.yaml", &err) < 0 &&
			strstr(err.msg, "cannot open '/nonexistent/x.yaml': No such file"),
		"a file that is not there");
	err = (struct err){0};
	ok(cfg_read_file(c, "/nonexistent/x.yaml", &err) < 0 && err.code == EX_NOINPUT, "is 66");
	cfg_free(c);
	free(big);
}

static void test_args(void)
{
	struct config *c = fresh();

	ok(!cfg_set_arg(c, "lora.targets=[q_proj,v_proj]", &err) && cfg_count(c, "lora.targets") == 2,
		"a list on the command line");
	ok(!cfg_set_arg(c, "data.columns={prompt: question}", &err) &&
			!strcmp(cfg_item_name(c, "data.columns", 0), "prompt") &&
			!strcmp(cfg_item(c, "data.columns", 0), "question"),
		"a map");
	ok(!cfg_set_arg(c, "shard.mix={a.jsonl: 0.5, b: x}", &err) &&
			cfg_item_num(c, "shard.mix", 0) == 0.5 && isnan(cfg_item_num(c, "shard.mix", 1)),
		"a map's numbers");
	ok(!cfg_set_arg(c, "data.train=-", &err) && !strcmp(cfg_item(c, "data.train", 0), "-"),
		"- is standard input, not a YAML list");
	ok(!cfg_set_arg(c, "eval.prompts=What is 2+2? Yes: no #1", &err) &&
			!strcmp(cfg_item(c, "eval.prompts", 0), "What is 2+2? Yes: no #1"),
		"a string is taken as it is typed");
	ok(!cfg_set_arg(c, "generate.stop=\"\\n\"", &err) &&
			!strcmp(cfg_item(c, "generate.stop", 0), "\n"),
		"unless it is quoted");
	ok(!cfg_set_arg(c, "shard.size=1.5G", &err) && cfg_int(c, "shard.size") == 3LL << 29, "1.5G");
	ok(!cfg_set_arg(c, "shard.size=512KiB", &err) && cfg_int(c, "shard.size") == 512 << 10,
		"512KiB");
	ok(!cfg_set_arg(c, "optim.lr=1e-4", &err) && cfg_num(c, "optim.lr") == 1e-4 &&
			cfg_is_set(c, "optim.lr"),
		"a setting is set");
	ok(!cfg_set_arg(c, "optim.lr=null", &err) && cfg_num(c, "optim.lr") == 2e-5 &&
			!cfg_is_set(c, "optim.lr"),
		"null goes back to the default");
	is(cfg_origin(c, "optim.lr"), "default", "and its origin");
	ok(!cfg_set_arg(c, "optim.lr=", &err) && !cfg_is_set(c, "optim.lr"), "so does nothing");
	ok(!cfg_set_arg(c, "lora.targets=null", &err) && cfg_count(c, "lora.targets") == 7,
		"a list's default comes back");
	ok(!cfg_set_arg(c, "model.init_std=fan_in", &err) && isnan(cfg_num(c, "model.init_std")) &&
			!strcmp(cfg_str(c, "model.init_std"), "fan_in"),
		"a number or word: the word");
	ok(!cfg_set_arg(c, "model.init_std=1e-2", &err) && cfg_num(c, "model.init_std") == 0.01,
		"a number or word: the number");
	ok(isnan(cfg_num(c, "model.init_embed")), "a number that is not set is NAN");
	ok(!cfg_set_option(c, "model.path", "null", "-m", &err) &&
			!strcmp(cfg_str(c, "model.path"), "null"),
		"an option's value is no YAML");
	is(cfg_origin(c, "model.path"), "-m", "an option is its value's origin");
	cfg_free(c);
	is(arg_says("optim.lr=abc"), "optim.lr=abc: optim.lr must be a finite number, found 'abc'",
		"a bad value on the command line");
	is(arg_says("shard.size=5GB"),
		"shard.size=5GB: shard.size must be a size such as 512M or 2G (powers of 1024), found "
		"'5GB'",
		"GB is ambiguous");
	is(arg_says("model.init_std=number"),
		"model.init_std=number: model.init_std must be a number or fan_in, found 'number'",
		"'number' is no word");
	is(arg_says("optim.lrr=1"), "optim.lrr=1: unknown key 'optim.lrr' (did you mean 'optim.lr'?)",
		"U1: a misspelt key on the command line");
	is(arg_says("optm.lr=1"),
		"optm.lr=1: unknown key 'optm.lr' ('lr' belongs under optim: 'optim.lr')",
		"U1: a misspelt section");
	is(arg_says("optim.lr=[1"),
		"optim.lr=[1: not valid YAML: did not find expected ',' or ']' while parsing a flow "
		"sequence",
		"broken YAML");
	is(arg_says("model.path=\xff"), "model.path=\xff: the value is not UTF-8 text",
		"a value that is no UTF-8");
	ok(err.code == EX_CONFIG, "is 78");
}

static void test_is_setting(void)
{
	char path[256];

	ok(cfg_is_setting("optim.lr=1") && cfg_is_setting("optim.lrr=1") &&
			cfg_is_setting("optm.lr=1") && cfg_is_setting("learning_rate=1"),
		"known and misspelt keys are settings");
	ok(cfg_is_setting("x-mine.words=1"), "so are free ones");
	ok(!cfg_is_setting("./optim.lr=1") && !cfg_is_setting("a.jsonl") && !cfg_is_setting("a=b") &&
			!cfg_is_setting("=") && !cfg_is_setting("-") && !cfg_is_setting("1.5=2"),
		"files are not");
	snprintf(path, sizeof(path), "%s", put("a.b=c", "", 0));
	ok(!chdir(dir) && !cfg_is_setting("a.b=c") && cfg_is_setting("a.x=c"),
		"nor is one that lies there, where the key is unknown");
}

static void test_paths(void)
{
	struct config *c = fresh();
	const char *text = "model:\n  path: m\n  config: /abs/c.json\ndata:\n  train: [a.jsonl, "
					   "../b.jsonl, '-', /c]\n  template: chatml\nsave:\n  dir: ''\n";
	char want[512];

	ok(!cfg_read_file(c, put("p.yaml", text, strlen(text)), &err), "paths are read: %s", err.msg);
	snprintf(want, sizeof(want), "%s/m", dir);
	is(cfg_str(c, "model.path"), want, "a file's path is relative to the file");
	is(cfg_str(c, "model.config"), "/abs/c.json", "an absolute one stays");
	snprintf(want, sizeof(want), "%s/../b.jsonl", dir);
	is(cfg_item(c, "data.train", 1), want, "so are those of a list");
	is(cfg_item(c, "data.train", 2), "-", "- stays");
	is(cfg_str(c, "data.template"), "chatml", "a template's name is no path");
	ok(!cfg_is_set(c, "save.dir"), "an empty path is not set");
	snprintf(want, sizeof(want), "%s/p.yaml:2:9", dir);
	is(cfg_origin(c, "model.path"), want, "D15: a value knows its file, line and column");
	ok(!cfg_set_arg(c, "model.path=m2", &err), "the command line comes later");
	is(cfg_str(c, "model.path"), "m2", "and wins, relative to here");
	is(cfg_origin(c, "model.path"), "command line", "D15: the origin says so");
	err = (struct err){0};
	cfg_error(c, &err, "model.path", "holds no %s", "model");
	cfg_error(c, &err, "train.steps", "is not enough");
	is(err.msg, "command line: model.path: holds no model\ntrain.steps: is not enough",
		"a message about a value says where it is from");
	cfg_free(c);
}

static const char *const leave[] = { "model.path", "save.", NULL };

/* Cut the comments off: origins differ. */
static void strip(struct buf *b)
{
	char *to = b->p;

	for (char *s = b->p; *s; s += *s != 0) {
		char *end = s + strcspn(s, "\n"), *comment = strstr(s, " # ");
		char *stop = comment && comment < end ? comment : end;

		while (s < stop)
			*to++ = *s++;
		*to++ = '\n';
		s = end;
	}
	*to = 0;
}

/* Print c, read that as a file, and hold both to each other. */
static void round_trip(struct config *c, const char *what)
{
	struct buf a = {0}, b = {0}, ja = {0}, jb = {0};
	struct config *d = fresh();
	char ha[SHA256_HEX], hb[SHA256_HEX];

	cfg_print(c, &a);
	ok(!cfg_read_file(d, put("printed.yaml", a.p, a.n), &err),
		"%s: the printed config reads back: %s", what, err.msg);
	cfg_to_json(c, NULL, &ja);
	cfg_to_json(d, NULL, &jb);
	is(jb.p, ja.p, what);
	ok(!cfg_hash(c, leave, ha, &err) && !cfg_hash(d, leave, hb, &err) && !strcmp(ha, hb),
		"%s: equal hashes", what);
	buf_clear(&b);
	cfg_print(d, &b);
	strip(&a);
	strip(&b);
	ok(strlen(a.p) > 1000, "%s: what is compared is there", what);
	is(b.p, a.p, "it prints as it was printed");
	buf_release(&a);
	buf_release(&b);
	buf_release(&ja);
	buf_release(&jb);
	cfg_free(d);
}

static void test_print(void)
{
	struct config *c = fresh();
	struct buf out = {0};
	const char *text =
		"x-filter:\n  min_words: 3\n  'null': [1, '1', {a: b}]\nx-note: \"two\\nlines\"\n";

	round_trip(c, "defaults");
	cfg_set_arg(c, "optim.lr=5e-5", &err);
	cfg_set_arg(c, "model.path=/m/a b", &err);
	cfg_set_arg(c,
		"eval.prompts=[\"a\\tb\\\"\\\\\", \"null\", \"~\", \"\", \"- x\", \"# y\", "
		"\"\\x07\\u2028\xc3\xa9\", \"'\"]",
		&err);
	cfg_set_arg(c, "data.template_vars={\"a: b\": true, null: \"\"}", &err);
	cfg_set_arg(c, "shard.size=1G", &err);
	cfg_set_arg(c, "model.init_std=fan_in", &err);
	ok(!err.code, "settings with odd characters are taken: %s", err.msg);
	round_trip(c, "odd characters");
	cfg_print(c, &out);
	ok(strstr(out.p, "  lr: 5e-5                              # command line\n"),
		"D15: a value is printed with its origin");
	ok(strstr(out.p, "  eps: 1e-8                             # default\n"),
		"D15: so is a default");
	buf_clear(&out);
	ok(!cfg_read_file(c, put("x.yaml", text, strlen(text)), &err), "x- sections are free: %s",
		err.msg);
	ok(!cfg_set_arg(c, "x-filter.max=7", &err), "and can be set: %s", err.msg);
	cfg_print(c, &out);
	ok(strstr(out.p, "x-filter:\n  min_words: 3 ") &&
			strstr(out.p, "\n  \"null\": [1, \"1\", {a: b}] ") &&
			strstr(out.p, "\nx-note: \"two\\nlines\" ") && strstr(out.p, "\n  max: 7 "),
		"they are carried through");
	round_trip(c, "x- sections");
	buf_clear(&out);
	ok(!chdir("/tmp") && !cfg_set_arg(c, "model.path=./m", &err) &&
			!cfg_set_arg(c, "data.train=[a b, '-']", &err),
		"relative paths");
	cfg_print(c, &out);
	ok(strstr(out.p, "  path: /tmp/m ") && strstr(out.p, "  train: [\"/tmp/a b\", \"-\"]"),
		"are printed absolute");
	buf_clear(&out);
	ok(!cfg_print_key(c, "x-filter.min_words", &out, &err) && !strcmp(out.p, "3\n"),
		"a free key's bare value");
	buf_clear(&out);
	ok(!cfg_print_key(c, "lora.targets", &out, &err) && !strncmp(out.p, "q_proj\nk_proj\n", 14),
		"a list, one item a line");
	buf_clear(&out);
	ok(!cfg_print_key(c, "data.template_vars", &out, &err) && !strcmp(out.p, "a: b=true\nnull=\n"),
		"a map as name=value");
	buf_clear(&out);
	ok(!cfg_print_key(c, "optim.lr", &out, &err) && !strcmp(out.p, "5e-5\n"),
		"a number as it is written");
	ok(cfg_print_key(c, "optim.lrr", &out, &err) < 0 && err.code == EX_USAGE,
		"an unknown key is 64");
	is(err.msg, "unknown key 'optim.lrr' (did you mean 'optim.lr'?)", "with the nearest");
	buf_release(&out);
	cfg_free(c);
}

static void test_hash(void)
{
	struct config *a = fresh(), *b = fresh();
	char ha[SHA256_HEX], hb[SHA256_HEX];
	struct buf json = {0};

	cfg_set_arg(a, "optim.lr=5e-5", &err);
	cfg_set_arg(b, "optim.lr=.00005", &err);
	cfg_set_arg(b, "save.dir=elsewhere", &err);
	cfg_set_arg(b, "model.path=other", &err);
	ok(!cfg_hash(a, leave, ha, &err) && !cfg_hash(b, leave, hb, &err) && !strcmp(ha, hb),
		"equal numbers hash equal, what is left out does not count");
	ok(!cfg_hash(a, NULL, ha, &err) && !cfg_hash(b, NULL, hb, &err) && strcmp(ha, hb),
		"what is not left out does");
	cfg_to_json(a, leave, &json);
	ok(strstr(json.p, "\"optim.lr\":0.00005") || strstr(json.p, "\"optim.lr\":5e-05") ||
			strstr(json.p, "\"optim.lr\":5e-5"),
		"numbers are numbers");
	ok(!strstr(json.p, "\"save.") && !strstr(json.p, "model.path") &&
			strstr(json.p, "\"data.train\":null"),
		"left out, and null");
	buf_release(&json);
	cfg_free(a);
	cfg_free(b);
}

/* A default that its own row refuses would make --print-config unreadable. */
static void test_schema(void)
{
	for (size_t i = 0; i < cfg_nrows; i++) {
		const struct cfg_row *r = &cfg_rows[i];
		struct config *c = fresh();
		char arg[512];

		snprintf(arg, sizeof(arg), "%s=%s", r->path, r->def);
		ok(!cfg_set_arg(c, arg, &err), "%s: its default is allowed: %s", r->path, err.msg);
		ok(strlen(r->help) > 3 && r->help[strlen(r->help) - 1] != '.', "%s: has a help text",
			r->path);
		for (size_t k = 0; k < i; k++)
			if (!strcmp(cfg_rows[k].path, r->path))
				ok(0, "%s stands twice", r->path);
		cfg_free(c);
	}
}

static void test_nearest(void)
{
	static const char *const names[] = { "learning_rate", "rank", "lr" };

	is(nearest_name("learning_rte", names, 3), "learning_rate", "a letter missing");
	is(nearest_name("rnak", names, 3), "rank", "two swapped");
	ok(!nearest_name("xyzw", names, 3) && !nearest_name("", names, 3), "nothing near");
	ok(!nearest_name("a", names, 3), "one letter is near to nothing");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

int main(void)
{
	if (!mkdtemp(dir))
		return 1;
	test_numbers();
	test_strings();
	test_unknown();
	test_hints();
	test_yaml();
	test_limits();
	test_args();
	test_is_setting();
	test_paths();
	test_print();
	test_hash();
	test_schema();
	test_nearest();
	ok(!nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), "the folder is removed");
	return tap_done();
}
