#include "shardset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libcommon/file.h"
#include "libcommon/json.h"

enum { MANIFEST_MAX = 256 << 20, SEQ_LEN_MAX = 1 << 24 };   /* the latter as shard.seq_len */

static int add_file(
	struct shardset *s, const char *dir, const struct json *f, const char *where, struct err *err)
{
	const struct json *name = json_get(f, "name");
	int64_t bytes = -1;
	struct stat st;
	struct stream_at *at = NULL;
	struct shard_file *file = &s->files[s->n];

	if (!json_is(name, JSON_STR) || !safe_name(name->s, name->n))
		return err_set(
			err, EX_DATAERR, "%s: a file's name is missing or is not a plain file name", where);
	if (json_get_int(f, "bytes", &bytes, where, err) < 0)
		return -1;
	if (!(file->path = path_join(dir, name->s)))
		return err_oom(err, name->n);
	s->n++;
	if (stat(file->path, &st) < 0)
		return err_errno(err, EX_NOINPUT, "cannot open '%s'", file->path);
	if (bytes >= 0 && st.st_size != bytes)
		return err_set(err, EX_DATAERR,
			"%s: %lld bytes, the manifest says %lld: copy the folder again or make it anew",
			file->path, (long long)st.st_size, (long long)bytes);
	if (stream_at_open(&at, file->path, err) < 0)
		return -1;
	file->first = s->records;
	file->records = stream_at_count(at);
	s->records += file->records;
	stream_at_close(at);
	return 0;
}

int shardset_read(struct shardset *s, const char *dir, const char *split, struct err *err)
{
	struct json_doc doc = {0};
	const struct json *sp, *files, *id;
	char *path = path_join(dir, "manifest.json");
	int64_t tokens = 0, seq_len = 0, records = -1;
	int rc = -1;

	*s = (struct shardset){0};
	if (!path)
		return err_oom(err, strlen(dir));
	if (!is_file(path)) {
		err_set(err, EX_NOINPUT,
			"'%s' is not a shard folder (it has no manifest.json); tune-shard makes one", dir);
		goto done;
	}
	if (json_parse_file(&doc, path, MANIFEST_MAX, err) < 0)
		goto done;
	sp = json_get(json_get(&doc.root, "splits"), split);
	files = json_get(sp, "files");
	if (!json_is(files, JSON_ARR) || !files->n) {
		err_set(err, EX_DATAERR, "%s: it has no split '%s'", path, split);
		goto done;
	}
	if (json_get_int(sp, "tokens", &tokens, path, err) < 0 ||
		json_get_int(sp, "records", &records, path, err) < 0 ||
		json_get_int(json_get(&doc.root, "settings"), "shard.seq_len", &seq_len, path, err) < 0 ||
		!(s->files = mem_zalloc(files->n, sizeof(*s->files), err)))
		goto done;
	for (uint32_t i = 0; i < files->n; i++)
		if (add_file(s, dir, &files->items[i], path, err) < 0)
			goto done;
	if (records >= 0 && (uint64_t)records != s->records) {
		err_set(err, EX_DATAERR, "%s: split '%s' has %llu records, the manifest says %lld", path,
			split, (unsigned long long)s->records, (long long)records);
		goto done;
	}
	if (!s->records) {
		err_set(err, EX_DATAERR, "%s: split '%s' has no records", path, split);
		goto done;
	}
	s->tokens = tokens > 0 ? (uint64_t)tokens : 0;
	s->seq_len = seq_len > 0 && seq_len <= SEQ_LEN_MAX ? (long)seq_len : 0;
	id = json_get(&doc.root, "identity");
	if (json_is(id, JSON_STR))
		snprintf(s->identity, sizeof(s->identity), "%s", id->s);
	rc = 0;
done:
	if (rc < 0)
		shardset_release(s);
	json_release(&doc);
	free(path);
	return rc;
}

int shardset_single(struct shardset *s, const char *path, uint64_t records,
	const struct stream_totals *totals, struct err *err)
{
	*s = (struct shardset){ .records = records, .tokens = totals->tokens };
	if (!records)
		return err_set(err, EX_DATAERR, "%s: it has no records", path);
	if (!(s->files = mem_zalloc(1, sizeof(*s->files), err)) ||
		!(s->files[0].path = mem_strdup(path, err)))
		return -1;
	s->files[0].records = records;
	s->n = 1;
	hash64_hex(totals->xxh64, s->identity);
	return 0;
}

size_t shardset_find(const struct shardset *s, uint64_t record)
{
	size_t lo = 0, hi = s->n;

	while (hi - lo > 1) {   /* files[lo].first <= record */
		size_t mid = lo + (hi - lo) / 2;

		if (s->files[mid].first <= record)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

void shardset_release(struct shardset *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->files[i].path);
	free(s->files);
	*s = (struct shardset){0};
}
