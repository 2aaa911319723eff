/*
 * rope: frequencies, and the ways that files say how they are scaled.
 *
 * inv_freq[i] = theta^(-2i/head_dim); linear: / factor; llama3: low frequencies / factor, high ones
 * kept, and a blend between, by wavelength against the original context (Llama 3.1; transformers'
 * _compute_llama3_parameters).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libcommon/arch/family.h"

/* ---- values ---- */

/* PyTorch computes s / x as s * (1 / x); its pow is within an ulp of the rounded one. */
static void base_inv_freq(const struct arch *a, float *inv)
{
	int i;

	for (i = 0; i < a->head_dim / 2; i++) {
		float e = (float)(2 * i) / (float)a->head_dim;

		inv[i] = 1.0f / (float)pow((double)(float)a->rope_theta, (double)e);
	}
}

void arch_rope_inv_freq(const struct arch *a, float *inv_freq)
{
	float low_wavelen = (float)(a->rope_original / a->rope_low_freq),
		  high_wavelen = (float)(a->rope_original / a->rope_high_freq);
	float factor = (float)a->rope_factor, low = (float)a->rope_low_freq,
		  range = (float)(a->rope_high_freq - a->rope_low_freq);
	int i;

	base_inv_freq(a, inv_freq);
	for (i = 0; i < a->head_dim / 2; i++) {
		float inv = inv_freq[i], wavelen = 1.0f / inv * (float)(2 * M_PI), smooth;

		if (a->rope == ROPE_LINEAR || (a->rope == ROPE_LLAMA3 && wavelen > low_wavelen)) {
			inv_freq[i] = inv / factor;
		} else if (a->rope == ROPE_LLAMA3 && wavelen >= high_wavelen) {
			smooth = (1.0f / wavelen * (float)a->rope_original - low) / range;
			inv_freq[i] = (1.0f - smooth) * inv / factor + smooth * inv;
		}
	}
}

/* As llama.cpp's converter computes them: in double from fp32 frequencies. */
bool arch_rope_freqs(const struct arch *a, float *freqs)
{
	int i;

	if (a->rope != ROPE_LLAMA3)
		return false;
	base_inv_freq(a, freqs);
	for (i = 0; i < a->head_dim / 2; i++) {
		double wavelen = 2 * M_PI / (double)freqs[i], smooth;

		if (wavelen < a->rope_original / a->rope_high_freq) {
			freqs[i] = 1;
		} else if (wavelen > a->rope_original / a->rope_low_freq) {
			freqs[i] = (float)a->rope_factor;
		} else {
			smooth = (a->rope_original / wavelen - a->rope_low_freq) /
				(a->rope_high_freq - a->rope_low_freq);
			freqs[i] = (float)(1 / ((1 - smooth) / a->rope_factor + smooth));
		}
	}
	return true;
}

/* ---- from GGUF's divisors ---- */

static bool freqs_match(const struct arch *a, const float *freqs, float *mine)
{
	int i;

	arch_rope_freqs(a, mine);
	for (i = 0; i < a->head_dim / 2; i++)
		if (!(fabsf(mine[i] - freqs[i]) <= 1e-5f * freqs[i]))
			return false;
	return true;
}

/* From a divisor between 1 and the factor, by the formula above; 0 if there is none. */
static int solve_original(const struct arch *a, const float *freqs, float *base)
{
	base_inv_freq(a, base);
	for (int i = 0; i < a->head_dim / 2; i++) {
		double f = (double)freqs[i], smooth, original;

		if (f <= 1.001 || f >= a->rope_factor * 0.999)
			continue;
		smooth = (1 / f - 1 / a->rope_factor) / (1 - 1 / a->rope_factor);
		original = 2 * M_PI / (double)base[i] *
			(smooth * (a->rope_high_freq - a->rope_low_freq) + a->rope_low_freq);
		return original < POSITIONS_MAX ? (int)lround(original) : 0;
	}
	return 0;
}

/*
 * All llama3 scalings so far have low 1 and high 4, and most an original context that is a power of
 * two; what fits is taken.
 */
int rope_from_freqs(struct arch *a, const float *freqs, const char *where, struct err *err)
{
	int i, n = a->head_dim / 2;
	float factor = 1, *mine = mem_zalloc((size_t)n, sizeof(*mine), err);
	bool match;

	if (!mine)
		return -1;
	for (i = 0; i < n; i++)
		factor = freqs[i] > factor ? freqs[i] : factor;
	a->rope = ROPE_LLAMA3;
	a->rope_factor = (double)factor;
	a->rope_low_freq = 1;
	a->rope_high_freq = 4;
	for (a->rope_original = 16;
		 !(match = freqs_match(a, freqs, mine)) && a->rope_original < POSITIONS_MAX;
		 a->rope_original *= 2)
		;
	if (!match && (a->rope_original = solve_original(a, freqs, mine)) > 0)
		match = freqs_match(a, freqs, mine);
	free(mine);
	if (!match)
		return err_set(err, EX_DATAERR,
			"%s: rope_freqs.weight is not a llama3 scaling; other frequency tables are not "
			"supported",
			where);
	return 0;
}

/* ---- from config.json ---- */

struct spec { enum rope_kind kind; double theta, factor, low, high; int original; };

static const char *const dict_keys[] = { "rope_type", "type", "rope_theta", "factor",
	"low_freq_factor", "high_freq_factor", "original_max_position_embeddings",
	"partial_rotary_factor" };

/* "rope_type" or, before transformers 4.43, "type". */
static int read_kind(struct spec *s, const struct strict *c)
{
	const struct json *v = strict_get(c, "rope_type"), *old = strict_get(c, "type");

	if (v && old &&
		!(v->type == JSON_STR && old->type == JSON_STR && v->n == old->n &&
			!memcmp(v->s, old->s, v->n)))
		return err_set(c->err, EX_DATAERR, "%s: 'rope_type' and 'type' differ", c->where);
	v = v ? v : old;
	if (!v || json_str_eq(v, "default"))
		s->kind = ROPE_DEFAULT;
	else if (json_str_eq(v, "linear"))
		s->kind = ROPE_LINEAR;
	else if (json_str_eq(v, "llama3"))
		s->kind = ROPE_LLAMA3;
	else
		return err_set(c->err, EX_DATAERR,
			"%s: rope type '%s' is not supported (known: default, linear, llama3)", c->where,
			v->type == JSON_STR ? v->s : json_type_name(v->type));
	return 0;
}

static int need(const struct strict *c, const char *name, double lo, double *out)
{
	int got = strict_num(c, name, lo, 1e9, out);

	return got ? got : err_set(c->err, EX_DATAERR, "%s: '%s' is missing", c->where, name);
}

/* One of rope_scaling and rope_parameters: 1 read, 0 absent, empty or null. */
static int read_dict(struct spec *s, const struct arch *a, const struct strict *c, const char *name)
{
	char where[1024];
	const struct strict d = { strict_get(c, name), where, c->err };
	double rotary = 1;
	uint32_t i;
	size_t k;

	*s = (struct spec){ .original = a->max_positions };
	if (!d.json)
		return 0;
	snprintf(where, sizeof(where), "%s: %s", c->where, name);
	if (d.json->type != JSON_OBJ)
		return err_set(c->err, EX_DATAERR, "%s must be an object, found %s", where,
			json_type_name(d.json->type));
	for (i = 0; i < d.json->n; i++) {
		for (k = 0; k < sizeof(dict_keys) / sizeof(dict_keys[0]) &&
			 !json_str_eq(&d.json->members[i].name, dict_keys[k]);
			 k++)
			;
		if (k == sizeof(dict_keys) / sizeof(dict_keys[0]))
			return err_set(
				c->err, EX_DATAERR, "%s: unknown key '%s'", where, d.json->members[i].name.s);
	}
	if (read_kind(s, &d) < 0 || strict_num(&d, "rope_theta", 1, 1e15, &s->theta) < 0 ||
		strict_num(&d, "partial_rotary_factor", 0, 1, &rotary) < 0)
		return -1;
	if (rotary != 1)
		return err_set(
			c->err, EX_DATAERR, "%s: 'partial_rotary_factor' is supported as 1 only", where);
	if (s->kind != ROPE_DEFAULT && need(&d, "factor", 1, &s->factor) < 0)
		return -1;
	if (s->kind != ROPE_LLAMA3)
		return d.json->n > 0;
	if (need(&d, "low_freq_factor", 1e-6, &s->low) < 0 ||
		need(&d, "high_freq_factor", 1e-6, &s->high) < 0 ||
		strict_int(&d, "original_max_position_embeddings", 1, POSITIONS_MAX, &s->original) < 0)
		return -1;
	if (s->high <= s->low)
		return err_set(c->err, EX_DATAERR,
			"%s: 'high_freq_factor' %g must be above 'low_freq_factor' %g", where, s->high, s->low);
	return 1;
}

static bool same_scaling(const struct spec *a, const struct spec *b)
{
	return a->kind == b->kind && a->factor == b->factor && a->low == b->low && a->high == b->high &&
		(a->kind != ROPE_LLAMA3 || a->original == b->original);
}

int rope_from_config(struct arch *a, const struct strict *c)
{
	struct spec old, new;
	double theta = 0;
	int has_old = read_dict(&old, a, c, "rope_scaling"),
		has_new = has_old < 0 ? -1 : read_dict(&new, a, c, "rope_parameters");

	if (has_new < 0 || strict_num(c, "rope_theta", 1, 1e15, &theta) < 0)
		return -1;
	if (has_old && has_new && !same_scaling(&old, &new))
		return err_set(c->err, EX_DATAERR,
			"%s: 'rope_scaling' and 'rope_parameters' differ; make them agree", c->where);
	if (!has_new)
		new = old;
	else if (has_old && old.theta && new.theta && old.theta != new.theta)
		return err_set(c->err, EX_DATAERR,
			"%s: rope_theta is %g in 'rope_scaling' and %g in 'rope_parameters'; make them agree",
			c->where, old.theta, new.theta);
	if (has_old && !new.theta)
		new.theta = old.theta;
	if (theta && new.theta && theta != new.theta)
		return err_set(c->err, EX_DATAERR,
			"%s: 'rope_theta' is %g, but %g in '%s'; make them agree", c->where, theta, new.theta,
			has_new ? "rope_parameters" : "rope_scaling");
	if (theta || new.theta)
		a->rope_theta = theta ? theta : new.theta;
	a->rope = has_old || has_new ? new.kind : ROPE_DEFAULT;
	a->rope_factor = new.factor;
	a->rope_low_freq = new.low;
	a->rope_high_freq = new.high;
	a->rope_original = a->rope == ROPE_LLAMA3 ? new.original : 0;
	return 0;
}

static void put_num(struct json_w *w, const char *name, double v)
{
	json_w_name(w, name);
	json_w_num(w, v);
}

static void put_kind(struct json_w *w, const char *kind)
{
	json_w_name(w, "rope_type");
	json_w_str(w, kind);
	json_w_name(w, "type");
	json_w_str(w, kind);
}

/* The old spelling: transformers 5 reads it too. */
void rope_to_config(const struct arch *a, struct json_w *w)
{
	put_num(w, "rope_theta", a->rope_theta);
	json_w_name(w, "rope_scaling");
	if (a->rope != ROPE_LINEAR && a->rope != ROPE_LLAMA3) {
		json_w_null(w);
		return;
	}
	json_w_obj(w);
	put_num(w, "factor", a->rope_factor);
	if (a->rope == ROPE_LLAMA3) {
		put_num(w, "low_freq_factor", a->rope_low_freq);
		put_num(w, "high_freq_factor", a->rope_high_freq);
		json_w_name(w, "original_max_position_embeddings");
		json_w_int(w, a->rope_original);
	}
	put_kind(w, a->rope == ROPE_LLAMA3 ? "llama3" : "linear");
	json_w_end(w);
}
