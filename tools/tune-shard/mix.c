#include "mix.h"

#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"

/*
 * A stream or an input is called by its whole name, its file name, or that without what follows
 * the first dot.
 */
static bool called(const char *path, const char *name)
{
	const char *base = path_base(path);
	size_t stem = strcspn(base, ".");

	return !strcmp(path, name) || !strcmp(base, name) ||
		(stem && strlen(name) == stem && !strncmp(base, name, stem));
}

/* A stream of the folder that is called so. */
static bool in_folder(const char *path, const char *name)
{
	char *dir = strchr(path, '/') ? path_dir(path) : NULL;
	size_t n = strlen(name);
	bool yes;

	while (n > 1 && name[n - 1] == '/')
		n--;
	yes = dir && strlen(dir) == n && !strncmp(dir, name, n);
	free(dir);
	return yes;
}

static void list_names(char *const *names, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s'%s'", i ? ", " : "", names[i]);
}

/* Where documents come from, and what has been given a weight. */
struct table {
	const struct config *cfg;
	const struct stream_merge *in;
	const struct stream_header *h;
	char *const *paths;
	size_t npaths;
	size_t *stream, *input;         /* the source of each; SIZE_MAX = none */
};

static int no_such(const struct table *t, const char *name, struct err *err)
{
	struct buf all = {0};

	list_names(t->paths, t->npaths, &all);
	buf_printf(&all, "; made from ");
	list_names(t->h->inputs, t->h->ninputs, &all);
	cfg_error(t->cfg, err, "shard.mix",
		"no stream and no input of one is called '%s'; there are %s", name,
		buf_ok(&all, err) < 0 ? "" : all.p);
	buf_release(&all);
	return -1;
}

/* Give those of names[0..n) that are called `name` to the source; how many, or -1. */
static int claim(const struct table *t, const char *name, size_t source, char *const *names,
	size_t n, size_t *of, struct err *err)
{
	int found = 0;

	for (size_t i = 0; i < n; i++) {
		if (!called(names[i], name))
			continue;
		if (found++)
			return cfg_error(t->cfg, err, "shard.mix", "'%s' fits '%s' too; %s", name, names[i],
				strcmp(names[i], name) ? "give whole names" : "it is given twice");
		if (of[i] != SIZE_MAX)
			return cfg_error(t->cfg, err, "shard.mix", "'%s' has two weights", names[i]);
		of[i] = source;
	}
	return found;
}

/* Streams first, then all of a folder, then what the streams' documents were made from. */
static int set_source(struct mix *m, struct table *t, size_t item, struct err *err)
{
	const char *name = cfg_item_name(t->cfg, "shard.mix", item),
			   *text = cfg_item(t->cfg, "shard.mix", item);
	char *end;
	double w = strtod(text, &end);
	int got;

	if (*end || end == text || !(w >= 0) || w > 1e12)
		return cfg_error(t->cfg, err, "shard.mix",
			"the weight of '%s' must be a number from 0 on, found '%s'", name, text);
	m->sources[item] = (struct mix_source){ .name = name, .weight = w };
	if ((got = claim(t, name, item, t->paths, t->npaths, t->stream, err)) != 0)
		return got < 0 ? -1 : 0;
	for (size_t i = 0; i < t->npaths; i++)
		if (t->stream[i] == SIZE_MAX && in_folder(t->paths[i], name)) {
			t->stream[i] = item;
			got = 1;
		}
	if (!got)
		got = claim(t, name, item, t->h->inputs, t->h->ninputs, t->input, err);
	return got < 0 ? -1 : got ? 0 : no_such(t, name, err);
}

/* The more exact name wins: an input's own weight, else that of the stream it comes in. */
static int fill_map(struct mix *m, const struct table *t, struct err *err)
{
	for (size_t s = 0; s < t->npaths; s++)
		for (size_t i = 0; i < m->ninputs; i++) {
			size_t *at = &m->of[s * m->ninputs + i];

			*at = t->input[i] != SIZE_MAX ? t->input[i] : t->stream[s];
			if (*at == SIZE_MAX && stream_merge_has(t->in, s, i))
				return cfg_error(t->cfg, err, "shard.mix",
					"no weight for '%s', nor for its input '%s' (0 leaves it out)", t->paths[s],
					t->h->inputs[i]);
		}
	return 0;
}

static int fill(struct mix *m, struct table *t, struct err *err)
{
	double sum = 0;

	for (size_t i = 0; i < t->npaths; i++)
		t->stream[i] = SIZE_MAX;
	for (size_t i = 0; i < m->ninputs; i++)
		t->input[i] = SIZE_MAX;
	for (size_t i = 0; i < m->n; i++)
		if (set_source(m, t, i, err) < 0)
			return -1;
	if (fill_map(m, t, err) < 0)
		return -1;
	for (size_t i = 0; i < m->n; i++)
		sum += m->sources[i].weight;
	if (!(sum > 0))
		return cfg_error(t->cfg, err, "shard.mix", "all weights are 0");
	for (size_t i = 0; i < m->n; i++)
		m->sources[i].weight /= sum;
	return 0;
}

int mix_init(struct mix *m, const struct config *cfg, const struct stream_merge *in,
	char *const *paths, size_t npaths, struct err *err)
{
	struct table t = { cfg, in, stream_merge_header(in), paths, npaths, NULL, NULL };
	int rc = -1;

	*m = (struct mix){
		.n = cfg_count(cfg, "shard.mix"), .ninputs = t.h->ninputs, .ended_by = SIZE_MAX
	};
	t.stream = mem_zalloc(npaths, sizeof(*t.stream), err);
	t.input = mem_zalloc(m->ninputs, sizeof(*t.input), err);
	m->sources = mem_zalloc(m->n, sizeof(*m->sources), err);
	m->of = mem_zalloc(npaths * m->ninputs, sizeof(*m->of), err);
	if (t.stream && t.input && m->sources && m->of)
		rc = fill(m, &t, err);
	free(t.stream);
	free(t.input);
	return rc;
}

struct mix_source *mix_source(const struct mix *m, size_t stream, uint32_t src)
{
	size_t of = src < m->ninputs ? m->of[stream * m->ninputs + src] : SIZE_MAX;

	return of < m->n ? &m->sources[of] : NULL;
}

int mix_next(struct mix *m, const void **blob, struct err *err)
{
	size_t i, best = SIZE_MAX;
	double lack, most = 0;
	int got;

	for (i = 0; i < m->n; i++) {
		const struct mix_source *s = &m->sources[i];

		if (s->weight <= 0)
			continue;
		lack = s->weight * ((double)m->tokens + 1) - (double)s->tokens;
		if (best == SIZE_MAX || lack > most) {
			best = i;
			most = lack;
		}
	}
	got = m->sources[best].store ? store_next(m->sources[best].store, blob, err) : 0;
	m->turn = best;
	if (got == 0)
		m->ended_by = best;
	return got;
}

void mix_drawn(struct mix *m, const struct doc *d)
{
	m->sources[m->turn].docs++;
	m->sources[m->turn].tokens += d->n;
	m->tokens += d->n;
}

void mix_release(struct mix *m)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		if (m->sources)
			store_free(m->sources[i].store);
	free(m->sources);
	free(m->of);
	*m = (struct mix){0};
}
