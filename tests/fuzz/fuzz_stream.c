/*
 * fuzz_stream: a stream from outside, read to its end, record by record into its JSON form, and
 * through its index.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libcommon/stream/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char path[64];
	struct stream_in *in = NULL;
	struct stream_at *at = NULL;
	struct record r;
	struct buf line = {0};
	struct err err = {0};
	FILE *fp;

	if (!path[0])
		snprintf(path, sizeof(path), "/tmp/tune-fuzz-stream-%ld", (long)getpid());
	if (!(fp = fopen(path, "wb")))
		abort();
	fwrite(data, 1, size, fp);
	fclose(fp);
	if (stream_in_open(&in, path, &err) == 0)
		while (stream_next(in, &r, &err) > 0) {
			buf_clear(&line);
			stream_record_json(&r, &line, &err);
		}
	stream_in_close(in);
	if (stream_at_open(&at, path, &err) == 0)
		for (uint64_t i = 0; i < stream_at_count(at) && i < 100; i++)
			if (stream_at_get(at, i, &r, &err) < 0)
				break;
	stream_at_close(at);
	buf_release(&line);
	unlink(path);
	return 0;
}
