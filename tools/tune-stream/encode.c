/*
 * encode: the JSON form back to a stream.  TEND is counted anew, so that a filter between may drop
 * records.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libcommon/file.h"
#include "verbs.h"

enum { LINE_MAX_BYTES = 512 << 20 };

struct encoder {
	const char *name;
	uint64_t line;
	struct json_doc doc;
	struct stream_out *out;    /* NULL between TEND and TUNE */
	struct stream_header head; /* of the first part */
	bool started;
};

/* One line without its line feed.  0: end of the file.  A last line without a line feed counts. */
static int read_line(FILE *fp, struct buf *line, const char *name, uint64_t number, struct err *err)
{
	int c;

	buf_clear(line);
	while ((c = getc_unlocked(fp)) != EOF && c != '\n') {
		if (line->n == LINE_MAX_BYTES)
			return err_set(err, EX_DATAERR, "%s:%llu: a line of more than %d bytes", name,
				(unsigned long long)number, LINE_MAX_BYTES);
		if (line->n + 1 < line->cap)
			line->p[line->n++] = (char)c;
		else
			buf_putc(line, c);
	}
	if (ferror(fp))
		return err_errno(err, EX_IOERR, "cannot read '%s'", name);
	return buf_ok(line, err) < 0 ? -1 : c != EOF || line->n;
}

static int begin_part(struct encoder *e, struct err *err)
{
	struct stream_header h = {0};
	int rc = -1;

	if (stream_header_from_json(&h, &e->doc.root, err) < 0)
		goto done;
	if (!e->started) {
		if (stream_header_copy(&e->head, &h, err) < 0)
			goto done;
	} else if (h.kind != e->head.kind) {
		err_set(err, EX_DATAERR, "a stream of kind '%s' after one of kind '%s'",
			stream_kind_name(h.kind), stream_kind_name(e->head.kind));
		goto done;
	} else if (stream_same_tokenizer(&e->head.tok, "the first part", &h.tok, "this one", err) < 0) {
		goto done;
	}
	e->started = true;
	rc = stream_out_open(&e->out, stdout, "-", &h, (struct stream_out_opts){0}, err);
done:
	stream_header_release(&h);
	return rc;
}

static int put_line(struct encoder *e, struct err *err)
{
	const struct json *tag = json_get(&e->doc.root, "tag");
	int rc;

	if (!e->out)
		return begin_part(e, err);
	if (!json_str_eq(tag, "TEND"))
		return stream_put_json(e->out, &e->doc.root, err);
	rc = stream_out_finish(e->out, NULL, 0, NULL, err);
	stream_out_close(e->out);
	e->out = NULL;
	return rc;
}

static int encode(struct encoder *e, FILE *fp, struct err *err)
{
	struct buf line = {0};
	int got = 0, rc = -1;

	while ((got = read_line(fp, &line, e->name, ++e->line, err)) > 0) {
		if (strspn(line.p ? line.p : "", " \t\r") == line.n)
			continue;
		if (e->line == 1 && stream_begins(line.p, line.n)) {
			err_set(err, EX_DATAERR,
				"%s: this is a token stream already; encode reads the lines of 'tune-stream cat "
				"--json'",
				e->name);
			goto done;
		}
		if (json_parse(&e->doc, line.p, line.n, e->name, e->line, err) < 0)
			goto done;
		if (put_line(e, err) < 0) {
			if (err->code == EX_DATAERR)
				err_prefix(err, "%s:%llu: ", e->name, (unsigned long long)e->line);
			goto done;
		}
	}
	if (got < 0)
		goto done;
	if (!e->started)
		err_set(
			err, EX_DATAERR, "%s: empty: no TUNE line (did the program before it fail?)", e->name);
	else if (e->out)
		err_set(err, EX_DATAERR, "%s: truncated: no TEND after %llu lines", e->name,
			(unsigned long long)e->line - 1);
	else
		rc = 0;
done:
	buf_release(&line);
	return rc;
}

int verb_encode(const struct args *a, struct err *err)
{
	struct encoder e = { .name = "standard input" };
	FILE *fp = stdin;
	int rc = -1;

	if (a->npaths > 1)
		return err_set(err, EX_USAGE, "encode takes one FILE");
	if (refuse_terminal("-", err) < 0)
		return -1;
	if (a->npaths && strcmp(a->paths[0], "-")) {
		e.name = a->paths[0];
		if (!(fp = fopen(e.name, "rb")))
			return err_errno(err, EX_NOINPUT, "cannot open '%s'", e.name);
	}
	rc = encode(&e, fp, err);
	if (fp != stdin)
		fclose(fp);
	stream_out_close(e.out);
	stream_header_release(&e.head);
	json_release(&e.doc);
	return rc;
}
