#include "libcommon/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Terminal escapes in a file name or in data must not reach the terminal. */
static void clean(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 32 || *s == 127)
			*s = '?';
}

static void vset(struct err *err, int code, const char *fmt, va_list ap)
{
	err->code = code;
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	clean(err->msg);
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vset(err, code, fmt, ap);
	va_end(ap);
	return -1;
}

int err_errno(struct err *err, int code, const char *fmt, ...)
{
	int e = errno;   /* vsnprintf may change it */
	size_t len;
	va_list ap;

	va_start(ap, fmt);
	vset(err, code, fmt, ap);
	va_end(ap);
	len = strlen(err->msg);
	snprintf(err->msg + len, sizeof(err->msg) - len, ": %s", strerror(e));
	return -1;
}

int err_more(struct err *err, int code, const char *fmt, ...)
{
	static const char rest[] = "... and more";
	size_t len = err->code ? strlen(err->msg) : 0, room = sizeof(err->msg) - len;
	char line[1024];
	int n;
	va_list ap;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	clean(line);
	if (!err->code)
		err->code = code;
	if (n >= 0 && strlen(line) + sizeof(rest) + 2 < room)
		snprintf(err->msg + len, room, "%s%s", len ? "\n" : "", line);
	else if (len < sizeof(rest) || strcmp(err->msg + len - (sizeof(rest) - 1), rest))
		snprintf(err->msg + len, room, "\n%s", rest);
	return -1;
}

int err_add(struct err *err, const struct err *more)
{
	for (const char *s = more->msg; *s; s += *s == '\n') {
		size_t n = strcspn(s, "\n");

		err_more(err, more->code, "%.*s", (int)n, s);
		s += n;
	}
	return -1;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
	char old[sizeof(err->msg)];
	size_t n;
	va_list ap;

	memcpy(old, err->msg, sizeof(old));
	va_start(ap, fmt);
	vset(err, err->code, fmt, ap);
	va_end(ap);
	n = strlen(err->msg);
	snprintf(err->msg + n, sizeof(err->msg) - n, "%s", old);
	return -1;
}

int err_oom(struct err *err, unsigned long long bytes)
{
	return err_set(err, EX_OSERR, "out of memory for %llu bytes", bytes);
}
