#include <assert.h>
#include <stdlib.h>

#include "libcommon/formats/gguf.h"

enum { ALIGN = 32, NAME_MAX_ = 63, DIMS_MAX = 4 };   /* ggml's limits */

struct entry { char *name; uint64_t bytes; };
struct gguf_w {
	struct buf keys, infos;
	uint64_t nkeys, offset;               /* offset: where the next declared tensor's data starts */
	struct entry *entries; size_t n, cap;
	FILE *fp;                             /* borrowed */
	char *name;                           /* of fp, for messages */
	size_t next;
	uint64_t left;                        /* bytes still to come of entries[next] */
};

static void put_int(struct buf *b, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		buf_putc(b, (int)(v >> (8 * i) & 255));
}

static void put_str(struct buf *b, const char *s, size_t n)
{
	put_int(b, n, 8);
	buf_put(b, s, n);
}

static void put_f32(struct buf *b, float v)
{
	uint32_t u;

	memcpy(&u, &v, 4);
	put_int(b, u, 4);
}

static void put_key(struct gguf_w *w, const char *key, enum gguf_type t)
{
	assert(!w->fp);
	w->nkeys++;
	put_str(&w->keys, key, strlen(key));
	put_int(&w->keys, t, 4);
}

static void put_array(struct gguf_w *w, const char *key, enum gguf_type item, uint64_t n)
{
	put_key(w, key, GGUF_ARR);
	put_int(&w->keys, item, 4);
	put_int(&w->keys, n, 8);
}

int gguf_w_new(struct gguf_w **w, struct err *err)
{
	return (*w = mem_zalloc(1, sizeof(**w), err)) ? 0 : -1;
}

void gguf_w_str(struct gguf_w *w, const char *key, const char *s, size_t n)
{
	put_key(w, key, GGUF_STR);
	put_str(&w->keys, s, n);
}

void gguf_w_u32(struct gguf_w *w, const char *key, uint32_t v)
{
	put_key(w, key, GGUF_U32);
	put_int(&w->keys, v, 4);
}

void gguf_w_u64(struct gguf_w *w, const char *key, uint64_t v)
{
	put_key(w, key, GGUF_U64);
	put_int(&w->keys, v, 8);
}

void gguf_w_f32(struct gguf_w *w, const char *key, float v)
{
	put_key(w, key, GGUF_F32);
	put_f32(&w->keys, v);
}

void gguf_w_bool(struct gguf_w *w, const char *key, bool v)
{
	put_key(w, key, GGUF_BOOL);
	put_int(&w->keys, v, 1);
}

void gguf_w_strs(struct gguf_w *w, const char *key, const struct gguf_str *v, uint64_t n)
{
	put_array(w, key, GGUF_STR, n);
	for (uint64_t i = 0; i < n; i++)
		put_str(&w->keys, v[i].s, v[i].n);
}

void gguf_w_f32s(struct gguf_w *w, const char *key, const float *v, uint64_t n)
{
	put_array(w, key, GGUF_F32, n);
	for (uint64_t i = 0; i < n; i++)
		put_f32(&w->keys, v[i]);
}

void gguf_w_i32s(struct gguf_w *w, const char *key, const int32_t *v, uint64_t n)
{
	put_array(w, key, GGUF_I32, n);
	for (uint64_t i = 0; i < n; i++)
		put_int(&w->keys, (uint32_t)v[i], 4);
}

static uint64_t padded(uint64_t n)
{
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

int gguf_w_tensor(struct gguf_w *w, const char *name, enum dtype t, int ndim, const uint64_t *shape,
	struct err *err)
{
	uint64_t count = 1;
	char *copy;

	assert(!w->fp && ndim >= 1);
	if (dtype_info[t].ggml < 0 || ndim > DIMS_MAX || strlen(name) > NAME_MAX_ || name[0] == 0)
		return err_set(err, EX_DATAERR, "tensor '%s' can't be in a GGUF file: %s", name,
			dtype_info[t].ggml < 0 ? "its type has no place there"
				: ndim > DIMS_MAX  ? "more than 4 dimensions"
								   : "its name is empty or longer than 63 bytes");
	if (shape[ndim - 1] % (uint64_t)dtype_info[t].block)
		return err_set(err, EX_DATAERR,
			"tensor '%s': rows of %llu elements can't be %s, whose blocks have %d", name,
			(unsigned long long)shape[ndim - 1], dtype_info[t].name, dtype_info[t].block);
	for (int i = 0; i < ndim; i++)
		if (__builtin_mul_overflow(count, shape[i], &count) || count > INT64_MAX / 8)
			return err_set(err, EX_DATAERR, "tensor '%s': its shape overflows", name);
	if (grow(&w->entries, &w->cap, w->n + 1, sizeof(*w->entries), err) < 0 ||
		!(copy = mem_strdup(name, err)))
		return -1;
	w->entries[w->n++] = (struct entry){ copy, dtype_bytes(t, count) };
	put_str(&w->infos, name, strlen(name));
	put_int(&w->infos, (uint64_t)ndim, 4);
	for (int i = ndim - 1; i >= 0; i--)
		put_int(&w->infos, shape[i], 8);
	put_int(&w->infos, (uint64_t)dtype_info[t].ggml, 4);
	put_int(&w->infos, w->offset, 8);
	w->offset += padded(dtype_bytes(t, count));
	return 0;
}

static int put(struct gguf_w *w, const void *p, size_t n, struct err *err)
{
	if (n && fwrite(p, 1, n, w->fp) != n)
		return err_errno(err, EX_IOERR, "cannot write '%s'", w->name);
	return 0;
}

static int put_padding(struct gguf_w *w, uint64_t n, struct err *err)
{
	static const char zeros[ALIGN];

	return put(w, zeros, (size_t)(padded(n) - n), err);
}

/* Step over what is complete: pad it, and take up the next one that needs data. */
static int advance(struct gguf_w *w, struct err *err)
{
	while (w->left == 0 && w->next < w->n) {
		if (put_padding(w, w->entries[w->next].bytes, err) < 0)
			return -1;
		if (++w->next < w->n)
			w->left = w->entries[w->next].bytes;
	}
	return 0;
}

int gguf_w_begin(struct gguf_w *w, FILE *fp, const char *name, struct err *err)
{
	struct buf head = {0};
	int rc = -1;

	w->fp = fp;
	buf_puts(&head, "GGUF");
	put_int(&head, 3, 4);
	put_int(&head, w->n, 8);
	put_int(&head, w->nkeys, 8);
	if (!(w->name = mem_strdup(name, err)) || buf_ok(&head, err) < 0 || buf_ok(&w->keys, err) < 0 ||
		buf_ok(&w->infos, err) < 0)
		goto done;
	if (put(w, head.p, head.n, err) < 0 || put(w, w->keys.p, w->keys.n, err) < 0 ||
		put(w, w->infos.p, w->infos.n, err) < 0 ||
		put_padding(w, head.n + w->keys.n + w->infos.n, err) < 0)
		goto done;
	w->left = w->n ? w->entries[0].bytes : 0;
	rc = advance(w, err);
done:
	buf_release(&head);
	buf_release(&w->keys);
	buf_release(&w->infos);
	return rc;
}

int gguf_w_data(struct gguf_w *w, const void *data, size_t bytes, struct err *err)
{
	if (w->next == w->n ? bytes > 0 : bytes > w->left)
		return err_set(err, EX_SOFTWARE, "%s: more data than declared for '%s'", w->name,
			w->next < w->n ? w->entries[w->next].name : "the last tensor");
	if (put(w, data, bytes, err) < 0)
		return -1;
	w->left -= bytes;
	return advance(w, err);
}

int gguf_w_finish(struct gguf_w *w, struct err *err)
{
	if (w->next < w->n)
		return err_set(err, EX_SOFTWARE, "%s: %llu bytes of tensor '%s' were not written", w->name,
			(unsigned long long)w->left, w->entries[w->next].name);
	return 0;
}

void gguf_w_free(struct gguf_w *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n; i++)
		free(w->entries[i].name);
	free(w->entries);
	free(w->name);
	buf_release(&w->keys);
	buf_release(&w->infos);
	free(w);
}
