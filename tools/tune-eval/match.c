/* tune-eval match: is the answer the reference?  White space at both ends does not count. */
#include <math.h>
#include <string.h>

#include "eval.h"
#include "libcommon/utf8.h"

struct counter { struct eval *e; const struct prompts *p; uint64_t right, empty, by_length; };

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool same(const char *a, size_t n, const char *b, size_t k)
{
	while (n && blank(a[n - 1]))
		n--;
	while (k && blank(b[k - 1]))
		k--;
	for (; n && blank(*a); a++)
		n--;
	for (; k && blank(*b); b++)
		k--;
	return n == k && !memcmp(a, b, n);
}

static int print_row(
	const struct prompt *q, const char *text, size_t n, bool right, struct err *err)
{
	struct buf b = {0}, clean = {0};
	struct json_w w = { .out = &b };
	int rc;

	utf8_repair(text, n, &clean);
	json_w_obj(&w);
	json_w_name(&w, "prompt"); json_w_str(&w, q->question);
	json_w_name(&w, "answer"); json_w_strn(&w, clean.p ? clean.p : "", clean.n);
	json_w_name(&w, "reference"); json_w_strn(&w, q->reference, q->nreference);
	json_w_name(&w, "match"); json_w_bool(&w, right);
	json_w_end(&w);
	buf_putc(&b, '\n');
	rc = buf_ok(&b, err) < 0 || buf_ok(&clean, err) < 0 ? -1 : 0;
	if (!rc)
		fwrite(b.p, 1, b.n, stdout);
	buf_release(&b);
	buf_release(&clean);
	return rc;
}

static int count(void *ctx, size_t i, const char *text, size_t n, bool stopped, struct err *err)
{
	struct counter *c = ctx;
	const struct prompt *q = &c->p->p[i];
	bool right = same(text, n, q->reference, q->nreference);

	c->right += right;
	c->empty += n == 0;
	c->by_length += !stopped;
	return c->e->o.per_row ? print_row(q, text, n, right, err) : 0;
}

static void print_result(const struct counter *c, double percent)
{
	struct eval *e = c->e;
	struct buf b = {0};
	struct json_w w = { .out = &b };

	if (!e->tool->json) {
		printf("match %.2f %%  (%llu of %zu)\n", percent, (unsigned long long)c->right, c->p->n);
		return;
	}
	json_w_obj(&w);
	json_w_name(&w, "match_percent"); json_w_num(&w, percent);
	json_w_name(&w, "right"); json_w_int(&w, (int64_t)c->right);
	json_w_name(&w, "rows"); json_w_int(&w, (int64_t)c->p->n);
	json_w_name(&w, "empty"); json_w_int(&w, (int64_t)c->empty);
	json_w_name(&w, "cut"); json_w_int(&w, (int64_t)c->by_length);
	json_w_name(&w, "skipped"); json_w_int(&w, (int64_t)c->p->skipped);
	json_w_name(&w, "max_new_tokens"); json_w_int(&w, cfg_int(e->cfg, "generate.max_new_tokens"));
	json_w_name(&w, "temperature"); json_w_num(&w, cfg_num(e->cfg, "generate.temperature"));
	eval_settings_json(e, &w);
	json_w_end(&w);
	buf_putc(&b, '\n');
	fwrite(b.p ? b.p : "", 1, b.n, stdout);
	buf_release(&b);
}

int verb_match(struct eval *e, struct err *err)
{
	struct prompts p = {0};
	struct counter c = { .e = e, .p = &p };
	double percent = 0;
	int rc = eval_load(e, cfg_str(e->cfg, "model.path"), err);

	if (!rc)
		rc = prompts_read(&p, e, true, err);
	if (!rc)
		rc = answer_prompts(e, &p, count, &c, err);
	if (!rc) {
		percent = 100.0 * (double)c.right / (double)p.n;
		if (c.empty * 2 > p.n)
			tool_warn(e->tool,
				"%llu of %zu answers are empty: is this the model's template, and its stop list?",
				(unsigned long long)c.empty, p.n);
		if (!e->o.per_row || e->tool->json)
			print_result(&c, percent);
		else
			tool_say(
				e->tool, "match %.2f %%  (%llu of %zu)", percent, (unsigned long long)c.right, p.n);
	}
	prompts_release(&p);
	if (!rc && !isnan(e->o.min) && percent < e->o.min) {
		tool_say(e->tool, "%.2f %% is below --min %g", percent, e->o.min);
		return EX_CHECK_FAILED;
	}
	return rc;
}
