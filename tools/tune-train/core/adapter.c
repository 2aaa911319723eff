/* adapter: trained parameters from a PEFT folder; every tensor by name, none missing, none left
 * over (fault R4). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/formats/safetensors.h"
#include "state.h"

/* A trained parameter's name in an adapter folder. */
static void peft_name(const struct param *p, char *name, size_t n)
{
	snprintf(name, n, "%s%s", p->src >= 0 ? "base_model.model." : "", p->name);
}

static int load_adapter_param(struct model *m, size_t i, const struct tensor *t, struct err *err)
{
	const struct param *p = model_param(m, i);
	float *buf;
	int rc;

	if (t->ndim != p->ndim || t->shape[0] != p->shape[0] ||
		(p->ndim == 2 && t->shape[1] != p->shape[1]))
		return err_set(err, EX_DATAERR,
			"%s: tensor '%s' has another shape than the model and lora.rank ask for",
			t->file, t->name);
	buf = malloc(p->n * sizeof(*buf));
	if (!buf)
		return err_oom(err, p->n * sizeof(*buf));
	if (dtype_to_f32(t->dtype, t->data, p->n, buf) < 0)
		rc = err_set(err, EX_DATAERR, "%s: tensor '%s' is no float", t->file, t->name);
	else
		rc = model_write(m, i, PARAM_VALUE, 0, p->n, buf, err);
	free(buf);
	return rc;
}

enum { NAMED = 4 };   /* of many that are wrong in the same way */

static int tell_rest(size_t n, const char *what, const char *dir, struct err *err)
{
	if (n > NAMED)
		err_more(err, EX_DATAERR, "%s: %zu %s tensors in all: is it an adapter of this base model?",
			dir, n, what);
	return n ? -1 : 0;
}

/* Each tensor of s must be one of ours. */
static int check_surplus(const struct model *m, const struct safetensors *s, const char *dir,
	struct err *err)
{
	char name[160];
	size_t i, k, surplus = 0;

	for (k = 0; k < safetensors_count(s); k++) {
		const char *have = safetensors_at(s, k)->name;

		for (i = 0; i < m->units.nparams; i++) {
			peft_name(&m->units.params[i], name, sizeof(name));
			if (m->units.params[i].trained && !strcmp(name, have))
				break;
		}
		if (i == m->units.nparams && ++surplus <= NAMED)
			err_more(err, EX_DATAERR, "%s: unexpected tensor '%s'", dir, have);
	}
	return tell_rest(surplus, "unexpected", dir, err);
}

int model_load_adapter(struct model *m, const char *dir, struct err *err)
{
	struct safetensors *s = NULL;
	char name[160];
	size_t i, missing = 0;
	int rc = 0;

	if (safetensors_open_dir(&s, dir, "adapter_model", err) < 0)
		return -1;
	for (i = 0; i < m->units.nparams; i++) {
		peft_name(&m->units.params[i], name, sizeof(name));
		if (m->units.params[i].trained && !safetensors_find(s, name) && ++missing <= NAMED)
			err_more(err, EX_DATAERR, "%s: missing tensor '%s'", dir, name);
	}
	rc = tell_rest(missing, "missing", dir, err);
	if (check_surplus(m, s, dir, err) < 0)
		rc = -1;
	for (i = 0; i < m->units.nparams && rc == 0; i++) {
		peft_name(&m->units.params[i], name, sizeof(name));
		if (m->units.params[i].trained)
			rc = load_adapter_param(m, i, safetensors_find(s, name), err);
	}
	safetensors_close(s);
	return rc;
}
