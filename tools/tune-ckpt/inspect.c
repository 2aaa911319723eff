/* inspect: what a file or folder is, what is in it, where it came from. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "libcommon/text/chat.h"
#include "tools/tune-ckpt/ckpt.h"
#include "tools/tune-ckpt/report.h"

enum { STATE_MAX = 16 << 20, LINE = 160 };

/* ---- tensors ---- */

/* A view on the tensors of whatever holds them. */
struct list { const struct safetensors *st; const struct gguf *g; };

static size_t count(const struct list *l)
{
	return l->g ? gguf_tensor_count(l->g) : safetensors_count(l->st);
}

static const struct tensor *at(const struct list *l, size_t i)
{
	return l->g ? gguf_tensor_at(l->g, i) : safetensors_at(l->st, i);
}

static void tell_counts(struct report *r, const struct list *l)
{
	uint64_t per[DT_COUNT] = {0}, bytes = 0, total = 0;
	char size[24], line[LINE];

	for (size_t i = 0; i < count(l); i++) {
		per[at(l, i)->dtype] += tensor_count(at(l, i));
		total += tensor_count(at(l, i));
		bytes += at(l, i)->bytes;
	}
	report_int(r, "tensors", (int64_t)count(l));
	report_int(r, "parameters", (int64_t)total);
	for (int t = 0; t < DT_COUNT; t++)
		if (per[t]) {
			snprintf(line, sizeof(line), "  in %s", dtype_word((enum dtype)t));
			report_int(r, r->json ? line + 5 : line, (int64_t)per[t]);
		}
	size_text(bytes, size);
	if (r->json)
		report_int(r, "bytes", (int64_t)bytes);
	else
		report_str(r, "size", size);
}

static void tell_tensor(struct report *r, const struct tensor *t)
{
	char shape[LINE], line[2 * LINE];
	size_t n = (size_t)snprintf(shape, sizeof(shape), "[");

	for (int i = 0; i < t->ndim && n < sizeof(shape) - 24; i++)
		n += (size_t)snprintf(
			shape + n, sizeof(shape) - n, "%s%llu", i ? ", " : "", (unsigned long long)t->shape[i]);
	if (!r->json) {
		snprintf(shape + n, sizeof(shape) - n, "]");
		snprintf(line, sizeof(line), "%-5s %-14s %s", dtype_word(t->dtype), shape, t->name);
		report_str(r, "  tensor", line);
		return;
	}
	json_w_obj(&r->w);
	json_w_name(&r->w, "name"); json_w_str(&r->w, t->name);
	json_w_name(&r->w, "dtype"); json_w_str(&r->w, dtype_word(t->dtype));
	json_w_name(&r->w, "shape");
	json_w_arr(&r->w);
	for (int i = 0; i < t->ndim; i++)
		json_w_int(&r->w, (int64_t)t->shape[i]);
	json_w_end(&r->w);
	json_w_end(&r->w);
}

static void tell_tensors(struct report *r, const struct list *l)
{
	if (r->json) {
		json_w_name(&r->w, "list");
		json_w_arr(&r->w);
	}
	for (size_t i = 0; i < count(l); i++)
		tell_tensor(r, at(l, i));
	if (r->json)
		json_w_end(&r->w);
}

/* ---- what a model is ---- */

static void tell_rope(struct report *r, const struct arch *a)
{
	char line[LINE];

	if (a->rope == ROPE_LINEAR)
		snprintf(line, sizeof(line), "linear, factor %g", a->rope_factor);
	else if (a->rope == ROPE_LLAMA3)
		snprintf(line, sizeof(line), "llama3, factor %g, low %g, high %g, original %d",
			a->rope_factor, a->rope_low_freq, a->rope_high_freq, a->rope_original);
	else
		snprintf(line, sizeof(line), "%s", a->rope == ROPE_NONE ? "no rope" : "none");
	report_num(r, "rope_theta", a->rope_theta);
	report_str(r, "rope_scaling", line);
}

static void tell_arch(struct report *r, const struct arch *a)
{
	const struct { const char *name; int v; } sizes[] = {
		{ "dim", a->dim }, { "layers", a->layers }, { "heads", a->heads },
		{ "kv_heads", a->kv_heads }, { "head_dim", a->head_dim },
		{ "ffn_dim", a->ffn_dim }, { "vocab", a->vocab }, { "max_positions", a->max_positions },
	};
	const char *biases[3];
	size_t n = 0;

	report_str(r, "family", a->family);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		report_int(r, sizes[i].name, sizes[i].v);
	tell_rope(r, a);
	report_num(r, "norm_eps", a->norm_eps);
	report_str(r, "head", a->tied ? "tied to the embedding" : "its own");
	if (a->window)
		report_int(r, "window", a->window);
	if (a->bias_qkv)
		biases[n++] = "q k v";
	if (a->bias_o)
		biases[n++] = "o";
	if (a->bias_mlp)
		biases[n++] = "mlp";
	if (n)
		report_strs(r, "biases", biases, n);
}

static void tell_template(struct report *r, const struct tokenizer *t)
{
	static const char *const none[1][2];
	struct chat_template *c = NULL;
	struct err err = {0};

	if (!tokenizer_chat_template(t))
		report_str(r, "template", "none");
	else if (chat_open(&c, t, "", none, 0, &err) < 0)
		report_str(r, "template", "unknown: data.template=chatml or another one must be given");
	else
		report_str(r, "template", c ? chat_name(c) : "none");
	if (c)
		chat_close(c);
}

static void tell_tokenizer(struct report *r, const char *path)
{
	struct tokenizer *t;
	struct err err = {0};
	uint32_t ids[32];
	char line[LINE];

	if (is_dir(path) && !dir_has(path, "tokenizer.json")) {
		report_str(r, "tokenizer", "none");
		return;
	}
	if (tokenizer_open(&t, path, &err) < 0) {
		report_str(r, "tokenizer", err.msg);
		return;
	}
	snprintf(line, sizeof(line), "byte-level BPE, %s", tokenizer_pretokenizer(t));
	report_str(r, "tokenizer", line);
	report_int(r, "ids", tokenizer_vocab(t));
	if (tokenizer_bos(t) >= 0) {
		ids[0] = (uint32_t)tokenizer_bos(t);
		report_ids(r, tokenizer_add_bos(t) ? "bos" : "bos_not_added", ids, 1);
	}
	report_ids(r, "stop", ids, tokenizer_stop_ids(t, ids));
	tell_template(r, t);
	report_str(r, "tokenizer_sha256", tokenizer_sha256(t));
	tokenizer_close(t);
}

/* ---- where it came from ---- */

static void tell_state(struct report *r, const char *dir)
{
	static const char *const names[] = { "step", "epoch", "updates" };
	char *path = path_join(dir, "state/state.json");
	struct json_doc doc = {0};
	struct err err = {0};

	if (path && is_file(path) && json_parse_file(&doc, path, STATE_MAX, &err) == 0)
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			if (json_is(json_get(&doc.root, names[i]), JSON_INT))
				report_int(r, names[i], json_get(&doc.root, names[i])->i);
	json_release(&doc);
	free(path);
}

/* The base's identity as tune.json records it; whether its list holds is verify's to check. */
static void tell_origin(struct report *r, const char *dir)
{
	char *path = path_join(dir, "tune.json");
	struct json_doc doc = {0};
	struct err err = {0};
	const struct json *base;

	if (path && is_file(path)) {
		if (json_parse_file(&doc, path, STATE_MAX, &err) < 0)
			report_str(r, "broken", err.msg);
		else if (json_is(base = json_get(&doc.root, "base"), JSON_STR) && base->n)
			report_str(r, "base_identity", base->s);
		tell_state(r, dir);
	}
	json_release(&doc);
	free(path);
}

/* ---- the kinds ---- */

static int tell_identity(
	struct report *r, const struct args *a, const struct modelfile *m, struct err *err)
{
	char hex[SHA256_HEX];

	if (!a->hash)
		return 0;
	if (modelfile_identity(m, hex, err) < 0)
		return -1;
	report_str(r, "identity", hex);
	return 0;
}

/* A file that these programs can't compute with is still shown: its tensors, and why not. */
static int tell_unsupported(struct report *r, const struct tool *t, const char *path, bool gguf,
	const struct err *why, struct err *err)
{
	struct safetensors *st = NULL;
	struct gguf *g = NULL;
	struct list l;
	struct err none = {0};

	if ((gguf ? gguf_open(&g, path, &none) : safetensors_open(&st, path, &none)) < 0) {
		*err = *why;
		return -1;
	}
	report_str(r, "unsupported", why->msg);
	l = (struct list){ st, g };
	tell_counts(r, &l);
	if (t->verbose)
		tell_tensors(r, &l);
	safetensors_close(st);
	gguf_close(g);
	return 0;
}

static int tell_model(struct report *r, const struct tool *t, const struct args *a,
	const char *path, bool gguf, struct err *err)
{
	struct modelfile m;
	struct err why = {0};
	struct list l;
	int rc;

	if (modelfile_open(&m, path, NULL, true, &why) < 0)
		return tell_unsupported(r, t, path, gguf, &why, err);
	l = (struct list){ m.st, m.gguf };
	tell_arch(r, &m.arch);
	tell_counts(r, &l);
	tell_tokenizer(r, m.gguf_path ? m.gguf_path : m.dir);
	rc = tell_identity(r, a, &m, err);
	if (m.dir)
		tell_origin(r, m.dir);
	if (t->verbose)
		tell_tensors(r, &l);
	modelfile_close(&m);
	return rc;
}

static int tell_adapter(struct report *r, const struct tool *t, const char *dir, struct err *err)
{
	struct safetensors *st;
	struct list l;
	struct peft p;

	if (peft_read(&p, dir, err) < 0)
		return -1;
	report_int(r, "rank", p.rank);
	report_num(r, "alpha", p.alpha);
	report_num(r, "scale", peft_scale(&p));
	report_strs(r, "targets", (const char *const *)p.targets, p.ntargets);
	if (p.nmodules)
		report_strs(r, "modules_to_save", (const char *const *)p.modules_to_save, p.nmodules);
	report_str(r, "base", *p.base ? p.base : "not said");
	peft_release(&p);
	if (adapter_weights(&st, dir, err) < 0)
		return -1;
	l = (struct list){ .st = st };
	tell_counts(r, &l);
	tell_tokenizer(r, dir);
	tell_origin(r, dir);
	if (t->verbose)
		tell_tensors(r, &l);
	safetensors_close(st);
	return 0;
}

static int tell_tensor_file(
	struct report *r, const struct tool *t, const char *path, struct err *err)
{
	struct safetensors *st;
	struct list l;

	if (safetensors_open(&st, path, err) < 0)
		return -1;
	l = (struct list){ .st = st };
	tell_counts(r, &l);
	if (t->verbose)
		tell_tensors(r, &l);
	safetensors_close(st);
	return 0;
}

static int tell_gguf_adapter(
	struct report *r, const struct tool *t, const char *path, struct err *err)
{
	struct gguf *g;
	struct gguf_str s = {0};
	struct list l;
	double alpha = 0;
	char line[LINE];

	if (gguf_open(&g, path, err) < 0)
		return -1;
	if (gguf_get_str(g, "general.architecture", &s, err) > 0) {
		snprintf(line, sizeof(line), "%.*s", (int)(s.n < 64 ? s.n : 64), s.s);
		report_str(r, "family", line);
	}
	if (gguf_get_num(g, "adapter.lora.alpha", &alpha, err) > 0)
		report_num(r, "alpha", alpha);
	l = (struct list){ .g = g };
	tell_counts(r, &l);
	if (t->verbose)
		tell_tensors(r, &l);
	gguf_close(g);
	return 0;
}

static int is_step(const struct dirent *e)
{
	return !strncmp(e->d_name, "step-", 5);
}

/* The run's steps, then its latest checkpoint. */
static int tell_steps(struct report *r, const char *run, const char *latest, struct err *err)
{
	char *steps = path_join(run, "steps"), *best = path_join(run, "best"), *real;
	struct dirent **e = NULL;
	int n = steps ? scandir(steps, &e, is_step, alphasort) : -1;
	const char **names = n > 0 ? mem_zalloc((size_t)n, sizeof(*names), err) : NULL;

	for (int i = 0; names && i < n; i++)
		names[i] = e[i]->d_name;
	if (names)
		report_strs(r, "steps", names, (size_t)n);
	report_str(r, "latest", path_base(latest));
	if (best && (real = realpath(best, NULL))) {
		report_str(r, "best", path_base(real));
		free(real);
	}
	for (int i = 0; i < n; i++)
		free(e[i]);
	free(e);
	free(names);
	free(steps);
	free(best);
	return n > 0 && !names ? -1 : 0;
}

static int tell(
	struct report *r, const struct tool *t, const struct args *a, const char *path, struct err *err)
{
	struct thing x;
	char *latest;
	int rc;

	if (kind_of(&x, path, err) < 0)
		return -1;
	report_str(r, "kind", kind_name(&x));
	switch (x.kind) {
	case KIND_RUN:
		if (!(latest = resolve_checkpoint(path, err)))
			return -1;
		rc = tell_steps(r, path, latest, err);
		if (rc == 0 && (rc = kind_of(&x, latest, err)) == 0)
			rc = x.kind == KIND_ADAPTER ? tell_adapter(r, t, latest, err)
										: tell_model(r, t, a, latest, false, err);
		free(latest);
		return rc;
	case KIND_ADAPTER:
		return tell_adapter(r, t, path, err);
	case KIND_ADAPTER_GGUF:
		return tell_gguf_adapter(r, t, path, err);
	case KIND_TENSORS:
		return tell_tensor_file(r, t, path, err);
	default:
		return tell_model(r, t, a, path, x.kind == KIND_GGUF, err);
	}
}

int verb_inspect(const struct tool *t, const struct args *a, struct err *err)
{
	for (int i = 0; i < t->argc; i++) {
		struct report r;
		int rc;

		report_begin(&r, t->json);
		report_str(&r, "path", t->argv[i]);
		rc = tell(&r, t, a, t->argv[i], err);
		if (rc < 0) {
			buf_release(&r.b);
			return -1;
		}
		if (i > 0 && !t->json)
			putchar('\n');
		report_end(&r);
	}
	return 0;
}
