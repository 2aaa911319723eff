/* decode: token streams, or ids as decimal text -> bytes. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "libcommon/file.h"
#include "tokenize.h"

/* The first byte of a file or pipe without consuming it; -1 if that can't be seen. */
static int peek(int fd)
{
	unsigned char c;
	int p[2], got = -1;
	off_t at = lseek(fd, 0, SEEK_CUR);

	if (at >= 0)
		return pread(fd, &c, 1, at) == 1 ? c : -1;
	if (pipe(p) < 0)
		return -1;
	if (tee(fd, p[1], 1, 0) == 1 && read(p[0], &c, 1) == 1)
		got = c;
	close(p[0]);
	close(p[1]);
	return got;
}

/* A stream begins with msgpack's array of two, or with zstd's magic; ids never do. */
static int is_stream(const char *path, bool *yes, struct err *err)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), c;

	if (fd < 0)
		return err_errno(err, EX_NOINPUT, "cannot open '%s'", path);
	c = peek(fd);
	if (!is_stdin)
		close(fd);
	*yes = c == 0x92 || c == 0x28;
	return 0;
}

static int put_ids(
	struct tokenize *z, const uint32_t *ids, size_t n, struct buf *out, struct err *err)
{
	buf_clear(out);
	if (decode(z->tok, ids, n, false, out, err) < 0 || buf_ok(out, err) < 0)
		return -1;
	if (out->n && fwrite(out->p, 1, out->n, stdout) != out->n)
		return err_errno(err, EX_IOERR, "cannot write to standard output");
	return 0;
}

static int decode_stream(struct tokenize *z, const char *path, struct buf *out, struct err *err)
{
	struct stream_tok mine = { .vocab = tokenizer_vocab(z->tok), .bos = -1, .pad = -1 };
	struct stream_in *in;
	struct record r;
	int rc = stream_in_open(&in, path, err);

	if (rc < 0)
		return -1;
	memcpy(mine.sha256, tokenizer_sha256(z->tok), sizeof(mine.sha256));
	rc = stream_same_tokenizer(
		&stream_in_header(in)->tok, path, &mine, tokenizer_source(z->tok), err);
	while (!rc && (rc = stream_next(in, &r, err)) > 0) {
		rc = 0;
		if (rec_is(&r, "TOKS"))
			rc = put_ids(z, r.toks.ids, r.toks.n, out, err);
		else if (rec_is(&r, "PACK"))
			rc = put_ids(z, r.pack.ids, r.pack.n, out, err);
		else if (isupper((unsigned char)r.tag[0]))
			rc = err_set(err, EX_DATAERR, "%s: %s records hold no ids to decode", path, r.tag);
	}
	stream_in_close(in);
	return rc;
}

static int decode_text(struct tokenize *z, const char *path, struct buf *out, struct err *err)
{
	bool is_stdin = !strcmp(path, "-");
	const char *name = is_stdin ? "stdin" : path, *p, *end;
	struct buf text = {0};
	uint64_t count = 0;
	int rc = file_read(is_stdin ? "/dev/stdin" : path, ROW_MAX, &text, err);

	for (p = text.p, end = p + text.n; !rc && p < end; ) {
		uint64_t id = 0;
		uint32_t one;

		if (isspace((unsigned char)*p) || *p == ',' || *p == '[' || *p == ']') {
			p++;
			continue;
		}
		count++;
		if (!isdigit((unsigned char)*p)) {
			rc =
				err_set(err, EX_DATAERR, "%s: number %llu is no token id (ids are decimal numbers)",
					name, (unsigned long long)count);
			break;
		}
		while (p < end && isdigit((unsigned char)*p) && id <= UINT32_MAX)
			id = 10 * id + (uint64_t)(*p++ - '0');
		one = (uint32_t)id;
		if (id >= tokenizer_vocab(z->tok))
			rc = err_set(err, EX_DATAERR,
				"%s: number %llu: the id is not below the vocabulary's size, %u", name,
				(unsigned long long)count, tokenizer_vocab(z->tok));
		else
			rc = put_ids(z, &one, 1, out, err);
	}
	buf_release(&text);
	return rc;
}

int decode_inputs(struct tokenize *z, struct err *err)
{
	struct buf out = {0};
	bool stream = false;
	size_t i;
	int rc = 0;

	for (i = 0; i < z->ninputs && !rc; i++) {
		if ((rc = is_stream(z->inputs[i], &stream, err)) < 0)
			break;
		rc = stream ? decode_stream(z, z->inputs[i], &out, err)
					: decode_text(z, z->inputs[i], &out, err);
	}
	buf_release(&out);
	return rc;
}
