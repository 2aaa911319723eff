#include "output.h"

#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"
#include "libcommon/json.h"

enum { ZSTD_LEVEL = 3 };

static const char *const split_names[SPLITS] = { "train", "val" };

int output_open(struct output *o, const struct args *a, const struct settings *s,
	const struct stream_header *h, struct err *err)
{
	*o = (struct output){
		.set = s, .args = a, .header = h, .folder = strcmp(a->output, "-") != 0, .dir.slot = -1
	};
	for (int i = 0; i < SPLITS; i++)
		o->split[i].file.slot = -1;
	if (!o->folder)
		return 0;
	if (!(o->identity = sha256_new(err)))
		return -1;
	sha256_add(o->identity, h->tok.sha256, strlen(h->tok.sha256));
	return outdir_open(&o->dir, a->output, a->force, err);
}

/* Start the next file of a split, or its stream. */
static int begin(struct output *o, enum split split, struct err *err)
{
	struct split_out *s = &o->split[split];
	const char *path = split == TRAIN ? o->args->output : o->args->val_output;
	char *joined = NULL;
	int rc;

	if (o->folder) {
		snprintf(s->name, sizeof(s->name), "%s-%05llu.tns", split_names[split],
			(unsigned long long)s->files);
		if (!(path = joined = path_join(o->dir.tmp, s->name)))
			return err_oom(err, 64);
	}
	rc = outfile_open(&s->file, path, o->args->force, err);
	if (!rc) {
		bool plain = !strcmp(path, "-");

		rc = stream_out_open(&s->out, s->file.fp, plain ? "standard output" : path, o->header,
			(struct stream_out_opts){ plain ? 0 : ZSTD_LEVEL, !plain }, err);
	}
	free(joined);
	return rc;
}

static void list_file(struct output *o, struct split_out *s, uint64_t bytes, uint64_t hash,
	const struct stream_totals *t)
{
	struct json_w w = { .out = &s->manifest };
	char hex[XXH64_HEX];

	hash64_hex(hash, hex);
	buf_puts(&s->manifest, s->files ? "," : "");
	json_w_obj(&w);
	json_w_name(&w, "name"); json_w_str(&w, s->name);
	json_w_name(&w, "bytes"); json_w_int(&w, (int64_t)bytes);
	json_w_name(&w, "xxh64"); json_w_str(&w, hex);
	json_w_end(&w);
	hash64_hex(t->xxh64, hex);
	sha256_add(o->identity, s->name, strlen(s->name));
	sha256_add(o->identity, hex, strlen(hex));
}

/* Finish the file that is open. */
static int end(struct output *o, enum split split, struct err *err)
{
	struct split_out *s = &o->split[split];
	struct stream_totals t;
	uint64_t bytes = 0, hash = 0;
	char *path = o->folder ? path_join(o->dir.tmp, s->name) : NULL;
	int rc = -1;

	if (o->folder && !path) {
		err_oom(err, 64);
	} else if (stream_out_finish(s->out, NULL, 0, &t, err) == 0 &&
		outfile_commit(&s->file, err) == 0 &&
		(!path || hash64_file(path, &hash, &bytes, err) == 0)) {
		if (path)
			list_file(o, s, bytes, hash, &t);
		s->files++;
		rc = 0;
	}
	stream_out_close(s->out);
	s->out = NULL;
	free(path);
	return rc;
}

int output_pack(struct output *o, enum split split, struct rec_pack *p, struct err *err)
{
	struct split_out *s = &o->split[split];

	if (!s->out && begin(o, split, err) < 0)
		return -1;
	p->seq = s->packs++;
	s->tokens += p->n;
	s->room += o->set->seq_len;
	for (uint32_t i = 0; i < p->n; i++)
		s->trained += p->mask[i];
	if (stream_put_pack(s->out, p, err) < 0)
		return -1;
	return o->folder && stream_out_bytes(s->out) >= o->set->size ? end(o, split, err) : 0;
}

int output_tick(struct output *o, bool input_would_block, struct err *err)
{
	struct stream_out *out = o->split[TRAIN].out;

	return o->folder || !out ? 0 : stream_out_tick(out, input_would_block, err);
}

static int write_manifest(struct output *o, const char *settings_json, struct err *err)
{
	struct buf b = {0};
	struct outfile f = { .slot = -1 };
	char *path = path_join(o->dir.tmp, "manifest.json"), identity[SHA256_HEX];
	struct json_w w = { .out = &b };
	bool first = true;
	int rc = -1;

	sha256_end(o->identity, identity);
	o->identity = NULL;
	buf_puts(&b, "{\"v\":1,\n\"identity\":");
	json_w_str(&w, identity);
	buf_puts(&b, ",\n\"splits\":{");
	for (int i = 0; i < SPLITS; i++) {
		const struct split_out *s = &o->split[i];

		if (!s->files)
			continue;
		buf_printf(&b,
			"%s\n\"%s\":{\"records\":%llu,\"tokens\":%llu,\"trained\":%llu,\"files\":[%s]}",
			first ? "" : ",", split_names[i], (unsigned long long)s->packs,
			(unsigned long long)s->tokens, (unsigned long long)s->trained, s->manifest.p);
		first = false;
	}
	buf_printf(&b, "},\n\"seed\":%llu,\n\"settings\":%s,\n\"inputs\":[",
		(unsigned long long)o->set->seed, settings_json);
	for (size_t i = 0; i < o->header->ninputs; i++) {
		w = (struct json_w){ .out = &b };
		buf_puts(&b, i ? "," : "");
		json_w_str(&w, o->header->inputs[i]);
	}
	buf_puts(&b, "]}\n");
	if (!path)
		err_oom(err, 64);
	else if (buf_ok(&b, err) == 0 && outfile_open(&f, path, true, err) == 0) {
		fwrite(b.p, 1, b.n, f.fp);   /* a failure shows at the commit */
		rc = outfile_commit(&f, err);
	}
	outfile_abort(&f);
	buf_release(&b);
	free(path);
	return rc;
}

int output_finish(struct output *o, const char *settings_json, struct err *err)
{
	for (int i = 0; i < SPLITS; i++)
		if (o->split[i].out && end(o, (enum split)i, err) < 0)
			return -1;
	if (!o->folder)
		return 0;
	return write_manifest(o, settings_json, err) < 0 ? -1 : outdir_commit(&o->dir, err);
}

void output_release(struct output *o)
{

	for (int i = 0; i < SPLITS; i++) {
		stream_out_close(o->split[i].out);
		outfile_abort(&o->split[i].file);
		buf_release(&o->split[i].manifest);
	}
	if (o->identity) {
		char hex[SHA256_HEX];

		sha256_end(o->identity, hex);
	}
	outdir_abort(&o->dir);
}
