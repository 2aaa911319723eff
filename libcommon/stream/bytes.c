#include "libcommon/stream/internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 256 << 10, WAIT_MS = 100 };

int bytes_open(struct bytes *b, const char *path, struct err *err)
{
	*b = (struct bytes){ .fd = -1 };
	if (!strcmp(path, "-")) {
		b->name = "standard input";
		b->fd = STDIN_FILENO;
	} else {
		b->name = path;
		if ((b->fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
			return err_errno(err, EX_NOINPUT, "cannot open '%s'", path);
	}
	return 0;
}

static int span_room(struct span *s, size_t need, struct err *err);

int bytes_take(struct bytes *b, const struct peeked *p, struct err *err)
{
	*b = (struct bytes){ .fd = p->fd };
	b->name = p->fd == STDIN_FILENO ? "standard input" : p->path;
	if (span_room(&b->raw, p->n, err) < 0)
		return -1;
	memcpy(b->raw.p, p->head, p->n);
	b->raw.end = p->n;
	return 0;
}

void bytes_close(struct bytes *b)
{
	if (b->fd > STDIN_FILENO)
		close(b->fd);
	ZSTD_freeDCtx(b->dctx);
	free(b->raw.p);
	free(b->dec.p);
	*b = (struct bytes){ .fd = -1 };
}

static const struct span *window(const struct bytes *b)
{
	return b->zstd ? &b->dec : &b->raw;
}

const uint8_t *bytes_at(const struct bytes *b)
{
	return window(b)->p + window(b)->pos;
}

size_t bytes_have(const struct bytes *b)
{
	return window(b)->end - window(b)->pos;
}

void bytes_skip(struct bytes *b, size_t n)
{
	struct span *s = b->zstd ? &b->dec : &b->raw;

	assert(n <= s->end - s->pos);
	s->pos += n;
	if (s->pos == s->end)
		s->pos = s->end = 0;
}

bool bytes_would_block(const struct bytes *b)
{
	struct pollfd p = { .fd = b->fd, .events = POLLIN };

	return !b->eof && poll(&p, 1, 0) == 0;
}

/*
 * Room for `need` bytes in all from s->pos on, and for a chunk at the end; what was read moves to
 * the front.
 */
static int span_room(struct span *s, size_t need, struct err *err)
{
	size_t have = s->end - s->pos, want = (need > have + CHUNK ? need : have + CHUNK);
	uint8_t *p;

	if (want <= s->cap - s->pos)
		return 0;
	if (s->pos) {
		memmove(s->p, s->p + s->pos, have);
		s->pos = 0;
		s->end = have;
	}
	if (want <= s->cap)
		return 0;
	want += want / 4;
	if (!(p = realloc(s->p, want)))
		return err_oom(err, want);
	s->p = p;
	s->cap = want;
	return 0;
}

static bool (*stop_waiting)(void);

void stream_stop_waiting(bool (*stop)(void))
{
	stop_waiting = stop;
}

/* Until there is something to read, or no need to go on. */
static int wait_readable(const struct bytes *b, struct err *err)
{
	struct pollfd p = { .fd = b->fd, .events = POLLIN };

	while (stop_waiting && poll(&p, 1, WAIT_MS) <= 0)   /* a signal ends it early */
		if (stop_waiting())
			return err_set(err, EX_RESUMABLE, "stopped while waiting for %s", b->name);
	return 0;
}

/* Read once into raw.  0 also at the end, then b->eof is set. */
static int raw_read(struct bytes *b, size_t need, struct err *err)
{
	ssize_t got;

	if (span_room(&b->raw, need, err) < 0 || wait_readable(b, err) < 0)
		return -1;
	do
		got = read(b->fd, b->raw.p + b->raw.end, b->raw.cap - b->raw.end);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_errno(err, EX_IOERR, "cannot read '%s'", b->name);
	b->raw.end += (size_t)got;
	b->eof = got == 0;
	return 0;
}

static bool is_zstd(const uint8_t *p)
{
	uint32_t magic;

	memcpy(&magic, p, sizeof(magic));
	return magic == ZSTD_MAGICNUMBER ||
		(magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

int bytes_boundary(struct bytes *b, struct err *err)
{
	if (b->zstd)
		return 0;
	while (!b->eof && b->raw.end - b->raw.pos < 4)
		if (raw_read(b, 4, err) < 0)
			return -1;
	b->zstd = b->raw.end - b->raw.pos >= 4 && is_zstd(b->raw.p + b->raw.pos);
	return 0;
}

/* Between two frames: 1 if another one follows, 0 if not (plain bytes may: then b->zstd is off). */
static int next_frame(struct bytes *b, struct err *err)
{
	while (!b->eof && b->raw.end - b->raw.pos < 4)
		if (raw_read(b, 4, err) < 0)
			return -1;
	if (b->raw.end == b->raw.pos)
		return 0;
	if (b->raw.end - b->raw.pos < 4 || is_zstd(b->raw.p + b->raw.pos))
		return 1;
	if (b->dec.end != b->dec.pos)
		return err_set(err, EX_DATAERR,
			"%s: bytes that are not zstd follow a frame that ends inside a record", b->name);
	b->zstd = false;
	return 0;
}

/*
 * Decompress some.  0 also when no byte came: at the end of the input, or where plain bytes begin.
 */
static int decode(struct bytes *b, size_t need, struct err *err)
{
	ZSTD_outBuffer out;
	ZSTD_inBuffer in;
	size_t left;
	int more;

	if (!b->dctx && !(b->dctx = ZSTD_createDCtx()))
		return err_set(err, EX_OSERR, "out of memory for zstd");
	if (!b->in_frame && (more = next_frame(b, err)) <= 0)
		return more;
	if (b->raw.end == b->raw.pos && !b->eof && raw_read(b, CHUNK, err) < 0)
		return -1;
	if (span_room(&b->dec, need, err) < 0)
		return -1;
	in = (ZSTD_inBuffer){ b->raw.p + b->raw.pos, b->raw.end - b->raw.pos, 0 };
	out = (ZSTD_outBuffer){ b->dec.p + b->dec.end, b->dec.cap - b->dec.end, 0 };
	left = ZSTD_decompressStream(b->dctx, &out, &in);
	if (ZSTD_isError(left))
		return err_set(err, EX_DATAERR, "%s: bad zstd frame: %s", b->name, ZSTD_getErrorName(left));
	b->in_frame = left != 0;
	b->raw.pos += in.pos;
	b->dec.end += out.pos;
	return 0;
}

int bytes_want(struct bytes *b, size_t need, struct err *err)
{
	while (bytes_have(b) < need) {
		bool zstd = b->zstd;
		size_t had = bytes_have(b);

		if ((zstd ? decode(b, need, err) : raw_read(b, need, err)) < 0)
			return -1;
		if (b->zstd == zstd && bytes_have(b) == had && b->eof &&
			(!zstd || b->raw.pos == b->raw.end))
			return 0;
	}
	return 1;
}
