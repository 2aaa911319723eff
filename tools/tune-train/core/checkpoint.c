#include "checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "checkpoint_int.h"
#include "libcommon/file.h"
#include "libcommon/outfile.h"
#include "libcommon/tunejson.h"

/*
 * Bytes that the folder will take, about: what a full disk is told beforehand and in its message.
 */
static uint64_t estimate(struct model *m, const struct ckpt_opts *o)
{
	uint64_t bytes = 1 << 16;

	for (size_t i = 0; i < model_param_count(m); i++) {
		const struct param *p = model_param(m, i);

		if (p->trained)
			bytes += p->n * 12;
		if (!o->peft || p->trained)
			bytes += p->n * (o->peft ? 4 : (uint64_t)dtype_info[o->dtype].bytes);
	}
	return bytes;
}

static int add_space(struct err *err, const char *dir, uint64_t need)
{
	struct statvfs v;

	if (err->code == EX_IOERR && !statvfs(dir, &v)) {
		size_t n = strlen(err->msg);

		snprintf(err->msg + n, sizeof(err->msg) - n,
			" (the checkpoint needs about %llu MB, %llu MB are free)",
			(unsigned long long)(need >> 20),
			(unsigned long long)((uint64_t)v.f_bavail * v.f_frsize >> 20));
	}
	return -1;
}

static int cmp_desc(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	size_t nx = strlen(x), ny = strlen(y);   /* more digits are later */

	return nx != ny ? (nx < ny ? 1 : -1) : strcmp(y, x);
}

/* "step-00000100", or with .tmp: other names are the user's. */
static bool is_step(const char *s, bool tmp)
{
	size_t n = strncmp(s, "step-", 5) ? 0 : strspn(s + 5, "0123456789");

	return n && !strcmp(s + 5 + n, tmp ? ".tmp" : "");
}

/* Names of steps/ that are steps, finished or (tmp) not, newest first. */
static int list_steps(const char *run, bool tmp, char ***names, size_t *n, struct err *err)
{
	char *steps = path_join(run, "steps");
	DIR *d = steps ? opendir(steps) : NULL;
	struct dirent *e;
	size_t cap = 0;
	int rc = 0;

	*names = NULL;
	*n = 0;
	free(steps);
	if (!d)
		return errno == ENOENT ? 0 : err_errno(err, EX_IOERR, "cannot read the steps of '%s'", run);
	while (!rc && (e = readdir(d))) {
		if (!is_step(e->d_name, tmp))
			continue;
		rc = grow(names, &cap, *n + 1, sizeof(**names), err);
		if (!rc && !((*names)[*n] = mem_strdup(e->d_name, err)))
			rc = -1;
		else if (!rc)
			++*n;
	}
	closedir(d);
	if (*n)
		qsort(*names, *n, sizeof(**names), cmp_desc);
	return rc;
}

static void free_names(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

static char *step_path(const char *run, const char *name, const char *suffix)
{
	struct buf b = {0};

	buf_printf(&b, "%s/steps/%s%s", run, name, suffix);
	return buf_detach(&b);
}

int checkpoint_clean(const char *run, struct err *err)
{
	char **names;
	size_t n;
	int rc = list_steps(run, true, &names, &n, err);

	for (size_t i = 0; !rc && i < n; i++) {
		char *path = step_path(run, names[i], "");

		rc = path ? remove_tree(path, err) : err_oom(err, 256);
		free(path);
	}
	free_names(names, n);
	return rc;
}

bool checkpoint_any(const char *run)
{
	struct err ignored = {0};
	char **names;
	size_t n;
	bool any = !list_steps(run, false, &names, &n, &ignored) && n > 0;

	free_names(names, n);
	return any;
}

int checkpoint_newest(
	const char *run, char **path, void (*broken)(void *, const char *), void *ctx, struct err *err)
{
	char **names;
	size_t n;
	int rc = list_steps(run, false, &names, &n, err);

	*path = NULL;
	for (size_t i = 0; !rc && i < n && !*path; i++) {
		struct err why = {0};

		if (!(*path = step_path(run, names[i], ""))) {
			rc = err_oom(err, 256);
		} else if (tunejson_verify(*path, NULL, &why) < 0) {
			broken(ctx, why.msg);
			free(*path);
			*path = NULL;
		}
	}
	if (!rc && n && !*path)
		rc = err_set(err, EX_DATAERR, "%s: none of its %zu checkpoints is valid", run, n);
	free_names(names, n);
	return rc;
}

/* The name that the link points at, without its folder; "" if there is none. */
static void link_name(const char *run, const char *link, char out[64])
{
	char *path = path_join(run, link), target[256];
	ssize_t n = path ? readlink(path, target, sizeof(target) - 1) : -1;

	out[0] = 0;
	if (n > 0) {
		target[n] = 0;
		snprintf(out, 64, "%s", path_base(target));
	}
	free(path);
}

/*
 * Keep the newest `keep` up to the one just written, and the best.  Later ones are broken: the run
 * went back before them, and writes them again.
 */
static int rotate(const char *run, const char *newest, int keep, struct err *err)
{
	char **names, best[64];
	size_t n, first = 0;
	int rc = list_steps(run, false, &names, &n, err);

	while (first < n && cmp_desc(&names[first], &newest) < 0)
		first++;
	link_name(run, "best", best);
	for (size_t i = first + (size_t)keep; !rc && i < n; i++) {
		char *path = strcmp(names[i], best) ? step_path(run, names[i], "") : NULL;

		if (path)
			rc = remove_tree(path, err);
		free(path);
	}
	free_names(names, n);
	return rc;
}

static int point(const char *run, const char *link, const char *name, struct err *err)
{
	struct buf target = {0};
	char *path = path_join(run, link);
	int rc = -1;

	buf_printf(&target, "steps/%s", name);
	if (!path || buf_ok(&target, err) < 0)
		err_oom(err, 256);
	else
		rc = replace_link(path, target.p, err);
	buf_release(&target);
	free(path);
	return rc;
}

/*
 * A folder of the same step may be there when a run goes on from an earlier, valid one: a broken
 * one, which goes.
 */
static int put_in_place(const char *run, const char *tmp, const char *name, struct err *err)
{
	char *path = step_path(run, name, "");
	int rc = path ? remove_tree(path, err) : err_oom(err, 256);

	if (!rc && rename(tmp, path) < 0)
		rc = err_errno(err, EX_CANTCREAT, "cannot rename '%s' to '%s'", tmp, path);
	if (!rc)
		rc = sync_parent(path, err);
	free(path);
	return rc;
}

int checkpoint_save(struct model *m, const struct ckpt_state *s, const struct ckpt_opts *o,
	char **path, struct err *err)
{
	char name[32], *tmp, *state = NULL;
	struct err ignored = {0};
	struct buf shown = {0};
	int rc = -1;

	*path = NULL;
	snprintf(name, sizeof(name), "step-%08llu", (unsigned long long)s->step);
	tmp = step_path(o->run, name, ".tmp");
	state = tmp ? path_join(tmp, "state") : NULL;
	if (!state) {
		free(tmp);
		return err_oom(err, 256);
	}
	if (remove_tree(tmp, err) < 0 || make_dirs(state, err) < 0)
		goto done;
	if (ckpt_write_weights(m, o, tmp, err) < 0 || ckpt_write_optim(m, o, state, err) < 0 ||
	    ckpt_write_state(s, state, err) < 0 || tunejson_write(tmp, s->base, err) < 0) {
		add_space(err, o->run, estimate(m, o));
		goto done;
	}
	if (put_in_place(o->run, tmp, name, err) < 0 || point(o->run, "latest", name, err) < 0 ||
	    (o->best && point(o->run, "best", name, err) < 0) || rotate(o->run, name, o->keep, err) < 0)
		goto done;
	buf_printf(&shown, "steps/%s", name);
	rc = (*path = buf_detach(&shown)) ? 0 : err_oom(err, 64);
done:
	if (rc < 0)
		remove_tree(tmp, &ignored);
	free(tmp);
	free(state);
	return rc;
}
