#include "libcommon/stream/internal.h"

#include <stdlib.h>
#include <string.h>

#include "libcommon/file.h"

struct stream_merge {
	const char *const *paths;
	size_t n, i;                    /* i: the stream that is read */
	/* NULL: a file that is opened when its turn comes, or is done */
	struct stream_in **in;
	struct stream_header head;
	struct part { uint32_t *inputs; size_t n; } *parts;   /* of each stream, by head's inputs */
	struct stream_totals done;      /* of the streams before i */
	uint64_t seq_end;
	bool begun;                     /* stream i has been told where it goes on */
};

static const char *const only_stdin[] = { "-" };

/*
 * The headers of all, joined.  Pipes stay open; files are opened again, so that there may be more
 * of them than descriptors.
 */
static int read_headers(struct stream_merge *m, struct buf *provs, struct err *err)
{
	size_t i, k;

	for (i = 0; i < m->n; i++) {
		const struct stream_header *h;
		bool same;
		int rc = 0;

		for (k = 0; k < i; k++)
			if (!strcmp(m->paths[i], "-") && !strcmp(m->paths[k], "-"))
				return err_set(err, EX_USAGE, "'-' is given twice");
		if (stream_in_open(&m->in[i], m->paths[i], err) < 0)
			return -1;
		h = stream_in_header(m->in[i]);
		buf_put(&provs[i], h->prov.p, h->prov.n);
		m->parts[i].n = h->ninputs;
		if (!i && stream_header_copy(&m->head, h, err) < 0)
			return -1;
		if (h->kind != m->head.kind) {
			rc =
				err_set(err, EX_DATAERR, "'%s' is of kind '%s', but '%s' of kind '%s'", m->paths[i],
					stream_kind_name(h->kind), m->paths[0], stream_kind_name(m->head.kind));
		} else if (stream_same_tokenizer(&m->head.tok, m->paths[0], &h->tok, m->paths[i], err) <
				0 ||
			header_union(&m->head, h, &m->parts[i].inputs, &same, err) < 0) {
			rc = -1;
		}
		if (rc < 0 || buf_ok(&provs[i], err) < 0)
			return -1;
		if (strcmp(m->paths[i], "-") && is_file(m->paths[i])) {
			stream_in_close(m->in[i]);
			m->in[i] = NULL;
		}
	}
	return 0;
}

int stream_merge_open(struct stream_merge **out, const char *const *paths, size_t n,
	const char *prog, struct err *err)
{
	struct stream_merge *m = mem_zalloc(1, sizeof(*m), err);
	struct buf *provs;
	size_t i;
	int rc = -1;

	*out = NULL;
	if (!m)
		return -1;
	m->paths = n ? paths : only_stdin;
	m->n = n ? n : 1;
	provs = mem_zalloc(m->n, sizeof(*provs), err);
	if (!provs || !(m->in = mem_zalloc(m->n, sizeof(*m->in), err)) ||
		!(m->parts = mem_zalloc(m->n, sizeof(*m->parts), err)) ||
		read_headers(m, provs, err) < 0)
		goto done;
	if (m->n > 1) {
		buf_clear(&m->head.prov);
		if (stream_add_prov(&m->head, prog, TUNE_VERSION, NULL, provs, m->n, err) < 0)
			goto done;
	}
	*out = m;
	rc = 0;
done:
	for (i = 0; provs && i < m->n; i++)
		buf_release(&provs[i]);
	free(provs);
	if (rc < 0)
		stream_merge_close(m);
	return rc;
}

const struct stream_header *stream_merge_header(const struct stream_merge *m)
{
	return &m->head;
}

size_t stream_merge_index(const struct stream_merge *m)
{
	return m->i;
}

bool stream_merge_has(const struct stream_merge *m, size_t stream, size_t input)
{
	for (size_t i = 0; i < m->parts[stream].n; i++)
		if (m->parts[stream].inputs[i] == input)
			return true;
	return false;
}

const char *stream_merge_name(const struct stream_merge *m)
{
	return stream_in_name(m->in[m->i]);
}

bool stream_merge_would_block(const struct stream_merge *m)
{
	return m->i < m->n && m->in[m->i] && stream_in_would_block(m->in[m->i]);
}

struct stream_totals stream_merge_totals(const struct stream_merge *m)
{
	struct stream_totals t = m->done;

	if (m->i < m->n && m->in[m->i]) {
		struct stream_totals u = stream_in_totals(m->in[m->i]);

		t = (struct stream_totals){ t.n + u.n, t.tokens + u.tokens, t.trained + u.trained, 0 };
	}
	return t;
}

/* Open stream i if it is not open, and let it go on where the ones before have ended. */
static int begin(struct stream_merge *m, struct err *err)
{
	struct stream_in **in = &m->in[m->i];

	if (!*in && stream_in_open(in, m->paths[m->i], err) < 0)
		return -1;
	return stream_in_onto(*in, &m->head, m->paths[0], m->seq_end, err);
}

int stream_merge_next(struct stream_merge *m, struct record *r, struct err *err)
{
	int got;

	for (; m->i < m->n; m->i++) {
		if (!m->begun && begin(m, err) < 0)
			return -1;
		m->begun = true;
		got = stream_next(m->in[m->i], r, err);
		if (got < 0)
			return -1;
		/* A later segment of this stream may have brought new inputs. */
		if (stream_in_header(m->in[m->i])->ninputs > m->head.ninputs) {
			struct buf prov = m->head.prov;

			m->head.prov = (struct buf){0};
			stream_header_release(&m->head);
			if (stream_header_copy(&m->head, stream_in_header(m->in[m->i]), err) < 0) {
				buf_release(&prov);
				return -1;
			}
			buf_release(&m->head.prov);
			m->head.prov = prov;
		}
		if (got)
			return 1;
		m->done = stream_merge_totals(m);
		m->seq_end = stream_in_seq_end(m->in[m->i]);
		stream_in_close(m->in[m->i]);
		m->in[m->i] = NULL;
		m->begun = false;
	}
	return 0;
}

void stream_merge_close(struct stream_merge *m)
{
	size_t i;

	if (!m)
		return;
	for (i = 0; m->in && i < m->n; i++)
		stream_in_close(m->in[i]);
	free(m->in);
	for (i = 0; m->parts && i < m->n; i++)
		free(m->parts[i].inputs);
	free(m->parts);
	stream_header_release(&m->head);
	free(m);
}
