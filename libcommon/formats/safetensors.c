#include "libcommon/formats/safetensors.h"

#include <stdlib.h>

#include "libcommon/formats/safetensors_file.h"
#include "libcommon/json.h"

enum { HEADER_MAX = 100 << 20, VALUES_PER_TENSOR = 16 };

uint64_t tensor_count(const struct tensor *t)
{
	uint64_t n = 1;

	for (int i = 0; i < t->ndim; i++)
		n *= t->shape[i];
	return n;
}

/* A file of another kind under this name: say which, as the remedy differs. */
static int refuse_other_kinds(const struct st_file *f, struct err *err)
{
	const unsigned char *p = f->map.data;
	static const char lfs[] = "version https://git-lfs";

	if (f->map.size >= 4 && !memcmp(p, "PK\3\4", 4))
		return err_set(err, EX_DATAERR,
			"%s: this is a zip archive (PyTorch's pickle format), not safetensors; pickle is not "
			"read, "
			"as it can run code: save the model again with safetensors",
			f->path);
	if (f->map.size >= 2 && p[0] == 0x80 && p[1] >= 2 && p[1] <= 5)
		return err_set(err, EX_DATAERR,
			"%s: this is a Python pickle, not safetensors; pickle is not read, as it can run code: "
			"save the model again with safetensors",
			f->path);
	if (f->map.size >= 4 && !memcmp(p, "GGUF", 4))
		return err_set(
			err, EX_DATAERR, "%s: this is a GGUF file, not safetensors: name it .gguf", f->path);
	if (f->map.size >= sizeof(lfs) - 1 && !memcmp(p, lfs, sizeof(lfs) - 1))
		return err_set(err, EX_DATAERR,
			"%s: this is a Git LFS pointer, not the file itself: fetch it with 'git lfs pull'",
			f->path);
	return 0;
}

/*
 * Count the values of the header before a tree is built of it: what a header of a sane number of
 * tensors can't need is refused while it costs nothing.
 */
static int bound_header(const struct st_file *f, const char *text, size_t n, struct err *err)
{
	size_t objects = 0, values = 0;
	bool in_string = false;

	for (size_t i = 0; i < n; i++) {
		char c = text[i];

		if (in_string) {
			i += c == '\\';
			in_string = c != '"';
			continue;
		}
		in_string = c == '"';
		objects += c == '{';
		values += c == ',' || c == ':';
	}
	if (objects > ST_TENSORS_MAX || values > (size_t)ST_TENSORS_MAX * VALUES_PER_TENSOR)
		return err_set(err, EX_DATAERR, "%s: the header describes more than %d tensors", f->path,
			ST_TENSORS_MAX);
	return 0;
}

static int bad(const struct st_file *f, const struct json *name, struct err *err, const char *why)
{
	return err_set(err, EX_DATAERR, "%s: tensor '%s': %s", f->path, name->s, why);
}

/*
 * begin and end count from the end of the header; kept apart from the tensor, which holds pointers.
 */
struct place { uint64_t begin, end; size_t i; };

static int read_tensor(const struct st_file *f, const struct json_member *m, struct tensor *t,
	struct place *at, struct err *err)
{
	const struct json *v = &m->value, *dtype = json_get(v, "dtype"), *shape = json_get(v, "shape"),
					  *off = json_get(v, "data_offsets");
	uint64_t count = 1;

	if (strlen(m->name.s) != m->name.n)
		return bad(f, &m->name, err, "its name holds a NUL");
	if (!json_is(v, JSON_OBJ))
		return bad(f, &m->name, err, "its entry is not an object");
	if (!json_is(dtype, JSON_STR) || !json_is(shape, JSON_ARR) || !json_is(off, JSON_ARR) ||
		v->n != 3)
		return bad(
			f, &m->name, err, "its entry must have a dtype, a shape and data_offsets, no more");
	t->dtype = dtype_from_st(dtype->s, dtype->n);
	if (t->dtype == DT_NONE)
		return err_set(err, EX_DATAERR, "%s: tensor '%s': dtype '%s' is not supported", f->path,
			m->name.s, dtype->s);
	if (shape->n > TENSOR_DIMS_MAX)
		return err_set(err, EX_DATAERR, "%s: tensor '%s': has %u dimensions, more than %d", f->path,
			m->name.s, shape->n, TENSOR_DIMS_MAX);
	t->ndim = (int)shape->n;
	for (uint32_t i = 0; i < shape->n; i++) {
		const struct json *d = &shape->items[i];

		if (!json_is(d, JSON_INT) || d->i < 0)
			return bad(f, &m->name, err, "its shape must be whole numbers, not negative");
		t->shape[i] = (uint64_t)d->i;
		if (__builtin_mul_overflow(count, t->shape[i], &count))
			return bad(f, &m->name, err, "its shape overflows 64 bits");
	}
	if (__builtin_mul_overflow(count, (uint64_t)dtype_info[t->dtype].bytes, &count))
		return bad(f, &m->name, err, "its shape overflows 64 bits");
	if (off->n != 2 || !json_is(&off->items[0], JSON_INT) || !json_is(&off->items[1], JSON_INT) ||
		off->items[0].i < 0 || off->items[1].i < off->items[0].i)
		return bad(f, &m->name, err,
			"its data_offsets must be a begin and an end, whole numbers, begin <= end");
	at->begin = (uint64_t)off->items[0].i;
	at->end = (uint64_t)off->items[1].i;
	if (at->end - at->begin != count)
		return err_set(err, EX_DATAERR,
			"%s: tensor '%s': dtype and shape need %llu bytes, data_offsets give %llu", f->path,
			m->name.s, (unsigned long long)count, (unsigned long long)(at->end - at->begin));
	t->bytes = count;
	return 0;
}

static int read_metadata(
	struct safetensors *s, const struct st_file *f, const struct json *meta, struct err *err)
{
	if (json_is(meta, JSON_NULL))
		return 0;
	if (!json_is(meta, JSON_OBJ))
		return err_set(err, EX_DATAERR, "%s: __metadata__ is not an object", f->path);
	if (grow(&s->meta, &s->meta_cap, s->nmeta + meta->n, sizeof(*s->meta), err) < 0)
		return -1;
	for (uint32_t i = 0; i < meta->n; i++) {
		const struct json *k = &meta->members[i].name, *v = &meta->members[i].value;
		struct st_meta *to = &s->meta[s->nmeta];

		if (!json_is(v, JSON_STR) || strlen(k->s) != k->n || strlen(v->s) != v->n)
			return err_set(err, EX_DATAERR, "%s: __metadata__: the value of '%s' is not a string",
				f->path, k->s);
		to->key = arena_strndup(&s->names, k->s, k->n);
		to->value = arena_strndup(&s->names, v->s, v->n);
		if (!to->key || !to->value)
			return err_oom(err, k->n + v->n);
		s->nmeta++;
	}
	return 0;
}

static int by_begin(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* The data must be the tensors' bytes, each once, without holes, to the last byte of the file. */
static int check_places(const struct st_file *f, struct place *at, size_t n, const struct tensor *t,
	uint64_t header, struct err *err)
{
	uint64_t end = 0;

	qsort(at, n, sizeof(*at), by_begin);
	for (size_t i = 0; i < n; i++) {
		if (at[i].begin < end)
			return err_set(err, EX_DATAERR, "%s: tensors '%s' and '%s' overlap", f->path,
				t[at[i - 1].i].name, t[at[i].i].name);
		if (at[i].begin > end)
			return err_set(err, EX_DATAERR, "%s: %llu bytes before tensor '%s' belong to none",
				f->path, (unsigned long long)(at[i].begin - end), t[at[i].i].name);
		end = at[i].end;
	}
	if (end > UINT64_MAX - header || header + end != f->map.size)
		return err_set(err, EX_DATAERR, "%s: header describes %llu bytes, file has %llu", f->path,
			(unsigned long long)(header + end), (unsigned long long)f->map.size);
	return 0;
}

static int read_entries(struct safetensors *s, const struct st_file *f, const struct json_doc *doc,
	uint64_t header, struct err *err)
{
	const struct json *root = &doc->root;
	struct place *at = NULL;
	size_t n = 0, first = s->n;
	int rc = -1;

	if (!json_is(root, JSON_OBJ))
		return err_set(err, EX_DATAERR, "%s: the header is not an object", f->path);
	if (doc->duplicates)
		return err_set(err, EX_DATAERR, "%s: the header names something twice", f->path);
	if (s->n + root->n > ST_TENSORS_MAX)
		return err_set(err, EX_DATAERR, "%s: more than %d tensors", f->path, ST_TENSORS_MAX);
	if (grow(&s->tensors, &s->cap, s->n + root->n, sizeof(*s->tensors), err) < 0 ||
		!(at = mem_zalloc(root->n, sizeof(*at), err)))
		return -1;
	for (uint32_t i = 0; i < root->n; i++) {
		const struct json_member *m = &root->members[i];
		struct tensor *t = &s->tensors[first + n];

		if (json_str_eq(&m->name, "__metadata__")) {
			if (read_metadata(s, f, &m->value, err) < 0)
				goto done;
			continue;
		}
		*t = (struct tensor){ .file = f->path };
		if (read_tensor(f, m, t, &at[n], err) < 0)
			goto done;
		if (!(t->name = arena_strndup(&s->names, m->name.s, m->name.n))) {
			err_oom(err, m->name.n);
			goto done;
		}
		at[n].i = first + n;
		n++;
	}
	if (check_places(f, at, n, s->tensors, header, err) < 0)
		goto done;
	for (size_t i = 0; i < n; i++)
		s->tensors[at[i].i].data = f->map.data + header + at[i].begin;
	s->n += n;
	rc = 0;
done:
	free(at);
	return rc;
}

static int read_header(struct safetensors *s, const struct st_file *f, struct err *err)
{
	struct json_doc doc = {0};
	uint64_t n = 0;
	const char *text;
	int rc = -1;

	if (refuse_other_kinds(f, err) < 0)
		return -1;
	if (f->map.size < 8)
		return err_set(err, EX_DATAERR, "%s: not a safetensors file: %zu bytes hold no header",
			f->path, f->map.size);
	for (int i = 7; i >= 0; i--)
		n = n << 8 | f->map.data[i];
	if (n > HEADER_MAX)
		return err_set(err, EX_DATAERR,
			"%s: not a safetensors file: its first 8 bytes announce a header of more than %d",
			f->path, HEADER_MAX);
	if (n > f->map.size - 8)
		return err_set(err, EX_DATAERR, "%s: header describes %llu bytes or more, file has %zu",
			f->path, (unsigned long long)n + 8, f->map.size);
	text = (const char *)f->map.data + 8;
	if (n < 2 || text[0] != '{')
		return err_set(err, EX_DATAERR,
			"%s: not a safetensors file: the header does not start with '{'", f->path);
	if (bound_header(f, text, n, err) < 0 || json_parse(&doc, text, n, f->path, 1, err) < 0)
		goto done;
	rc = read_entries(s, f, &doc, n + 8, err);
done:
	json_release(&doc);
	return rc;
}

int st_add_file(struct safetensors *s, const char *path, struct err *err)
{
	struct st_file *f;

	if (grow(&s->files, &s->files_cap, s->nfiles + 1, sizeof(*s->files), err) < 0)
		return -1;
	f = &s->files[s->nfiles];
	*f = (struct st_file){ .path = arena_strndup(&s->names, path, strlen(path)) };
	if (!f->path)
		return err_oom(err, strlen(path));
	if (file_map(&f->map, path, err) < 0)
		return -1;
	s->nfiles++;
	return read_header(s, f, err);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

int st_sort(struct safetensors *s, struct err *err)
{
	if (s->n)
		qsort(s->tensors, s->n, sizeof(*s->tensors), by_name);
	for (size_t i = 1; i < s->n; i++)
		if (!by_name(&s->tensors[i - 1], &s->tensors[i]))
			return err_set(err, EX_DATAERR, "tensor '%s' is in both '%s' and '%s'",
				s->tensors[i].name, s->tensors[i - 1].file, s->tensors[i].file);
	return 0;
}

int safetensors_open(struct safetensors **out, const char *path, struct err *err)
{
	struct safetensors *s;

	*out = NULL;
	if (is_dir(path))
		return safetensors_open_dir(out, path, "model", err);
	if (!(s = mem_zalloc(1, sizeof(*s), err)))
		return -1;
	if (st_add_file(s, path, err) < 0 || st_sort(s, err) < 0) {
		safetensors_close(s);
		return -1;
	}
	*out = s;
	return 0;
}

size_t safetensors_count(const struct safetensors *s)
{
	return s->n;
}

const struct tensor *safetensors_at(const struct safetensors *s, size_t i)
{
	return &s->tensors[i];
}

const struct tensor *safetensors_find(const struct safetensors *s, const char *name)
{
	struct tensor key = { .name = name };

	return s->n ? bsearch(&key, s->tensors, s->n, sizeof(key), by_name) : NULL;
}

const char *safetensors_meta(const struct safetensors *s, const char *key)
{
	for (size_t i = 0; i < s->nmeta; i++)
		if (!strcmp(s->meta[i].key, key))
			return s->meta[i].value;
	return NULL;
}

void safetensors_close(struct safetensors *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nfiles; i++)
		file_unmap(&s->files[i].map);
	free(s->files);
	free(s->tensors);
	free(s->meta);
	arena_release(&s->names);
	free(s);
}
