#ifndef TUNE_ERR_H
#define TUNE_ERR_H
/*
 * err: what went wrong, and the exit status it deserves.
 *
 * libcommon and core never print and never exit.  A function that can fail takes a
 * struct err * last, fills it once, and returns -1 (or NULL).  Only main() reports it.
 *
 * Several errors at once (a config with five typos) are several lines of one message:
 * err_more() appends a line; tool_exit() prints each with the program's name in front.
 * Control characters that come from input are shown as '?'.
 */
#include <sysexits.h>

enum { EX_CHECK_FAILED = 1, EX_NODEVICE = 69, EX_RESUMABLE = 75 };   /* beside sysexits.h's */

struct err {
	int code;         /* exit status; 0 = no error yet */
	char msg[4096];   /* no program name, no trailing stop; lines separated by '\n' */
};

/* Fill *err and return -1, so callers can write: return err_set(...); */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same, followed by ": strerror(errno)". */
int err_errno(struct err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Append one more line (the first call is like err_set); when full, "... and more" once. */
int err_more(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Append every line of more; what went wrong first keeps its code. */
int err_add(struct err *err, const struct err *more);
/* Put a prefix such as "data.jsonl:311: " before the (one-line) message that is there. */
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "out of memory for N bytes" with EX_OSERR. */
int err_oom(struct err *err, unsigned long long bytes);
#endif
