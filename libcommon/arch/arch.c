#include <stdio.h>
#include <stdlib.h>

#include "libcommon/arch/family.h"

static const struct family *const families[] = { &family_llama, &family_mistral, &family_qwen2 };
enum { FAMILIES = sizeof(families) / sizeof(families[0]) };

static bool same(const char *name, const char *s, size_t n)
{
	return strlen(name) == n && !memcmp(name, s, n);
}

const struct family *family_by_type(const char *model_type, size_t n)
{
	int i;

	for (i = 0; i < FAMILIES; i++)
		if (same(families[i]->model_type, model_type, n))
			return families[i];
	return NULL;
}

const struct family *family_by_gguf(const char *name, size_t n)
{
	int i;

	for (i = 0; i < FAMILIES; i++)
		if (same(families[i]->gguf, name, n))
			return families[i];
	return NULL;
}

void family_known(struct buf *out, bool gguf)
{
	int i;

	for (i = 0; i < FAMILIES; i++) {
		const char *name = gguf ? families[i]->gguf : families[i]->model_type;

		if (!gguf || family_by_gguf(name, strlen(name)) == families[i])
			buf_printf(out, "%s%s", out->n ? ", " : "", name);
	}
}

void arch_begin(struct arch *a, const struct family *f)
{
	*a = (struct arch){ .norm = NORM_RMS,
		.norm_eps = 1e-6,
		.act = ACT_SILU,
		.rope = ROPE_DEFAULT,
		.rope_theta = 10000,
		.bos = -1,
		.pad = -1,
		.dtype = DT_NONE };
	snprintf(a->family, sizeof(a->family), "%s", f->model_type);
	snprintf(a->arch_class, sizeof(a->arch_class), "%s", f->arch_class);
	f->defaults(a);
}

int arch_check(const struct arch *a, const char *where, struct err *err)
{
	if (a->heads % a->kv_heads)
		return err_set(err, EX_DATAERR,
			"%s: %d attention heads are no multiple of %d key/value heads", where, a->heads,
			a->kv_heads);
	if (a->head_dim % 2)
		return err_set(err, EX_DATAERR, "%s: a head of %d elements is odd; rope turns pairs", where,
			a->head_dim);
	return 0;
}

int arch_set_windows(struct arch *a, const bool *windowed, int window, struct err *err)
{
	int i, n = 0;

	for (i = 0; i < a->layers; i++)
		n += windowed[i];
	a->window = n ? window : 0;
	if (n == 0 || n == a->layers)
		return 0;
	a->layer_window = mem_zalloc((size_t)a->layers, sizeof(*a->layer_window), err);
	if (!a->layer_window)
		return -1;
	for (i = 0; i < a->layers; i++)
		a->layer_window[i] = windowed[i] ? window : 0;
	return 0;
}

void arch_release(struct arch *a)
{
	free(a->layer_window);
	*a = (struct arch){0};
}
