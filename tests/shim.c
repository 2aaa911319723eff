/*
 * shim: preloaded into a program, writes the calls that make or unmake files to $SHIM_LOG, a line
 * each, and sends SIGTERM right after the first call of the name $SHIM_TERM.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static void fd_path(int fd, char out[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, out, PATH_MAX - 1);
	out[n > 0 ? n : 0] = 0;
}

static void note(const char *name, const char *a, const char *b)
{
	const char *log = getenv("SHIM_LOG"), *term = getenv("SHIM_TERM");
	char line[2 * PATH_MAX + 32];
	int fd = log ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
	int n = snprintf(line, sizeof(line), "%s %s %s\n", name, a, b);

	if (fd >= 0) {
		if (write(fd, line, (size_t)n) != n)
			abort();
		close(fd);
	}
	if (term && !strcmp(term, name)) {
		unsetenv("SHIM_TERM");
		raise(SIGTERM);
	}
}

int fsync(int fd)
{
	int (*f)(int) = (int (*)(int))real("fsync"), rc = f(fd);
	char path[PATH_MAX];

	fd_path(fd, path);
	note("fsync", path, "");
	return rc;
}

int rename(const char *from, const char *to)
{
	int (*f)(const char *, const char *) = (int (*)(const char *, const char *))real("rename");
	int rc = f(from, to);

	note("rename", from, to);
	return rc;
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
	int (*f)(int, const char *, int, const char *, unsigned) =
		(int (*)(int, const char *, int, const char *, unsigned))real("renameat2");
	int rc = f(a, from, b, to, flags);

	note("exchange", from, to);
	return rc;
}

int unlinkat(int dir, const char *name, int flags)
{
	int (*f)(int, const char *, int) = (int (*)(int, const char *, int))real("unlinkat");
	char path[PATH_MAX];
	int rc;

	fd_path(dir, path);
	rc = f(dir, name, flags);
	note("unlink", path, name);
	return rc;
}
