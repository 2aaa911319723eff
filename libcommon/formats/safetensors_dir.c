#include <limits.h>
#include <stdlib.h>

#include "libcommon/formats/safetensors_file.h"
#include "libcommon/json.h"

enum { INDEX_MAX = 64 << 20 };

/* "dir/x" lies below "dir". */
static bool below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return !strncmp(path, dir, n) && path[n] == '/';
}

/*
 * A shard may be a link only to a file of the same folder, or, in a Hugging Face cache
 * (models--ORG--NAME/snapshots/REV/FILE), to the blobs folder beside it.
 */
static int check_link(
	const char *dir, const char *path, const char *index, const char *tensor, struct err *err)
{
	char *real_dir = realpath(dir, NULL), *real = realpath(path, NULL), *snapshots = NULL,
		 *repo = NULL, *blobs = NULL;
	int rc = -1;

	if (!real_dir || !real) {
		err_errno(
			err, EX_NOINPUT, "%s: cannot open '%s', which holds tensor '%s'", index, path, tensor);
		goto done;
	}
	snapshots = path_dir(real_dir);
	repo = snapshots ? path_dir(snapshots) : NULL;
	blobs = repo ? path_join(repo, "blobs") : NULL;
	if (!blobs) {
		err_oom(err, PATH_MAX);
		goto done;
	}
	if (below(real, real_dir) || (!strcmp(path_base(snapshots), "snapshots") && below(real, blobs)))
		rc = 0;
	else
		err_set(err, EX_DATAERR,
			"%s: weight_map: '%s': '%s' is a link that leads out of the folder", index, tensor,
			path_base(path));
done:
	free(real_dir);
	free(real);
	free(snapshots);
	free(repo);
	free(blobs);
	return rc;
}

/* Add the shard that an index entry names, unless it is there; *file is its place in s->files. */
static int add_shard(struct safetensors *s, const char *dir, const char *index,
	const struct json_member *m, size_t *file, struct err *err)
{
	const struct json *v = &m->value;
	char *path;
	int rc = -1;

	if (strlen(m->name.s) != m->name.n)
		return err_set(
			err, EX_DATAERR, "%s: weight_map: the name '%s' holds a NUL", index, m->name.s);
	if (!json_is(v, JSON_STR) || !safe_name(v->s, v->n))
		return err_set(err, EX_DATAERR,
			"%s: weight_map: '%s': '%s' is not the name of a file of this folder", index, m->name.s,
			json_is(v, JSON_STR) ? v->s : json_type_name(v->type));
	for (*file = s->nfiles; *file > 0; --*file)
		if (!strcmp(path_base(s->files[*file - 1].path), v->s)) {
			--*file;
			return 0;
		}
	*file = s->nfiles;
	if (!(path = path_join(dir, v->s)))
		return err_oom(err, v->n);
	if (check_link(dir, path, index, m->name.s, err) == 0) {
		if (is_file(path))
			rc = st_add_file(s, path, err);
		else
			err_set(err, EX_DATAERR, "%s: weight_map: '%s': '%s' is not a regular file", index,
				m->name.s, v->s);
	}
	free(path);
	return rc;
}

/* Every tensor of the map in its shard, every tensor of a shard in the map. */
static int check_map(const struct safetensors *s, const char *index, const struct json *map,
	const size_t *file, struct err *err)
{
	bool *listed = mem_zalloc(s->n, sizeof(*listed), err);
	int rc = -1;

	if (!listed)
		return -1;
	for (uint32_t i = 0; i < map->n; i++) {
		const char *name = map->members[i].name.s, *path = s->files[file[i]].path;
		const struct tensor *t = safetensors_find(s, name);

		if (!t || strcmp(t->file, path)) {
			err_set(err, EX_DATAERR, "%s: weight_map: '%s' is not in '%s'%s%s", index, name,
				path_base(path), t ? " but in " : "", t ? path_base(t->file) : "");
			goto done;
		}
		listed[t - s->tensors] = true;
	}
	for (size_t i = 0; i < s->n; i++)
		if (!listed[i]) {
			err_set(err, EX_DATAERR, "%s: weight_map does not list tensor '%s' of '%s'", index,
				s->tensors[i].name, path_base(s->tensors[i].file));
			goto done;
		}
	rc = 0;
done:
	free(listed);
	return rc;
}

static int read_index(struct safetensors *s, const char *dir, const char *index, struct err *err)
{
	struct json_doc doc = {0};
	const struct json *map;
	size_t *file = NULL;
	int rc = -1;

	if (json_parse_file(&doc, index, INDEX_MAX, err) < 0)
		goto done;
	map = json_get(&doc.root, "weight_map");
	if (!json_is(map, JSON_OBJ) || map->n == 0 || map->n > ST_TENSORS_MAX || doc.duplicates) {
		err_set(err, EX_DATAERR,
			"%s: weight_map must be an object of tensor names and files, each name once, at most "
			"%d",
			index, ST_TENSORS_MAX);
		goto done;
	}
	if (!(file = mem_zalloc(map->n, sizeof(*file), err)))
		goto done;
	for (uint32_t i = 0; i < map->n; i++)
		if (add_shard(s, dir, index, &map->members[i], &file[i], err) < 0)
			goto done;
	if (st_sort(s, err) < 0) {
		err_prefix(err, "%s: ", index);
		goto done;
	}
	rc = check_map(s, index, map, file, err);
done:
	free(file);
	json_release(&doc);
	return rc;
}

/* "dir/STEM" + suffix. */
static char *stem_path(const char *dir, const char *stem, const char *suffix)
{
	struct buf b = {0};
	char *path;

	buf_puts(&b, stem);
	buf_puts(&b, suffix);
	path = b.oom ? NULL : path_join(dir, b.p);
	buf_release(&b);
	return path;
}

int safetensors_open_dir(
	struct safetensors **out, const char *dir, const char *stem, struct err *err)
{
	struct safetensors *s = mem_zalloc(1, sizeof(*s), err);
	char *single = stem_path(dir, stem, ".safetensors"),
		 *index = stem_path(dir, stem, ".safetensors.index.json");
	int rc = -1;

	*out = NULL;
	if (!s || !single || !index) {
		err_oom(err, sizeof(*s));
		goto done;
	}
	if (is_file(single))
		rc = st_add_file(s, single, err) < 0 ? -1 : st_sort(s, err);
	else if (is_file(index))
		rc = read_index(s, dir, index, err);
	else
		err_set(err, EX_NOINPUT, "'%s' has neither %s.safetensors nor %s.safetensors.index.json",
			dir, stem, stem);
	if (rc == 0) {
		*out = s;
		s = NULL;
	}
done:
	safetensors_close(s);
	free(single);
	free(index);
	return rc;
}
