/* preview: samples as the model will see them, with what is trained marked. */
#include <string.h>
#include <unistd.h>

#include "libcommon/json.h"
#include "tokenize.h"

struct shown {
	struct tokenize *z;
	uint64_t left;
	bool color;
	struct buf text;
};

static const char on[] = "\033[32;4m", off[] = "\033[0m";

/* Text from a data file must not drive the terminal. */
static void defuse(char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (((unsigned char)s[i] < 32 && s[i] != '\n' && s[i] != '\t') || s[i] == 127)
			s[i] = '?';
}

static int print_text(struct shown *p, const struct doc *d, struct err *err)
{
	size_t i, k;

	for (i = 0; i < d->n; i = k) {
		for (k = i + 1; k < d->n && d->mask[k] == d->mask[i]; k++)
			;
		buf_clear(&p->text);
		if (decode(p->z->tok, d->ids + i, k - i, false, &p->text, err) < 0 ||
			buf_ok(&p->text, err) < 0)
			return -1;
		defuse(p->text.p, p->text.n);
		if (d->mask[i])
			fputs(p->color ? on : "[[", stdout);
		fwrite(p->text.p, 1, p->text.n, stdout);
		if (d->mask[i])
			fputs(p->color ? off : "]]", stdout);
	}
	fputs("\n\n", stdout);
	return 0;
}

static int print_json(struct shown *p, const struct doc *d, uint64_t trained, struct err *err)
{
	struct buf line = {0};
	struct json_w w = { .out = &line };
	size_t i;

	buf_clear(&p->text);
	if (decode(p->z->tok, d->ids, d->n, false, &p->text, err) < 0)
		return -1;
	json_w_obj(&w);
	json_w_name(&w, "input");
	json_w_str(&w, input_name(p->z, d->src));
	json_w_name(&w, "line");
	json_w_int(&w, (int64_t)d->line);
	json_w_name(&w, "tokens");
	json_w_int(&w, (int64_t)d->n);
	json_w_name(&w, "trained");
	json_w_int(&w, (int64_t)trained);
	json_w_name(&w, "text");
	json_w_strn(&w, p->text.p ? p->text.p : "", p->text.n);
	json_w_name(&w, "ids");
	json_w_arr(&w);
	for (i = 0; i < d->n; i++)
		json_w_int(&w, d->ids[i]);
	json_w_end(&w);
	json_w_name(&w, "mask");
	json_w_arr(&w);
	for (i = 0; i < d->n; i++)
		json_w_int(&w, d->mask[i]);
	json_w_end(&w);
	json_w_end(&w);
	if (!buf_ok(&line, err))
		puts(line.p);
	buf_release(&line);
	return err->code ? -1 : 0;
}

static int show(void *ctx, const struct doc *d, struct err *err)
{
	struct shown *p = ctx;
	uint64_t trained = 0;
	size_t i;
	int rc;

	for (i = 0; i < d->n; i++)
		trained += d->mask[i];
	if (p->z->tool->json) {
		rc = print_json(p, d, trained, err);
	} else {
		printf("-- %s:%s%llu: %zu tokens, %llu trained\n", input_name(p->z, d->src),
			p->z->in_array[d->src] ? " row " : "", (unsigned long long)d->line, d->n,
			(unsigned long long)trained);
		rc = print_text(p, d, err);
	}
	return rc < 0 ? -1 : --p->left == 0;
}

static int pass_on(void *ctx, struct err *err)
{
	(void)ctx;
	return fflush(stdout) ? err_errno(err, EX_IOERR, "cannot write to standard output") : 0;
}

int preview(struct tokenize *z, uint64_t samples, struct err *err)
{
	struct shown p = { .z = z, .left = samples, .color = use_color(z->tool->color, STDOUT_FILENO) };
	int rc;

	z->sink = show;
	z->pause = pass_on;
	z->sink_ctx = &p;
	rc = (z->raw ? encode_raw(z, err) : encode_rows(z, err)) < 0 ? -1 : report_check(z, err);
	if (!rc)
		report_print(z);
	buf_release(&p.text);
	return rc;
}
