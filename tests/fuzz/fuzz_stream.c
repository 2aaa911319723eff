/*
 * fuzz_stream: a stream from outside, read to its end, record by record into its JSON form and
 * back, and through its index.  What the JSON form can say, it says again after the way there and
 * back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcommon/stream/stream.h"

static char path[64], again[72];

static void write_file(const uint8_t *data, size_t size)
{
	FILE *fp = fopen(path, "wb");

	if (!fp)
		abort();
	fwrite(data, 1, size, fp);
	fclose(fp);
}

/* The header and every record as lines of JSON; false where one has no such form. */
static bool to_lines(const char *from, struct buf *lines)
{
	struct stream_in *in = NULL;
	struct record r;
	struct err err = {0};
	bool good = stream_in_open(&in, from, &err) == 0 &&
		stream_header_json(stream_in_header(in), lines, &err) == 0;
	int got = 0;

	buf_putc(lines, '\n');
	while (good && (got = stream_next(in, &r, &err)) > 0) {
		good = stream_record_json(&r, lines, &err) == 0;
		buf_putc(lines, '\n');
	}
	good = good && got == 0 && stream_in_parts(in) == 1;
	stream_in_close(in);
	return good;
}

static void from_lines(const struct buf *lines)
{
	struct stream_header h = {0};
	struct json_doc doc = {0};
	struct stream_out *out = NULL;
	struct err err = {0};
	FILE *fp = fopen(again, "wb");
	size_t n;

	if (!fp)
		abort();
	for (const char *p = lines->p; p < lines->p + lines->n && !err.code; p += n + 1) {
		n = (size_t)((const char *)memchr(p, '\n', (size_t)(lines->p + lines->n - p)) - p);
		if (json_parse(&doc, p, n, "line", 1, &err) < 0)
			break;
		if (out)
			stream_put_json(out, &doc.root, &err);
		else if (stream_header_from_json(&h, &doc.root, &err) == 0)
			stream_out_open(&out, fp, again, &h, (struct stream_out_opts){0}, &err);
	}
	if (!err.code)
		stream_out_finish(out, NULL, 0, NULL, &err);
	if (err.code) {
		fprintf(stderr, "%s\n%.*s", err.msg, (int)lines->n, lines->p);
		abort();
	}
	stream_out_close(out);
	stream_header_release(&h);
	json_release(&doc);
	fclose(fp);
}

static void there_and_back(void)
{
	struct buf a = {0}, b = {0};

	if (to_lines(path, &a)) {
		from_lines(&a);
		if (!to_lines(again, &b) || a.n != b.n || memcmp(a.p, b.p, a.n)) {
			fprintf(stderr, "%.*s%.*s", (int)a.n, a.p, (int)b.n, b.p);
			abort();
		}
	}
	buf_release(&a);
	buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream_at *at = NULL;
	struct record r;
	struct err err = {0};

	if (!path[0]) {
		snprintf(path, sizeof(path), "/tmp/tune-fuzz-stream-%ld", (long)getpid());
		snprintf(again, sizeof(again), "%s-again", path);
	}
	write_file(data, size);
	there_and_back();
	if (stream_at_open(&at, path, &err) == 0)
		for (uint64_t i = 0; i < stream_at_count(at) && i < 100; i++)
			if (stream_at_get(at, i, &r, &err) < 0)
				break;
	stream_at_close(at);
	unlink(path);
	unlink(again);
	return 0;
}
