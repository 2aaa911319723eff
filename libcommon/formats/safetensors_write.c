#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libcommon/file.h"
#include "libcommon/formats/safetensors.h"
#include "libcommon/json.h"

struct entry {
	char *name;
	enum dtype dtype;
	int ndim;
	uint64_t shape[TENSOR_DIMS_MAX], bytes;
	size_t shard;
};
struct st_writer {
	char *dir, *stem;
	uint64_t max_shard;
	char *(*meta)[2]; size_t nmeta, meta_cap;
	struct entry *entries; size_t n, cap;
	size_t shards;
	/* while writing */
	FILE *fp;
	char *path;           /* of fp */
	size_t shard, next;   /* shard that is open; entry that is being written */
	uint64_t left;        /* bytes still to come of entries[next] */
};

int st_writer_new(
	struct st_writer **out, const char *dir, const char *stem, uint64_t max_shard, struct err *err)
{
	struct st_writer *w = mem_zalloc(1, sizeof(*w), err);

	*out = NULL;
	if (!w || !(w->dir = mem_strdup(dir, err)) || !(w->stem = mem_strdup(stem, err)) ||
		st_writer_meta(w, "format", "pt", err) < 0) {
		st_writer_free(w);
		return -1;
	}
	w->max_shard = max_shard ? max_shard : UINT64_MAX;
	*out = w;
	return 0;
}

int st_writer_meta(struct st_writer *w, const char *key, const char *value, struct err *err)
{
	char **m;

	if (grow(&w->meta, &w->meta_cap, w->nmeta + 1, sizeof(*w->meta), err) < 0)
		return -1;
	m = w->meta[w->nmeta++];
	m[0] = mem_strdup(key, err);
	m[1] = mem_strdup(value, err);
	return m[0] && m[1] ? 0 : -1;
}

int st_writer_add(struct st_writer *w, const char *name, enum dtype dtype, int ndim,
	const uint64_t *shape, struct err *err)
{
	struct entry *e;
	uint64_t bytes;

	assert(ndim >= 0 && ndim <= TENSOR_DIMS_MAX && !w->fp);
	if (!dtype_info[dtype].st_name)
		return err_set(err, EX_DATAERR, "tensor '%s': safetensors has no type %s", name,
			dtype_info[dtype].name);
	if (grow(&w->entries, &w->cap, w->n + 1, sizeof(*w->entries), err) < 0)
		return -1;
	e = &w->entries[w->n];
	*e = (struct entry){ .dtype = dtype, .ndim = ndim };
	bytes = (uint64_t)dtype_info[dtype].bytes;
	for (int i = 0; i < ndim; i++) {
		e->shape[i] = shape[i];
		if (__builtin_mul_overflow(bytes, shape[i], &bytes))
			return err_set(err, EX_DATAERR, "tensor '%s': its shape overflows 64 bits", name);
	}
	e->bytes = bytes;
	if (!(e->name = mem_strdup(name, err)))
		return -1;
	w->n++;
	return 0;
}

static void shard_name(const struct st_writer *w, size_t shard, struct buf *b)
{
	buf_puts(b, w->stem);
	if (w->shards > 1)
		buf_printf(b, "-%05zu-of-%05zu", shard + 1, w->shards);
	buf_puts(b, ".safetensors");
}

static void write_header(const struct st_writer *w, size_t shard, struct buf *b)
{
	struct json_w j = { .out = b };
	uint64_t at = 0;

	json_w_obj(&j);
	json_w_name(&j, "__metadata__");
	json_w_obj(&j);
	for (size_t i = 0; i < w->nmeta; i++) {
		json_w_name(&j, w->meta[i][0]);
		json_w_str(&j, w->meta[i][1]);
	}
	json_w_end(&j);
	for (size_t i = 0; i < w->n; i++) {
		const struct entry *e = &w->entries[i];

		if (e->shard != shard)
			continue;
		json_w_name(&j, e->name);
		json_w_obj(&j);
		json_w_name(&j, "dtype");
		json_w_str(&j, dtype_info[e->dtype].st_name);
		json_w_name(&j, "shape");
		json_w_arr(&j);
		for (int d = 0; d < e->ndim; d++)
			json_w_int(&j, (int64_t)e->shape[d]);
		json_w_end(&j);
		json_w_name(&j, "data_offsets");
		json_w_arr(&j);
		json_w_int(&j, (int64_t)at);
		json_w_int(&j, (int64_t)(at += e->bytes));
		json_w_end(&j);
		json_w_end(&j);
	}
	json_w_end(&j);
	while (b->n % 8 && !b->oom)
		buf_putc(b, ' ');
}

static int open_file(struct st_writer *w, const char *name, struct err *err)
{
	assert(!w->fp);
	free(w->path);
	if (!(w->path = path_join(w->dir, name)))
		return err_oom(err, strlen(name));
	if (!(w->fp = fopen(w->path, "wbxe")))
		return err_errno(err, EX_CANTCREAT, "cannot create '%s'", w->path);
	return 0;
}

static int put(struct st_writer *w, const void *p, size_t n, struct err *err)
{
	if (n && fwrite(p, 1, n, w->fp) != n)
		return err_errno(err, EX_IOERR, "cannot write '%s'", w->path);
	return 0;
}

static int close_file(struct st_writer *w, struct err *err)
{
	int failed = fflush(w->fp) || fsync(fileno(w->fp));

	if (failed)
		err_errno(err, EX_IOERR, "cannot write '%s'", w->path);
	if (fclose(w->fp) && !failed)
		failed = err_errno(err, EX_IOERR, "cannot write '%s'", w->path);
	w->fp = NULL;
	return failed ? -1 : 0;
}

static int open_shard(struct st_writer *w, struct err *err)
{
	struct buf name = {0}, header = {0};
	unsigned char len[8];
	int rc = -1;

	shard_name(w, w->shard, &name);
	write_header(w, w->shard, &header);
	if (buf_ok(&name, err) < 0 || buf_ok(&header, err) < 0 || open_file(w, name.p, err) < 0)
		goto done;
	for (int i = 0; i < 8; i++)
		len[i] = (unsigned char)((uint64_t)header.n >> (8 * i));
	rc = put(w, len, 8, err) < 0 ? -1 : put(w, header.p, header.n, err);
done:
	buf_release(&name);
	buf_release(&header);
	return rc;
}

/*
 * Step over what is complete (tensors without elements need no data), into the next shard where one
 * begins.
 */
static int advance(struct st_writer *w, struct err *err)
{
	while (w->left == 0 && w->next < w->n) {
		w->next++;
		if (w->next == w->n)
			return 0;
		if (w->entries[w->next].shard != w->shard) {
			if (close_file(w, err) < 0)
				return -1;
			w->shard++;
			if (open_shard(w, err) < 0)
				return -1;
		}
		w->left = w->entries[w->next].bytes;
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct entry *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int check_names(const struct st_writer *w, struct err *err)
{
	const struct entry **sorted = mem_zalloc(w->n, sizeof(*sorted), err);
	int rc = 0;

	if (!sorted)
		return -1;
	for (size_t i = 0; i < w->n; i++)
		sorted[i] = &w->entries[i];
	qsort(sorted, w->n, sizeof(*sorted), by_name);
	for (size_t i = 1; i < w->n && rc == 0; i++)
		if (!strcmp(sorted[i - 1]->name, sorted[i]->name))
			rc = err_set(err, EX_SOFTWARE, "tensor '%s' is written twice", sorted[i]->name);
	free(sorted);
	return rc;
}

int st_writer_begin(struct st_writer *w, struct err *err)
{
	uint64_t used = 0;

	if (check_names(w, err) < 0)
		return -1;
	w->shards = 1;
	for (size_t i = 0; i < w->n; i++) {
		struct entry *e = &w->entries[i];

		if (used > 0 && (e->bytes > w->max_shard || used > w->max_shard - e->bytes)) {
			w->shards++;
			used = 0;
		}
		e->shard = w->shards - 1;
		used += e->bytes;
	}
	if (open_shard(w, err) < 0)
		return -1;
	w->left = w->n ? w->entries[0].bytes : 0;
	return advance(w, err);
}

int st_writer_data(struct st_writer *w, const void *data, size_t bytes, struct err *err)
{
	assert(w->fp);
	if (w->next == w->n ? bytes > 0 : bytes > w->left)
		return err_set(err, EX_SOFTWARE, "%s: more data than declared for '%s'", w->path,
			w->next < w->n ? w->entries[w->next].name : "the last tensor");
	if (put(w, data, bytes, err) < 0)
		return -1;
	w->left -= bytes;
	return advance(w, err);
}

static int write_index(struct st_writer *w, struct err *err)
{
	struct buf name = {0}, text = {0}, shard = {0};
	struct json_w j = { .out = &text, .indent = 2 };
	uint64_t total = 0;
	int rc = -1;

	for (size_t i = 0; i < w->n; i++)
		total += w->entries[i].bytes;
	json_w_obj(&j);
	json_w_name(&j, "metadata");
	json_w_obj(&j);
	json_w_name(&j, "total_size");
	json_w_int(&j, (int64_t)total);
	json_w_end(&j);
	json_w_name(&j, "weight_map");
	json_w_obj(&j);
	for (size_t i = 0; i < w->n; i++) {
		buf_clear(&shard);
		shard_name(w, w->entries[i].shard, &shard);
		json_w_name(&j, w->entries[i].name);
		json_w_str(&j, shard.oom ? "" : shard.p);
	}
	json_w_end(&j);
	json_w_end(&j);
	buf_putc(&text, '\n');
	buf_printf(&name, "%s.safetensors.index.json", w->stem);
	if (buf_ok(&text, err) < 0 || buf_ok(&name, err) < 0 || buf_ok(&shard, err) < 0 ||
		open_file(w, name.p, err) < 0 || put(w, text.p, text.n, err) < 0)
		goto done;
	rc = close_file(w, err);
done:
	buf_release(&name);
	buf_release(&text);
	buf_release(&shard);
	return rc;
}

int st_writer_finish(struct st_writer *w, struct err *err)
{
	assert(w->fp);
	if (w->next < w->n)
		return err_set(err, EX_SOFTWARE, "%s: %llu bytes of tensor '%s' were not written", w->path,
			(unsigned long long)w->left, w->entries[w->next].name);
	if (close_file(w, err) < 0)
		return -1;
	return w->shards > 1 ? write_index(w, err) : 0;
}

void st_writer_free(struct st_writer *w)
{
	if (!w)
		return;
	if (w->fp)
		fclose(w->fp);
	for (size_t i = 0; i < w->nmeta; i++) {
		free(w->meta[i][0]);
		free(w->meta[i][1]);
	}
	for (size_t i = 0; i < w->n; i++)
		free(w->entries[i].name);
	free(w->meta);
	free(w->entries);
	free(w->dir);
	free(w->stem);
	free(w->path);
	free(w);
}
