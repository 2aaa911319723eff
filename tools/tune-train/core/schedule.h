#ifndef TUNE_SCHEDULE_H
#define TUNE_SCHEDULE_H
/*
 * schedule: the learning rate as a pure function of (step, settings), so that a resume can't change
 * it (fault O7).
 *
 * step counts from 0.  With w = warmup, n = steps, p = (step - w) / max(1, n - w), m = min_ratio:
 *   step < w       lr * step / w                               (the first step has lr 0, as in
 * transformers) cosine         lr * (m + (1 - m) * 0.5 * (1 + cos(pi * p))) linear         lr * (m
 * + (1 - m) * (1 - p)) constant       lr p stays at 1 after the last step.  min_ratio 0 gives
 * transformers' get_cosine_schedule_with_warmup and its linear kin.
 */
#include <stdint.h>

enum schedule_kind { SCHEDULE_COSINE, SCHEDULE_LINEAR, SCHEDULE_CONSTANT };
struct schedule { enum schedule_kind kind; double lr, min_ratio; uint64_t warmup, steps; };
int schedule_kind(const char *name, enum schedule_kind *kind);   /* -1: unknown name */
double schedule_lr(const struct schedule *s, uint64_t step);
#endif
