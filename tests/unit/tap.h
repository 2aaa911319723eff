#ifndef TAP_H
#define TAP_H
#include <stdio.h>
/*
 * One binary per module; prints TAP, exits 1 if any check failed.  Flushed at once: a crash must
 * not eat results.
 */
static int tap_n, tap_bad;
#define ok(cond, ...) do { \
	int c_ = !!(cond); \
	tap_bad += !c_; \
	printf("%sok %d - ", c_ ? "" : "not ", ++tap_n); \
	printf(__VA_ARGS__); \
	putchar('\n'); \
	if (!c_) \
		printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond); \
	fflush(stdout); \
} while (0)
static inline int tap_done(void)
{
	printf("1..%d\n", tap_n);
	return tap_bad != 0;
}
#endif
