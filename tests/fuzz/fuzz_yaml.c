/* Any bytes as a config: errors or values; values that are printed read back equal. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/config_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct config *read_config(const char *text, size_t n, struct err *err)
{
	struct cfg_src src = { .name = "f", .is_file = true, .err = err };
	struct config *c;

	*err = (struct err){0};
	if (cfg_new(&c, err) < 0)
		abort();
	cfg_read_text(c, &src, text, n);
	return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct buf text[2] = {0}, json[2] = {0};
	struct config *c;
	struct err err;

	c = read_config((const char *)data, n, &err);
	/* Twice: the first print makes paths absolute. */
	for (int i = 0; i < 2 && !err.code; i++) {
		cfg_print(c, &text[i]);
		cfg_free(c);
		c = read_config(text[i].p, text[i].n, &err);
		if (err.code) {
			fprintf(stderr, "%s\n%s\n", err.msg, text[i].p);
			abort();
		}
		cfg_to_json(c, NULL, &json[i]);
	}
	if (json[1].n && strcmp(json[0].p, json[1].p))
		abort();
	cfg_free(c);
	for (int i = 0; i < 2; i++) {
		buf_release(&text[i]);
		buf_release(&json[i]);
	}
	return 0;
}
