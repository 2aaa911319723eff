/*
 * encode: the JSON form back to a stream.  TEND is counted anew, so that a filter between may drop
 * records.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libcommon/file.h"
#include "verbs.h"

enum { LINE_MAX_BYTES = 512 << 20, CHUNK = 256 << 10 };

struct encoder {
	const char *name;
	uint64_t line;
	struct json_doc doc;
	struct stream_out *out;    /* NULL between TEND and TUNE */
	struct stream_header head; /* of the first part */
	bool started;
};

struct lines { int fd; const char *name; struct buf b; size_t pos; bool eof; };

static int read_more(struct lines *l, struct err *err)
{
	ssize_t got;
	char *to;

	if (l->pos) {
		memmove(l->b.p, l->b.p + l->pos, l->b.n - l->pos);
		l->b.n -= l->pos;
		l->pos = 0;
	}
	if (!(to = buf_room(&l->b, CHUNK)))
		return buf_ok(&l->b, err);
	do
		got = read(l->fd, to, CHUNK);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_errno(err, EX_IOERR, "cannot read '%s'", l->name);
	l->b.n += (size_t)got;
	l->eof = !got;
	return 0;
}

/* One line without its line feed.  0: end of the file.  A last line without a line feed counts. */
static int read_line(
	struct lines *l, const char **line, size_t *n, uint64_t number, struct err *err)
{
	size_t seen = 0;
	const char *nl = NULL;

	for (;;) {
		size_t have = l->b.n - l->pos;

		nl = have > seen ? memchr(l->b.p + l->pos + seen, '\n', have - seen) : NULL;
		if (nl || l->eof)
			break;
		if (have > LINE_MAX_BYTES)
			return err_set(err, EX_DATAERR, "%s:%llu: a line of more than %d bytes", l->name,
				(unsigned long long)number, LINE_MAX_BYTES);
		seen = have;
		if (read_more(l, err) < 0)
			return -1;
	}
	*line = l->b.p ? l->b.p + l->pos : "";
	*n = nl ? (size_t)(nl - *line) : l->b.n - l->pos;
	l->pos += *n + (nl != NULL);
	return nl || *n;
}

/* No whole line is here, and its writer would be waited for. */
static bool would_block(const struct lines *l)
{
	struct pollfd p = { .fd = l->fd, .events = POLLIN };

	return !l->eof && !memchr(l->b.p + l->pos, '\n', l->b.n - l->pos) && poll(&p, 1, 0) == 0;
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

static bool is_blank(const char *p, size_t n)
{
	while (n && (*p == ' ' || *p == '\t' || *p == '\r'))
		p++, n--;
	return !n;
}

static int encode(struct encoder *e, int fd, struct err *err)
{
	struct lines l = { .fd = fd, .name = e->name };
	const char *line = NULL;
	size_t n = 0;
	int got = 0, rc = -1;

	while ((got = read_line(&l, &line, &n, ++e->line, err)) > 0) {
		if (is_blank(line, n))
			continue;
		if (e->line == 1 && stream_begins(line, n)) {
			err_set(err, EX_DATAERR,
				"%s: this is a token stream already; encode reads the lines of 'tune-stream cat "
				"--json'",
				e->name);
			goto done;
		}
		if (json_parse(&e->doc, line, n, e->name, e->line, err) < 0)
			goto done;
		if (put_line(e, err) < 0) {
			if (err->code == EX_DATAERR)
				err_prefix(err, "%s:%llu: ", e->name, (unsigned long long)e->line);
			goto done;
		}
		if (e->out && stream_out_tick(e->out, would_block(&l), err) < 0)
			goto done;
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
	buf_release(&l.b);
	return rc;
}

int verb_encode(const struct args *a, struct err *err)
{
	struct encoder e = { .name = "standard input" };
	int fd = STDIN_FILENO, rc;

	if (a->npaths > 1)
		return err_set(err, EX_USAGE, "encode takes one FILE");
	if (refuse_terminal("-", err) < 0)
		return -1;
	if (a->npaths && strcmp(a->paths[0], "-")) {
		e.name = a->paths[0];
		if ((fd = open(e.name, O_RDONLY | O_CLOEXEC)) < 0)
			return err_errno(err, EX_NOINPUT, "cannot open '%s'", e.name);
	}
	rc = encode(&e, fd, err);
	if (fd != STDIN_FILENO)
		close(fd);
	stream_out_close(e.out);
	stream_header_release(&e.head);
	json_release(&e.doc);
	return rc;
}
