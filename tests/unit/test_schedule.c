#include <math.h>

#include "core/schedule.h"
#include "tap.h"

static int near(double a, double b)
{
	return fabs(a - b) <= 1e-12 * fabs(b) + 1e-18;
}

int main(void)
{
	/*
	 * transformers' get_cosine_schedule_with_warmup(optimizer, 10, 100) at lr 3e-4: the values of
	 * its formula worked by hand.
	 */
	struct schedule s = { SCHEDULE_COSINE, 3e-4, 0, 10, 100 };
	enum schedule_kind k;

	ok(schedule_lr(&s, 0) == 0 && near(schedule_lr(&s, 5), 1.5e-4), "warmup is linear from 0");
	ok(near(schedule_lr(&s, 10), 3e-4) && near(schedule_lr(&s, 55), 1.5e-4),
		"cosine: the peak after the warmup, half of it halfway");
	ok(near(schedule_lr(&s, 40), 3e-4 * 0.75), "a third of the way: cos(pi/3) = 1/2");
	ok(schedule_lr(&s, 100) < 1e-19 && schedule_lr(&s, 1000) < 1e-19, "0 at and after the end");
	s.min_ratio = 0.1;
	ok(near(schedule_lr(&s, 100), 3e-5) && near(schedule_lr(&s, 55), 3e-4 * 0.55),
		"min_ratio is the floor");
	s = (struct schedule){ SCHEDULE_LINEAR, 1, 0, 0, 4 };
	ok(near(schedule_lr(&s, 0), 1) && near(schedule_lr(&s, 1), 0.75) &&
			near(schedule_lr(&s, 3), 0.25),
		"linear without a warmup");
	s.kind = SCHEDULE_CONSTANT;
	ok(schedule_lr(&s, 1000000) == 1, "constant");
	ok(!schedule_kind("linear", &k) && k == SCHEDULE_LINEAR && schedule_kind("step", &k) < 0,
		"names");
	return tap_done();
}
