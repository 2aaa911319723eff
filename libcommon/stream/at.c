#include "libcommon/stream/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct stream_at {
	char *name;
	int fd;
	struct stream_header head;
	struct stream_totals t;
	struct stream_index x;
	uint64_t *starts;               /* file offset of each frame */
	ZSTD_DCtx *dctx;
	struct buf packed, plain;       /* a frame as it lies, and what is in it */
	size_t entry;                   /* of x.at that plain holds; SIZE_MAX = none */
	size_t *offs, offs_cap, noffs;  /* where its records begin, and the end */
	struct decoder d;
	msgpack_unpacked u;
};

static int read_at(struct stream_at *a, void *to, size_t n, uint64_t offset, struct err *err)
{
	char *p = to;
	ssize_t got;

	while (n) {
		got = pread(a->fd, p, n, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(err, EX_IOERR, "cannot read '%s'", a->name);
		if (!got)
			return err_set(err, EX_DATAERR, "%s: became shorter while it was read", a->name);
		p += got;
		offset += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

/* Decompress frame i into a->plain. */
static int load_frame(struct stream_at *a, size_t i, struct err *err)
{
	struct frame_size f = a->x.frames[i];
	char *packed, *plain;
	size_t got;

	a->entry = SIZE_MAX;
	buf_clear(&a->packed);
	buf_clear(&a->plain);
	if (f.plain > STREAM_RECORD_MAX + STREAM_FRAME_MAX)
		return err_set(err, EX_DATAERR, "%s: frame %zu is larger than the limit", a->name, i);
	if (!(packed = buf_room(&a->packed, f.packed)) || !(plain = buf_room(&a->plain, f.plain)))
		return err_oom(err, (unsigned long long)f.packed + f.plain);
	if (read_at(a, packed, f.packed, a->starts[i], err) < 0)
		return -1;
	got = ZSTD_decompressDCtx(a->dctx, plain, f.plain, packed, f.packed);
	if (ZSTD_isError(got) || got != f.plain)
		return err_set(err, EX_DATAERR, "%s: bad zstd frame %zu: %s", a->name, i,
			ZSTD_isError(got) ? ZSTD_getErrorName(got) : "another size than the seek table says");
	a->plain.n = got;
	return 0;
}

/* Find where the records of a->plain begin. */
static int split_frame(struct stream_at *a, struct err *err)
{
	size_t pos = 0, need;

	a->noffs = 0;
	for (;;) {
		struct scan s;
		enum scan_result r;

		if (grow(&a->offs, &a->offs_cap, a->noffs + 1, sizeof(*a->offs), err) < 0)
			return -1;
		a->offs[a->noffs++] = pos;
		if (pos == a->plain.n)
			return 0;
		scan_init(&s);
		r = scan_value(&s, (uint8_t *)a->plain.p + pos, a->plain.n - pos, STREAM_RECORD_MAX, &need);
		if (r == SCAN_MORE)
			return err_set(err, EX_DATAERR, "%s: a frame ends inside a record", a->name);
		if (r != SCAN_DONE)
			return scan_error(r, STREAM_RECORD_MAX, err), err_prefix(err, "%s: ", a->name);
		pos += s.pos;
	}
}

static int load(struct stream_at *a, size_t frame, struct err *err)
{
	return load_frame(a, frame, err) < 0 ? -1 : split_frame(a, err);
}

static int record_at(
	struct stream_at *a, size_t k, char tag[5], const msgpack_object **map, struct err *err)
{
	return msg_record(
		&a->u, (uint8_t *)a->plain.p + a->offs[k], a->offs[k + 1] - a->offs[k], tag, map, err);
}

/* The seek table, and the frames' places from it. */
static int read_table(struct stream_at *a, struct err *err)
{
	struct stat st;
	uint8_t foot[SEEK_FOOT_SIZE];
	struct seek_foot f;
	struct buf table = {0};
	uint64_t at = 0;
	size_t i;
	char *p;
	int rc = -1;

	if (fstat(a->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, EX_DATAERR, "%s: not a regular file", a->name);
	if (st.st_size < SEEK_FOOT_SIZE)
		goto none;
	if (read_at(a, foot, sizeof(foot), (uint64_t)st.st_size - sizeof(foot), err) < 0)
		return -1;
	if (!seek_foot_decode(foot, (uint64_t)st.st_size, &f))
		goto none;
	if (!(p = buf_room(&table, f.table)))
		return err_oom(err, f.table);
	if (read_at(a, p, f.table, (uint64_t)st.st_size - f.table, err) < 0 ||
		seek_table_decode(&a->x, (uint8_t *)p, &f, err) < 0 ||
		!(a->starts = mem_zalloc(f.nframes + 1, sizeof(*a->starts), err)))
		goto done;
	for (i = 0; i < f.nframes; i++) {
		a->starts[i] = at;
		at += a->x.frames[i].packed;
	}
	/* After cat the last table covers the last part only. */
	rc = at + f.table == (uint64_t)st.st_size && f.nframes >= 2 ? 0 : 1;
done:
	buf_release(&table);
	if (rc <= 0)
		return rc;
none:
	return err_set(err, EX_DATAERR, "%s: has no index: make one with 'tune-stream index %s'",
		a->name, a->name);
}

static size_t find_start(const struct stream_at *a, uint64_t offset)
{
	size_t lo = 0, hi = a->x.nframes;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (a->starts[mid] < offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < a->x.nframes && a->starts[lo] == offset ? lo : SIZE_MAX;
}

/* The first frame is TUNE, the last one indx and TEND. */
static int read_ends(struct stream_at *a, struct err *err)
{
	const msgpack_object *map;
	struct stream_end e;
	char tag[5];
	size_t i;

	if (load(a, 0, err) < 0)
		return -1;
	if (a->noffs != 2 || record_at(a, 0, tag, &map, err) < 0 || strcmp(tag, "TUNE"))
		goto none;
	if (header_decode(&a->head, map, err) < 0)
		return err_prefix(err, "%s: record 0: ", a->name);
	if (load(a, a->x.nframes - 1, err) < 0)
		return -1;
	if (a->noffs != 3 || record_at(a, 0, tag, &map, err) < 0 || strcmp(tag, "indx"))
		goto none;
	if (index_decode(&a->x, map, err) < 0 || record_at(a, 1, tag, &map, err) < 0)
		return err_prefix(err, "%s: ", a->name);
	if (strcmp(tag, "TEND") || end_decode(&e, map, err) < 0)
		goto none;
	a->t = (struct stream_totals){ e.n, e.tokens, e.trained, e.xxh64 };
	for (i = 0; i < a->x.nat; i++)
		if (find_start(a, a->x.at[i].offset) == SIZE_MAX || a->x.at[i].record >= e.n)
			goto none;
	if (!a->x.nat == !e.n)
		return 0;
none:
	return err_set(err, EX_DATAERR,
		"%s: its index is not of this file: make one with 'tune-stream index %s'", a->name,
		a->name);
}

int stream_at_open(struct stream_at **out, const char *path, struct err *err)
{
	struct stream_at *a = mem_zalloc(1, sizeof(*a), err);

	*out = NULL;
	if (!a)
		return -1;
	a->fd = -1;
	a->entry = SIZE_MAX;
	if (!(a->name = mem_strdup(path, err)))
		goto fail;
	if ((a->fd = open(path, O_RDONLY | O_CLOEXEC)) < 0) {
		err_errno(err, EX_NOINPUT, "cannot open '%s'", path);
		goto fail;
	}
	if (!(a->dctx = ZSTD_createDCtx())) {
		err_oom(err, 0);
		goto fail;
	}
	if (read_table(a, err) < 0 || read_ends(a, err) < 0)
		goto fail;
	a->d.kind = a->head.kind;
	a->d.vocab = a->head.tok.vocab;
	a->d.ninputs = a->head.ninputs;
	*out = a;
	return 0;
fail:
	stream_at_close(a);
	return -1;
}

uint64_t stream_at_count(const struct stream_at *a)
{
	return a->t.n;
}

const struct stream_header *stream_at_header(const struct stream_at *a)
{
	return &a->head;
}

const struct stream_totals *stream_at_totals(const struct stream_at *a)
{
	return &a->t;
}

/* The last entry of x.at whose record is <= i. */
static size_t find_entry(const struct stream_at *a, uint64_t i)
{
	size_t lo = 0, hi = a->x.nat;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (a->x.at[mid].record <= i)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

int stream_at_get(struct stream_at *a, uint64_t i, struct record *r, struct err *err)
{
	const msgpack_object *map;
	size_t e;
	uint64_t want;

	if (i >= a->t.n)
		return err_set(err, EX_DATAERR, "%s: there is no record %llu, only %llu", a->name,
			(unsigned long long)i, (unsigned long long)a->t.n);
	e = find_entry(a, i);
	if (e != a->entry) {
		want = (e + 1 < a->x.nat ? a->x.at[e + 1].record : a->t.n) - a->x.at[e].record;
		if (load(a, find_start(a, a->x.at[e].offset), err) < 0)
			return -1;
		if (a->noffs - 1 != want)
			return err_set(err, EX_DATAERR,
				"%s: the index promises %llu records in a frame that has %zu", a->name,
				(unsigned long long)want, a->noffs - 1);
		a->entry = e;
	}
	want = i - a->x.at[e].record;
	*r = (struct record){ .raw = (uint8_t *)a->plain.p + a->offs[want],
		.len = a->offs[want + 1] - a->offs[want],
		.index = i + 1 };
	if (record_at(a, want, r->tag, &map, err) < 0 || decode_record(&a->d, map, r, err) < 0)
		return err_prefix(err, "%s: record %llu: ", a->name, (unsigned long long)i + 1);
	return 0;
}

void stream_at_close(struct stream_at *a)
{
	if (!a)
		return;
	if (a->fd >= 0)
		close(a->fd);
	stream_header_release(&a->head);
	index_release(&a->x);
	free(a->starts);
	ZSTD_freeDCtx(a->dctx);
	buf_release(&a->packed);
	buf_release(&a->plain);
	free(a->offs);
	decoder_release(&a->d);
	msgpack_unpacked_destroy(&a->u);
	free(a->name);
	free(a);
}
