/* tune cp: a copy of a recipe or config, to change. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libcommon/file.h"
#include "libcommon/outfile.h"
#include "libcommon/tool.h"
#include "tools/tune/tune.h"

enum { COPY_MAX = 1 << 20 };

/*
 * A recipe reads lib.bash beside itself.  The copy reads it where it lies, so that it runs from any
 * folder.
 */
static int point_at_library(struct buf *text, const char *recipe, struct err *err)
{
	static const char here[] = "$(dirname \"$0\")/";
	char *dir = path_dir(recipe), *at = strstr(text->p, here);
	struct buf out = {0};
	int rc;

	if (!dir)
		return err_oom(err, strlen(recipe));
	if (at && !strpbrk(dir, "\"$`\\")) {   /* it stands in double quotes */
		buf_put(&out, text->p, (size_t)(at - text->p));
		buf_printf(&out, "%s/%s", dir, at + strlen(here));
		buf_release(text);
		*text = out;
	}
	rc = buf_ok(text, err);
	free(dir);
	return rc;
}

static int copy(const struct item *it, const char *dest, bool force, struct err *err)
{
	char *path = is_dir(dest) ? path_join(dest, path_base(it->path)) : mem_strdup(dest, err);
	struct outfile out = {0};
	struct buf text = {0};
	mode_t mask = umask(0);
	int rc = -1;

	umask(mask);
	if (!path) {
		err_oom(err, strlen(dest));
		goto done;
	}
	if (file_read(it->path, COPY_MAX, &text, err) < 0 ||
		(it->kind == ITEM_RECIPE && point_at_library(&text, it->path, err) < 0) ||
		outfile_open(&out, path, force, err) < 0)
		goto done;
	if (fwrite(text.p, 1, text.n, out.fp) != text.n ||
	    (it->kind == ITEM_RECIPE && out.tmp && fchmod(fileno(out.fp), 0777 & ~mask) < 0)) {
		err_errno(err, EX_IOERR, "cannot write '%s'", path);
		goto done;
	}
	rc = outfile_commit(&out, err);
done:
	outfile_abort(&out);
	buf_release(&text);
	free(path);
	return rc;
}

int verb_cp(int argc, char **argv)
{
	bool force = false;
	const struct opt opts[] = {
		{ 'f', "force", NULL, OPT_FLAG, &force, "replace a file that is there" }, { 0 }
	};
	struct tool t = { "tune cp", "[--force] NAME [DEST]",
		"Copy the recipe, config or model's config.json NAME (see 'tune ls') to DEST, a file or "
		"folder; without DEST, here.",
		opts };
	struct items l = {0};
	struct err err = {0};
	const struct item *it;
	const char *near;
	int rc = -1;

	tool_init(&t, argc, argv);
	if (t.argc < 1 || t.argc > 2) {
		err_set(&err, EX_USAGE, "needs NAME, and at most one DEST");
		goto done;
	}
	if (items_read(&l, &err) < 0)
		goto done;
	it = items_find(&l, t.argv[0], ITEM_ALL);
	near = it ? NULL : items_nearest(&l, t.argv[0], ITEM_ALL);
	if (!it)
		err_set(&err, EX_NOINPUT, "no recipe, config or model '%s'%s%s%s", t.argv[0],
			near ? " (did you mean '" : "; see 'tune ls'", near ? near : "", near ? "'?)" : "");
	else
		rc = copy(it, t.argc > 1 ? t.argv[1] : ".", force, &err);
done:
	items_release(&l);
	return tool_exit(&t, rc, &err);
}
