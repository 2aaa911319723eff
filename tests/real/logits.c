/*
 * logits MODEL GOLDEN: the logits after each golden prompt, and each token's log p, against
 * transformers' (tests/real/make.py). TAP.
 */
#include <math.h>
#include <stdlib.h>

#include "core/model.h"
#include "libcommon/json.h"
#include "tests/unit/tap.h"

enum { PROMPTS_TOKENS_MAX = 256 };
static const double BOUND = 1e-3;

static struct model *m;
static float *logits;

static double far(const struct json *ids, const struct json *want, double worst)
{
	for (uint32_t i = 0; i < want->n; i++) {
		double w = want->items[i].type == JSON_INT ? (double)want->items[i].i : want->items[i].d;
		long at = ids ? (long)ids->items[i].i : 499L * (long)i;   /* every 499th logit is kept */
		double d = fabs(logits[at] - w);

		worst = d > worst || d != d ? d : worst;
	}
	return worst;
}

static void one(const struct json *row, int number)
{
	static uint32_t ids[PROMPTS_TOKENS_MAX], zero[1];
	static uint8_t mask[PROMPTS_TOKENS_MAX], greedy[PROMPTS_TOKENS_MAX];
	static float logp[PROMPTS_TOKENS_MAX];
	const struct json *list = json_get(row, "ids"), *want = json_get(row, "logp");
	int32_t cu[2] = { 0, (int32_t)list->n }, last = (int32_t)list->n - 1;
	struct batch b = { .t = list->n,
		.docs = 1,
		.ids = ids,
		.mask = mask,
		.cu = cu,
		.rec = zero,
		.off0 = zero,
		.trained = list->n - 1,
		.group = 1 };
	struct err err = {0};
	double worst = 0;

	if (list->n > PROMPTS_TOKENS_MAX) {
		ok(0, "prompt %d is too long", number);
		return;
	}
	for (uint32_t i = 0; i < list->n; i++) {
		ids[i] = (uint32_t)list->items[i].i;
		mask[i] = i > 0;
	}
	if (model_forward(m, &b, 0, 0, &err) < 0 || head_forward(m, logp, greedy, &err) < 0 ||
		head_logits(m, &last, 1, logits, &err) < 0) {
		ok(0, "prompt %d: %s", number, err.msg);
		return;
	}
	worst = far(json_get(row, "top_ids"), json_get(row, "top"), 0);
	worst = far(NULL, json_get(row, "probe"), worst);
	ok(worst <= BOUND, "prompt %d: logits differ by at most %.2e", number, worst);
	worst = 0;
	for (uint32_t i = 0; i < want->n; i++) {
		double w = want->items[i].type == JSON_INT ? (double)want->items[i].i : want->items[i].d,
			   d = fabs(logp[i] - w);

		worst = d > worst || d != d ? d : worst;
	}
	ok(worst <= BOUND, "prompt %d: log p of its tokens differ by at most %.2e", number, worst);
}

int main(int argc, char **argv)
{
	struct modelfile f;
	struct device *d = NULL;
	struct comm *c = NULL;
	struct plan p;
	struct model_opts o = {
		.dtype = DT_F32, .max_record = PROMPTS_TOKENS_MAX, .micro_tokens = PROMPTS_TOKENS_MAX
	};
	struct json_doc golden = {0};
	struct err err = {0};

	if (argc != 3 || modelfile_open(&f, argv[1], NULL, true, &err) < 0 ||
		device_open(&d, "cpu", 0, &err) < 0 || comm_open_self(&c, d, &err) < 0 ||
		plan_make(&p, &f.arch, &o, d, c, &err) < 0 ||
		model_new(&m, &f.arch, &o, &p, d, c, &err) < 0 || model_load(m, &f, &err) < 0 ||
		json_parse_file(&golden, argv[2], 64 << 20, &err) < 0 ||
		!(logits = calloc((size_t)f.arch.vocab, sizeof(*logits)))) {
		ok(0, "%s", err.msg);
		return tap_done();
	}
	ok(golden.root.n == 8, "eight prompts");
	for (uint32_t i = 0; i < golden.root.n; i++)
		one(&golden.root.items[i], (int)i + 1);
	model_free(m);
	free(logits);
	json_release(&golden);
	modelfile_close(&f);
	c->free(c);
	device_close(d);
	return tap_done();
}
