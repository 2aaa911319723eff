#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "intake.h"
#include "libcommon/file.h"

static int add(struct paths *list, char *owned, struct err *err)
{
	if (!owned)
		return err_oom(err, 0);
	if (grow(&list->p, &list->cap, list->n + 1, sizeof(*list->p), err) < 0) {
		free(owned);
		return -1;
	}
	list->p[list->n++] = owned;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_folder(struct paths *list, const char *dir, struct err *err)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	size_t first = list->n;
	int rc = 0;

	if (!d)
		return err_errno(err, EX_NOINPUT, "cannot open '%s'", dir);
	while (rc == 0 && (e = readdir(d)))
		if (e->d_name[0] != '.' && has_suffix(e->d_name, ".tns"))
			rc = add(list, path_join(dir, e->d_name), err);
	closedir(d);
	if (rc == 0 && list->n == first)
		return err_set(err, EX_NOINPUT, "'%s' has no .tns files", dir);
	if (list->n > first)
		qsort(list->p + first, list->n - first, sizeof(*list->p), by_name);
	return rc;
}

int paths_expand(struct paths *list, int argc, char **argv, struct err *err)
{
	int i;

	for (i = 0; i < argc; i++)
		if ((is_dir(argv[i]) ? add_folder(list, argv[i], err) : add(list, strdup(argv[i]), err)) <
			0)
			return -1;
	return argc ? 0 : add(list, strdup("-"), err);
}

void paths_release(struct paths *list)
{
	while (list->n)
		free(list->p[--list->n]);
	free(list->p);
	*list = (struct paths){0};
}
