#include "copy.h"

/* stream_out has its header from the start: inputs that turn up later need a new segment. */
static int follow_header(struct copy *c, const struct stream_merge *m, struct err *err)
{
	struct stream_header h;
	int rc = -1;

	if (c->out && stream_merge_header(m)->ninputs == c->ninputs)
		return 0;
	if (c->out && stream_out_finish(c->out, NULL, 0, NULL, err) < 0)
		return -1;
	stream_out_close(c->out);
	c->out = NULL;
	c->ninputs = stream_merge_header(m)->ninputs;
	if (stream_header_copy(&h, stream_merge_header(m), err) == 0 &&
	    (!c->prog || stream_add_prov(&h, c->prog, TUNE_VERSION, c->set, NULL, 0, err) == 0))
		rc = stream_out_open(&c->out, stdout, "-", &h, (struct stream_out_opts){0}, err);
	stream_header_release(&h);
	return rc;
}

int copy_begin(struct copy *c, const struct stream_merge *m, struct err *err)
{
	return follow_header(c, m, err);
}

int copy_record(
	struct copy *c, const struct stream_merge *m, const struct record *r, struct err *err)
{
	return follow_header(c, m, err) < 0 || stream_put_raw(c->out, r, err) < 0 ||
		stream_out_tick(c->out, stream_merge_would_block(m), err) < 0 ? -1 : 0;
}

int copy_end(struct copy *c, const struct stream_merge *m, struct err *err)
{
	return follow_header(c, m, err) < 0 || stream_out_finish(c->out, NULL, 0, NULL, err) < 0 ? -1
																							 : 0;
}

void copy_release(struct copy *c)
{
	stream_out_close(c->out);
}
