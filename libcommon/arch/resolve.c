/* Which checkpoint a RUN stands for. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/arch/modelfile.h"
#include "libcommon/file.h"

/* "step-00000100" and nothing behind it: step-00000100.tmp is one that was not finished. */
static bool is_step_name(const char *s)
{
	return !strncmp(s, "step-", 5) && s[5] && !s[5 + strspn(s + 5, "0123456789")];
}

/* Later is greater: more digits, or the greater of equally many. */
static bool later(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b);

	return na != nb ? na > nb : strcmp(a, b) > 0;
}

/*
 * The newest folder of `steps` that has its tune.json, which is written last; NULL if none, with
 * err->code 0.
 */
static char *newest_step(const char *steps, struct err *err)
{
	DIR *d = opendir(steps);
	struct dirent *e;
	char *best = NULL;

	err->code = 0;
	if (!d) {
		err_errno(err, EX_NOINPUT, "cannot open '%s'", steps);
		return NULL;
	}
	while ((e = readdir(d))) {
		char *path;

		if (!is_step_name(e->d_name) || (best && !later(e->d_name, path_base(best))))
			continue;
		path = path_join(steps, e->d_name);
		if (!path) {
			err_oom(err, strlen(steps));
			break;
		}
		if (dir_has(path, "tune.json")) {
			free(best);
			best = path;
		} else {
			free(path);
		}
	}
	closedir(d);
	if (err->code) {
		free(best);
		best = NULL;
	}
	return best;
}

char *resolve_checkpoint(const char *path, struct err *err)
{
	char *latest = path_join(path, "latest"), *steps = path_join(path, "steps"), *found = NULL,
		 *real;

	if (!latest || !steps) {
		err_oom(err, strlen(path));
		goto done;
	}
	if (!is_dir(path) || dir_has(path, "tune.json") || (!is_dir(steps) && !is_dir(latest))) {
		found = mem_strdup(path, err);
		goto done;
	}
	/* The step's own name, so that messages and records say which one it was. */
	if (dir_has(latest, "tune.json") && (real = realpath(latest, NULL))) {
		found = is_step_name(path_base(real)) ? path_join(steps, path_base(real)) : NULL;
		if (!found || !dir_has(found, "tune.json")) {
			free(found);
			found = mem_strdup(latest, err);
		}
		free(real);
		goto done;
	}
	if (is_dir(steps)) {
		found = newest_step(steps, err);
		if (!found && !err->code)
			err_set(err, EX_NOINPUT, "'%s' is a run without a finished checkpoint", path);
	} else {
		err_set(err, EX_NOINPUT, "'%s' is no finished checkpoint: it has no tune.json", latest);
	}
done:
	free(latest);
	free(steps);
	return found;
}
