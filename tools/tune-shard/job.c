/* The stages in order: documents in, a store (or none), packs, a store (or none), files out. */
#include <stdlib.h>
#include <string.h>

#include "intake.h"
#include "libcommon/file.h"
#include "libcommon/rng.h"
#include "mix.h"
#include "output.h"
#include "pack.h"

struct job {
	struct tool *tool;
	const struct args *args;
	struct settings set;
	struct paths paths;
	struct stream_merge *in;
	struct stream_header header;        /* of the output */
	char *settings_json, *tmp_dir;
	struct intake intake;
	struct store *docs[SPLITS], *packs; /* NULL: straight through; packs of the train split only */
	struct mix mix;
	bool mixed;
	struct job_split { struct job *job; enum split split; struct packer *packer; } split[SPLITS];
	struct output out;
	bool out_open;
};

/* A number for the i-th document or pack; sorted by it, they are in random order. */
static uint64_t random_key(const struct job *j, uint64_t i, uint32_t stage)
{
	uint32_t key[2], ctr[4] = { (uint32_t)i, (uint32_t)(i >> 32), stage, 0 }, out[4];

	rng_key(j->set.seed, RNG_SHUFFLE, key);
	philox4x32(key, ctr, out);
	return (uint64_t)out[1] << 32 | out[0];
}

/* ---- documents and packs as blobs of a store; every part is padded to 8 bytes ---- */
struct doc_head { uint64_t seq, line; uint32_t src, n; };
struct pack_head { uint32_t n, ndocs; };

static size_t pad8(size_t n) { return (n + 7) & ~(size_t)7; }

static int store_doc(struct store *s, uint64_t key, const struct doc *d, struct err *err)
{
	struct doc_head h = { d->seq, d->line, d->src, d->n };
	struct part parts[] = { { &h, sizeof(h) }, { d->ids, d->n * sizeof(*d->ids) },
		{ d->mask, d->n } };

	return store_add(s, key, parts, 3, err);
}

static struct doc blob_doc(const void *blob)
{
	const char *p = blob;
	const struct doc_head *h = blob;
	const void *ids = p + sizeof(*h), *mask = p + sizeof(*h) + pad8(h->n * sizeof(uint32_t));

	return (struct doc){ h->seq, h->line, h->src, h->n, ids, mask };
}

static int store_pack(struct store *s, uint64_t key, const struct rec_pack *p, struct err *err)
{
	struct pack_head h = { p->n, p->ndocs };
	struct part parts[] = { { &h, sizeof(h) }, { p->docs, p->ndocs * sizeof(*p->docs) },
		{ p->lines, p->ndocs * sizeof(*p->lines) }, { p->lens, p->ndocs * sizeof(*p->lens) },
		{ p->srcs, p->ndocs * sizeof(*p->srcs) }, { p->ids, p->n * sizeof(*p->ids) },
		{ p->mask, p->n } };

	return store_add(s, key, parts, 7, err);
}

static struct rec_pack blob_pack(const void *blob)
{
	const struct pack_head *h = blob;
	const char *p = (const char *)blob + sizeof(*h);
	const void *at[6];
	size_t sizes[6] = { h->ndocs * 8ul, h->ndocs * 8ul, h->ndocs * 4ul, h->ndocs * 4ul, h->n * 4ul,
		h->n };

	for (int i = 0; i < 6; i++) {
		at[i] = p;
		p += pad8(sizes[i]);
	}
	return (struct rec_pack){ .n = h->n,
		.ndocs = h->ndocs,
		.docs = at[0],
		.lines = at[1],
		.lens = at[2],
		.srcs = at[3],
		.ids = at[4],
		.mask = at[5] };
}

/* ---- output: opened when the first pack comes, so that bad input leaves nothing ---- */
static int open_output(struct job *j, struct err *err)
{
	const struct stream_header *h = stream_merge_header(j->in);

	if (j->out_open)
		return 0;
	if (stream_header_copy(&j->header, h, err) < 0)
		return -1;
	j->header.kind = KIND_PACK;
	if (stream_add_prov(&j->header, "tune-shard", TUNE_VERSION, j->settings_json, NULL, 0, err) < 0)
		return -1;
	j->out_open = true;
	return output_open(&j->out, j->args, &j->set, &j->header, err);
}

static int take_pack(void *ctx, const struct rec_pack *p, struct err *err)
{
	struct job_split *s = ctx;
	struct job *j = s->job;
	struct rec_pack copy = *p;

	if (s->split == TRAIN && j->packs)
		return store_pack(j->packs, random_key(j, store_count(j->packs), 1), p, err);
	if (open_output(j, err) < 0)
		return -1;
	for (uint32_t i = 0; i < p->ndocs; i++)
		if (p->srcs[i] >= j->header.ninputs)
			return err_set(err, EX_DATAERR,
				"a later part of a concatenated stream names further inputs: give the parts one by "
				"one");
	return output_pack(&j->out, s->split, &copy, err);
}

static int take_doc(
	void *ctx, const struct doc *d, enum split split, uint64_t index, struct err *err)
{
	struct job *j = ctx;
	uint64_t key = random_key(j, index, 0);

	if (j->mixed && split == TRAIN) {
		struct mix_source *s = mix_source(&j->mix, stream_merge_index(j->in), d->src);

		if (!s)
			return err_set(err, EX_DATAERR,
				"shard.mix: a later part of a concatenated stream names further inputs: give the "
				"parts one by one");
		if (s->weight <= 0) {
			drops_add(&j->intake.drops, DROP_WEIGHT, d);
			return 0;
		}
		if (!s->store &&
			store_new(&s->store, j->tmp_dir, j->args->mem / j->mix.n, j->set.shuffle, err) < 0)
			return -1;
		s->held_docs++;
		s->held_tokens += d->n;
		return store_doc(s->store, key, d, err);
	}
	return j->docs[split] ? store_doc(j->docs[split], key, d, err)
						  : packer_add(j->split[split].packer, d, err);
}

static int read_all(struct job *j, struct err *err)
{
	struct progress p;
	struct record r;
	int got;

	if (intake_kind(stream_merge_header(j->in), j->paths.p[0], err) < 0)
		return -1;
	progress_start(&p, "tune-shard", "documents", 0, 0, j->tool->progress, j->tool->quiet);
	while ((got = stream_merge_next(j->in, &r, err)) > 0) {
		if (intake_record(&j->intake, &r, stream_merge_name(j->in), err) < 0 ||
		    (j->out_open && output_tick(&j->out, stream_merge_would_block(j->in), err) < 0)) {
			got = -1;
			break;
		}
		progress_update(&p, j->intake.docs_in, "");
	}
	progress_end(&p);
	return got;
}

/* What waits in stores goes through the packer and, shuffled again, to the output. */
static int drain_docs(struct job *j, struct err *err)
{
	const void *blob;
	int got = 0;

	for (int i = 0; i < SPLITS && !got; i++) {
		bool mix = j->mixed && i == TRAIN;

		while ((mix || j->docs[i]) &&
			(got = mix ? mix_next(&j->mix, &blob, err) : store_next(j->docs[i], &blob, err)) > 0) {
			struct doc d = blob_doc(blob);

			if (mix)
				mix_drawn(&j->mix, &d);
			if (packer_add(j->split[i].packer, &d, err) < 0)
				return -1;
		}
	}
	if (got < 0)
		return -1;
	for (size_t i = 0; j->mixed && i < j->mix.n; i++) {
		j->intake.drops.by[DROP_MIX].n += j->mix.sources[i].held_docs - j->mix.sources[i].docs;
		j->intake.drops.by[DROP_MIX].tokens +=
			j->mix.sources[i].held_tokens - j->mix.sources[i].tokens;
	}
	for (int i = 0; i < SPLITS; i++)
		if (packer_flush(j->split[i].packer, err) < 0)
			return -1;
	return 0;
}

static int drain_packs(struct job *j, struct err *err)
{
	const void *blob;
	int got = 0;

	while (j->packs && (got = store_next(j->packs, &blob, err)) > 0) {
		struct rec_pack p = blob_pack(blob);

		if (open_output(j, err) < 0 || output_pack(&j->out, TRAIN, &p, err) < 0)
			return -1;
	}
	return got;
}

/* ---- what was done ---- */
static void report(struct job *j)
{
	static const char *const names[SPLITS] = { "train", "val" };
	const struct stream_header *h = stream_merge_header(j->in);
	char docs[16], tokens[16], trained[16], packs[16];
	struct buf b = {0};

	format_count((double)j->intake.docs_in, docs);
	format_count((double)j->intake.tokens_in, tokens);
	tool_say(j->tool, "%s documents, %s tokens in", docs, tokens);
	for (int i = 0; i < SPLITS && j->out_open; i++) {
		const struct split_out *s = &j->out.split[i];

		if (!s->packs)
			continue;
		format_count((double)s->packs, packs);
		format_count((double)s->tokens, tokens);
		format_count((double)s->trained, trained);
		tool_say(j->tool, "%s: %s packs of %u, %.1f %% full, %s tokens, %s trained", names[i],
			packs, j->set.seq_len, 100.0 * (double)s->tokens / (double)s->room, tokens, trained);
	}
	for (int why = 0; why < REASONS; why++) {
		buf_clear(&b);
		if (!drops_text(&j->intake.drops, (enum reason)why, &j->set, h, &b) || b.oom)
			continue;
		if (drops_kept((enum reason)why))
			tool_say(j->tool, "kept: %s", b.p);
		else if (why == DROP_WEIGHT || why == DROP_MIX)   /* as shard.mix asks for */
			tool_say(j->tool, "dropped: %s", b.p);
		else
			tool_warn(j->tool, "dropped: %s", b.p);
	}
	if (j->set.val_fraction > 0 && !j->out.split[VAL].packs)
		tool_warn(j->tool, "no document fell to the validation split (shard.val_fraction=%g of %s)",
			j->set.val_fraction, docs);
	for (size_t i = 0; j->mixed && i < j->mix.n; i++)
		tool_say(j->tool, "mix: '%s' %llu documents, %.1f %% of the tokens%s",
			j->mix.sources[i].name,
			(unsigned long long)j->mix.sources[i].docs,
			j->mix.tokens ? 100.0 * (double)j->mix.sources[i].tokens / (double)j->mix.tokens : 0,
			i == j->mix.ended_by ? " (used up)" : "");
	buf_release(&b);
}

/* overlong=error, and nothing left at all, with the reasons. */
static int check_result(struct job *j, struct err *err)
{
	const struct stream_header *h = stream_merge_header(j->in);
	struct buf b = {0};
	int rc = 0;

	if (j->set.overlong == LONG_ERROR && drops_text(&j->intake.drops, DROP_LONG, &j->set, h, &b)) {
		rc = err_set(err, EX_DATAERR, "%s; shard.overlong=drop, truncate or split takes the rest",
			b.p ? b.p : "documents too long");
	} else if (!j->out_open) {
		for (int why = 0; why < REASONS; why++) {
			size_t before = b.n;

			if (drops_kept((enum reason)why))
				continue;
			if (before)
				buf_puts(&b, "; ");
			if (!drops_text(&j->intake.drops, (enum reason)why, &j->set, h, &b) && before)
				b.n = before;
		}
		buf_put(&b, "", 0);
		rc = err_set(err, EX_DATAERR, "no document is left of %llu%s%s",
			(unsigned long long)j->intake.docs_in, b.n ? ": " : "", b.p ? b.p : "");
	}
	if (!rc && !j->out.split[TRAIN].packs)
		rc = err_set(err, EX_DATAERR,
			"all %llu documents fell to the validation split; set a smaller shard.val_fraction",
			(unsigned long long)j->intake.docs_in);
	buf_release(&b);
	return rc;
}

static int read_settings(struct job *j, struct err *err)
{
	static const char *const words[] = { [LONG_DROP] = "drop",
		[LONG_TRUNCATE] = "truncate",
		[LONG_SPLIT] = "split",
		[LONG_ERROR] = "error" };
	static const char *const others[] = { "model.", "data.", "train.", "lora.", "optim.",
		"schedule.", "save.", "eval.", "generate.", "log.", NULL };
	const struct config *c = j->tool->cfg;
	struct buf b = {0};
	bool folder = strcmp(j->args->output, "-") != 0;

	j->set = (struct settings){ .seq_len = (uint32_t)cfg_int(c, "shard.seq_len"),
		.min_trained = (uint64_t)cfg_int(c, "shard.min_trained"),
		.seed = (uint64_t)cfg_int(c, "shard.seed"),
		.size = (uint64_t)cfg_int(c, "shard.size"),
		.shuffle = cfg_bool(c, "shard.shuffle"),
		.val_fraction = cfg_num(c, "shard.val_fraction") };
	while (strcmp(words[j->set.overlong], cfg_str(c, "shard.overlong")))
		j->set.overlong++;
	if (!folder && j->set.val_fraction > 0 && !j->args->val_output)
		return cfg_error(c, err, "shard.val_fraction",
			"to standard output it needs --val-output FILE for the validation split");
	if (folder && j->args->val_output)
		return err_set(err, EX_USAGE, "--val-output goes with -o -; a folder holds both splits");
	if (j->args->val_output && j->set.val_fraction <= 0)
		return err_set(err, EX_USAGE,
			"--val-output needs shard.val_fraction, the share that goes there");
	cfg_to_json(c, others, &b);
	if (buf_ok(&b, err) < 0)
		return -1;
	j->settings_json = buf_detach(&b);
	j->tmp_dir = folder ? path_dir(j->args->output)
						: mem_strdup(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", err);
	return j->settings_json && j->tmp_dir ? 0 : err_oom(err, 4096);
}

/* An output that can't be made is found before the input is read. */
static int check_output(const struct job *j, struct err *err)
{
	if (strcmp(j->args->output, "-") && !j->args->force && file_exists(j->args->output))
		return err_set(err, EX_CANTCREAT, "'%s' exists (--force replaces it)", j->args->output);
	return 0;
}

static int open_job(struct job *j, struct err *err)
{
	bool folder = strcmp(j->args->output, "-") != 0;

	if (read_settings(j, err) < 0 || check_output(j, err) < 0 ||
		paths_expand(&j->paths, j->tool->argc, j->tool->argv, err) < 0 ||
		refuse_input(j->args->val_output, j->paths.p, j->paths.n, err) < 0 ||
		stream_merge_open(&j->in, (const char *const *)j->paths.p, j->paths.n, "tune-shard", err) <
			0)
		return -1;
	j->mixed = cfg_count(j->tool->cfg, "shard.mix") > 0;
	if (j->mixed && mix_init(&j->mix, j->tool->cfg, j->in, j->paths.p, j->paths.n, err) < 0)
		return -1;
	/*
	 * A folder's documents wait for the end of the input even in their own order: only then are all
	 * inputs known.
	 */
	if ((!j->mixed && (j->set.shuffle || folder) &&
			store_new(&j->docs[TRAIN], j->tmp_dir, j->args->mem / 2, j->set.shuffle, err) < 0) ||
		(folder && store_new(&j->docs[VAL], j->tmp_dir, j->args->mem / 2, false, err) < 0))
		return -1;
	if (j->set.shuffle && store_new(&j->packs, j->tmp_dir, j->args->mem / 2, true, err) < 0)
		return -1;
	for (int i = 0; i < SPLITS; i++) {
		j->split[i] = (struct job_split){ j, (enum split)i, NULL };
		if (packer_new(&j->split[i].packer, j->set.seq_len, take_pack, &j->split[i], err) < 0)
			return -1;
	}
	j->intake = (struct intake){ .set = &j->set, .tool = j->tool, .fn = take_doc, .ctx = j };
	return 0;
}

int job_run(struct tool *t, const struct args *a, struct err *err)
{
	struct job j = { .tool = t, .args = a };
	int rc = -1;

	for (int i = 0; i < SPLITS; i++)
		j.out.split[i].file.slot = -1;
	j.out.dir.slot = -1;
	if (open_job(&j, err) == 0 && read_all(&j, err) == 0 && drain_docs(&j, err) == 0 &&
		drain_packs(&j, err) == 0 && check_result(&j, err) == 0 &&
		output_finish(&j.out, j.settings_json, err) == 0) {
		report(&j);
		rc = 0;
	}
	output_release(&j.out);
	stream_header_release(&j.header);
	stream_merge_close(j.in);
	intake_release(&j.intake);
	mix_release(&j.mix);
	store_free(j.packs);
	for (int i = 0; i < SPLITS; i++) {
		store_free(j.docs[i]);
		packer_free(j.split[i].packer);
	}
	paths_release(&j.paths);
	free(j.settings_json);
	free(j.tmp_dir);
	return rc;
}
