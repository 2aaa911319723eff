/* Files that belong to a model beside its weights and config: copied byte for byte (D10). */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/arch/modelfile.h"
#include "libcommon/file.h"
#include "libcommon/outfile.h"

enum { CARRIED_MAX = 512 << 20 };   /* bytes a file */

static bool is_carried(const char *name)
{
	static const char *const names[] = { "generation_config.json", "special_tokens_map.json",
		"added_tokens.json", "vocab.json", "merges.txt", "chat_template.json" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return !strncmp(name, "tokenizer", 9) || has_suffix(name, ".jinja");
}

static int read_one(struct carried *c, const char *dir, const char *name, struct err *err)
{
	char *path = path_join(dir, name);
	int rc = -1;

	if (!path)
		return err_oom(err, strlen(dir));
	if (!is_file(path))
		rc = 0;
	else if (grow(&c->files, &c->cap, c->n + 1, sizeof(*c->files), err) == 0) {
		struct carried_file *f = &c->files[c->n++];

		*f = (struct carried_file){ .name = mem_strdup(name, err) };
		rc = f->name && file_read(path, CARRIED_MAX, &f->data, err) == 0 ? 0 : -1;
	}
	free(path);
	return rc;
}

int carry_read(struct carried *c, const char *dir, struct err *err)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int rc = 0;

	*c = (struct carried){0};
	if (!d)
		return err_errno(err, EX_NOINPUT, "cannot open '%s'", dir);
	while (!rc && (e = readdir(d)))
		if (is_carried(e->d_name))
			rc = read_one(c, dir, e->d_name, err);
	closedir(d);
	if (rc < 0)
		carry_release(c);
	return rc;
}

int carry_missing(struct carried *c, const char *dir, const char *name, struct err *err)
{
	for (size_t i = 0; i < c->n; i++)
		if (!strcmp(c->files[i].name, name))
			return 0;
	return read_one(c, dir, name, err);
}

int carry_write(const struct carried *c, const char *dir, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < c->n; i++) {
		struct outfile f = { .slot = -1 };
		char *path = path_join(dir, c->files[i].name);

		rc = path ? outfile_open(&f, path, true, err) : err_oom(err, strlen(dir));
		if (!rc) {
			fwrite(c->files[i].data.p, 1, c->files[i].data.n, f.fp);   /* commit looks at ferror */
			rc = outfile_commit(&f, err);
		}
		outfile_abort(&f);
		free(path);
	}
	return rc;
}

void carry_release(struct carried *c)
{
	for (size_t i = 0; i < c->n; i++) {
		free(c->files[i].name);
		buf_release(&c->files[i].data);
	}
	free(c->files);
	*c = (struct carried){0};
}

int carry_files(const char *from_dir, const char *to_dir, struct err *err)
{
	struct carried c;
	int rc = carry_read(&c, from_dir, err);

	if (!rc)
		rc = carry_write(&c, to_dir, err);
	carry_release(&c);
	return rc;
}
