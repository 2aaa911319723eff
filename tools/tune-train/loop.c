/* The training loop. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train.h"

enum { NONFINITE_MAX = 3, ROWS_SHOWN = 20 };

struct step_out {
	double loss_sum, lr;
	uint64_t tokens, trained, records;
	struct step_stats stats;
};

/* One optimizer step on the next global batch.  1: done; 0: the stream has ended; -1: err. */
static int one_step(struct run *r, struct step_out *o, struct err *err)
{
	uint64_t left = feed_sequential(r->feed) ? r->batch : feed_count(r->feed) - r->s.position;
	double n[2], sum = 0;
	struct batch b;
	int rc;

	*o = (struct step_out){0};
	if (feed_load(r->feed, &r->data, r->seed, r->s.epoch, r->s.position,
			left < r->batch ? left : r->batch, r->max_record, r->comm->rank, r->comm->size,
			&o->records, err) < 0)
		return -1;
	if (!o->records)
		return 0;
	/*
	 * The divisor is the trained tokens of the whole global batch, known before its first
	 * micro-batch.
	 */
	n[0] = (double)r->data.trained;
	n[1] = (double)r->data.tokens;
	if (r->comm->all_reduce_host(r->comm, n, 2, err) < 0)
		return -1;
	o->trained = (uint64_t)n[0];
	o->tokens = (uint64_t)n[1];
	o->lr = schedule_lr(&r->schedule, r->s.step);
	model_zero_grads(r->model);
	while ((rc = step_micro(&r->data, r->plan.micro_tokens, &b, err)) > 0)
		if (model_forward(r->model, &b, FWD_KEEP | FWD_ADAPTER, r->s.step, err) < 0 ||
			r->loss->run(r->model, &b, n[0] > 0 ? n[0] : 1, &sum, err) < 0 ||
			model_backward(r->model, err) < 0)
			return -1;
	if (rc < 0 || r->comm->all_reduce_host(r->comm, &sum, 1, err) < 0)
		return -1;
	o->loss_sum = sum;
	o->stats.finite = true;
	if (o->trained && model_step(r->model, o->lr, r->grad_clip, &r->adamw, &o->stats, err) < 0)
		return -1;
	return 1;
}

/* Move the cursor past the batch; epochs end where the data does. */
static void advance(struct run *r, uint64_t records)
{
	r->s.step++;
	r->s.position += records;
	r->s.updates = model_updates(r->model);
	if (!feed_sequential(r->feed) && r->s.position >= feed_count(r->feed)) {
		r->s.epoch++;
		r->s.position = 0;
	}
	r->s.consumed = feed_consumed(r->feed);
	r->s.stream_hash = feed_running_hash(r->feed);
}

static double epoch_now(const struct run *r)
{
	uint64_t n = feed_count(r->feed);

	return n ? (double)r->s.epoch + (double)r->s.position / (double)n : 0;
}

/* The interval's step line for people and for programs. */
static int log_step(struct run *r, const struct step_out *o, struct err *err)
{
	struct interval *iv = &r->iv;
	double now = now_s(), loss = iv->trained ? iv->loss_sum / (double)iv->trained : NAN;
	double rate = now > iv->start_s ? (double)iv->tokens / (now - iv->start_s) : 0;
	char extra[160], tps[16];
	struct json_w w;
	struct buf b;

	format_count(rate, tps);
	snprintf(extra, sizeof(extra), "loss %.4f  lr %.2e  grad_norm %.3f  %s tok/s", loss, o->lr,
		o->stats.grad_norm, tps);
	progress_update(&r->progress, r->s.step, extra);
	if (r->s.step % (uint64_t)cfg_int(r->cfg, "log.every") && r->s.step != r->steps)
		return 0;
	if (!r->progress.draw) {
		char of[32] = "", eta[16] = "-";

		if (r->steps) {
			snprintf(of, sizeof(of), "/%llu", (unsigned long long)r->steps);
			format_duration((double)(r->steps - r->s.step) * (now - r->progress.start_s) /
				(double)(r->s.step - r->start_step), eta);
		}
		tool_say(r->tool, "step %llu%s  %s  ETA %s", (unsigned long long)r->s.step, of, extra, eta);
	}
	metrics_begin(&w, &b, "step");
	json_w_name(&w, "step"); json_w_int(&w, (int64_t)r->s.step);
	json_w_name(&w, "epoch"); json_w_num(&w, epoch_now(r));
	json_w_name(&w, "loss"); json_w_num(&w, loss);
	json_w_name(&w, "lr"); json_w_num(&w, o->lr);
	json_w_name(&w, "grad_norm"); json_w_num(&w, o->stats.grad_norm);
	json_w_name(&w, "tokens"); json_w_int(&w, (int64_t)iv->tokens);
	json_w_name(&w, "trained_tokens"); json_w_int(&w, (int64_t)iv->trained);
	json_w_name(&w, "tokens_per_s"); json_w_num(&w, rate);
	json_w_name(&w, "mem_bytes"); json_w_int(&w, (int64_t)peak_memory());
	*iv = (struct interval){ .start_s = now };
	return metrics_end(&r->metrics, &w, &b, err);
}

/* A step that changed nothing: say which rows it had. */
static int log_skip(struct run *r, const char *why, struct err *err)
{
	struct json_w w;
	struct buf b;
	size_t shown = r->data.docs < ROWS_SHOWN ? r->data.docs : ROWS_SHOWN;
	const struct stream_header *h = feed_header(r->feed);
	char row[512];

	progress_clear(&r->progress);
	tool_warn(r->tool, "step %llu: %s; nothing is changed (--rows %llu shows its rows)",
		(unsigned long long)r->s.step + 1, why, (unsigned long long)r->s.step + 1);
	metrics_begin(&w, &b, "skip");
	json_w_name(&w, "step"); json_w_int(&w, (int64_t)r->s.step + 1);
	json_w_name(&w, "why"); json_w_str(&w, why);
	json_w_name(&w, "rows");
	json_w_arr(&w);
	for (size_t i = 0; i < shown; i++) {
		const struct step_doc *d = &r->data.doc[i];

		snprintf(row, sizeof(row), "%s:%llu", d->src < h->ninputs ? h->inputs[d->src] : "?",
			(unsigned long long)d->line);
		json_w_str(&w, row);
	}
	json_w_end(&w);
	return metrics_end(&r->metrics, &w, &b, err);
}

static int log_end(struct run *r, const char *why, struct err *err)
{
	struct json_w w;
	struct buf b;

	progress_end(&r->progress);
	tool_say(r->tool, "%s at step %llu", why, (unsigned long long)r->s.step);
	metrics_begin(&w, &b, "end");
	json_w_name(&w, "step"); json_w_int(&w, (int64_t)r->s.step);
	json_w_name(&w, "why"); json_w_str(&w, why);
	return metrics_end(&r->metrics, &w, &b, err);
}

static bool out_of_patience(const struct run *r)
{
	int64_t patience = cfg_int(r->cfg, "eval.patience");

	return r->val && patience && r->s.bad_evals >= (uint64_t)patience;
}

/* It is the best only when it is there. */
static int save_best(struct run *r, double loss, struct err *err)
{
	struct ckpt_state before = r->s;

	r->s.has_best = true;
	r->s.best = loss;
	r->s.best_step = r->s.step;
	if (!cfg_bool(r->cfg, "save.best"))
		return 0;
	if (save(r, true, err) < 0)
		return -1;
	if (r->last_saved != r->s.step) {
		r->s.has_best = before.has_best;
		r->s.best = before.best;
		r->s.best_step = before.best_step;
	}
	return 0;
}

/* Validate; remember the best.  1: patience is used up. */
static int evaluate(struct run *r, struct err *err)
{
	double loss;
	bool better;

	if (r->val) {
		if (validate(r, &loss, err) < 0)
			return -1;
		/* NaN is never the best */
		better = isfinite(loss) && (!r->s.has_best || loss < r->s.best);
		r->s.bad_evals = better ? 0 : r->s.bad_evals + 1;
		if (better && save_best(r, loss, err) < 0)
			return -1;
	}
	if (sample_answers(r, err) < 0)
		return -1;
	return out_of_patience(r);
}

static bool due(uint64_t step, int64_t every)
{
	return every > 0 && step % (uint64_t)every == 0;
}

/* All ranks agree: one checkpoint at one step. */
static int vote_stop(struct run *r, struct err *err)
{
	double stop = signal_seen() ||
		(r->o.stop_after != UINT64_MAX && r->s.step - r->start_step >= r->o.stop_after);

	return r->comm->all_reduce_host(r->comm, &stop, 1, err) < 0 ? -1 : stop > 0;
}

/* An error after a step: what was learned is saved first.  -1, with the error as it was. */
static int save_and_fail(struct run *r, struct err *err)
{
	struct err first = *err;

	*err = (struct err){0};
	if (r->last_saved != r->s.step && model_updates(r->model) && save(r, false, err) < 0)
		err_add(&first, err);
	*err = first;
	return -1;
}

/* Nothing was learned: say so, rather than call it done. */
static int check_learned(struct run *r, struct err *err)
{
	if (model_updates(r->model) || r->s.step == r->start_step)
		return 0;
	return r->s.skipped_in_row ? err_set(err, EX_CHECK_FAILED, "no step had a finite gradient")
							   : err_set(err, EX_DATAERR, "no token of the data is trained");
}

static int finish(struct run *r, const char *why, int status, struct err *err)
{
	if (!status && check_learned(r, err) < 0)
		return -1;
	if (r->last_saved != r->s.step && save_last(r, err) < 0)
		return -1;
	return log_end(r, why, err) < 0 ? -1 : status;
}

/* After a step: log, validate, save.  1: stop early. */
static int after_step(struct run *r, const struct step_out *o, struct err *err)
{
	double minutes = cfg_num(r->cfg, "save.minutes");
	int patience_over = 0;

	r->iv.loss_sum += o->loss_sum;
	r->iv.tokens += o->tokens;
	r->iv.trained += o->trained;
	if (log_step(r, o, err) < 0)
		return -1;
	if (due(r->s.step, cfg_int(r->cfg, "eval.every")) ||
		(r->s.step == r->steps && (r->val || cfg_count(r->cfg, "eval.prompts"))))
		patience_over = evaluate(r, err);
	if (patience_over < 0)
		return save_and_fail(r, err);
	if ((due(r->s.step, cfg_int(r->cfg, "save.every")) ||
			(minutes > 0 && now_s() - r->last_save_s >= minutes * 60)) &&
		r->last_saved != r->s.step && r->not_saved != r->s.step && save(r, false, err) < 0)
		return -1;
	return patience_over;
}

int train(struct run *r, struct err *err)
{
	struct step_out o;
	int rc, stop;

	progress_start(&r->progress, "tune-train", "steps", r->s.step, r->steps, r->tool->progress,
		r->tool->quiet);
	r->iv.start_s = r->last_save_s = now_s();
	if (r->resumed && out_of_patience(r))
		return finish(r, "no better validation, patience is used up", 0, err);
	while (!r->steps || r->s.step < r->steps) {
		if ((stop = vote_stop(r, err)) != 0)
			return stop < 0 ? -1 : finish(r, "stopped early, --resume goes on", EX_RESUMABLE, err);
		if ((rc = one_step(r, &o, err)) < 0) {
			struct err cut = *err;

			if (err->code == EX_RESUMABLE) {
				*err = (struct err){0};
				return finish(r, "stopped early, --resume goes on", EX_RESUMABLE, err);
			}
			/* A stream that breaks off keeps what was learned up to its last whole batch. */
			if (feed_sequential(r->feed) && err->code == EX_DATAERR && r->last_saved != r->s.step &&
				save(r, false, err) < 0)
				return -1;
			*err = cut;
			return -1;
		}
		if (rc == 0)
			return r->s.step == 0 ? err_set(err, EX_DATAERR, "the stream holds no record")
				: evaluate(r, err) < 0 ? save_and_fail(r, err)
									   : finish(r, "the stream has ended", 0, err);
		if (!o.stats.finite || !o.trained) {
			if (log_skip(r,
					o.trained ? "the gradient is not finite" : "no token of the batch is trained",
					err) < 0)
				return -1;
			if (o.trained && ++r->s.skipped_in_row >= NONFINITE_MAX) {
				if (log_end(r, "3 steps in a row were not finite", err) < 0)
					return -1;
				return err_set(err, EX_CHECK_FAILED,
					"the gradient was not finite in %d steps in a row; the last checkpoint is "
					"untouched (try a lower optim.lr; --rows shows the rows)",
					NONFINITE_MAX);
			}
		} else {
			r->s.skipped_in_row = 0;
		}
		advance(r, o.records);
		if ((rc = after_step(r, &o, err)) != 0)
			return rc < 0 ? -1 : finish(r, "no better validation, patience is used up", 0, err);
	}
	return finish(r, "done", 0, err);
}
