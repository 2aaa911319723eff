/* diff: two models, adapters or tensor files, tensor by tensor. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "tools/tune-ckpt/ckpt.h"

enum { CHUNK = 1 << 18 };

/*
 * Tensors by name: of a model in Hugging Face's names and order whatever the file, of anything else
 * as they are stored.
 */
struct side {
	bool is_model;
	struct modelfile m;
	struct safetensors *st;
	struct gguf *g;
	struct item { const char *name; const struct tensor *t; size_t i; } *items;   /* by name */
	size_t n;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct item *)a)->name, ((const struct item *)b)->name);
}

static int open_files(struct side *s, const char *path, struct err *err)
{
	struct thing x;
	char *at = resolve_checkpoint(path, err);
	int rc = -1;

	if (!at)
		return -1;
	if (kind_of(&x, at, err) == 0) {
		s->is_model = x.kind == KIND_MODEL || x.kind == KIND_GGUF;
		rc = s->is_model                  ? modelfile_open(&s->m, at, NULL, true, err)
			: x.kind == KIND_ADAPTER      ? adapter_weights(&s->st, at, err)
			: x.kind == KIND_ADAPTER_GGUF ? gguf_open(&s->g, at, err)
										  : safetensors_open(&s->st, at, err);
	}
	free(at);
	return rc;
}

static int open_side(struct side *s, const char *path, struct err *err)
{
	*s = (struct side){0};
	if (open_files(s, path, err) < 0)
		return -1;
	s->n = s->is_model ? s->m.ntensors : s->g ? gguf_tensor_count(s->g) : safetensors_count(s->st);
	if (!(s->items = mem_zalloc(s->n, sizeof(*s->items), err)))
		return -1;
	for (size_t i = 0; i < s->n; i++) {
		const struct tensor *t = s->is_model ? s->m.src[i]
			: s->g                           ? gguf_tensor_at(s->g, i)
											 : safetensors_at(s->st, i);

		s->items[i] = (struct item){ s->is_model ? s->m.tensors[i].name : t->name, t, i };
	}
	qsort(s->items, s->n, sizeof(*s->items), by_name);
	return 0;
}

static void close_side(struct side *s)
{
	if (s->is_model)
		modelfile_close(&s->m);
	safetensors_close(s->st);
	gguf_close(s->g);
	free(s->items);
}

/*
 * Elements [at, at + n) as fp32; n and at are whole rows of a model's tensor, whole blocks of
 * another.
 */
static int read_part(const struct side *s, const struct item *x, uint64_t at, uint64_t n,
	float *out, struct err *err)
{
	uint64_t width = s->is_model && s->m.tensors[x->i].ndim == 2 ? s->m.tensors[x->i].shape[1] : 1;

	if (s->is_model)
		return modelfile_read_f32(&s->m, x->i, at / width, n / width, out, err);
	return dtype_to_f32(x->t->dtype, x->t->data + dtype_bytes(x->t->dtype, at), n, out);
}

struct change {
	double max_abs, max_rel, a_at, b_at;
	uint64_t differ, elements;
	bool dtype, shape, raw;
};

static void compare(struct change *c, const float *a, const float *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double x = (double)a[i], y = (double)b[i], d = fabs(x - y), m = fmax(fabs(x), fabs(y));

		if (x == y || (isnan(x) && isnan(y)))
			continue;
		c->differ++;
		d = isnan(d) ? INFINITY : d;
		if (d > c->max_abs) {
			c->max_abs = d;
			c->a_at = x;
			c->b_at = y;
		}
		c->max_rel = isinf(d) ? INFINITY : fmax(c->max_rel, d / m);
	}
}

/* *c says how the two differ; all zero if they don't. */
static int diff_tensor(const struct side *sa, const struct item *a, const struct side *sb,
	const struct item *b, float *x, float *y, struct change *c, struct err *err)
{
	const struct tensor *ta = a->t, *tb = b->t;
	uint64_t width = ta->ndim >= 2 ? ta->shape[ta->ndim - 1] : 1, step, n;

	*c = (struct change){ .dtype = ta->dtype != tb->dtype, .elements = tensor_count(ta) };
	c->shape = ta->ndim != tb->ndim ||
		memcmp(ta->shape, tb->shape, sizeof(ta->shape[0]) * (size_t)ta->ndim);
	if (c->shape ||
		(!c->dtype && sa->is_model == sb->is_model && !sa->m.gguf == !sb->m.gguf &&
			!memcmp(ta->data, tb->data, ta->bytes)))
		return 0;
	if ((!dtype_is_float(ta->dtype) && ta->dtype < DT_Q4_0) ||
		(!dtype_is_float(tb->dtype) && tb->dtype < DT_Q4_0)) {
		c->raw = true;   /* integers: said to differ, not measured */
		return 0;
	}
	if (ta->ndim == 1 && (ta->dtype >= DT_Q4_0 || tb->dtype >= DT_Q4_0))
		width = ta->shape[0];
	step = width > CHUNK ? width : CHUNK / width * width;
	for (uint64_t at = 0; at < c->elements; at += n) {
		n = c->elements - at < step ? c->elements - at : step;
		if (read_part(sa, a, at, n, x, err) < 0 || read_part(sb, b, at, n, y, err) < 0)
			return -1;
		compare(c, x, y, n);
	}
	return 0;
}

static void put_shape(const struct tensor *t, char out[96])
{
	size_t n = (size_t)snprintf(out, 96, "[");

	for (int i = 0; i < t->ndim && n < 80; i++)
		n += (size_t)snprintf(
			out + n, 96 - n, "%s%llu", i ? ", " : "", (unsigned long long)t->shape[i]);
	snprintf(out + n, 96 - n, "]");
}

static void print_json(
	const char *name, const struct item *a, const struct item *b, const struct change *c, bool same)
{
	struct buf out = {0};
	struct json_w w = { .out = &out };

	json_w_obj(&w);
	json_w_name(&w, "tensor"); json_w_str(&w, name);
	json_w_name(&w, "equal"); json_w_bool(&w, same);
	for (int k = 0; k < 2; k++) {
		const struct item *x = k ? b : a;

		json_w_name(&w, k ? "b" : "a");
		if (!x) {
			json_w_null(&w);
			continue;
		}
		json_w_obj(&w);
		json_w_name(&w, "dtype"); json_w_str(&w, dtype_word(x->t->dtype));
		json_w_name(&w, "shape");
		json_w_arr(&w);
		for (int i = 0; i < x->t->ndim; i++)
			json_w_int(&w, (int64_t)x->t->shape[i]);
		json_w_end(&w);
		json_w_end(&w);
	}
	if (a && b && !c->shape && !c->raw) {
		json_w_name(&w, "differ"); json_w_int(&w, (int64_t)c->differ);
		json_w_name(&w, "max_abs"); json_w_num(&w, c->max_abs);
		json_w_name(&w, "max_rel"); json_w_num(&w, c->max_rel);
	}
	json_w_end(&w);
	if (!out.oom)
		puts(out.p);
	buf_release(&out);
}

static void print_text(
	const char *name, const struct item *a, const struct item *b, const struct change *c, bool same)
{
	char sa[96], sb[96];

	printf("%s: ", name);
	if (!a || !b) {
		printf("only in %s\n", a ? "A" : "B");
		return;
	}
	if (c->shape) {
		put_shape(a->t, sa);
		put_shape(b->t, sb);
		printf("shape %s and %s\n", sa, sb);
		return;
	}
	if (c->dtype)
		printf("dtype %s and %s, ", dtype_word(a->t->dtype), dtype_word(b->t->dtype));
	if (c->raw)
		printf("%s\n", "bytes differ");
	else if (same || !c->differ)
		printf("%s\n", c->dtype ? "equal values" : "equal");
	else
		printf("%llu of %llu differ, max abs %.3g (%.6g and %.6g), max rel %.3g\n",
			(unsigned long long)c->differ, (unsigned long long)c->elements, c->max_abs, c->a_at,
			c->b_at, c->max_rel);
}

static void print(const struct tool *t, const struct item *a, const struct item *b,
	const struct change *c, bool same)
{
	if (same && !t->verbose)
		return;
	(t->json ? print_json : print_text)(a ? a->name : b->name, a, b, c, same);
}

/* Longest row of either side, at least a chunk: what one read may give. */
static uint64_t longest(const struct side *s)
{
	uint64_t most = CHUNK;

	for (size_t i = 0; i < s->n; i++) {
		const struct tensor *t = s->items[i].t;
		uint64_t width = t->ndim ? t->shape[t->ndim - 1] : 1;

		most = width > most ? width : most;
	}
	return most;
}

/* Both lists by name, side by side. */
static int walk(const struct tool *t, const struct side *a, const struct side *b, size_t *differ,
	struct err *err)
{
	uint64_t room = longest(a) > longest(b) ? longest(a) : longest(b);
	float *x = mem_zalloc(room, sizeof(*x), err), *y = mem_zalloc(room, sizeof(*y), err);
	int rc = -1;

	if (!x || !y)
		goto done;
	for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
		int order = i == a->n ? 1 : k == b->n ? -1 : by_name(&a->items[i], &b->items[k]);
		const struct item *ia = order <= 0 ? &a->items[i++] : NULL,
						  *ib = order >= 0 ? &b->items[k++] : NULL;
		struct change c = {0};
		bool same;

		if (ia && ib && diff_tensor(a, ia, b, ib, x, y, &c, err) < 0)
			goto done;
		same = ia && ib && !c.dtype && !c.shape && !c.raw && !c.differ;
		*differ += !same;
		print(t, ia, ib, &c, same);
	}
	rc = 0;
done:
	free(x);
	free(y);
	return rc;
}

int verb_diff(const struct tool *t, const struct args *args, struct err *err)
{
	struct side a, b = {0};
	size_t differ = 0;
	int rc = -1;

	(void)args;
	if (open_side(&a, t->argv[0], err) == 0 && open_side(&b, t->argv[1], err) == 0 &&
		walk(t, &a, &b, &differ, err) == 0) {
		if (!t->json && differ)
			printf("%zu %s\n", differ, differ == 1 ? "tensor differs" : "tensors differ");
		else if (!t->json)
			printf("equal: %zu tensors\n", a.n);
		rc = differ ? EX_CHECK_FAILED : 0;
	}
	close_side(&a);
	close_side(&b);
	return rc;
}
