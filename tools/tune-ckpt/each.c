/*
 * verify --each -: a run's metrics pass through; the checkpoint of every save event is verified,
 * and said so in an event of our own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "tools/tune-ckpt/verify.h"

enum { LINE_MAX_ = 16 << 20 };

static int put_line(const char *p, size_t n, struct err *err)
{
	if (fwrite(p, 1, n, stdout) != n || fflush(stdout))
		return err_errno(err, EX_IOERR, "cannot write to standard output");
	return 0;
}

/* A checkpoint that the run has removed by now (save.keep) is no failure: ok is null. */
static int put_event(
	const struct json *save, const char *path, const struct verdict *v, bool gone, struct err *err)
{
	const struct json *step = json_get(save, "step");
	struct buf b = {0};
	struct json_w w = { .out = &b };
	int rc;

	json_w_obj(&w);
	json_w_name(&w, "event"); json_w_str(&w, "verify");
	if (json_is(step, JSON_INT)) {
		json_w_name(&w, "step"); json_w_int(&w, step->i);
	}
	json_w_name(&w, "path"); json_w_str(&w, path);
	json_w_name(&w, "ok");
	if (gone)
		json_w_null(&w);
	else
		json_w_bool(&w, !v->why.code);
	if (gone || v->why.code) {
		json_w_name(&w, "why"); json_w_str(&w, gone ? "it is not there any more" : v->why.msg);
	}
	json_w_end(&w);
	buf_putc(&b, '\n');
	rc = buf_ok(&b, err) < 0 ? -1 : put_line(b.p, b.n, err);
	buf_release(&b);
	return rc;
}

/* *bad counts checkpoints that are there and not whole. */
static int follow_line(
	struct json_doc *doc, const char *line, size_t n, uint64_t number, int *bad, struct err *err)
{
	struct err ignored = {0};
	const struct json *path;
	struct verdict v = {0};
	bool gone;

	if (json_parse(doc, line, n, "-", number, &ignored) < 0 ||
		!json_str_eq(json_get(&doc->root, "event"), "save"))
		return 0;
	path = json_get(&doc->root, "path");
	if (!json_is(path, JSON_STR))
		return 0;
	gone = !file_exists(path->s);
	if (!gone && verify_path(path->s, &v, err) < 0)
		return -1;
	gone = gone || (v.why.code && !file_exists(path->s));   /* removed while it was read */
	*bad += !gone && v.why.code;
	return put_event(&doc->root, path->s, &v, gone, err);
}

int verify_each(struct err *err)
{
	struct json_doc doc = {0};
	char *line = NULL;
	size_t cap = 0;
	uint64_t number = 0;
	ssize_t n;
	int bad = 0, rc = -1;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		if (n > LINE_MAX_) {
			err_set(err, EX_DATAERR, "-:%llu: the line is longer than %d bytes",
				(unsigned long long)number + 1, LINE_MAX_);
			goto done;
		}
		if (put_line(line, (size_t)n, err) < 0 ||
			follow_line(&doc, line, (size_t)n, ++number, &bad, err) < 0)
			goto done;
	}
	if (ferror(stdin))
		err_errno(err, EX_IOERR, "cannot read standard input");
	else
		rc = bad ? EX_CHECK_FAILED : 0;
done:
	free(line);
	json_release(&doc);
	return rc;
}
