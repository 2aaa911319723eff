#include "libcommon/formats/gguf.h"

#include <math.h>
#include <stdlib.h>

#include "libcommon/arena.h"
#include "libcommon/file.h"

enum {
	TENSORS_MAX = 1 << 18,
	KEYS_MAX = 1 << 16,
	KEY_MAX = 65535,
	NAME_MAX_ = 255,
	DIMS_MAX = 4,
	ALIGN_DEFAULT = 32,
	ALIGN_MAX = 65536,
	/* bytes in the file that one costs at least: they bound the counts */
	KV_MIN = 8 + 4 + 1,
	TENSOR_MIN = 8 + 4 + 4 + 8
};

struct cursor { uint64_t i; const unsigned char *p; };   /* where string i of an array starts */
struct kv {
	const char *key;
	enum gguf_type type, item;     /* item: of an array */
	uint64_t n;                    /* items of an array */
	const unsigned char *p;        /* the value; of an array, its first item */
	struct cursor *cursor;         /* arrays of strings; moves although the gguf is const */
};
struct gguf {
	struct mapped map;
	const char *path;
	struct kv *kv; size_t nkv;              /* file order */
	const struct kv **by_key;
	struct tensor *tensors; size_t n;       /* file order */
	const struct tensor **by_name;
	uint64_t align, surplus;
	struct arena names;
};

/* Bytes of a scalar; 0 for strings and arrays. */
static const uint8_t scalar_bytes[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
static const char *const type_names[] = { "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool",
	"string", "array", "u64", "i64", "f64" };
enum { NTYPES = sizeof(scalar_bytes) };

/* ---- the file's bytes, front to back ---- */

struct reader { const struct gguf *g; const unsigned char *p; size_t left; const char *what; };

static int cut(const struct reader *r, struct err *err)
{
	return err_set(err, EX_DATAERR, "%s: the file ends within %s", r->g->path, r->what);
}

static uint64_t le(const unsigned char *p, int bytes)
{
	uint64_t v = 0;

	while (bytes-- > 0)
		v = v << 8 | p[bytes];
	return v;
}

static int take(struct reader *r, uint64_t n, const unsigned char **p, struct err *err)
{
	if (n > r->left)
		return cut(r, err);
	*p = r->p;
	r->p += n;
	r->left -= n;
	return 0;
}

static int take_int(struct reader *r, int bytes, uint64_t *v, struct err *err)
{
	const unsigned char *p = NULL;

	if (take(r, (uint64_t)bytes, &p, err) < 0)
		return -1;
	*v = le(p, bytes);
	return 0;
}

static int take_str(struct reader *r, struct gguf_str *s, struct err *err)
{
	const unsigned char *p = NULL;

	if (take_int(r, 8, &s->n, err) < 0 || take(r, s->n, &p, err) < 0)
		return -1;
	s->s = (const char *)p;
	return 0;
}

/* A string that becomes a name of ours: bounded, without NULs, copied with one at its end. */
static const char *take_name(struct reader *r, struct gguf *g, size_t max, struct err *err)
{
	struct gguf_str s;
	const char *name;

	if (take_str(r, &s, err) < 0)
		return NULL;
	if (s.n == 0 || s.n > max || memchr(s.s, 0, s.n)) {
		err_set(err, EX_DATAERR,
			"%s: %s: a name of %llu bytes is empty, holds a NUL or is longer than %zu", g->path,
			r->what, (unsigned long long)s.n, max);
		return NULL;
	}
	if (!(name = arena_strndup(&g->names, s.s, s.n)))
		err_oom(err, s.n);
	return name;
}

/* ---- keys ---- */

static int bad_key(const struct gguf *g, const struct kv *kv, const char *why, struct err *err)
{
	return err_set(err, EX_DATAERR, "%s: key '%s': %s", g->path, kv->key, why);
}

static int check_bools(const struct gguf *g, const struct kv *kv, struct err *err)
{
	for (uint64_t i = 0; i < kv->n; i++)
		if (kv->p[i] > 1)
			return bad_key(g, kv, "a bool is neither 0 nor 1", err);
	return 0;
}

static int read_array(struct reader *r, struct gguf *g, struct kv *kv, struct err *err)
{
	struct gguf_str s;
	uint64_t type = 0;

	if (take_int(r, 4, &type, err) < 0 || take_int(r, 8, &kv->n, err) < 0)
		return -1;
	if (type >= NTYPES || type == GGUF_ARR)
		return bad_key(g, kv,
			type == GGUF_ARR ? "arrays of arrays are not supported" : "unknown type of array items",
			err);
	kv->item = (enum gguf_type)type;
	kv->p = r->p;
	if (kv->item != GGUF_STR) {
		if (kv->n > r->left / scalar_bytes[type])
			return cut(r, err);
		if (take(r, kv->n * scalar_bytes[type], &kv->p, err) < 0)
			return -1;
		return kv->item == GGUF_BOOL ? check_bools(g, kv, err) : 0;
	}
	if (kv->n > r->left / 8)
		return cut(r, err);
	for (uint64_t i = 0; i < kv->n; i++)
		if (take_str(r, &s, err) < 0)
			return -1;
	if (!(kv->cursor = arena_alloc(&g->names, sizeof(*kv->cursor))))
		return err_oom(err, sizeof(*kv->cursor));
	*kv->cursor = (struct cursor){ 0, kv->p };
	return 0;
}

static int read_kv(struct reader *r, struct gguf *g, struct kv *kv, struct err *err)
{
	struct gguf_str s;
	uint64_t type = 0;

	r->what = "its keys";
	if (!(kv->key = take_name(r, g, KEY_MAX, err)) || take_int(r, 4, &type, err) < 0)
		return -1;
	if (type >= NTYPES)
		return bad_key(g, kv, "unknown type of value", err);
	kv->type = (enum gguf_type)type;
	if (kv->type == GGUF_ARR)
		return read_array(r, g, kv, err);
	kv->n = 1;
	kv->p = r->p;
	if (kv->type == GGUF_STR)
		return take_str(r, &s, err);
	if (take(r, scalar_bytes[type], &kv->p, err) < 0)
		return -1;
	return kv->type == GGUF_BOOL ? check_bools(g, kv, err) : 0;
}

static int kv_cmp(const void *a, const void *b)
{
	return strcmp((*(const struct kv *const *)a)->key, (*(const struct kv *const *)b)->key);
}

static int read_kvs(struct reader *r, struct gguf *g, uint64_t n, struct err *err)
{
	const char *name = "general.alignment";
	const struct kv *a;

	if (n > KEYS_MAX || n > r->left / KV_MIN)
		return err_set(err, EX_DATAERR, "%s: %llu keys don't fit in the file (or are more than %d)",
			g->path, (unsigned long long)n, KEYS_MAX);
	if (!(g->kv = mem_zalloc(n, sizeof(*g->kv), err)) ||
		!(g->by_key = mem_zalloc(n, sizeof(*g->by_key), err)))
		return -1;
	for (; g->nkv < n; g->nkv++) {
		if (read_kv(r, g, &g->kv[g->nkv], err) < 0)
			return -1;
		g->by_key[g->nkv] = &g->kv[g->nkv];
	}
	qsort(g->by_key, g->nkv, sizeof(*g->by_key), kv_cmp);
	for (size_t i = 1; i < g->nkv; i++)
		if (!kv_cmp(&g->by_key[i - 1], &g->by_key[i]))
			return bad_key(g, g->by_key[i], "stands twice", err);
	g->align = ALIGN_DEFAULT;
	for (size_t i = 0; i < g->nkv; i++) {
		a = &g->kv[i];
		if (strcmp(a->key, name))
			continue;
		g->align = a->type == GGUF_U32 ? le(a->p, 4) : 0;
		if (g->align < 8 || g->align > ALIGN_MAX || (g->align & (g->align - 1)))
			return err_set(err, EX_DATAERR,
				"%s: key '%s' must be a power of two from 8 to %d, as u32", g->path, name,
				ALIGN_MAX);
	}
	return 0;
}

/* ---- tensors ---- */

/* ggml's types that are not ours, for the message. */
static const char *ggml_name(uint64_t type)
{
	static const char *const names[] = {
		[9] = "Q8_1",
		[15] = "Q8_K",
		[16] = "IQ2_XXS",
		[17] = "IQ2_XS",
		[18] = "IQ3_XXS",
		[19] = "IQ1_S",
		[20] = "IQ4_NL",
		[21] = "IQ3_S",
		[22] = "IQ2_S",
		[23] = "IQ4_XS",
		[29] = "IQ1_M",
		[34] = "TQ1_0",
		[35] = "TQ2_0",
		[39] = "MXFP4",
	};

	return type < sizeof(names) / sizeof(names[0]) && names[type] ? names[type] : "unknown";
}

/* Where its data lies is in *offset, from the start of the data. */
static int read_tensor(
	struct reader *r, struct gguf *g, struct tensor *t, uint64_t *offset, struct err *err)
{
	uint64_t ndim = 0, dim = 0, type = 0, count = 1;

	r->what = "its list of tensors";
	t->file = g->path;
	if (!(t->name = take_name(r, g, NAME_MAX_, err)) || take_int(r, 4, &ndim, err) < 0)
		return -1;
	if (ndim < 1 || ndim > DIMS_MAX)
		return err_set(err, EX_DATAERR, "%s: tensor '%s': %llu dimensions, not 1 to %d", g->path,
			t->name, (unsigned long long)ndim, DIMS_MAX);
	t->ndim = (int)ndim;
	for (int i = t->ndim - 1; i >= 0; i--) {
		if (take_int(r, 8, &dim, err) < 0)
			return -1;
		t->shape[i] = dim;
		if (dim > INT64_MAX || __builtin_mul_overflow(count, dim, &count) || count > INT64_MAX / 8)
			return err_set(
				err, EX_DATAERR, "%s: tensor '%s': its shape overflows", g->path, t->name);
	}
	if (take_int(r, 4, &type, err) < 0 || take_int(r, 8, offset, err) < 0)
		return -1;
	t->dtype = dtype_from_ggml((uint32_t)type);
	if (t->dtype == DT_NONE)
		return err_set(err, EX_DATAERR, "%s: tensor '%s': type %llu (%s) is not supported", g->path,
			t->name, (unsigned long long)type, ggml_name(type));
	if (t->shape[t->ndim - 1] % (uint64_t)dtype_info[t->dtype].block)
		return err_set(err, EX_DATAERR,
			"%s: tensor '%s': rows of %llu elements can't be %s, whose blocks have %d", g->path,
			t->name, (unsigned long long)t->shape[t->ndim - 1], dtype_info[t->dtype].name,
			dtype_info[t->dtype].block);
	t->bytes = dtype_bytes(t->dtype, count);
	if (*offset % g->align)
		return err_set(err, EX_DATAERR, "%s: tensor '%s': offset %llu is not a multiple of %llu",
			g->path, t->name, (unsigned long long)*offset, (unsigned long long)g->align);
	return 0;
}

static int tensor_cmp(const void *a, const void *b)
{
	return strcmp(
		(*(const struct tensor *const *)a)->name, (*(const struct tensor *const *)b)->name);
}

static int data_cmp(const void *a, const void *b)
{
	const struct tensor *x = *(const struct tensor *const *)a,
						*y = *(const struct tensor *const *)b;

	if (x->data != y->data)
		return x->data < y->data ? -1 : 1;
	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static int check_tensors(struct gguf *g, struct err *err)
{
	for (size_t i = 0; i < g->n; i++)
		g->by_name[i] = &g->tensors[i];
	qsort(g->by_name, g->n, sizeof(*g->by_name), data_cmp);
	for (size_t i = 1; i < g->n; i++)
		if (g->by_name[i - 1]->data + g->by_name[i - 1]->bytes > g->by_name[i]->data)
			return err_set(err, EX_DATAERR, "%s: tensors '%s' and '%s' overlap", g->path,
				g->by_name[i - 1]->name, g->by_name[i]->name);
	qsort(g->by_name, g->n, sizeof(*g->by_name), tensor_cmp);
	for (size_t i = 1; i < g->n; i++)
		if (!tensor_cmp(&g->by_name[i - 1], &g->by_name[i]))
			return err_set(
				err, EX_DATAERR, "%s: tensor '%s' stands twice", g->path, g->by_name[i]->name);
	return 0;
}

static int read_tensors(struct reader *r, struct gguf *g, uint64_t n, struct err *err)
{
	uint64_t *offset, start, end = 0, room;
	int rc = -1;

	if (n > TENSORS_MAX || n > r->left / TENSOR_MIN)
		return err_set(err, EX_DATAERR,
			"%s: %llu tensors don't fit in the file (or are more than %d)", g->path,
			(unsigned long long)n, TENSORS_MAX);
	if (!(g->tensors = mem_zalloc(n, sizeof(*g->tensors), err)) ||
		!(g->by_name = mem_zalloc(n, sizeof(*g->by_name), err)) ||
		!(offset = mem_zalloc(n, sizeof(*offset), err)))
		return -1;
	for (; g->n < n; g->n++)
		if (read_tensor(r, g, &g->tensors[g->n], &offset[g->n], err) < 0)
			goto done;
	start = (uint64_t)(r->p - g->map.data);
	start = (start + g->align - 1) / g->align * g->align;
	room = start < g->map.size ? g->map.size - start : 0;
	for (size_t i = 0; i < n; i++)
		if (offset[i] > UINT64_MAX / 2 || offset[i] + g->tensors[i].bytes > end)
			end = offset[i] > UINT64_MAX / 2 ? offset[i] : offset[i] + g->tensors[i].bytes;
	if (end > room) {
		err_set(err, EX_DATAERR, "%s: header describes %llu bytes, file has %zu", g->path,
			(unsigned long long)(start + end), g->map.size);
		goto done;
	}
	end = (end + g->align - 1) / g->align * g->align;
	g->surplus = room > end ? room - end : 0;
	/* an empty tensor may stand where the file ends, even before its padding */
	for (size_t i = 0; i < n; i++)
		g->tensors[i].data = g->map.data + (g->tensors[i].bytes ? start + offset[i] : g->map.size);
	rc = check_tensors(g, err);
done:
	free(offset);
	return rc;
}

bool is_gguf(const char *path)
{
	FILE *f = has_suffix(path, ".gguf") || !is_file(path) ? NULL : fopen(path, "rb");
	char magic[4] = "";
	bool yes = f ? fread(magic, 4, 1, f) == 1 && !memcmp(magic, "GGUF", 4)
				 : has_suffix(path, ".gguf");

	if (f)
		fclose(f);
	return yes;
}

static int read_all(struct gguf *g, struct err *err)
{
	struct reader r = { g, g->map.data, g->map.size, "its header" };
	uint64_t version = 0, ntensors = 0, nkv = 0;

	if (g->map.size < 4 || memcmp(g->map.data, "GGUF", 4))
		return err_set(err, EX_DATAERR, "%s: not a GGUF file", g->path);
	r.p += 4;
	r.left -= 4;
	if (take_int(&r, 4, &version, err) < 0)
		return -1;
	if (version && !(version & 0xffff))
		return err_set(err, EX_DATAERR,
			"%s: a big-endian GGUF file; only little-endian ones are read", g->path);
	if (version != 2 && version != 3)   /* 2 has the same layout */
		return err_set(err, EX_DATAERR, "%s: GGUF version %llu; versions 2 and 3 are read", g->path,
			(unsigned long long)version);
	if (take_int(&r, 8, &ntensors, err) < 0 || take_int(&r, 8, &nkv, err) < 0)
		return -1;
	return read_kvs(&r, g, nkv, err) < 0 ? -1 : read_tensors(&r, g, ntensors, err);
}

int gguf_open(struct gguf **out, const char *path, struct err *err)
{
	struct gguf *g = mem_zalloc(1, sizeof(*g), err);

	*out = NULL;
	if (!g)
		return -1;
	if (!(g->path = arena_strndup(&g->names, path, strlen(path)))) {
		err_oom(err, strlen(path));
		goto fail;
	}
	if (file_map(&g->map, path, err) < 0 || read_all(g, err) < 0)
		goto fail;
	*out = g;
	return 0;
fail:
	gguf_close(g);
	return -1;
}

void gguf_close(struct gguf *g)
{
	if (!g)
		return;
	file_unmap(&g->map);
	free(g->kv);
	free(g->by_key);
	free(g->tensors);
	free(g->by_name);
	arena_release(&g->names);
	free(g);
}

/* ---- look-ups ---- */

uint64_t gguf_surplus(const struct gguf *g) { return g->surplus; }
size_t gguf_tensor_count(const struct gguf *g)
{
	return g->n;
}

const struct tensor *gguf_tensor_at(const struct gguf *g, size_t i)
{
	return &g->tensors[i];
}

const struct tensor *gguf_tensor_find(const struct gguf *g, const char *name)
{
	struct tensor key = { .name = name }, *k = &key;
	const struct tensor **t =
		g->n ? bsearch(&k, g->by_name, g->n, sizeof(*g->by_name), tensor_cmp) : NULL;

	return t ? *t : NULL;
}

size_t gguf_key_count(const struct gguf *g)
{
	return g->nkv;
}

const char *gguf_key_at(const struct gguf *g, size_t i, enum gguf_type *type)
{
	*type = g->kv[i].type;
	return g->kv[i].key;
}

static const struct kv *find_key(const struct gguf *g, const char *key)
{
	struct kv want = { .key = key }, *k = &want;
	const struct kv **kv =
		g->nkv ? bsearch(&k, g->by_key, g->nkv, sizeof(*g->by_key), kv_cmp) : NULL;

	return kv ? *kv : NULL;
}

static int wrong_type(const struct gguf *g, const struct kv *kv, const char *want, struct err *err)
{
	return err_set(err, EX_DATAERR, "%s: key '%s' must be %s, found %s", g->path, kv->key, want,
		type_names[kv->type]);
}

static bool is_int(enum gguf_type t)
{
	return t <= GGUF_I32 || t == GGUF_U64 || t == GGUF_I64;
}

/* An integer of type t at p; what i64 can't hold is INT64_MIN. */
static int64_t int_at(enum gguf_type t, const unsigned char *p)
{
	int bits = scalar_bytes[t] * 8;
	uint64_t v = le(p, scalar_bytes[t]);
	bool is_signed = t == GGUF_I8 || t == GGUF_I16 || t == GGUF_I32 || t == GGUF_I64;

	if (!is_signed)
		return v > INT64_MAX ? INT64_MIN : (int64_t)v;
	return (int64_t)(v << (64 - bits)) >> (64 - bits);
}

static double num_at(enum gguf_type t, const unsigned char *p)
{
	float f;
	double d;

	if (is_int(t))
		return t == GGUF_U64 ? (double)le(p, 8) : (double)int_at(t, p);
	if (t == GGUF_F32) {
		memcpy(&f, p, 4);
		return (double)f;
	}
	if (t == GGUF_F64) {
		memcpy(&d, p, 8);
		return d;
	}
	return NAN;
}

int gguf_get_int(const struct gguf *g, const char *key, int64_t *v, struct err *err)
{
	const struct kv *kv = find_key(g, key);

	if (!kv)
		return 0;
	if (!is_int(kv->type))
		return wrong_type(g, kv, "a whole number", err);
	if (kv->type == GGUF_U64 && le(kv->p, 8) > INT64_MAX)
		return bad_key(g, kv, "is larger than 2^63 - 1", err);
	*v = int_at(kv->type, kv->p);
	return 1;
}

int gguf_get_num(const struct gguf *g, const char *key, double *v, struct err *err)
{
	const struct kv *kv = find_key(g, key);

	if (!kv)
		return 0;
	if (!is_int(kv->type) && kv->type != GGUF_F32 && kv->type != GGUF_F64)
		return wrong_type(g, kv, "a number", err);
	*v = num_at(kv->type, kv->p);
	return 1;
}

int gguf_get_bool(const struct gguf *g, const char *key, bool *v, struct err *err)
{
	const struct kv *kv = find_key(g, key);

	if (!kv)
		return 0;
	if (kv->type != GGUF_BOOL)
		return wrong_type(g, kv, "a bool", err);
	*v = kv->p[0];
	return 1;
}

int gguf_get_str(const struct gguf *g, const char *key, struct gguf_str *v, struct err *err)
{
	const struct kv *kv = find_key(g, key);

	if (!kv)
		return 0;
	if (kv->type != GGUF_STR)
		return wrong_type(g, kv, "a string", err);
	*v = (struct gguf_str){ (const char *)kv->p + 8, le(kv->p, 8) };
	return 1;
}

int gguf_get_arr(
	const struct gguf *g, const char *key, enum gguf_type *type, uint64_t *n, struct err *err)
{
	const struct kv *kv = find_key(g, key);

	if (!kv)
		return 0;
	if (kv->type != GGUF_ARR)
		return wrong_type(g, kv, "an array", err);
	*type = kv->item;
	*n = kv->n;
	return 1;
}

struct gguf_str gguf_arr_str(const struct gguf *g, const char *key, uint64_t i)
{
	const struct kv *kv = find_key(g, key);
	struct cursor *c;

	if (!kv || kv->type != GGUF_ARR || kv->item != GGUF_STR || i >= kv->n)
		return (struct gguf_str){ "", 0 };
	c = kv->cursor;
	if (i < c->i)
		*c = (struct cursor){ 0, kv->p };
	for (; c->i < i; c->i++)
		c->p += 8 + le(c->p, 8);
	return (struct gguf_str){ (const char *)c->p + 8, le(c->p, 8) };
}

int64_t gguf_arr_int(const struct gguf *g, const char *key, uint64_t i)
{
	const struct kv *kv = find_key(g, key);

	if (!kv || kv->type != GGUF_ARR || !(is_int(kv->item) || kv->item == GGUF_BOOL) || i >= kv->n)
		return INT64_MIN;
	return int_at(kv->item, kv->p + i * scalar_bytes[kv->item]);
}

double gguf_arr_num(const struct gguf *g, const char *key, uint64_t i)
{
	const struct kv *kv = find_key(g, key);

	if (!kv || kv->type != GGUF_ARR || i >= kv->n || kv->item == GGUF_STR)
		return NAN;
	return num_at(kv->item, kv->p + i * scalar_bytes[kv->item]);
}
