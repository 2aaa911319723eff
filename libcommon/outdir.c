#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcommon/buf.h"
#include "libcommon/file.h"
#include "libcommon/outfile.h"

enum { TREE_DEPTH_MAX = 32 };

/* fn(folder fd, name, is a folder): in the order of readdir, children before their folder. */
static int walk(
	int dirfd, const char *name, int depth, int (*fn)(int, const char *, bool), struct err *err)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc = 0;
	struct dirent *e;
	struct stat st;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d || depth > TREE_DEPTH_MAX) {
		rc = err_errno(err, EX_IOERR, "cannot open folder '%s'", name);
		goto done;
	}
	while (!rc && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			rc = err_errno(err, EX_IOERR, "cannot read '%s'", e->d_name);
		else if (S_ISDIR(st.st_mode))
			rc = walk(fd, e->d_name, depth + 1, fn, err);
		else if (fn(fd, e->d_name, false) < 0)
			rc = err_errno(err, EX_IOERR, "cannot sync or remove '%s'", e->d_name);
	}
done:
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	if (!rc && fn(dirfd, name, true) < 0)
		rc = err_errno(err, EX_IOERR, "cannot sync or remove '%s'", name);
	return rc;
}

static int remove_one(int dirfd, const char *name, bool dir)
{
	return unlinkat(dirfd, name, dir ? AT_REMOVEDIR : 0);
}

static int sync_one(int dirfd, const char *name, bool dir)
{
	int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (dir ? O_DIRECTORY : 0)), rc;

	if (fd < 0)
		return errno == ELOOP ? 0 : -1;   /* a link has nothing of its own to sync */
	rc = fsync(fd);
	if (rc < 0 && errno == EINVAL)
		rc = 0;
	close(fd);
	return rc;
}

int sync_tree(const char *dir, struct err *err)
{
	return walk(AT_FDCWD, dir, 0, sync_one, err);
}

int remove_tree(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_errno(err, EX_IOERR, "cannot read '%s'", path);
	if (S_ISDIR(st.st_mode))
		return walk(AT_FDCWD, path, 0, remove_one, err);
	return unlink(path) < 0 ? err_errno(err, EX_IOERR, "cannot remove '%s'", path) : 0;
}

int make_dirs(const char *path, struct err *err)
{
	char *copy = mem_strdup(path, err), *p = copy;
	int rc = 0;

	if (!copy)
		return -1;
	do {
		p = strchr(p + 1, '/');
		if (p)
			*p = 0;
		if (mkdir(copy, 0777) < 0 && !(errno == EEXIST && is_dir(copy)) && (!p || errno != EEXIST))
			rc = err_errno(err, EX_CANTCREAT, "cannot create folder '%s'", copy);
		if (p)
			*p = '/';
	} while (p && !rc);
	free(copy);
	return rc;
}

/* What --force may replace: an empty folder, shards, a model or an adapter; never other files. */
static bool is_output(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	bool empty = d != NULL;

	while (d && empty && (e = readdir(d)))
		empty = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	if (d)
		closedir(d);
	return empty || dir_has(path, "manifest.json") || dir_has(path, "config.json") ||
		dir_has(path, "adapter_config.json");
}

int outdir_open(struct outdir *d, const char *path, bool force, struct err *err)
{
	struct buf b = {0};
	size_t n = strlen(path);

	*d = (struct outdir){ .slot = -1 };
	while (n > 1 && path[n - 1] == '/')
		n--;
	if (!force && file_exists(path))
		return err_set(err, EX_CANTCREAT, "'%s' exists (--force replaces it)", path);
	if (file_exists(path) && !is_dir(path))
		return err_set(err, EX_CANTCREAT, "'%s' exists and is not a folder", path);
	if (file_exists(path) && !is_output(path))
		return err_set(err, EX_CANTCREAT,
			"'%s' holds neither shards nor a model and is not replaced; give another folder", path);
	buf_put(&b, path, n);
	buf_printf(&b, ".tmp.%ld", (long)getpid());
	d->tmp = buf_detach(&b);
	d->path = mem_strndup(path, n, err);
	if (!d->tmp || !d->path) {
		err_oom(err, n + 16);
		goto fail;
	}
	d->slot = slot_take(d->tmp);
	if (mkdir(d->tmp, 0777) < 0) {
		err_errno(err, EX_CANTCREAT, "cannot create folder '%s'", d->tmp);
		slot_give(&d->slot);
		goto fail;
	}
	return 0;
fail:
	free(d->tmp);
	free(d->path);
	*d = (struct outdir){ .slot = -1 };
	return -1;
}

/* 0: the two have changed places at once; 1: this file system can't. */
static int exchange(const char *a, const char *b, struct err *err)
{
#ifdef RENAME_EXCHANGE
	if (!renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return err_errno(err, EX_CANTCREAT, "cannot replace '%s'", b);
#endif
	(void)err;
	return 1;
}

/* Without exchange: the old one stands aside for the moment in which the new one takes its name. */
static int replace_in_turn(struct outdir *d, struct err *err)
{
	struct buf old = {0};
	int rc;

	buf_printf(&old, "%s.old", d->tmp);
	if (buf_ok(&old, err) < 0)
		return -1;
	slot_give(&d->slot);   /* from here on a signal must not remove the new one */
	rc = rename(d->path, old.p) < 0
		? err_errno(err, EX_CANTCREAT, "cannot replace '%s'", d->path)
		: 0;
	if (!rc && rename(d->tmp, d->path) < 0) {
		rc = err_errno(err, EX_CANTCREAT, "cannot rename '%s' to '%s'", d->tmp, d->path);
		if (rename(old.p, d->path) < 0)
			err_errno(err, EX_CANTCREAT, "'%s' is now '%s'; cannot move it back", d->path, old.p);
	} else if (!rc) {
		free(d->tmp);
		d->tmp = buf_detach(&old);   /* what is left to remove */
	}
	buf_release(&old);
	return rc;
}

int outdir_commit(struct outdir *d, struct err *err)
{
	int rc = sync_tree(d->tmp, err);

	if (!rc && file_exists(d->path)) {
		rc = exchange(d->tmp, d->path, err);
		if (rc > 0)
			rc = replace_in_turn(d, err);
	} else if (!rc && rename(d->tmp, d->path) < 0) {
		rc = err_errno(err, EX_CANTCREAT, "cannot rename '%s' to '%s'", d->tmp, d->path);
	}
	if (!rc)
		rc = sync_parent(d->path, err);
	outdir_abort(d);   /* removes the old one, which is now tmp, if there was one */
	return rc;
}

void outdir_abort(struct outdir *d)
{
	struct err ignored = {0};

	if (d->tmp)
		remove_tree(d->tmp, &ignored);   /* best effort: the error that led here matters more */
	slot_give(&d->slot);
	free(d->tmp);
	free(d->path);
	*d = (struct outdir){ .slot = -1 };
}

int replace_link(const char *link, const char *target, struct err *err)
{
	struct buf tmp = {0};
	int rc;

	buf_printf(&tmp, "%s.tmp.%ld", link, (long)getpid());
	if (buf_ok(&tmp, err) < 0)
		return -1;
	unlink(tmp.p);
	rc = symlink(target, tmp.p) < 0 ? err_errno(err, EX_CANTCREAT, "cannot create link '%s'", tmp.p)
									: 0;
	if (!rc && rename(tmp.p, link) < 0)
		rc = err_errno(err, EX_CANTCREAT, "cannot rename '%s' to '%s'", tmp.p, link);
	if (!rc)
		rc = sync_parent(link, err);
	else
		unlink(tmp.p);
	buf_release(&tmp);
	return rc;
}
