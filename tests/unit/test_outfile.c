#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcommon/file.h"
#include "libcommon/outfile.h"
#include "tap.h"

static int put(const char *path, const char *text, int force, struct err *err)
{
	struct outfile f;

	if (outfile_open(&f, path, force, err) < 0)
		return -1;
	fputs(text, f.fp);
	return outfile_commit(&f, err);
}

static int holds(const char *path, const char *text)
{
	struct buf b = {0};
	struct err err = {0};
	int same = !file_read(path, 100, &b, &err) && !strcmp(b.p, text);

	buf_release(&b);
	return same;
}

static void files(void)
{
	struct err err = {0};
	struct outfile f;

	ok(!put("a", "one", 0, &err) && holds("a", "one"), "a file appears when committed");
	ok(put("a", "two", 0, &err) < 0 && err.code == EX_CANTCREAT && holds("a", "one"),
		"an existing file is refused: %s", err.msg);
	ok(!put("a", "two", 1, &err) && holds("a", "two"), "and replaced by force");
	ok(!outfile_open(&f, "b", false, &err) && is_file(f.tmp), "written under another name");
	outfile_abort(&f);
	outfile_abort(&f);
	ok(!file_exists("b") && !outfile_open(&f, "b", false, &err),
		"abort leaves nothing, and may be called twice");
	outfile_on_signal();
	ok(!file_exists(f.tmp), "a signal removes the temporary file");
	outfile_abort(&f);
	ok(put("no/such/folder", "x", 0, &err) < 0 && err.code == EX_CANTCREAT, "no folder: %s",
		err.msg);
	ok(put("/dev/full", "x", 0, &err) < 0 && err.code == EX_IOERR, "a full disk is 74: %s",
		err.msg);
}

static void folders(void)
{
	struct err err = {0};
	struct outdir d;
	char *p;

	ok(!outdir_open(&d, "dir/", false, &err), "a folder under work: %s", d.tmp ? d.tmp : err.msg);
	p = path_join(d.tmp, "x/y");
	ok(!make_dirs(p, &err) && is_dir(p), "make_dirs");
	free(p);
	p = path_join(d.tmp, "x/f");
	ok(!put(p, "old", 0, &err), "a file in it");
	free(p);
	ok(!outdir_commit(&d, &err) && holds("dir/x/f", "old"), "the folder appears whole");
	ok(outdir_open(&d, "dir", false, &err) < 0 && err.code == EX_CANTCREAT,
		"an existing one is refused");
	ok(outdir_open(&d, "dir", true, &err) < 0 && err.code == EX_CANTCREAT &&
			holds("dir/x/f", "old"),
		"even with force, if it is none of ours: %s", err.msg);
	ok(!put("dir/manifest.json", "{}", 0, &err) && !outdir_open(&d, "dir", true, &err) &&
			holds("dir/x/f", "old"),
		"the old one stays until the new one is complete");
	ok(!outdir_commit(&d, &err) && !file_exists("dir/x"), "then it goes");
	ok(!outdir_open(&d, "dir", true, &err), "again");
	p = path_join(d.tmp, "half/written");
	ok(!make_dirs(p, &err), "with folders");
	free(p);
	outfile_on_signal();
	ok(!file_exists(d.tmp), "a signal removes the unfinished folder");
	outdir_abort(&d);
	ok(is_dir("dir"), "abort leaves the old one");
	ok(!replace_link("latest", "dir", &err) && !replace_link("latest", "a", &err) &&
			holds("latest", "two"),
		"a link is replaced");
	ok(!remove_tree("latest", &err) && is_file("a"),
		"remove_tree removes a link, not what it points to");
}

int main(void)
{
	char dir[] = "/tmp/tune-outfile-XXXXXX";
	struct err err = {0};

	if (!mkdtemp(dir) || chdir(dir) < 0)
		return 71;
	files();
	folders();
	ok(!strcmp(path_base("a/b"), "b") && safe_name("a.b", 3) && !safe_name("..", 2) &&
			!safe_name("a/b", 3) && !safe_name("", 0),
		"names");
	return remove_tree(dir, &err) < 0 ? 71 : tap_done();
}
