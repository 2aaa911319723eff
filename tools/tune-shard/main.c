/* tune-shard: token streams -> mixed, shuffled, split, packed shard set, or a stream. */
#include "shard.h"

static struct args args = { .mem = (uint64_t)1 << 30 };
static const char *mem;
static const struct opt opts[] = {
	{ 'o', "output", "DIR", OPT_STR, &args.output,
		"write a shard folder; - = one stream to standard output" },
	{ 0, "val-output", "FILE", OPT_STR, &args.val_output,
		"with -o -: the validation split goes to FILE" },
	{ 0, "mem", "SIZE", OPT_STR, &mem, "memory before documents go to a temporary file (1G)" },
	{ 'j', "threads", "N", OPT_KEY, NULL, "threads (train.threads); the output never depends on it",
		.key = "train.threads" },
	{ 0, "force", NULL, OPT_FLAG, &args.force, "replace an existing folder or file" },
	{ 0 }
};

int main(int argc, char **argv)
{
	struct tool t = { .name = "tune-shard",
		.synopsis = "[-c FILE]... -o DIR|- [key=value]... [STREAM|DIR]...",
		.summary = "Mix, shuffle, split and pack token streams.",
		.opts = opts,
		.uses_config = true };
	struct err err = {0};
	int64_t bytes = 0;
	int rc = -1;

	tool_init(&t, argc, argv);
	if (!args.output)
		err_set(&err, EX_USAGE, "need an output: -o DIR, or -o - for a stream");
	else if (mem && (!cfg_parse_size(mem, &bytes) || bytes < 1 << 16))
		err_set(&err, EX_USAGE, "--mem must be a size such as 512M, at least 64K, not '%s'", mem);
	else if (refuse_terminal(args.output, &err) == 0) {
		if (mem)
			args.mem = (uint64_t)bytes;
		rc = job_run(&t, &args, &err);
	}
	return tool_exit(&t, rc, &err);
}
