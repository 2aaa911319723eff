/* tune-tokenize: conversations or text -> a token stream with a loss mask. */
#include "tokenize.h"

int main(int argc, char **argv)
{
	const char *out = NULL;
	bool raw = false, decode = false, force = false, show;
	uint64_t samples = UINT64_MAX;
	const struct opt opts[] = {
		{ 'm', "model", "MODEL", OPT_KEY, NULL, "model whose tokenizer and chat template are used",
			.key = "model.path" },
		{ 'o', "output", "FILE", OPT_STR, &out,
			"write the stream to FILE (zstd), - = standard output (plain; the default)" },
		{ 0, "preview", "[=N]", OPT_OPT_U64, &samples,
			"print the first N samples (3) with trained tokens marked, and stop", 3 },
		{ 0, "raw", NULL, OPT_FLAG, &raw,
			"each file is one text: its ids alone, no rows, template, BOS or EOS" },
		{ 0, "decode", NULL, OPT_FLAG, &decode, "turn token streams or decimal ids into bytes" },
		{ 0, "on-error", "HOW", OPT_KEY, NULL, "at a row that can't be used: stop or skip",
			.key = "data.on_error" },
		{ 'j', "threads", "N", OPT_KEY, NULL, "threads; 0 = all CPUs", .key = "train.threads" },
		{ 0, "force", NULL, OPT_FLAG, &force, "replace FILE if it exists" },
		{ 0 }
	};
	struct tool t = { "tune-tokenize", "[OPTION]... [KEY=VALUE]... [FILE]...",
		"Turn conversations or text into a token stream with a loss mask.", opts, true };
	struct tokenize z = {0};
	struct err err = {0};
	int rc = -1;

	tool_init(&t, argc, argv);
	show = samples != UINT64_MAX;
	if (!samples)
		err_set(&err, EX_USAGE, "--preview: at least one sample");
	else if (raw + decode > 1 || (out && (show || decode)))
		err_set(&err, EX_USAGE, "--raw, --decode, --preview and -o don't go together like this");
	else if (tokenize_open(&z, &t, !raw && !decode, &err) == 0)
		rc = decode ? decode_inputs(&z, &err)
			: show  ? preview(&z, samples, &err)
					: write_stream(&z, out ? out : "-", force, &err);
	tokenize_close(&z);
	return tool_exit(&t, rc, &err);
}
