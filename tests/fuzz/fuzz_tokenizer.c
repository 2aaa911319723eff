/*
 * Any bytes as tokenizer.json, and what follows the last line feed as text to encode: an error, or
 * ids whose spans lie in the text and that decode.  A tokenizer that was read is written, and what
 * was written reads back as the same one.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcommon/text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char dir[64], path[96];

static void clean(void)
{
	char config[96];

	snprintf(config, sizeof(config), "%s/tokenizer_config.json", dir);
	unlink(path);
	unlink(config);
	rmdir(dir);
}

static void start(void)
{
	if (dir[0])
		return;
	snprintf(dir, sizeof(dir), "/tmp/fuzz_tokenizer.XXXXXX");
	if (!mkdtemp(dir))
		abort();
	snprintf(path, sizeof(path), "%s/tokenizer.json", dir);
	atexit(clean);
}

static void encode_some(const struct tokenizer *t, const char *text, size_t n)
{
	struct encoder *e;
	struct encoding o;
	struct buf back = {0};
	struct err err = {0};
	int pass;
	size_t i;

	if (encoder_new(&e, t, &err) < 0)
		abort();
	for (pass = 0; pass < 2; pass++) {
		if (encode(e, text, n, pass, &o, &err) < 0)
			break;
		for (i = 0; i < o.n; i++)
			if (o.ids[i] >= tokenizer_vocab(t) || o.spans[i].begin > o.spans[i].end ||
			    o.spans[i].end > n)
				abort();
		if (decode(t, o.ids, o.n, false, &back, &err) < 0)
			abort();
	}
	buf_release(&back);
	encoder_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *nl = n ? memrchr(data, '\n', n) : NULL;
	size_t json = nl ? (size_t)(nl - data) : n;
	struct tokenizer *t, *again;
	struct err err = {0};
	FILE *fp;

	start();
	if (!(fp = fopen(path, "w")) || fwrite(data, 1, json, fp) != json || fclose(fp))
		abort();
	if (tokenizer_open(&t, path, &err) < 0)
		return err.code ? 0 : (abort(), 0);
	if (nl)
		encode_some(t, (const char *)nl + 1, n - json - 1);
	if (tokenizer_write_hf(t, dir, &err) == 0) {
		if (tokenizer_open(&again, dir, &err) < 0 ||
		    strcmp(tokenizer_sha256(t), tokenizer_sha256(again))) {
			fprintf(stderr, "%s\n", err.msg);
			abort();
		}
		tokenizer_close(again);
	}
	tokenizer_close(t);
	snprintf(err.msg, sizeof(err.msg), "%s/tokenizer_config.json", dir);
	unlink(err.msg);
	return 0;
}
