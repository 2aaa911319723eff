/* Strict readers of config.json and adapter_config.json. */
#include "libcommon/arch/strict.h"

const struct json *strict_get(const struct strict *c, const char *name)
{
	const struct json *v = json_get(c->json, name);

	return json_is(v, JSON_NULL) ? NULL : v;
}

int strict_int(const struct strict *c, const char *name, int64_t lo, int64_t hi, int *out)
{
	int64_t v = 0;

	if (!strict_get(c, name))
		return 0;
	if (json_get_int(c->json, name, &v, c->where, c->err) < 0)
		return -1;
	if (v < lo || v > hi)
		return err_set(c->err, EX_DATAERR, "%s: '%s' = %lld is not within %lld..%lld", c->where,
			name, (long long)v, (long long)lo, (long long)hi);
	*out = (int)v;
	return 1;
}

int strict_num(const struct strict *c, const char *name, double lo, double hi, double *out)
{
	double v = 0;

	if (!strict_get(c, name))
		return 0;
	if (json_get_num(c->json, name, &v, c->where, c->err) < 0)
		return -1;
	if (v < lo || v > hi)
		return err_set(
			c->err, EX_DATAERR, "%s: '%s' = %g is not within %g..%g", c->where, name, v, lo, hi);
	*out = v;
	return 1;
}

int strict_bool(const struct strict *c, const char *name, bool *out)
{
	return strict_get(c, name) ? json_get_bool(c->json, name, out, c->where, c->err) : 0;
}

static const struct config_key *find_key(const struct config_key *k, const struct json *name)
{
	for (; k->name; k++)
		if (json_str_eq(name, k->name))
			return k;
	return NULL;
}

bool json_is_number(const struct json *v, double want)
{
	return (v->type == JSON_INT && (double)v->i == want) || (v->type == JSON_NUM && v->d == want);
}

static bool value_fits(enum key_kind kind, const struct json *v)
{
	switch (kind) {
	case KEY_FALSE:
		return v->type == JSON_NULL || (v->type == JSON_BOOL && !v->b);
	case KEY_ZERO:
		return v->type == JSON_NULL || json_is_number(v, 0);
	case KEY_ONE:
		return v->type == JSON_NULL || json_is_number(v, 1);
	case KEY_EMPTY:
		return v->type == JSON_NULL || (v->type >= JSON_STR && v->n == 0);
	default:
		return true;
	}
}

int strict_check_keys(
	const struct strict *c, const struct config_key *own, const struct config_key *shared)
{
	static const char *const only[] = {
		[KEY_FALSE] = "false", [KEY_ZERO] = "0", [KEY_ONE] = "1", [KEY_EMPTY] = "null"
	};
	struct err all = {0};
	uint32_t i;

	for (i = 0; i < c->json->n; i++) {
		const struct json_member *m = &c->json->members[i];
		const struct config_key *k = find_key(own, &m->name);

		if (!k)
			k = find_key(shared, &m->name);
		if (!k)
			err_more(&all, EX_DATAERR,
				"%s: unknown key '%s': it may change what is computed; if it does not, take it out",
				c->where, m->name.s);
		else if (!value_fits(k->kind, &m->value))
			err_more(&all, EX_DATAERR, "%s: '%s' is supported as %s only", c->where, k->name,
				only[k->kind]);
	}
	if (!all.code)
		return 0;
	*c->err = all;
	return -1;
}
