/* index: the same records in zstd frames with indx and a seek table. */
#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "libcommon/outfile.h"
#include "verbs.h"

/* The union of inputs is known only after the last part of the stream: a pass of its own. */
static int read_header(const char *path, struct stream_header *h, struct err *err)
{
	struct stream_in *in = NULL;
	struct record r;
	int got = -1;

	if (stream_in_open(&in, path, err) == 0) {
		while ((got = stream_next(in, &r, err)) > 0)
			;
		if (got == 0)
			got = stream_header_copy(h, stream_in_header(in), err);
	}
	stream_in_close(in);
	return got;
}

static int copy(const char *path, struct stream_out *out, struct err *err)
{
	struct stream_in *in = NULL;
	struct record r;
	int got = -1;

	if (stream_in_open(&in, path, err) == 0)
		while ((got = stream_next(in, &r, err)) > 0)
			if (stream_put_raw(out, &r, err) < 0) {
				got = -1;
				break;
			}
	stream_in_close(in);
	return got;
}

int verb_index(const struct args *a, struct err *err)
{
	struct stream_header h = {0};
	struct outfile f = { .slot = -1 };
	struct stream_out *out = NULL;
	char *real = NULL;
	const char *to = a->output;
	int rc = -1;

	if (a->npaths != 1)
		return err_set(err, EX_USAGE, "index takes one FILE, found %zu", a->npaths);
	if (!strcmp(a->paths[0], "-"))
		return err_set(err, EX_USAGE,
			"index reads its input twice, which standard input can't be; write it to a file first");
	/* the file is replaced, not a link to it */
	if (!to && file_exists(a->paths[0]) && !(to = real = realpath(a->paths[0], NULL)))
		return err_errno(err, EX_NOINPUT, "cannot open '%s'", a->paths[0]);
	to = to ? to : a->paths[0];
	if (file_exists(a->paths[0]) && !is_file(a->paths[0]))
		err_set(err, EX_NOINPUT, "'%s' is not a regular file: index reads it twice", a->paths[0]);
	else if (refuse_terminal(to, err) < 0 || read_header(a->paths[0], &h, err) < 0 ||
	    outfile_open(&f, to, a->force || !a->output, err) < 0)
		rc = -1;
	else if (stream_out_open(
			&out, f.fp, to, &h, (struct stream_out_opts){ STREAM_ZSTD_LEVEL, true }, err) == 0 &&
		copy(a->paths[0], out, err) == 0 && stream_out_finish(out, NULL, 0, NULL, err) == 0)
		rc = outfile_commit(&f, err);
	stream_out_close(out);
	outfile_abort(&f);
	free(real);
	stream_header_release(&h);
	return rc;
}
