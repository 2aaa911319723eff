#include "libcommon/arch/modelfile.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "libcommon/tunejson.h"

enum { CONFIG_MAX = 16 << 20 };

/* ---- which files ---- */

static bool holds(const char *dir, const char *name)
{
	char *path = path_join(dir, name);
	bool yes = path && is_file(path);

	free(path);
	return yes;
}

/* A file of dir whose name ends with one of these suffixes; caller frees; NULL if there is none. */
static char *find_suffix(const char *dir, const char *const *suffixes)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char *found = NULL;

	while (d && !found && (e = readdir(d))) {
		int i;

		for (i = 0; suffixes[i] && !found; i++)
			if (has_suffix(e->d_name, suffixes[i]))
				found = strdup(e->d_name);
	}
	if (d)
		closedir(d);
	return found;
}

/*
 * The base of a PEFT folder: -m, else what adapter_config.json says, absolute or relative to the
 * folder.
 */
static char *find_base(const char *dir, const char *override, struct err *err)
{
	struct peft p;
	char *path = NULL;

	if (peft_read(&p, dir, err) < 0)
		return NULL;
	if (override) {
		path = mem_strdup(override, err);
	} else if (!*p.base) {
		err_set(err, EX_DATAERR,
			"adapter '%s' does not say what its base model is; give it with -m, and the "
			"adapter with -a",
			dir);
	} else if (!(path = path_join(dir, p.base))) {
		err_oom(err, strlen(dir));
	} else if (!file_exists(path)) {
		err_set(err, EX_NOINPUT,
			"the base model '%s' of adapter '%s' is not at '%s'; give it with -m, and the adapter "
			"with -a",
			p.base, dir, path);
		free(path);
		path = NULL;
	}
	peft_release(&p);
	return path;
}

static int no_config(const char *dir, struct err *err)
{
	static const char *const gguf[] = { ".gguf", NULL };
	char *name = find_suffix(dir, gguf);

	if (name)
		err_set(err, EX_NOINPUT,
			"'%s' is no model folder (no config.json); for a GGUF model give the file, '%s/%s'",
			dir, dir, name);
	else
		err_set(err, EX_NOINPUT, "'%s' is no model folder: it has no config.json", dir);
	free(name);
	return -1;
}

/* Pickles run code when they are read, so nothing here reads them (S5). */
static int no_weights(const char *dir, struct err *err)
{
	static const char *const pickles[] = { ".bin", ".pt", ".pth", ".ckpt", NULL };
	char *name = find_suffix(dir, pickles);

	if (name)
		err_set(err, EX_DATAERR,
			"'%s' has weights only as a pickle ('%s'), which can run code and is not read; save it "
			"as safetensors "
			"(in Python: "
			"AutoModelForCausalLM.from_pretrained('%s').save_pretrained('%s-safetensors'))",
			dir, name, dir, dir);
	else
		err_set(err, EX_NOINPUT,
			"'%s' has no weights: neither model.safetensors nor model.safetensors.index.json", dir);
	free(name);
	return -1;
}

static int read_config(struct modelfile *m, const char *path, struct err *err)
{
	if (json_parse_file(&m->config, path, CONFIG_MAX, err) < 0)
		return -1;
	if (m->config.duplicates)
		return err_set(err, EX_DATAERR, "%s: a key stands twice", path);
	return arch_from_config(&m->arch, &m->config.root, path, err);
}

static int open_dir(struct modelfile *m, bool weights, struct err *err)
{
	char *path;
	int rc;

	if (!holds(m->dir, "config.json"))
		return no_config(m->dir, err);
	if (weights && !holds(m->dir, "model.safetensors") &&
		!holds(m->dir, "model.safetensors.index.json"))
		return no_weights(m->dir, err);
	if (!(path = path_join(m->dir, "config.json")))
		return err_oom(err, strlen(m->dir));
	rc = read_config(m, path, err);
	free(path);
	return rc == 0 && weights ? safetensors_open_dir(&m->st, m->dir, "model", err) : rc;
}

/* m->path is no PEFT folder any more: open what it names. */
static int open_files(struct modelfile *m, const char *path, bool weights, struct err *err)
{
	struct gguf_str type;

	if (is_dir(path)) {
		if (!(m->dir = mem_strdup(path, err)))
			return -1;
		if (holds(path, "adapter_config.json"))
			return err_set(
				err, EX_DATAERR, "'%s' is an adapter: it can't be the base of one", path);
		return open_dir(m, weights, err);
	}
	if (!file_exists(path))
		return err_set(err, EX_NOINPUT, "no such model: '%s'", path);
	if (!weights && has_suffix(path, ".json"))
		return (m->dir = path_dir(path)) ? read_config(m, path, err) : err_oom(err, strlen(path));
	if (has_suffix(path, ".safetensors") || has_suffix(path, ".json"))
		return err_set(err, EX_NOINPUT, "'%s' is a file of a model; give its folder", path);
	if (!(m->gguf_path = mem_strdup(path, err)) || gguf_open(&m->gguf, path, err) < 0)
		return -1;
	if (gguf_get_str(m->gguf, "general.type", &type, err) > 0 && type.n == 7 &&
		!memcmp(type.s, "adapter", 7))
		return err_set(err, EX_DATAERR,
			"'%s' is an adapter as GGUF, which is written but not read here; give the PEFT folder",
			path);
	return arch_from_gguf(&m->arch, m->gguf, path, err);
}

/* ---- which tensors ---- */

static const char *file_name(const struct modelfile *m)
{
	return m->gguf_path ? m->gguf_path : m->dir;
}

static const struct tensor *find(const struct modelfile *m, const struct arch_tensor *t)
{
	return m->gguf ? gguf_tensor_find(m->gguf, t->gguf_name) : safetensors_find(m->st, t->name);
}

static void put_shape(char out[96], int ndim, const uint64_t *shape)
{
	int i;
	size_t n = 0;

	out[0] = 0;
	for (i = 0; i < ndim && n < 80; i++)
		n += (size_t)snprintf(
			out + n, 96 - n, "%s%llu", i ? ", " : "", (unsigned long long)shape[i]);
}

static void check_tensor(const struct modelfile *m, const struct arch_tensor *t,
	const struct tensor *src, struct err *all)
{
	const char *name = m->gguf ? t->gguf_name : t->name;
	char got[96], want[96];

	if (!src) {
		err_more(all, EX_DATAERR, "%s: tensor '%s' is missing", file_name(m), name);
		return;
	}
	if (src->ndim != t->ndim || memcmp(src->shape, t->shape, sizeof(*t->shape) * (size_t)t->ndim)) {
		put_shape(got, src->ndim, src->shape);
		put_shape(want, t->ndim, t->shape);
		err_more(all, EX_DATAERR,
			"%s: tensor '%s' has shape [%s], but the model's %s makes it [%s]", src->file, name,
			got, m->gguf ? "keys" : "config.json", want);
	} else if (!dtype_is_float(src->dtype) && dtype_info[src->dtype].block == 1) {
		err_more(all, EX_DATAERR, "%s: tensor '%s' of type %s can't be computed with", src->file,
			name, dtype_info[src->dtype].name);
	} else if (t->gguf_heads && t->ndim == 1 && dtype_info[src->dtype].block > 1) {
		err_more(all, EX_DATAERR, "%s: tensor '%s' of type %s is a bias; it must not be quantised",
			src->file, name, dtype_info[src->dtype].name);
	}
}

/* A tied model's file may hold the embedding a second time, if it is the same (C4). */
static int check_tied_head(const struct modelfile *m, struct err *err)
{
	const struct tensor *head = safetensors_find(m->st, "lm_head.weight"),
						*embed = safetensors_find(m->st, "model.embed_tokens.weight");

	if (head && embed && head->dtype == embed->dtype && head->bytes == embed->bytes &&
		!memcmp(head->data, embed->data, head->bytes))
		return 0;
	return err_set(err, EX_DATAERR,
		"%s: config.json says tie_word_embeddings, but '%s' holds an lm_head.weight that differs "
		"from "
		"model.embed_tokens.weight; set it to false, or take the tensor out",
		m->dir, head ? path_base(head->file) : "");
}

static bool by_name_found(
	const struct arch_tensor *const *sorted, size_t n, const char *name, bool gguf)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int d = strcmp(name, gguf ? sorted[mid]->gguf_name : sorted[mid]->name);

		if (!d)
			return true;
		if (d < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return false;
}

static int by_hf_name(const void *a, const void *b)
{
	return strcmp((*(const struct arch_tensor *const *)a)->name,
		(*(const struct arch_tensor *const *)b)->name);
}

static int by_gguf_name(const void *a, const void *b)
{
	return strcmp((*(const struct arch_tensor *const *)a)->gguf_name,
		(*(const struct arch_tensor *const *)b)->gguf_name);
}

/* The table sorted by one of its names; caller frees. */
static const struct arch_tensor **sorted_table(
	const struct modelfile *m, bool gguf, struct err *err)
{
	const struct arch_tensor **s = mem_zalloc(m->ntensors, sizeof(*s), err);
	size_t i;

	for (i = 0; s && i < m->ntensors; i++)
		s[i] = &m->tensors[i];
	if (s)
		qsort(s, m->ntensors, sizeof(*s), gguf ? by_gguf_name : by_hf_name);
	return s;
}

/* Computed at load, or spoken for already. */
static bool not_a_weight(const struct modelfile *m, const char *name)
{
	return m->gguf ? !strcmp(name, "rope_freqs.weight")
				   : has_suffix(name, ".rotary_emb.inv_freq") ||
			(m->arch.tied && !strcmp(name, "lm_head.weight"));
}

static int check_surplus(const struct modelfile *m, struct err *all, struct err *err)
{
	const struct arch_tensor **sorted = sorted_table(m, m->gguf != NULL, err);
	size_t i, n = m->gguf ? gguf_tensor_count(m->gguf) : safetensors_count(m->st);

	if (!sorted)
		return -1;
	for (i = 0; i < n; i++) {
		const struct tensor *t = m->gguf ? gguf_tensor_at(m->gguf, i) : safetensors_at(m->st, i);

		if (!by_name_found(sorted, m->ntensors, t->name, m->gguf != NULL) &&
			!not_a_weight(m, t->name))
			err_more(all, EX_DATAERR, "%s: tensor '%s' is none of a %s model's", t->file, t->name,
				m->arch.family);
	}
	free(sorted);
	return 0;
}

static int match_tensors(struct modelfile *m, struct err *err)
{
	struct err all = {0};
	size_t i;

	m->src = mem_zalloc(m->ntensors, sizeof(*m->src), err);
	if (!m->src)
		return -1;
	if (m->st && !m->arch.tied && !safetensors_find(m->st, "lm_head.weight") &&
		safetensors_find(m->st, "model.embed_tokens.weight"))
		return err_set(err, EX_DATAERR,
			"%s: config.json does not say tie_word_embeddings, and there is no lm_head.weight: set "
			"it to true "
			"if the head is the embedding, else the tensor is missing",
			m->dir);
	for (i = 0; i < m->ntensors; i++) {
		m->src[i] = find(m, &m->tensors[i]);
		check_tensor(m, &m->tensors[i], m->src[i], &all);
	}
	if (check_surplus(m, &all, err) < 0)
		return -1;
	if (all.code) {
		*err = all;
		return -1;
	}
	return m->st && m->arch.tied && safetensors_find(m->st, "lm_head.weight")
		? check_tied_head(m, err)
		: 0;
}

int modelfile_open(
	struct modelfile *m, const char *path, const char *base_override, bool weights, struct err *err)
{
	char *at, *base = NULL;
	int rc = -1;

	*m = (struct modelfile){0};
	at = resolve_checkpoint(path, err);
	if (!at || !(m->path = mem_strdup(path, err)))
		goto done;
	if (is_dir(at) && holds(at, "adapter_config.json")) {
		m->adapter_dir = at;
		at = NULL;
		if (!(base = find_base(m->adapter_dir, base_override, err)) ||
			!(at = resolve_checkpoint(base, err)))
			goto done;
	}
	if (open_files(m, at, weights, err) < 0 ||
		arch_tensors(&m->arch, &m->tensors, &m->ntensors, err) < 0)
		goto done;
	rc = weights ? match_tensors(m, err) : 0;
done:
	free(at);
	free(base);
	if (rc < 0)
		modelfile_close(m);
	return rc;
}

void modelfile_close(struct modelfile *m)
{
	free(m->path);
	free(m->dir);
	free(m->gguf_path);
	free(m->adapter_dir);
	free(m->tensors);
	free(m->src);
	arch_release(&m->arch);
	json_release(&m->config);
	if (m->st)
		safetensors_close(m->st);
	if (m->gguf)
		gguf_close(m->gguf);
	*m = (struct modelfile){0};
}

/* ---- what is in them ---- */

int modelfile_index(const struct modelfile *m, const char *hf_name)
{
	size_t i;

	for (i = 0; i < m->ntensors; i++)
		if (!strcmp(m->tensors[i].name, hf_name))
			return (int)i;
	return -1;
}

int modelfile_read_f32(
	const struct modelfile *m, size_t i, uint64_t row0, uint64_t rows, float *dst, struct err *err)
{
	const struct arch_tensor *t = &m->tensors[i];
	const struct tensor *src = m->src[i];
	uint64_t width = t->ndim == 2 ? t->shape[1] : 1, r;
	bool permuted = m->gguf && t->gguf_heads;
	int bad;

	if (row0 > t->shape[0] || rows > t->shape[0] - row0)
		return err_set(err, EX_SOFTWARE, "rows %llu..%llu of '%s' were asked for",
			(unsigned long long)row0, (unsigned long long)(row0 + rows), t->name);
	if (!permuted && t->ndim == 2) {
		bad = dtype_to_f32(
			src->dtype, src->data + row0 * dtype_bytes(src->dtype, width), rows * width, dst);
	} else if (!permuted && dtype_info[src->dtype].block == 1) {
		bad = dtype_to_f32(src->dtype, src->data + dtype_bytes(src->dtype, row0), rows, dst);
	} else if (!permuted) {
		/* A quantised vector: only whole blocks can be read. */
		float *all = row0 || rows < t->shape[0] ? mem_zalloc(t->shape[0], sizeof(*all), err) : dst;

		if (!all)
			return -1;
		bad = dtype_to_f32(src->dtype, src->data, t->shape[0], all);
		if (all != dst) {
			memcpy(dst, all + row0, rows * sizeof(*dst));
			free(all);
		}
	} else {
		for (bad = 0, r = row0; !bad && r < row0 + rows; r++)
			bad = dtype_to_f32(src->dtype,
				src->data +
					gguf_row(r, t->gguf_heads, t->shape[0]) * dtype_bytes(src->dtype, width),
				width, dst + (r - row0) * width);
	}
	return bad ? err_set(err, EX_DATAERR, "%s: tensor '%s' of type %s can't be read", src->file,
					 src->name, dtype_info[src->dtype].name)
			   : 0;
}

enum dtype modelfile_dtype(const struct modelfile *m)
{
	uint64_t n[DT_COUNT] = {0};
	int t, best = DT_F32;
	size_t i;

	for (i = 0; m->src && i < m->ntensors; i++)
		if (m->tensors[i].ndim == 2)
			n[m->src[i]->dtype] += tensor_count(m->src[i]);
	for (t = 0; t < DT_COUNT; t++)
		if (n[t] > n[best])
			best = t;
	return m->src ? (enum dtype)best : m->arch.dtype;
}

static void add_u64(struct sha256 *h, uint64_t v)
{
	sha256_add_u32(h, (uint32_t)v);
	sha256_add_u32(h, (uint32_t)(v >> 32));
}

int modelfile_identity(const struct modelfile *m, char hex[SHA256_HEX], struct err *err)
{
	const struct arch_tensor **sorted = sorted_table(m, false, err);
	struct sha256 *h = sorted ? sha256_new(err) : NULL;
	size_t i;
	int d;

	if (!h) {
		free(sorted);
		return -1;
	}
	for (i = 0; i < m->ntensors; i++) {
		const struct tensor *t = m->src[sorted[i] - m->tensors];
		const char *dtype = dtype_word(t->dtype);

		sha256_add(h, sorted[i]->name, strlen(sorted[i]->name) + 1);
		sha256_add(h, dtype, strlen(dtype) + 1);
		sha256_add_u32(h, (uint32_t)t->ndim);
		for (d = 0; d < t->ndim; d++)
			add_u64(h, t->shape[d]);
		add_u64(h, hash64(t->data, t->bytes));
		file_forget(t->data, t->bytes);
	}
	sha256_end(h, hex);
	free(sorted);
	return 0;
}

int modelfile_check_base(const struct modelfile *m, const char *adapter, struct err *err)
{
	char recorded[SHA256_HEX] = "", found[SHA256_HEX];
	char *list = path_join(adapter, "tune.json");
	bool ours = list && is_file(list);

	free(list);
	if (!ours)
		return 0;
	if (tunejson_verify(adapter, recorded, err) < 0)
		return -1;
	if (!recorded[0])
		return 0;
	if (modelfile_identity(m, found, err) < 0)
		return -1;
	if (strcmp(recorded, found))
		return err_set(err, EX_DATAERR,
			"adapter '%s' was trained on another base model: its identity is %.16s..., that of "
			"'%s' is %.16s...",
			adapter, recorded, m->gguf_path ? m->gguf_path : m->dir, found);
	return 0;
}
