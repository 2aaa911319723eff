#include "libcommon/outfile.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcommon/buf.h"
#include "libcommon/file.h"

/*
 * What a signal handler must remove: pointers to names that stay valid while they are in the table.
 * A handler can't walk through a folder: rm does.
 */
enum { SLOTS = 64 };
static _Atomic(const char *) slots[SLOTS];

int slot_take(const char *name)
{
	for (int i = 0; i < SLOTS; i++) {
		const char *none = NULL;

		if (atomic_compare_exchange_strong(&slots[i], &none, name))
			return i;
	}
	return -1;   /* full: the file is then left behind by a signal, nothing worse */
}

void slot_give(int *slot)
{
	if (*slot >= 0)
		atomic_store(&slots[*slot], NULL);
	*slot = -1;
}

/* In a handler nothing that fork would run for other threads may run. */
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
#define SAFE_FORK _Fork
#else
#define SAFE_FORK fork
#endif

static void remove_folder(const char *name)
{
	pid_t pid = SAFE_FORK();

	if (!pid) {
		execl("/bin/rm", "rm", "-rf", "--", name, (char *)NULL);
		_exit(1);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void outfile_on_signal(void)
{
	for (int i = 0; i < SLOTS; i++) {
		const char *name = atomic_load(&slots[i]);

		if (name && unlink(name) < 0 && errno != ENOENT)
			remove_folder(name);
	}
}

static char *tmp_name(const char *path)
{
	struct buf b = {0};
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	buf_put(&b, path, n);
	buf_printf(&b, ".tmp.%ld", (long)getpid());
	return buf_detach(&b);
}

int outfile_open(struct outfile *f, const char *path, bool force, struct err *err)
{
	struct stat st;
	int fd;

	*f = (struct outfile){ .slot = -1 };
	if (!(f->path = mem_strdup(path, err)))
		return -1;
	if (!strcmp(path, "-")) {
		f->fp = stdout;
		return 0;
	}
	if (!stat(path, &st)) {
		if (S_ISDIR(st.st_mode)) {
			err_set(err, EX_CANTCREAT, "'%s' is a folder", path);
			goto fail;
		}
		if (!S_ISREG(st.st_mode)) {   /* a device or a FIFO: nothing to replace */
			if (!(f->fp = fopen(path, "wb"))) {
				err_errno(err, EX_CANTCREAT, "cannot open '%s'", path);
				goto fail;
			}
			return 0;
		}
		if (!force) {
			err_set(err, EX_CANTCREAT, "'%s' exists (--force replaces it)", path);
			goto fail;
		}
	}
	if (!(f->tmp = tmp_name(path))) {
		err_oom(err, strlen(path) + 16);
		goto fail;
	}
	f->slot = slot_take(f->tmp);   /* before it is there: no moment is without it */
	fd = open(f->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0) {
		err_errno(err, EX_CANTCREAT, "cannot create '%s'", f->tmp);
		slot_give(&f->slot);
		free(f->tmp);
		f->tmp = NULL;
		goto fail;
	}
	if ((f->fp = fdopen(fd, "wb")))
		return 0;
	err_errno(err, EX_OSERR, "cannot open '%s'", f->tmp);
	close(fd);
fail:
	outfile_abort(f);
	return -1;
}

int refuse_input(const char *out, char *const *inputs, size_t n, struct err *err)
{
	struct stat a, b;

	if (!out || !strcmp(out, "-") || stat(out, &a) < 0 || !S_ISREG(a.st_mode))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (strcmp(inputs[i], "-") && !stat(inputs[i], &b) && a.st_dev == b.st_dev &&
			a.st_ino == b.st_ino)
			return err_set(err, EX_USAGE, "the output '%s' is the input '%s'; give it another name",
				out, inputs[i]);
	return 0;
}

int sync_parent(const char *path, struct err *err)
{
	char *dir = path_dir(path);
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, rc = 0;

	/* Some file systems refuse fsync of a folder with EINVAL: then there is nothing to do. */
	if (fd < 0 || (fsync(fd) < 0 && errno != EINVAL))
		rc = err_errno(err, EX_IOERR, "cannot sync the folder of '%s'", path);
	if (fd >= 0)
		close(fd);
	free(dir);
	return rc;
}

int outfile_commit(struct outfile *f, struct err *err)
{
	FILE *fp = f->fp;
	int bad;

	assert(fp);
	if (!f->tmp) {
		bad = fflush(fp) || ferror(fp);
		if (bad)
			err_errno(
				err, EX_IOERR, "cannot write '%s'", fp == stdout ? "standard output" : f->path);
		if (fp != stdout && fclose(fp) && !bad)
			bad = err_errno(err, EX_IOERR, "cannot write '%s'", f->path);
		f->fp = NULL;
		outfile_abort(f);
		return bad ? -1 : 0;
	}
	f->fp = NULL;
	bad = fflush(fp) || ferror(fp) || fsync(fileno(fp));   /* in this order */
	if (bad)
		err_errno(err, EX_IOERR, "cannot write '%s'", f->tmp);
	if (fclose(fp) && !bad)
		bad = err_errno(err, EX_IOERR, "cannot write '%s'", f->tmp);
	if (!bad && rename(f->tmp, f->path) < 0)
		bad = err_errno(err, EX_CANTCREAT, "cannot rename '%s' to '%s'", f->tmp, f->path);
	if (!bad) {
		slot_give(&f->slot);
		free(f->tmp);
		f->tmp = NULL;
		bad = sync_parent(f->path, err);
	}
	outfile_abort(f);
	return bad ? -1 : 0;
}

void outfile_abort(struct outfile *f)
{
	if (f->fp && f->fp != stdout)
		fclose(f->fp);
	if (f->tmp) {
		unlink(f->tmp);
		slot_give(&f->slot);
	}
	free(f->tmp);
	free(f->path);
	*f = (struct outfile){ .slot = -1 };
}
