/* tune-train: shards or a stream + a model -> checkpoints and metrics. */
#include "libcommon/tool.h"
#include "train.h"

static struct run run = { .o = { .rows_step = UINT64_MAX, .stop_after = UINT64_MAX }, .lock = -1 };
static const struct opt opts[] = {
	{ 'm', "model", "MODEL", OPT_KEY, .help = "model to start from (model.path)",
		.key = "model.path" },
	{ 'a', "adapter", "DIR", OPT_KEY, .help = "PEFT adapter to start from (model.adapter)",
		.key = "model.adapter" },
	{ 'o', "output", "RUN", OPT_KEY, .help = "folder of the run (save.dir)", .key = "save.dir" },
	{ 'j', "threads", "N", OPT_KEY, .help = "CPU threads (train.threads)", .key = "train.threads" },
	{ 0, "device", "D", OPT_KEY, .help = "auto, cpu or cuda (train.device)",
		.key = "train.device" },
	{ 0, "resume", NULL, OPT_FLAG, &run.o.resume, "go on from the newest valid checkpoint of RUN" },
	{ 0, "extend", NULL, OPT_FLAG, &run.o.extend,
		"with --resume: train.steps and train.epochs may differ" },
	{ 0, "dry-run", NULL, OPT_FLAG, &run.o.dry_run, "print memory, steps and time, train nothing" },
	{ 0, "rows", "STEP", OPT_U64, &run.o.rows_step,
		"print the files and lines that a step trains on" },
	{ 0, "stop-after", "N", OPT_U64, &run.o.stop_after,
		"checkpoint and exit 75 after N more steps" },
	{ 0 }
};

int main(int argc, char **argv)
{
	struct tool t = { .name = "tune-train",
		.synopsis = "[-c FILE]... [-m MODEL] [-o RUN] [key=value]... DIR|STREAM|-",
		.summary = "Train a language model on token shards or a token stream.",
		.opts = opts,
		.uses_config = true,
		.survives_sigpipe = true };
	struct err err = {0};
	int rc = -1;

	tool_init(&t, argc, argv);
	run.tool = &t;
	if (t.argc > 1) {
		err_set(&err, EX_USAGE, "one folder or stream at a time, found '%s' and '%s'", t.argv[0],
			t.argv[1]);
		goto done;
	}
	if (!run.o.rows_step) {
		err_set(&err, EX_USAGE, "--rows: steps count from 1");
		goto done;
	}
	run.o.rows_step = run.o.rows_step == UINT64_MAX ? 0 : run.o.rows_step;
	run.o.data = t.argc ? t.argv[0] : NULL;
	signals_install();
	stream_stop_waiting(signal_seen);
	if (run_open(&run, &err) < 0)
		goto done;
	rc = run.o.rows_step ? print_rows(&run, &err)
		: run.o.dry_run  ? dry_run(&run, &err)
						 : train(&run, &err);
done:
	progress_end(&run.progress);
	run_close(&run);
	return tool_exit(&t, rc, &err);
}
