#include "libcommon/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int file_read(const char *path, size_t limit, struct buf *out, struct err *err)
{
	bool std = !strcmp(path, "-");
	FILE *fp = std ? stdin : fopen(path, "rb");
	size_t start = out->n, got;
	char *to;
	int rc = -1;

	if (!fp)
		return err_errno(err, EX_NOINPUT, "cannot open '%s'", path);
	do {
		if (!(to = buf_room(out, 65536))) {
			buf_ok(out, err);
			goto done;
		}
		got = fread(to, 1, 65536, fp);
		out->n += got;
		if (out->n - start > limit) {
			err_set(err, EX_DATAERR, "'%s' is larger than the limit of %zu bytes", path, limit);
			goto done;
		}
	} while (got);
	if (ferror(fp)) {
		err_errno(err, EX_IOERR, "cannot read '%s'", path);
		goto done;
	}
	buf_put(out, "", 0);
	rc = buf_ok(out, err);
done:
	if (!std)
		fclose(fp);
	return rc;
}

int file_map(struct mapped *m, const char *path, struct err *err)
{
	struct stat st;
	void *p;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*m = (struct mapped){0};
	if (fd < 0)
		return err_errno(err, EX_NOINPUT, "cannot open '%s'", path);
	if (fstat(fd, &st) < 0) {
		err_errno(err, EX_IOERR, "cannot read '%s'", path);
		goto fail;
	}
	if (!S_ISREG(st.st_mode)) {
		err_set(err, EX_NOINPUT, "'%s' is not a regular file", path);
		goto fail;
	}
	m->size = (size_t)st.st_size;
	if (m->size) {
		p = mmap(NULL, m->size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p == MAP_FAILED) {
			err_errno(err, EX_OSERR, "cannot map '%s'", path);
			goto fail;
		}
		m->data = p;
	}
	close(fd);
	return 0;
fail:
	close(fd);
	*m = (struct mapped){0};
	return -1;
}

void file_forget(const void *part, size_t n)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)part + page - 1,
			  to = (uintptr_t)part + n;

	from -= from % page;
	to -= to % page;
	if (to > from)
		(void)madvise((void *)from, to - from, MADV_DONTNEED);   /* advice */
}

void file_unmap(struct mapped *m)
{
	union { const unsigned char *c; void *v; } p = { m->data };

	if (p.v)
		munmap(p.v, m->size);
	*m = (struct mapped){0};
}

int file_peek(struct peeked *p, const char *path, struct err *err)
{
	ssize_t got = 1;

	*p = (struct peeked){ .path = path, .fd = STDIN_FILENO };
	if (strcmp(path, "-") && (p->fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return err_errno(err, EX_NOINPUT, "cannot open '%s'", path);
	while (p->n < sizeof(p->head) && got) {
		got = read(p->fd, p->head + p->n, sizeof(p->head) - p->n);
		if (got < 0 && errno != EINTR) {
			err_errno(err, EX_IOERR, "cannot read '%s'", path);
			if (p->fd != STDIN_FILENO)
				close(p->fd);
			return -1;
		}
		p->n += got > 0 ? (size_t)got : 0;
	}
	return 0;
}

bool file_exists(const char *path)
{
	struct stat st;

	return !stat(path, &st);
}

bool is_dir(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

char *path_join(const char *dir, const char *name)
{
	struct buf b = {0};

	if (name[0] != '/' && dir[0] && strcmp(dir, ".")) {
		buf_puts(&b, dir);
		if (dir[strlen(dir) - 1] != '/')
			buf_putc(&b, '/');
	}
	buf_puts(&b, name);
	return buf_detach(&b);
}

char *path_dir(const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')   /* the parent of "a/b/" is "a" */
		n--;
	while (n > 0 && path[n - 1] != '/')
		n--;
	while (n > 1 && path[n - 1] == '/')
		n--;
	return n ? strndup(path, n) : strdup(".");
}

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), k = strlen(suffix);

	return n >= k && !memcmp(s + n - k, suffix, k);
}

bool safe_name(const char *s, size_t n)
{
	if (n == 0 || n > 255 || (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
		return false;
	for (size_t i = 0; i < n; i++)
		if (s[i] == '/' || (unsigned char)s[i] < 32 || s[i] == 127)
			return false;
	return true;
}

bool dir_has(const char *dir, const char *name)
{
	char *path = path_join(dir, name);
	bool yes = path && is_file(path);

	free(path);
	return yes;
}
