/*
 * output: documents -> a token stream, opened at the first of them, so that there is none if no row
 * can be used.
 */
#include "libcommon/outfile.h"
#include "tokenize.h"

enum { LEVEL = 3 };

struct output {
	struct tokenize *z;
	const char *path;
	bool force;
	struct stream_header header;
	struct outfile file;
	struct stream_out *out;
	uint64_t seq;
};

static int start(struct output *o, struct err *err)
{
	bool to_stdout = o->path[0] == '-' && !o->path[1];

	if (tokenize_header(o->z, &o->header, err) < 0)
		return -1;
	return stream_out_open(&o->out, o->file.fp, to_stdout ? "standard output" : o->path, &o->header,
		(struct stream_out_opts){ .zstd_level = to_stdout ? 0 : LEVEL }, err);
}

/* What a TOKS record of n tokens takes at most. */
static uint64_t record_bytes(size_t n)
{
	return 5 * (uint64_t)n + 256;
}

static int put(void *ctx, const struct doc *d, struct err *err)
{
	struct output *o = ctx;
	struct rec_toks t = { .seq = o->seq,
		.src = d->src,
		.line = d->line,
		.n = (uint32_t)d->n,
		.ids = d->ids,
		.mask = d->mask };

	if (record_bytes(d->n) > STREAM_RECORD_MAX) {
		err_set(err, EX_DATAERR,
			"%s:%s%llu: %zu tokens are more than a record of a stream holds (%u MiB); split the "
			"text",
			input_name(o->z, d->src), o->z->in_array[d->src] ? " row " : "",
			(unsigned long long)d->line, d->n, STREAM_RECORD_MAX >> 20);
		return -2;
	}
	if (!o->out && start(o, err) < 0)
		return -1;
	o->seq++;
	return stream_put_toks(o->out, &t, err) < 0 || stream_out_tick(o->out, false, err) < 0 ? -1 : 0;
}

static int pass_on(void *ctx, struct err *err)
{
	struct output *o = ctx;

	return o->out ? stream_out_tick(o->out, true, err) : 0;
}

int write_stream(struct tokenize *z, const char *path, bool force, struct err *err)
{
	struct output o = { .z = z, .path = path, .force = force };
	struct stream_totals totals;
	int rc = -1;

	z->sink = put;
	z->pause = pass_on;
	z->sink_ctx = &o;
	if (refuse_terminal(path, err) < 0 || refuse_input(path, z->inputs, z->ninputs, err) < 0 ||
		outfile_open(&o.file, path, force, err) < 0)
		return -1;
	if ((z->raw ? encode_raw(z, err) : encode_rows(z, err)) < 0 || report_check(z, err) < 0)
		goto done;
	if (stream_out_finish(o.out, z->sums, z->ninputs, &totals, err) < 0 ||
		outfile_commit(&o.file, err) < 0)
		goto done;
	report_print(z);
	rc = 0;
done:
	stream_out_close(o.out);
	stream_header_release(&o.header);
	outfile_abort(&o.file);
	return rc;
}
