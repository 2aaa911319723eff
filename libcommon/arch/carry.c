/* Files that belong to a model beside its weights and config: copied byte for byte (D10). */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/arch/modelfile.h"
#include "libcommon/file.h"
#include "libcommon/outfile.h"

static bool carried(const char *name)
{
	static const char *const names[] = { "generation_config.json", "special_tokens_map.json",
		"added_tokens.json", "vocab.json", "merges.txt", "chat_template.json" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return !strncmp(name, "tokenizer", 9) || has_suffix(name, ".jinja");
}

static int copy_file(const char *from, const char *to, struct err *err)
{
	struct mapped m;
	struct outfile f = {0};
	int rc = -1;

	if (file_map(&m, from, err) < 0)
		return -1;
	if (outfile_open(&f, to, true, err) == 0) {
		/* commit looks at ferror */
		fwrite(m.data ? (const char *)m.data : "", 1, m.size, f.fp);
		rc = outfile_commit(&f, err);
	}
	outfile_abort(&f);
	file_unmap(&m);
	return rc;
}

int carry_files(const char *from_dir, const char *to_dir, struct err *err)
{
	DIR *d = opendir(from_dir);
	struct dirent *e;
	int rc = 0;

	if (!d)
		return err_errno(err, EX_NOINPUT, "cannot open '%s'", from_dir);
	while (!rc && (e = readdir(d))) {
		char *from = path_join(from_dir, e->d_name), *to = path_join(to_dir, e->d_name);

		if (!from || !to)
			rc = err_oom(err, strlen(from_dir));
		else if (carried(e->d_name) && is_file(from))
			rc = copy_file(from, to, err);
		free(from);
		free(to);
	}
	closedir(d);
	return rc;
}
