#include "schedule.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

int schedule_kind(const char *name, enum schedule_kind *kind)
{
	static const char *const names[] = {
		[SCHEDULE_COSINE] = "cosine", [SCHEDULE_LINEAR] = "linear", [SCHEDULE_CONSTANT] = "constant"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name)) {
			*kind = (enum schedule_kind)i;
			return 0;
		}
	return -1;
}

double schedule_lr(const struct schedule *s, uint64_t step)
{
	const double pi = 3.14159265358979323846;
	double p, fall;

	if (step < s->warmup)
		return s->lr * (double)step / (double)s->warmup;
	if (s->kind == SCHEDULE_CONSTANT)
		return s->lr;
	p = (double)(step - s->warmup) / (s->steps > s->warmup ? (double)(s->steps - s->warmup) : 1.0);
	if (p > 1)
		p = 1;
	fall = s->kind == SCHEDULE_COSINE ? 0.5 * (1 + cos(pi * p)) : 1 - p;
	return s->lr * (s->min_ratio + (1 - s->min_ratio) * fall);
}
