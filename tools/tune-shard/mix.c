#include "mix.h"

#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"

/*
 * An input is called by its whole name, its file name, or that without what follows the first dot.
 */
static bool called(const char *input, const char *name)
{
	const char *base = path_base(input);
	size_t stem = strcspn(base, ".");

	return !strcmp(input, name) || !strcmp(base, name) ||
		(stem && strlen(name) == stem && !strncmp(base, name, stem));
}

static void list_inputs(const struct stream_header *h, struct buf *out)
{
	size_t i;

	for (i = 0; i < h->ninputs; i++)
		buf_printf(out, "%s'%s'", i ? ", " : "", h->inputs[i]);
}

static int set_weight(struct mix *m, const struct config *cfg, const struct stream_header *h,
	size_t item, bool *given, struct err *err)
{
	const char *name = cfg_item_name(cfg, "shard.mix", item),
			   *text = cfg_item(cfg, "shard.mix", item);
	struct buf all = {0};
	size_t i, found = SIZE_MAX;
	char *end;
	double w = strtod(text, &end);
	int rc = -1;

	if (*end || end == text || !(w >= 0) || w > 1e12)
		return cfg_error(cfg, err, "shard.mix",
			"the weight of '%s' must be a number from 0 on, found '%s'", name, text);
	list_inputs(h, &all);
	for (i = 0; i < h->ninputs; i++) {
		if (!called(h->inputs[i], name))
			continue;
		if (found != SIZE_MAX) {
			cfg_error(cfg, err, "shard.mix", "'%s' fits several inputs: %s", name, all.p);
			goto done;
		}
		found = i;
	}
	if (found == SIZE_MAX) {
		cfg_error(cfg, err, "shard.mix", "no input is called '%s'; there are %s", name,
			all.p ? all.p : "none");
	} else if (given[found]) {
		cfg_error(cfg, err, "shard.mix", "input '%s' has two weights", h->inputs[found]);
	} else {
		given[found] = true;
		m->sources[found].weight = w;
		rc = 0;
	}
done:
	buf_release(&all);
	return rc;
}

int mix_init(
	struct mix *m, const struct config *cfg, const struct stream_header *h, struct err *err)
{
	bool *given = mem_zalloc(h->ninputs, sizeof(*given), err);
	double sum = 0;
	size_t i;
	int rc = -1;

	*m = (struct mix){ .n = h->ninputs, .ended_by = SIZE_MAX };
	if (!given || !(m->sources = mem_zalloc(m->n, sizeof(*m->sources), err)))
		goto done;
	for (i = 0; i < cfg_count(cfg, "shard.mix"); i++)
		if (set_weight(m, cfg, h, i, given, err) < 0)
			goto done;
	for (i = 0; i < m->n; i++) {
		if (!given[i]) {
			cfg_error(
				cfg, err, "shard.mix", "no weight for input '%s' (0 leaves it out)", h->inputs[i]);
			goto done;
		}
		sum += m->sources[i].weight;
	}
	if (!(sum > 0)) {
		cfg_error(cfg, err, "shard.mix", "all weights are 0");
		goto done;
	}
	for (i = 0; i < m->n; i++)
		m->sources[i].weight /= sum;
	rc = 0;
done:
	free(given);
	return rc;
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
	if (got == 0)
		m->ended_by = best;
	return got;
}

void mix_drawn(struct mix *m, const struct doc *d)
{
	m->sources[d->src].docs++;
	m->sources[d->src].tokens += d->n;
	m->tokens += d->n;
}

void mix_release(struct mix *m)
{
	size_t i;

	for (i = 0; i < m->n; i++)
		if (m->sources)
			store_free(m->sources[i].store);
	free(m->sources);
	*m = (struct mix){0};
}
