#include "units.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/buf.h"

enum { ALIGN = 128 };

/* Roles whose slice continues the one before it. */
static bool continues(enum tensor_role role)
{
	return role == T_K || role == T_V || role == T_K_BIAS || role == T_V_BIAS || role == T_UP ||
	       role == T_UP_BIAS;
}

/* Linears that are one weight: adapters on them share an input. */
static const enum tensor_role groups[][3] = {
	{ T_Q, T_K, T_V }, { T_O, T_ROLES, T_ROLES }, { T_GATE, T_UP, T_ROLES },
	{ T_DOWN, T_ROLES, T_ROLES },
};
enum { GROUPS = sizeof(groups) / sizeof(*groups) };

static int *slot(const struct units *us, int unit, enum tensor_role role, enum slice s)
{
	return &us->index[((size_t)unit * T_ROLES + role) * SLICES + s];
}

static bool listed(const char *const *list, size_t n, const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (name && !strcmp(list[i], name))
			return true;
	return false;
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static int unit_of(const struct arch *a, enum tensor_role role, int layer)
{
	if (role == T_EMBED)
		return 0;
	return role == T_FINAL_NORM || role == T_HEAD ? a->layers + 1 : 1 + layer;
}

/* Append p as a slice of its unit and class; gapless: without alignment. */
static int add_param(struct units *us, struct param *p, enum slice s, bool gapless, struct err *err)
{
	struct unit *u = &us->u[p->unit];
	size_t *n = &u->n[p->trained ? TRAINED : FROZEN];

	if (grow(&us->params, &us->cap, us->nparams + 1, sizeof(*us->params), err) < 0)
		return -1;
	p->n = p->ndim == 2 ? p->shape[0] * p->shape[1] : p->shape[0];
	p->decay = p->ndim == 2;
	p->offset = gapless ? *n : round_up(*n, ALIGN);
	*n = p->offset + p->n;
	*slot(us, p->unit, p->role, s) = (int)us->nparams;
	us->params[us->nparams++] = *p;
	return 0;
}

static int add_base(struct units *us, const struct arch *a, const struct arch_tensor *t, int src,
	const struct lora_opts *l, struct err *err)
{
	struct param p = { .unit = unit_of(a, t->role, t->layer),
		.shape = { t->shape[0], t->ndim == 2 ? t->shape[1] : 0 },
		.ndim = t->ndim,
		.src = src,
		.role = t->role,
		.layer = t->layer };

	snprintf(p.name, sizeof(p.name), "%s", t->name);
	p.trained =
		!l->rank ||
		(t->role == T_EMBED && listed(l->modules_to_save, l->nmodules, "embed_tokens")) ||
		(t->role == T_HEAD && listed(l->modules_to_save, l->nmodules, "lm_head"));
	return add_param(us, &p, SLICE_BASE, continues(t->role), err);
}

static int add_adapter(struct units *us, const struct param *base, enum slice s, int rank,
	bool gapless, struct err *err)
{
	struct param p = { .unit = base->unit,
		.ndim = 2,
		.trained = true,
		.src = -1,
		.role = base->role,
		.layer = base->layer };
	int stem = (int)strlen(base->name) - (int)strlen(".weight");

	assert(stem > 0);
	if (snprintf(p.name, sizeof(p.name), "base_model.model.%.*s.lora_%c.weight", stem,
		    base->name, s == SLICE_A ? 'A' : 'B') >= (int)sizeof(p.name))
		return err_set(err, EX_SOFTWARE, "the adapter's name of '%s' is too long",
			base->name);
	p.shape[0] = s == SLICE_A ? (uint64_t)rank : base->shape[0];
	p.shape[1] = s == SLICE_A ? base->shape[1] : (uint64_t)rank;
	return add_param(us, &p, s, gapless, err);
}

static int add_adapters(struct units *us, const struct arch *a, const struct lora_opts *l,
	struct err *err)
{
	enum slice s;
	int unit, g, j;

	for (unit = 1; unit <= a->layers; unit++) {
		for (g = 0; g < GROUPS; g++) {
			for (s = SLICE_A; s <= SLICE_B; s++) {
				bool first = true;

				for (j = 0; j < 3 && groups[g][j] != T_ROLES; j++) {
					struct param base;

					if (!listed(l->targets, l->ntargets,
						    arch_linear_name(groups[g][j])))
						continue;
					base = us->params[units_find(us, unit, groups[g][j],
						SLICE_BASE)];
					if (add_adapter(us, &base, s, l->rank,
						    s == SLICE_A && !first, err) < 0)
						return -1;
					first = false;
				}
			}
		}
	}
	return 0;
}

/* Every name of lora_opts must mean something that we can train. */
static int check_modules(const struct arch *a, const struct lora_opts *l, struct err *err)
{
	size_t i;
	int g, j;

	if (l->rank < 0 || (l->rank > 0 && !l->ntargets))
		return err_set(err, EX_CONFIG, "lora.rank > 0 needs lora.targets");
	for (i = 0; i < l->ntargets; i++) {
		bool found = false;

		for (g = 0; g < GROUPS; g++)
			for (j = 0; j < 3 && groups[g][j] != T_ROLES; j++)
				found |= !strcmp(arch_linear_name(groups[g][j]), l->targets[i]);
		if (!strcmp(l->targets[i], "lm_head") || !strcmp(l->targets[i], "embed_tokens"))
			return err_set(err, EX_CONFIG,
				"lora.targets: an adapter on '%s' is not supported%s",
				l->targets[i],
				a->tied ? ": in this model lm_head and embed_tokens are one tensor"
					: "; lora.modules_to_save trains it in full");
		if (!found)
			return err_set(err, EX_CONFIG,
				"lora.targets: this model has no linear '%s' (q_proj, k_proj, v_proj, o_proj, "
				"gate_proj, up_proj, down_proj)",
				l->targets[i]);
	}
	for (i = 0; i < l->nmodules; i++) {
		if (strcmp(l->modules_to_save[i], "embed_tokens") &&
			strcmp(l->modules_to_save[i], "lm_head"))
			return err_set(err, EX_CONFIG,
				"lora.modules_to_save: '%s' is not supported (embed_tokens, lm_head)",
				l->modules_to_save[i]);
		if (a->tied)
			return err_set(err, EX_CONFIG,
				"lora.modules_to_save: '%s': in this model lm_head and embed_tokens are one "
				"tensor, "
				"which an adapter folder can't hold",
				l->modules_to_save[i]);
	}
	return 0;
}

int units_layout(struct units *us, const struct arch *a, const struct model_opts *o, int ranks,
	struct err *err)
{
	struct arch_tensor *t = NULL;
	size_t i, n = 0, slots = ((size_t)a->layers + 2) * T_ROLES * SLICES;
	enum tensor_role role;
	int unit, k, rc = -1;

	*us = (struct units){ .n = a->layers + 2, .dtype = o->dtype };
	if (o->lora.rank && check_modules(a, &o->lora, err) < 0)
		return -1;
	us->u = mem_zalloc((size_t)us->n, sizeof(*us->u), err);
	us->index = mem_zalloc(slots, sizeof(*us->index), err);
	if (!us->u || !us->index || arch_tensors(a, &t, &n, err) < 0)
		goto done;
	memset(us->index, 0xff, slots * sizeof(*us->index));
	for (unit = 0; unit < us->n; unit++)
		for (role = 0; role < T_ROLES; role++)
			for (i = 0; i < n; i++)
				if (t[i].role == role && unit_of(a, role, t[i].layer) == unit &&
					add_base(us, a, &t[i], (int)i, &o->lora, err) < 0)
					goto done;
	if (o->lora.rank && add_adapters(us, a, &o->lora, err) < 0)
		goto done;
	for (unit = 0; unit < us->n; unit++)
		for (k = 0; k < UNIT_CLASSES; k++)
			us->u[unit].n[k] = round_up(us->u[unit].n[k], (size_t)ranks * ALIGN);
	rc = 0;
done:
	free(t);
	if (rc < 0)
		units_release(us);
	return rc;
}

void units_release(struct units *us)
{
	free(us->u);
	free(us->params);
	free(us->index);
	*us = (struct units){0};
}

int units_find(const struct units *us, int unit, enum tensor_role role, enum slice s)
{
	return *slot(us, unit, role, s);
}

struct dbuf units_value(const struct units *us, int unit, enum tensor_role role, enum slice s)
{
	int i = units_find(us, unit, role, s);

	if (i < 0)
		return DBUF_NONE;
	return dbuf_at(us->u[unit].w[us->params[i].trained ? TRAINED : FROZEN],
		us->params[i].offset);
}

struct dmem *units_grad(const struct units *us, int unit, enum tensor_role role, enum slice s)
{
	int i = units_find(us, unit, role, s);

	if (i < 0 || !us->params[i].trained || !us->u[unit].grad)
		return NULL;
	return dmem_at(us->u[unit].grad, us->params[i].offset * sizeof(float));
}
