/* rows_input: a file's bytes, cut into lines or array elements as they are read. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcommon/file.h"
#include "libcommon/text/rows_int.h"
#include "libcommon/utf8.h"

enum { CHUNK = 1 << 20 };

static int put_head(struct input *in, const struct peeked *p, struct err *err)
{
	if (grow(&in->p, &in->cap, p->n + 1, 1, err) < 0)
		return -1;
	memcpy(in->p, p->head, p->n);
	hash64_add(in->hash, p->head, p->n);
	in->n = p->n;
	in->bytes = p->n;
	return 0;
}

int input_open(struct input *in, const char *path, const struct peeked *p, bool text,
	struct err *err)
{
	bool is_stdin = !strcmp(path, "-");
	struct stat st;

	*in = (struct input){ .fd = -1, .line = 1, .text = text };
	if (!(in->name = mem_strdup(is_stdin ? "stdin" : path, err)) || !(in->hash = hash64_new(err)))
		goto fail;
	in->txt = !is_stdin && has_suffix(path, ".txt");
	if (is_dir(path)) {
		err_set(err, EX_NOINPUT, "'%s' is a folder, not a file of rows", path);
		goto fail;
	}
	in->fd = is_stdin ? dup(STDIN_FILENO) : p ? p->fd : open(path, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0 || fstat(in->fd, &st) < 0) {
		err_errno(err, EX_NOINPUT, "cannot open '%s'", in->name);
		goto fail;
	}
	in->may_block = !S_ISREG(st.st_mode);
	if (p && put_head(in, p, err) < 0)
		goto fail;
	return 0;
fail:
	input_release(in);
	return -1;
}

void input_release(struct input *in)
{
	if (in->fd >= 0)
		close(in->fd);
	free(in->name);
	free(in->p);
	hash64_free(in->hash);
	*in = (struct input){ .fd = -1 };
}

/* Read more behind what is there: 1, 0 at the end of the file, -1.  Moves the bytes. */
static int more(struct input *in, struct err *err)
{
	ssize_t got;

	if (in->eof)
		return 0;
	if (in->pos) {
		memmove(in->p, in->p + in->pos, in->n - in->pos);
		in->n -= in->pos;
		in->pos = 0;
	}
	if (grow(&in->p, &in->cap, in->n + CHUNK, 1, err) < 0)
		return -1;
	do
		got = read(in->fd, in->p + in->n, in->cap - in->n);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_errno(err, EX_IOERR, "cannot read '%s'", in->name);
	in->eof = !got;
	hash64_add(in->hash, in->p + in->n, (size_t)got);
	in->n += (size_t)got;
	in->bytes += (uint64_t)got;
	return got > 0;
}

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Consume blanks, counting lines: 1 if a byte follows, 0 at the end, -1. */
static int skip_blanks(struct input *in, struct err *err)
{
	int got;

	for (;;) {
		for (; in->pos < in->n && blank(in->p[in->pos]); in->pos++)
			in->line += in->p[in->pos] == '\n';
		if (in->pos < in->n)
			return 1;
		if ((got = more(in, err)) <= 0)
			return got;
	}
}

/* Strip one BOM and see what the file is. */
static int begin(struct input *in, struct err *err)
{
	const char *s;
	int got = 1;

	while (in->n < 3 && got > 0)
		got = more(in, err);
	if (got < 0)
		return -1;
	s = in->p;
	if (in->n >= 2 && (!memcmp(s, "\xff\xfe", 2) || !memcmp(s, "\xfe\xff", 2)))
		return err_set(err, EX_DATAERR, "%s: is UTF-16 text; convert it to UTF-8", in->name);
	if (in->n >= 3 && !memcmp(s, "\xef\xbb\xbf", 3))
		in->pos = 3;
	if (in->txt) {
		in->kind = INPUT_TEXT;
		return 1;
	}
	while (in->pos == in->n && got > 0)
		got = more(in, err);
	for (size_t i = in->pos; got >= 0; i++) {
		if (i == in->n && (got = more(in, err)) <= 0)
			break;
		if (blank(in->p[i]))
			continue;
		s = in->p + i;
		in->kind = *s == '{' ? INPUT_LINES
			: *s == '['      ? INPUT_ARRAY
			: in->text       ? INPUT_TEXT
							 : INPUT_UNKNOWN;
		return in->kind
			? 1
			: err_set(err, EX_DATAERR,
				  "%s: is neither JSON Lines nor a JSON array (its first byte is 0x%02x); plain "
				  "text is named .txt or read with data.format=text",
				  in->name, (unsigned char)*s);
	}
	return got < 0 ? -1 : 0;
}

/* A line that is longer than ROW_MAX is passed over, so that the next can be read. */
static int drop_line(struct input *in, struct err *err)
{
	char *nl;
	int got;

	for (;;) {
		if ((nl = memchr(in->p + in->pos, '\n', in->n - in->pos))) {
			in->pos = (size_t)(nl - in->p) + 1;
			break;
		}
		in->pos = in->n;
		if ((got = more(in, err)) < 0)
			return -1;
		if (!got)
			break;
	}
	err_set(err, EX_DATAERR, "%s:%llu: the line is longer than %d MB", in->name,
		(unsigned long long)in->line, ROW_MAX >> 20);
	in->line++;
	return -2;
}

static int next_line(struct input *in, struct raw_row *raw, struct err *err)
{
	size_t seen = 0;
	char *nl;
	int got;

	/* Blank lines are no rows. */
	if ((got = skip_blanks(in, err)) <= 0)
		return got;
	for (;;) {
		size_t have = in->n - in->pos;

		nl = memchr(in->p + in->pos + seen, '\n', have - seen);
		if ((nl ? (size_t)(nl - in->p) - in->pos : have) > ROW_MAX)
			return drop_line(in, err);
		if (nl)
			break;
		seen = have;
		if ((got = more(in, err)) < 0)
			return -1;
		if (!got)
			break;
	}
	raw->text = in->p + in->pos;
	raw->n = nl ? (size_t)(nl - raw->text) : in->n - in->pos;
	raw->line = raw->file_line = in->line++;
	in->pos += raw->n + (nl != NULL);
	return 1;
}

/* How far the scan of an element has come. */
struct scan { size_t at; unsigned depth; bool string, scalar; };

/*
 * Go on to the element's end: true when s->at is behind it.  Only brackets and quotes count here;
 * the parser judges the rest.
 */
static bool scan_element(struct scan *s, const char *p, size_t n)
{
	while (s->at < n) {
		if (s->string) {
			const char *q = memchr(p + s->at, '"', n - s->at), *b;

			if (!q) {
				s->at = n;
				return false;
			}
			for (b = q; b[-1] == '\\'; b--)
				;
			s->at = (size_t)(q - p) + 1;
			s->string = (q - b) & 1;
			if (!s->string && !s->depth)
				return true;
			continue;
		}
		switch (p[s->at]) {
		case '"':
			s->string = true;
			break;
		case '{': case '[':
			s->depth++;
			break;
		case '}': case ']':
			if (!s->depth)
				return true;   /* ends a number or word, and the array */
			if (!--s->depth) {
				s->at++;
				return true;
			}
			break;
		case ',': case ' ': case '\t': case '\r': case '\n':
			if (!s->depth)
				return true;
			break;
		}
		s->at++;
	}
	return false;
}

static int broken_array(const struct input *in, const char *what, struct err *err)
{
	return err_set(err, EX_DATAERR, "%s:%llu: the JSON array is broken after row %llu: %s",
		in->name, (unsigned long long)in->line, (unsigned long long)in->index, what);
}

/* To the first byte of the next element: 1; 0 at the array's end. */
static int next_element(struct input *in, struct err *err)
{
	bool first = !in->after_row;
	int got;

	if ((got = skip_blanks(in, err)) < 0)
		return -1;
	if (!first && got && in->p[in->pos] != ']') {
		if (in->p[in->pos] != ',')
			return broken_array(in, "expected ',' or ']'", err);
		in->pos++;
		if ((got = skip_blanks(in, err)) < 0)
			return -1;
		if (got && (in->p[in->pos] == ']' || in->p[in->pos] == ','))
			return broken_array(in, "expected a row after ','", err);
	}
	if (!got)
		return broken_array(in, "the file ends before ']'", err);
	if (in->p[in->pos] != ']')
		return 1;
	in->pos++;
	in->ended = true;
	if ((got = skip_blanks(in, err)) > 0)
		return broken_array(in, "more follows after ']'", err);
	return got;
}

static int next_of_array(struct input *in, struct raw_row *raw, struct err *err)
{
	struct scan s = {0};
	const char *q;
	int got;

	if (in->ended)
		return 0;
	if (!in->after_row && !in->index) {   /* the '[' itself */
		if ((got = skip_blanks(in, err)) <= 0)
			return got;
		in->pos++;
	}
	if ((got = next_element(in, err)) <= 0)
		return got;
	in->after_row = true;
	while (!scan_element(&s, in->p + in->pos, in->n - in->pos)) {
		if (s.at > ROW_MAX)
			return err_set(err, EX_DATAERR, "%s: row %llu: is longer than %d MB", in->name,
				(unsigned long long)in->index + 1, ROW_MAX >> 20);
		if ((got = more(in, err)) < 0)
			return -1;
		if (!got)
			return broken_array(in, "the file ends within a row", err);
	}
	raw->text = in->p + in->pos;
	raw->n = s.at;
	raw->line = ++in->index;
	raw->file_line = in->line;
	for (q = raw->text; (q = memchr(q, '\n', (size_t)(raw->text + raw->n - q))); q++)
		in->line++;
	in->pos += s.at;
	return 1;
}

/* The whole rest of the file as one row. */
static int next_text(struct input *in, struct raw_row *raw, struct err *err)
{
	const char *p, *end;
	size_t n;
	int got;

	if (in->ended)
		return 0;
	do {
		if (in->n - in->pos > ROW_MAX) {
			in->ended = true;
			err_set(err, EX_DATAERR,
				"%s: is larger than %d MB, too large for one document; split it", in->name,
				ROW_MAX >> 20);
			return -2;
		}
	} while ((got = more(in, err)) > 0);
	if (got < 0)
		return -1;
	in->ended = true;
	for (p = in->p + in->pos, end = in->p + in->n; p < end; p += n) {
		if (!(n = utf8_len(p, end))) {
			err_set(err, EX_DATAERR, "%s:%llu: invalid UTF-8 (byte 0x%02x at offset %llu)",
				in->name, (unsigned long long)in->line, (unsigned char)*p,
				(unsigned long long)(in->bytes - (uint64_t)(end - p)));
			return -2;
		}
		in->line += *p == '\n';
	}
	*raw = (struct raw_row){
		.text = in->p + in->pos, .n = in->n - in->pos, .line = 1, .file_line = 1
	};
	return 1;
}

int input_next(struct input *in, struct raw_row *raw, struct err *err)
{
	int got = 1;

	if (in->kind == INPUT_UNKNOWN && (got = begin(in, err)) <= 0)
		return got;
	if (in->kind == INPUT_TEXT)
		return next_text(in, raw, err);
	return in->kind == INPUT_ARRAY ? next_of_array(in, raw, err) : next_line(in, raw, err);
}

bool input_would_block(const struct input *in)
{
	struct pollfd fd = { .fd = in->fd, .events = POLLIN };

	if (!in->may_block || in->eof || !in->p)
		return false;
	/* A row's end in the buffer is as good as a row: few bytes are looked at where there is one. */
	if (memchr(in->p + in->pos, in->kind == INPUT_ARRAY ? '}' : '\n', in->n - in->pos))
		return false;
	return poll(&fd, 1, 0) == 0;
}
