/* A PEFT folder's tensors, each at its place in the base model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "tools/tune-ckpt/ckpt.h"

#define PREFIX "base_model.model."
enum { NAME_MAX_ = 256 };

int adapter_weights(struct safetensors **st, const char *dir, struct err *err)
{
	*st = NULL;
	if (!dir_has(dir, "adapter_model.safetensors") &&
		!dir_has(dir, "adapter_model.safetensors.index.json") && dir_has(dir, "adapter_model.bin"))
		return err_set(err, EX_DATAERR,
			"'%s' has its weights only as a pickle ('adapter_model.bin'), which can run code and "
			"is not read; "
			"save the adapter again as safetensors (in Python: model.save_pretrained(DIR, "
			"safe_serialization=True))",
			dir);
	return safetensors_open_dir(st, dir, "adapter_model", err);
}

static bool listed(const char *name, char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], name))
			return true;
	return false;
}

/* The base's tensor MODULE.weight; -1. */
static int base_tensor(const struct modelfile *m, const char *module, size_t n)
{
	char name[NAME_MAX_];

	return snprintf(name, sizeof(name), "%.*s.weight", (int)n, module) < (int)sizeof(name)
		? modelfile_index(m, name)
		: -1;
}

static bool is_target(const struct peft *p, const struct arch_tensor *t)
{
	const char *linear = arch_linear_name(t->role);

	return linear && listed(linear, p->targets, p->ntargets);
}

static bool is_saved(const struct peft *p, const struct arch_tensor *t)
{
	return (t->role == T_EMBED && listed("embed_tokens", p->modules_to_save, p->nmodules))
		|| (t->role == T_HEAD && listed("lm_head", p->modules_to_save, p->nmodules));
}

/* Put one tensor where it belongs; what has no place is one more line of the error. */
static void place(
	struct adapter *ad, const struct modelfile *m, const struct tensor *t, struct err *all)
{
	const char *name = t->name, *part;
	bool a = has_suffix(name, ".lora_A.weight"), b = has_suffix(name, ".lora_B.weight");
	uint64_t rank = (uint64_t)ad->peft.rank, want[2];
	int i = -1;

	if (!strncmp(name, PREFIX, sizeof(PREFIX) - 1)) {
		part = name + sizeof(PREFIX) - 1;
		i = base_tensor(
			m, part, strlen(part) - (a || b ? strlen(".lora_A.weight") : strlen(".weight")));
	}
	if (i < 0 ||
		!(a || b ? is_target(&ad->peft, &m->tensors[i])
				 : has_suffix(name, ".weight") && is_saved(&ad->peft, &m->tensors[i]))) {
		err_more(all, EX_DATAERR,
			"%s: tensor '%s' belongs to no target of adapter_config.json in this base model",
			t->file, name);
		return;
	}
	memcpy(want, m->tensors[i].shape, sizeof(want));
	want[0] = a ? rank : want[0];
	want[1] = b ? rank : want[1];
	if (!dtype_is_float(t->dtype) || t->ndim != 2 || t->shape[0] != want[0] ||
		t->shape[1] != want[1])
		err_more(all, EX_DATAERR,
			"%s: tensor '%s' must be [%llu, %llu] numbers for this base model and rank %llu",
			t->file, name, (unsigned long long)want[0], (unsigned long long)want[1],
			(unsigned long long)rank);
	else
		*(a ? &ad->at[i].a : b ? &ad->at[i].b : &ad->at[i].full) = t;
}

static int find_all(struct adapter *ad, const struct modelfile *m, struct err *err)
{
	struct err all = {0};

	for (size_t i = 0; i < safetensors_count(ad->st); i++)
		place(ad, m, safetensors_at(ad->st, i), &all);
	for (size_t i = 0; i < m->ntensors && !all.code; i++) {
		const char *name = m->tensors[i].name;
		int n = (int)(strlen(name) - strlen(".weight"));

		if (is_target(&ad->peft, &m->tensors[i]) && (!ad->at[i].a || !ad->at[i].b))
			err_more(&all, EX_DATAERR, "%s: tensor '" PREFIX "%.*s.lora_%s.weight' is missing",
				ad->peft.dir, n, name, ad->at[i].a ? "B" : "A");
		if (is_saved(&ad->peft, &m->tensors[i]) && !ad->at[i].full)
			err_more(&all, EX_DATAERR, "%s: tensor '" PREFIX "%s' is missing", ad->peft.dir, name);
	}
	if (!all.code)
		return 0;
	*err = all;
	return -1;
}

static int all_finite(const struct safetensors *st, struct err *err)
{
	for (size_t i = 0; i < safetensors_count(st); i++)
		if (tensor_finite(safetensors_at(st, i), err) < 0)
			return -1;
	return 0;
}

int adapter_open(struct adapter *ad, const char *dir, const struct modelfile *m, struct err *err)
{
	*ad = (struct adapter){0};
	if (peft_read(&ad->peft, dir, err) < 0)
		return -1;
	if (m->arch.tied && ad->peft.nmodules) {
		err_set(err, EX_DATAERR,
			"%s: modules_to_save '%s': in this base model lm_head and embed_tokens are one tensor",
			dir, ad->peft.modules_to_save[0]);
		goto fail;
	}
	if (adapter_weights(&ad->st, dir, err) < 0 ||
		!(ad->at = mem_zalloc(m->ntensors, sizeof(*ad->at), err)) || find_all(ad, m, err) < 0 ||
		all_finite(ad->st, err) < 0)
		goto fail;
	ad->scale = peft_scale(&ad->peft);
	return 0;
fail:
	adapter_close(ad);
	return -1;
}

void adapter_close(struct adapter *ad)
{
	peft_release(&ad->peft);
	safetensors_close(ad->st);
	free(ad->at);
	*ad = (struct adapter){0};
}
