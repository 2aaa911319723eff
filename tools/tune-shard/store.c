#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcommon/buf.h"

enum { BUCKET_BITS = 6, BUCKETS = 1 << BUCKET_BITS, BLOCK_MIN = 4 << 10, BLOCK_MAX = 256 << 10 };

struct entry { uint64_t key, index; const char *blob; };
/* In front of each blob in the file.  Files never leave the process: no byte order, no version. */
struct head { uint64_t key, index, bytes; };

/* Blobs of one range of keys, in the file. */
struct bucket {
	int level;              /* which bits of the key made it */
	uint64_t bytes, count;
	uint64_t *blocks;       /* offsets in the file; all but the last are full */
	size_t nblocks, blocks_cap;
	char *tail;             /* the block that is being filled or read; NULL = none */
	size_t tail_n;
};

struct store {
	char *dir;
	uint64_t mem, next_index;
	bool sorted, spilled, reading;
	struct arena arena;              /* blobs in memory */
	struct entry *entries;
	size_t n, cap, at;               /* at: the next one to be given out */
	int fd;
	size_t block;
	uint64_t file_end;
	struct bucket *todo;             /* buckets that are to be read, the first one last */
	size_t ntodo, todo_cap;
	uint64_t open_pos;               /* of an unsorted read of the only bucket */
	struct buf one;                  /* the blob of an unsorted read */
};

int store_new(struct store **out, const char *dir, uint64_t mem, bool sorted, struct err *err)
{
	struct store *s = mem_zalloc(1, sizeof(*s), err);

	*out = s;
	if (!s)
		return -1;
	s->fd = -1;
	s->mem = mem;
	s->sorted = sorted;
	s->block = mem / 256 > BLOCK_MAX ? BLOCK_MAX
		: mem / 256 < BLOCK_MIN      ? BLOCK_MIN
									 : mem / 256 / BLOCK_MIN * BLOCK_MIN;
	return (s->dir = mem_strdup(dir, err)) ? 0 : -1;
}

uint64_t store_count(const struct store *s)
{
	return s->next_index;
}

static void bucket_release(struct bucket *b)
{
	free(b->blocks);
	free(b->tail);
	*b = (struct bucket){0};
}

void store_free(struct store *s)
{
	if (!s)
		return;
	arena_release(&s->arena);
	free(s->entries);
	while (s->ntodo)
		bucket_release(&s->todo[--s->ntodo]);
	free(s->todo);
	buf_release(&s->one);
	if (s->fd >= 0)
		close(s->fd);
	free(s->dir);
	free(s);
}

/* ---- the file ---- */

static int open_file(struct store *s, struct err *err)
{
	struct buf name = {0};
	int rc = 0;

	s->fd = open(s->dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (s->fd >= 0)
		return 0;
	/* File systems without O_TMPFILE: a name that lasts for a moment. */
	buf_printf(&name, "%s/.tune-shard.XXXXXX", s->dir);
	if (buf_ok(&name, err) < 0)
		rc = -1;
	else if ((s->fd = mkostemp(name.p, O_CLOEXEC)) < 0)
		rc = err_errno(err, EX_CANTCREAT, "cannot create a temporary file in '%s'", s->dir);
	else
		unlink(name.p);
	buf_release(&name);
	return rc;
}

static int write_block(struct store *s, struct bucket *b, struct err *err)
{
	size_t done = 0;
	ssize_t got;

	if (grow(&b->blocks, &b->blocks_cap, b->nblocks + 1, sizeof(*b->blocks), err) < 0)
		return -1;
	while (done < b->tail_n) {
		got = pwrite(s->fd, b->tail + done, b->tail_n - done, (off_t)(s->file_end + done));
		if (got < 0 && errno != EINTR)
			return err_errno(err, EX_IOERR, "cannot write a temporary file in '%s'", s->dir);
		done += got > 0 ? (size_t)got : 0;
	}
	b->blocks[b->nblocks++] = s->file_end;
	s->file_end += s->block;
	b->tail_n = 0;
	return 0;
}

static int bucket_put(struct store *s, struct bucket *b, const void *p, size_t n, struct err *err)
{
	const char *from = p;

	if (!b->tail && !(b->tail = mem_zalloc(s->block, 1, err)))
		return -1;
	b->bytes += n;
	while (n) {
		size_t k = s->block - b->tail_n < n ? s->block - b->tail_n : n;

		memcpy(b->tail + b->tail_n, from, k);
		b->tail_n += k;
		from += k;
		n -= k;
		if (b->tail_n == s->block && write_block(s, b, err) < 0)
			return -1;
	}
	return 0;
}

static int bucket_end(struct store *s, struct bucket *b, struct err *err)
{
	if (b->tail_n && write_block(s, b, err) < 0)
		return -1;
	free(b->tail);
	b->tail = NULL;
	return 0;
}

/* Bytes pos .. pos+n-1 of the bucket. */
static int bucket_read(
	struct store *s, const struct bucket *b, uint64_t pos, void *to, size_t n, struct err *err)
{
	char *p = to;
	ssize_t got;

	while (n) {
		size_t in = pos % s->block, k = s->block - in < n ? s->block - in : n;

		got = pread(s->fd, p, k, (off_t)(b->blocks[pos / s->block] + in));
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return err_errno(err, EX_IOERR, "cannot read a temporary file in '%s'", s->dir);
		p += got;
		pos += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

/* ---- putting in ---- */

static unsigned bucket_of(const struct store *s, int level, uint64_t key)
{
	return s->sorted ? key >> (64 - BUCKET_BITS * (level + 1)) & (BUCKETS - 1) : 0;
}

/* Put buckets on the list of what is to be read, so that the first is taken first. */
static int push_buckets(struct store *s, struct bucket *b, struct err *err)
{
	int i;

	if (grow(&s->todo, &s->todo_cap, s->ntodo + BUCKETS, sizeof(*s->todo), err) < 0)
		return -1;
	for (i = BUCKETS - 1; i >= 0; i--) {
		if (b[i].count)
			s->todo[s->ntodo++] = b[i];
		else
			bucket_release(&b[i]);
		b[i] = (struct bucket){0};
	}
	return 0;
}

static int put_spilled(struct store *s, struct bucket *buckets, int level, const struct head *h,
	const void *blob, struct err *err)
{
	struct bucket *b = &buckets[bucket_of(s, level, h->key)];

	b->level = level;
	b->count++;
	return bucket_put(s, b, h, sizeof(*h), err) < 0 || bucket_put(s, b, blob, h->bytes, err) < 0
		? -1
		: 0;
}

/* The size is kept in front of each blob in memory. */
static size_t blob_size(const char *blob)
{
	uint64_t n;

	memcpy(&n, blob - 16, sizeof(n));
	return (size_t)n;
}

static int spill(struct store *s, struct err *err)
{
	size_t i;

	if (open_file(s, err) < 0 || grow(&s->todo, &s->todo_cap, BUCKETS, sizeof(*s->todo), err) < 0)
		return -1;
	memset(s->todo, 0, BUCKETS * sizeof(*s->todo));
	s->ntodo = BUCKETS;
	s->spilled = true;
	for (i = 0; i < s->n; i++) {
		struct head h = { s->entries[i].key, s->entries[i].index, blob_size(s->entries[i].blob) };

		if (put_spilled(s, s->todo, 0, &h, s->entries[i].blob, err) < 0)
			return -1;
	}
	s->n = 0;
	arena_release(&s->arena);
	return 0;
}

static int add_in_memory(struct store *s, struct head h, char **blob, struct err *err)
{
	char *p = arena_alloc(&s->arena, h.bytes + 16);

	if (!p)
		return err_oom(err, h.bytes);
	if (grow(&s->entries, &s->cap, s->n + 1, sizeof(*s->entries), err) < 0)
		return -1;
	memcpy(p, &h.bytes, sizeof(h.bytes));
	*blob = p + 16;
	s->entries[s->n++] = (struct entry){ h.key, h.index, p + 16 };
	return 0;
}

int store_add(
	struct store *s, uint64_t key, const struct part *parts, size_t nparts, struct err *err)
{
	struct head h = { key, s->next_index++, 0 };
	char *p, zero[8] = {0};
	size_t i;

	for (i = 0; i < nparts; i++)
		h.bytes += (parts[i].n + 7) & ~(size_t)7;
	if (!s->spilled && s->n &&
		s->arena.total + h.bytes + (s->n + 1) * sizeof(*s->entries) > s->mem && spill(s, err) < 0)
		return -1;
	if (s->spilled) {
		struct bucket *b = &s->todo[bucket_of(s, 0, key)];

		b->count++;
		if (bucket_put(s, b, &h, sizeof(h), err) < 0)
			return -1;
		for (i = 0; i < nparts; i++)
			if (bucket_put(s, b, parts[i].p, parts[i].n, err) < 0 ||
				bucket_put(s, b, zero, -parts[i].n & 7, err) < 0)
				return -1;
		return 0;
	}
	if (add_in_memory(s, h, &p, err) < 0)
		return -1;
	for (i = 0; i < nparts; i++) {
		if (parts[i].n)
			memcpy(p, parts[i].p, parts[i].n);
		p += (parts[i].n + 7) & ~(size_t)7;
	}
	return 0;
}

/* ---- taking out ---- */

static int by_key(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int begin_reading(struct store *s, struct err *err)
{
	struct bucket all[BUCKETS];
	size_t i;

	s->reading = true;
	if (!s->spilled) {
		if (s->sorted && s->n)
			qsort(s->entries, s->n, sizeof(*s->entries), by_key);
		return 0;
	}
	for (i = 0; i < BUCKETS; i++)
		if (bucket_end(s, &s->todo[i], err) < 0)
			return -1;
	memcpy(all, s->todo, sizeof(all));
	s->ntodo = 0;
	return push_buckets(s, all, err);
}

/* Cut a bucket in 64 by the next bits of the key. */
static int cut(struct store *s, struct bucket *b, struct err *err)
{
	struct bucket parts[BUCKETS] = {0};
	uint64_t pos = 0;
	int i, rc = -1;

	while (pos < b->bytes) {
		struct head h;
		char *blob;

		if (bucket_read(s, b, pos, &h, sizeof(h), err) < 0)
			goto done;
		buf_clear(&s->one);
		if (!(blob = buf_room(&s->one, h.bytes))) {
			err_oom(err, h.bytes);
			goto done;
		}
		if (bucket_read(s, b, pos + sizeof(h), blob, h.bytes, err) < 0 ||
		    put_spilled(s, parts, b->level + 1, &h, blob, err) < 0)
			goto done;
		pos += sizeof(h) + h.bytes;
	}
	for (i = 0; i < BUCKETS; i++)
		if (bucket_end(s, &parts[i], err) < 0)
			goto done;
	rc = push_buckets(s, parts, err);
done:
	for (i = 0; i < BUCKETS; i++)
		bucket_release(&parts[i]);
	return rc;
}

static int load(struct store *s, struct bucket *b, struct err *err)
{
	uint64_t pos = 0;

	while (pos < b->bytes) {
		struct head h;
		char *blob;

		if (bucket_read(s, b, pos, &h, sizeof(h), err) < 0 || add_in_memory(s, h, &blob, err) < 0 ||
		    bucket_read(s, b, pos + sizeof(h), blob, h.bytes, err) < 0)
			return -1;
		pos += sizeof(h) + h.bytes;
	}
	qsort(s->entries, s->n, sizeof(*s->entries), by_key);
	return 0;
}

/* Fill entries from the next bucket.  0: there is none. */
static int next_bucket(struct store *s, struct err *err)
{
	arena_reset(&s->arena);
	s->n = s->at = 0;
	while (s->ntodo) {
		struct bucket b = s->todo[--s->ntodo];
		/* At the last level the keys are equal but for their lowest bits. */
		bool small = b.bytes + b.count * sizeof(struct entry) <= s->mem || b.count == 1 ||
			BUCKET_BITS * (b.level + 2) > 64;
		int rc = small ? load(s, &b, err) : cut(s, &b, err);

		bucket_release(&b);
		if (rc < 0 || small)
			return rc < 0 ? -1 : 1;
	}
	return 0;
}

/* The unsorted order is the file's own. */
static int next_unsorted(struct store *s, const void **blob, struct err *err)
{
	const struct bucket *b = &s->todo[0];
	struct head h;
	char *p;

	if (!s->ntodo || s->open_pos == b->bytes)
		return 0;
	if (bucket_read(s, b, s->open_pos, &h, sizeof(h), err) < 0)
		return -1;
	buf_clear(&s->one);
	if (!(p = buf_room(&s->one, h.bytes)))
		return err_oom(err, h.bytes);
	if (bucket_read(s, b, s->open_pos + sizeof(h), p, h.bytes, err) < 0)
		return -1;
	s->open_pos += sizeof(h) + h.bytes;
	*blob = p;
	return 1;
}

int store_next(struct store *s, const void **blob, struct err *err)
{
	int got;

	if (!s->reading && begin_reading(s, err) < 0)
		return -1;
	if (s->spilled && !s->sorted)
		return next_unsorted(s, blob, err);
	while (s->at == s->n) {
		if (!s->spilled)
			return 0;
		if ((got = next_bucket(s, err)) <= 0)
			return got;
	}
	*blob = s->entries[s->at++].blob;
	return 1;
}
