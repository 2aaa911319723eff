#include "libcommon/tunejson.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libcommon/file.h"
#include "libcommon/json.h"
#include "libcommon/outfile.h"

enum { TUNEJSON_MAX = 16 << 20 };

static int not_dot(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

/* Members "prefix/name": [bytes, "hash"] for the files of dir/prefix, in name order. */
static int list(struct json_w *w, const char *dir, const char *prefix, struct err *err)
{
	char *sub = path_join(dir, prefix), *path = NULL, *shown = NULL;
	struct dirent **e = NULL;
	int n = sub ? scandir(*prefix ? sub : dir, &e, not_dot, alphasort) : -1, rc = n < 0 ? -1 : 0;

	if (n < 0)
		err_errno(err, EX_IOERR, "cannot read folder '%s'", dir);
	for (int i = 0; i < n; i++) {
		uint64_t hash, bytes;
		char hex[XXH64_HEX];

		path = rc ? NULL : path_join(*prefix ? sub : dir, e[i]->d_name);
		shown = rc ? NULL : path_join(prefix, e[i]->d_name);
		if (!rc && (!path || !shown))
			rc = err_oom(err, 256);
		if (!rc && is_file(path)) {
			rc = hash64_file(path, &hash, &bytes, err);
			hash64_hex(rc ? 0 : hash, hex);
			json_w_name(w, shown);
			json_w_arr(w);
			json_w_int(w, (int64_t)bytes);
			json_w_str(w, hex);
			json_w_end(w);
		}
		free(path);
		free(shown);
		free(e[i]);
	}
	free(e);
	free(sub);
	return rc;
}

int tunejson_write(const char *dir, const char *base, struct err *err)
{
	struct buf text = {0};
	struct json_w w = { .out = &text, .indent = 1 };
	struct outfile f = { .slot = -1 };
	char *path = path_join(dir, "tune.json"), *state = path_join(dir, "state");
	int rc = -1;

	if (!path || !state) {
		err_oom(err, 256);
		goto done;
	}
	json_w_obj(&w);
	json_w_name(&w, "v");
	json_w_int(&w, 1);
	json_w_name(&w, "base");
	json_w_str(&w, base);
	json_w_name(&w, "files");
	json_w_obj(&w);
	if (list(&w, dir, "", err) < 0 || (is_dir(state) && list(&w, dir, "state", err) < 0))
		goto done;
	json_w_end(&w);
	json_w_end(&w);
	buf_putc(&text, '\n');
	if (buf_ok(&text, err) < 0 || sync_tree(dir, err) < 0 || outfile_open(&f, path, true, err) < 0)
		goto done;
	fwrite(text.p, 1, text.n, f.fp);   /* a failure shows in ferror at the commit */
	rc = outfile_commit(&f, err);
done:
	outfile_abort(&f);
	buf_release(&text);
	free(path);
	free(state);
	return rc;
}

static int check_file(const char *dir, const struct json_member *m, struct err *err)
{
	char *path = NULL, hex[XXH64_HEX];
	const char *name = m->name.s, *rest = !strncmp(name, "state/", 6) ? name + 6 : name;
	uint64_t hash, bytes;
	struct stat st;
	int rc = -1;

	if (!safe_name(rest, m->name.n - (size_t)(rest - name)) || strlen(name) != m->name.n ||
		!json_is(&m->value, JSON_ARR) || m->value.n != 2 ||
		!json_is(&m->value.items[0], JSON_INT) || !json_is(&m->value.items[1], JSON_STR))
		return err_set(err, EX_DATAERR, "%s/tune.json: not the form that tune-train writes", dir);
	if (!(path = path_join(dir, name)))
		return err_oom(err, 256);
	if (stat(path, &st) < 0)
		err_set(err, EX_DATAERR, "%s: file '%s' is missing", dir, name);
	else if (st.st_size != m->value.items[0].i)
		err_set(err, EX_DATAERR, "%s: file '%s' has %lld bytes, tune.json says %lld", dir, name,
			(long long)st.st_size, (long long)m->value.items[0].i);
	else if (!hash64_file(path, &hash, &bytes, err)) {
		hash64_hex(hash, hex);
		rc = strcmp(hex, m->value.items[1].s)
			? err_set(err, EX_DATAERR,
				  "%s: file '%s' is damaged: its hash is %s, tune.json says %s", dir, name, hex,
				  m->value.items[1].s)
			: 0;
	}
	free(path);
	return rc;
}

int tunejson_verify(const char *dir, char base[SHA256_HEX], struct err *err)
{
	struct json_doc doc = {0};
	const struct json *files, *b;
	char *path = path_join(dir, "tune.json");
	int64_t v = 0;
	int rc = -1;

	if (!path)
		return err_oom(err, 256);
	if (!is_file(path)) {
		err_set(err, EX_NOINPUT, "'%s' has no tune.json: it is not a complete checkpoint", dir);
		goto done;
	}
	if (json_parse_file(&doc, path, TUNEJSON_MAX, err) < 0 ||
		json_get_int(&doc.root, "v", &v, path, err) < 0)
		goto done;
	files = json_get(&doc.root, "files");
	if (v != 1 || !json_is(files, JSON_OBJ)) {
		err_set(
			err, EX_DATAERR, "%s: version %lld, this program reads version 1", path, (long long)v);
		goto done;
	}
	if (!files->n) {
		err_set(err, EX_DATAERR, "%s: it lists no file", path);
		goto done;
	}
	for (uint32_t i = 0; i < files->n; i++)
		if (check_file(dir, &files->members[i], err) < 0)
			goto done;
	b = json_get(&doc.root, "base");
	if (base)
		snprintf(base, SHA256_HEX, "%s", json_is(b, JSON_STR) ? b->s : "");
	rc = 0;
done:
	json_release(&doc);
	free(path);
	return rc;
}
