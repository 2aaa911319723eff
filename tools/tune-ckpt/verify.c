/*
 * verify: hashes of checkpoints, whole headers, finite numbers, a model's tensors and tokenizer
 * that fit together.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libcommon/file.h"
#include "libcommon/text/tokenizer.h"
#include "libcommon/tunejson.h"
#include "tools/tune-ckpt/verify.h"

static int check_finite(const struct tensor *t, struct verdict *v, struct err *err)
{
	v->tensors++;
	v->bytes += t->bytes;
	return tensor_finite(t, err);
}

static int check_safetensors(const struct safetensors *st, struct verdict *v, struct err *err)
{
	for (size_t i = 0; i < safetensors_count(st); i++)
		if (check_finite(safetensors_at(st, i), v, err) < 0)
			return -1;
	return 0;
}

static int check_gguf(
	const struct gguf *g, const char *path, struct verdict *v, struct err *err)
{
	if (gguf_surplus(g))
		return err_set(err, EX_DATAERR, "%s: %llu bytes follow the last tensor", path,
			(unsigned long long)gguf_surplus(g));
	for (size_t i = 0; i < gguf_tensor_count(g); i++)
		if (check_finite(gguf_tensor_at(g, i), v, err) < 0)
			return -1;
	return 0;
}

/* A model's tokenizer, where it has one: its ids are rows of the embedding (K5). */
static int check_tokenizer(const struct modelfile *m, struct err *err)
{
	struct tokenizer *t;
	uint32_t ids;

	if (m->dir && !dir_has(m->dir, "tokenizer.json"))
		return 0;
	if (tokenizer_open(&t, m->dir ? m->dir : m->gguf_path, err) < 0)
		return -1;
	ids = tokenizer_vocab(t);
	tokenizer_close(t);
	if (ids > (uint32_t)m->arch.vocab)
		return err_set(err, EX_DATAERR,
			"%s: the tokenizer has %u ids, but the model's embedding only %d rows", m->path, ids,
			m->arch.vocab);
	return 0;
}

static int check_model(const char *path, struct verdict *v, struct err *err)
{
	struct modelfile m;
	int rc;

	if (modelfile_open(&m, path, NULL, true, err) < 0)
		return -1;
	rc = check_tokenizer(&m, err);
	if (rc == 0)
		rc = m.gguf ? check_gguf(m.gguf, m.gguf_path, v, err) : check_safetensors(m.st, v, err);
	modelfile_close(&m);
	return rc;
}

/* A and B of every pair are there and not empty (R6). */
static int check_pairs(
	const struct safetensors *st, const struct peft *p, const char *dir, struct err *err)
{
	size_t a = 0, b = 0;

	for (size_t i = 0; i < safetensors_count(st); i++) {
		const struct tensor *t = safetensors_at(st, i);

		if (t->bytes == 0)
			return err_set(err, EX_DATAERR, "%s: tensor '%s' has no elements", t->file, t->name);
		a += has_suffix(t->name, ".lora_A.weight") && t->ndim == 2 &&
			t->shape[0] == (uint64_t)p->rank;
		b += has_suffix(t->name, ".lora_B.weight") && t->ndim == 2 &&
			t->shape[1] == (uint64_t)p->rank;
	}
	if (a == 0 || a != b || safetensors_count(st) - a - b != p->nmodules)
		return err_set(err, EX_DATAERR,
			"%s: %zu lora_A, %zu lora_B of rank %d and %zu other tensors are no whole adapter", dir,
			a, b, p->rank, safetensors_count(st) - a - b);
	return 0;
}

/*
 * The base may be elsewhere: what can be said without it is checked, and with it the names and
 * shapes too.
 */
static int check_adapter(const char *dir, struct verdict *v, struct err *err)
{
	struct safetensors *st = NULL;
	struct modelfile m;
	struct adapter ad;
	struct err no_base = {0};
	struct peft p;
	int rc = -1;

	if (peft_read(&p, dir, err) < 0)
		return -1;
	if (adapter_weights(&st, dir, err) < 0 || check_pairs(st, &p, dir, err) < 0 ||
		check_safetensors(st, v, err) < 0)
		goto done;
	rc = 0;
	if (modelfile_open(&m, dir, NULL, false, &no_base) == 0) {
		rc = adapter_open(&ad, dir, &m, err);
		if (rc == 0)
			adapter_close(&ad);
		modelfile_close(&m);
	}
done:
	safetensors_close(st);
	peft_release(&p);
	return rc;
}

static int check_state(const char *dir, struct verdict *v, struct err *err)
{
	struct safetensors *st;
	char *state = path_join(dir, "state");
	int rc = 0;

	if (!state)
		return err_oom(err, strlen(dir));
	if (dir_has(state, "optim.safetensors") || dir_has(state, "optim.safetensors.index.json")) {
		rc = safetensors_open_dir(&st, state, "optim", err);
		if (rc == 0) {
			rc = check_safetensors(st, v, err);
			safetensors_close(st);
		}
	}
	free(state);
	return rc;
}

static int check_tensors(const char *path, struct verdict *v, struct err *err)
{
	struct safetensors *st;
	int rc = safetensors_open(&st, path, err);

	if (rc < 0)
		return -1;
	rc = check_safetensors(st, v, err);
	safetensors_close(st);
	return rc;
}

static int check_gguf_file(const char *path, struct verdict *v, struct err *err)
{
	struct gguf *g;
	int rc = gguf_open(&g, path, err);

	if (rc < 0)
		return -1;
	rc = check_gguf(g, path, v, err);
	gguf_close(g);
	return rc;
}

static int is_step(const struct dirent *e)
{
	return !strncmp(e->d_name, "step-", 5) && e->d_name[5] &&
		!e->d_name[5 + strspn(e->d_name + 5, "0123456789")];
}

/*
 * A step that was not finished has no tune.json, which is an error here, though not for a run that
 * goes on.
 */
static int check_step(const char *dir, struct verdict *v, struct err *err)
{
	struct thing x;

	if (tunejson_verify(dir, NULL, err) < 0 || kind_of(&x, dir, err) < 0)
		return -1;
	if ((x.kind == KIND_ADAPTER ? check_adapter(dir, v, err) : check_model(dir, v, err)) < 0)
		return -1;
	return check_state(dir, v, err);
}

/* Each step of the run, and that latest and best point at one. */
static int check_run(const char *run, struct verdict *v, struct err *err)
{
	static const char *const links[] = { "latest", "best" };
	struct dirent **e = NULL;
	struct stat st;
	char *steps = path_join(run, "steps"), *path;
	int n = steps ? scandir(steps, &e, is_step, alphasort) : -1, rc = n > 0 ? 0 : -1;

	if (n <= 0)
		err_set(err, EX_DATAERR, "'%s' is a run without a checkpoint", run);
	for (int i = 0; i < n; i++) {
		path = rc == 0 ? path_join(steps, e[i]->d_name) : NULL;
		if (rc == 0)
			rc = path ? check_step(path, v, err) : err_oom(err, strlen(run));
		free(path);
		free(e[i]);
	}
	for (int i = 0; i < 2 && rc == 0; i++) {
		path = path_join(run, links[i]);
		if (path && (i == 0 || !lstat(path, &st)) && !dir_has(path, "tune.json"))
			rc = err_set(err, EX_DATAERR, "'%s' does not lead to a checkpoint", path);
		free(path);
	}
	free(e);
	free(steps);
	return rc;
}

int verify_path(const char *path, struct verdict *v, struct err *err)
{
	struct thing x;
	int rc = kind_of(&x, path, &v->why);

	if (rc == 0 && (x.checkpoint || x.unfinished))
		rc = check_step(path, v, &v->why);
	else if (rc == 0)
		rc = x.kind == KIND_RUN           ? check_run(path, v, &v->why)
			: x.kind == KIND_ADAPTER      ? check_adapter(path, v, &v->why)
			: x.kind == KIND_TENSORS      ? check_tensors(path, v, &v->why)
			: x.kind == KIND_ADAPTER_GGUF ? check_gguf_file(path, v, &v->why)
										  : check_model(path, v, &v->why);
	if (rc < 0 && v->why.code == EX_OSERR) {
		*err = v->why;
		return -1;
	}
	return 0;
}

static void print_verdict(const struct tool *t, const char *path, const struct verdict *v)
{
	struct buf b = {0};
	struct json_w w = { .out = &b };
	char size[24];

	if (!t->json) {
		size_text(v->bytes, size);
		/* a line of the reason after the other */
		for (const char *s = v->why.msg; v->why.code && *s; s += *s == '\n') {
			size_t n = strcspn(s, "\n");

			printf("%s: bad: %.*s\n", path, (int)n, s);
			s += n;
		}
		if (!v->why.code)
			printf("%s: ok (%llu tensors, %s)\n", path, (unsigned long long)v->tensors, size);
		return;
	}
	json_w_obj(&w);
	json_w_name(&w, "path"); json_w_str(&w, path);
	json_w_name(&w, "ok"); json_w_bool(&w, !v->why.code);
	json_w_name(&w, "tensors"); json_w_int(&w, (int64_t)v->tensors);
	json_w_name(&w, "bytes"); json_w_int(&w, (int64_t)v->bytes);
	if (v->why.code) {
		json_w_name(&w, "why"); json_w_str(&w, v->why.msg);
	}
	json_w_end(&w);
	if (!b.oom)
		puts(b.p);
	buf_release(&b);
}

int verb_verify(const struct tool *t, const struct args *a, struct err *err)
{
	int bad = 0;
	bool missing = false;

	if (a->each && (t->argc || strcmp(a->each, "-")))
		return err_set(err, EX_USAGE,
			t->argc ? "verify takes paths or --each -, not both"
					: "--each takes '-', standard input, only");
	if (a->each)
		return verify_each(err);
	if (!t->argc)
		return err_set(err, EX_USAGE, "verify takes at least one path, or --each -");
	for (int i = 0; i < t->argc; i++) {
		struct verdict v = {0};

		if (verify_path(t->argv[i], &v, err) < 0)
			return -1;
		print_verdict(t, t->argv[i], &v);
		bad += v.why.code != 0;
		missing = missing || (v.why.code && !file_exists(t->argv[i]));
	}
	return missing ? EX_NOINPUT : bad ? EX_CHECK_FAILED : 0;
}
