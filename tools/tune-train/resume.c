/* Going on: which checkpoint, and whether this command may continue it. */
#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "train.h"

static void broken(void *ctx, const char *why)
{
	tool_warn(ctx, "passed over: %s", why);
}

int resume_find(struct run *r, char **step_dir, struct err *err)
{
	*step_dir = NULL;
	if (!r->o.resume && checkpoint_any(r->dir))
		return err_set(err, EX_CANTCREAT,
			"'%s' has a run already: --resume goes on with it, or give another -o", r->dir);
	if (!r->o.resume)
		return 0;
	if (checkpoint_newest(r->dir, step_dir, broken, r->tool, err) < 0)
		return -1;
	return *step_dir != NULL;
}

static void show(const struct json *v, struct buf *out)
{
	struct json_w w = { .out = out };

	if (v)
		json_w_value(&w, v);
	else
		buf_puts(out, "(not set)");
}

static int compare_one(const struct run *r, const char *key, const struct json *then,
	const struct json *now, struct err *bad, struct err *err)
{
	struct buf a = {0}, b = {0};
	bool length = !strcmp(key, "train.steps") || !strcmp(key, "train.epochs");
	int rc;

	show(json_get(then, key), &a);
	show(json_get(now, key), &b);
	rc = buf_ok(&a, err) < 0 || buf_ok(&b, err) < 0 ? -1 : 0;
	if (!rc && strcmp(a.p, b.p) && !(length && r->o.extend))
		err_more(bad, EX_CONFIG, "%s: the run was made with %s, now it is %s%s", key, a.p, b.p,
			length ? " (--extend allows it)" : "; start another run, or set it back");
	buf_release(&a);
	buf_release(&b);
	return rc;
}

/* Every setting of then and now must be equal, but steps and epochs with --extend. */
static int compare(
	const struct run *r, const struct json *then, const struct json *now, struct err *err)
{
	struct err bad = {0};

	for (uint32_t i = 0; i < now->n; i++)
		if (compare_one(r, now->members[i].name.s, then, now, &bad, err) < 0)
			return -1;
	for (uint32_t i = 0; i < then->n; i++)
		if (!json_get(now, then->members[i].name.s) &&
			compare_one(r, then->members[i].name.s, then, now, &bad, err) < 0)
			return -1;
	if (bad.code)
		*err = bad;
	return bad.code ? -1 : 0;
}

static int compare_config(const struct run *r, const char *then_text, struct err *err)
{
	struct json_doc then = {0}, now = {0};
	int rc = -1;

	if (!json_parse(&then, then_text, strlen(then_text), "state.json", 1, err) &&
	    !json_parse(&now, r->config_json, strlen(r->config_json), "config", 1, err))
		rc = compare(r, &then.root, &now.root, err);
	json_release(&then);
	json_release(&now);
	return rc;
}

int resume_read(struct run *r, const char *step_dir, struct err *err)
{
	if (checkpoint_read_state(&r->s, step_dir, err) < 0 ||
		compare_config(r, r->s.config, err) < 0)
		return -1;
	r->resumed = true;
	free(r->s.config);
	r->s.config = NULL;   /* this command's own is written from now on */
	if (strcmp(r->s.data_identity, feed_identity(r->feed)))
		return err_set(err, EX_CONFIG,
			"the data is not the run's: identity %s, the run was trained on %s (the same files and "
			"settings make the same shards again)",
			feed_identity(r->feed), r->s.data_identity[0] ? r->s.data_identity : "a stream");
	return 0;
}

int resume_apply(struct run *r, const char *step_dir, struct err *err)
{
	struct json_w w;
	struct buf b;

	if (checkpoint_load_optim(r->model, step_dir, err) < 0)
		return -1;
	if (feed_sequential(r->feed) && feed_skip(r->feed, r->s.consumed, r->s.stream_hash, err) < 0)
		return -1;
	model_set_updates(r->model, r->s.updates);
	r->start_step = r->last_saved = r->s.step;
	tool_say(r->tool, "goes on after step %llu of '%s'", (unsigned long long)r->s.step, r->dir);
	metrics_begin(&w, &b, "resume");
	json_w_name(&w, "step");
	json_w_int(&w, (int64_t)r->s.step);
	return metrics_end(&r->metrics, &w, &b, err);
}
