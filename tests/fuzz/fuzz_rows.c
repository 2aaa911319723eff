/*
 * Rows from a file, all the way to ids; the first byte picks the settings.  Run from the top of the
 * tree.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libcommon/text/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct tokenizer *tok;
static struct encoder *enc;
static struct chat_template *templates[4];

static void open_model(void)
{
	struct err err = {0};

	if (tokenizer_open(&tok, "tests/golden/chat/tok", &err) < 0 ||
		encoder_new(&enc, tok, &err) < 0 ||
		chat_open(&templates[1], tok, "chatml", NULL, 0, &err) < 0 ||
		chat_open(&templates[2], tok, "tests/golden/chat/templates/llama3.1.jinja", NULL, 0, &err) <
			0 ||
		chat_open(&templates[3], tok, "tests/golden/chat/templates/llama3-alternate.jinja", NULL, 0,
			&err) < 0)
		abort();
}

static void read_rows(struct rows *r, const struct chat_template *c, const struct chat_opts *o)
{
	struct row row;
	struct sample s = {0};
	struct err err = {0};
	int got;

	while ((got = rows_next(r, &row, &err)) && got != -1) {
		if (got != 1)
			continue;
		if (row_sample(r, &row, &s, enc, tok, c, o, &err) == 0 && (s.mask[0] || s.n < 2))
			abort();   /* the first token is no target, and something is trained */
		row_prompt(r, &row, &s, enc, tok, c, o, &err);
	}
	sample_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const formats[] = { "data.format=auto", "data.format=text",
		"data.format=completion", "data.format=sharegpt" };
	struct chat_opts o = {
		.train_on = n ? data[0] >> 2 & 1 : 0, .eos = true, .special = n ? (data[0] >> 3) % 3 : 0
	};
	struct config *cfg;
	struct rows *r;
	struct err err = {0};
	char path[32];
	int fd;

	if (!n)
		return 0;
	if (!tok)
		open_model();
	if ((fd = memfd_create("rows", 0)) < 0 || write(fd, data + 1, n - 1) != (ssize_t)n - 1)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (cfg_new(&cfg, &err) < 0 || cfg_set_arg(cfg, formats[data[0] & 3], &err) < 0 ||
		rows_open(&r, path, cfg, &err) < 0)
		abort();
	read_rows(r, templates[data[0] >> 5 & 3], &o);
	rows_close(r);
	cfg_free(cfg);
	close(fd);
	return 0;
}
