/* tune-eval generate: answers as JSON Lines, the answer as the last message. */
#include <stdlib.h>
#include <string.h>

#include "eval.h"
#include "libcommon/outfile.h"
#include "libcommon/utf8.h"

struct writer { const struct prompts *p; FILE *fp; const char *name; uint64_t by_length; };

static int write_row(void *ctx, size_t i, const char *text, size_t n, bool stopped, struct err *err)
{
	struct writer *w = ctx;
	struct buf b = {0}, clean = {0};
	struct json_w js = { .out = &b };
	int rc;

	/* An answer that was cut off may end within a character: JSON text can't hold half a one. */
	utf8_repair(text, n, &clean);
	buf_puts(&b, w->p->p[i].head);
	json_w_strn(&js, clean.p ? clean.p : "", clean.n);
	buf_puts(&b, w->p->p[i].tail);
	buf_printf(&b, ",\"finish\":\"%s\"}\n", stopped ? "stop" : "length");
	w->by_length += !stopped;
	rc = buf_ok(&b, err) < 0 || buf_ok(&clean, err) < 0 ? -1 : 0;
	if (!rc && (fwrite(b.p, 1, b.n, w->fp) != b.n || fflush(w->fp)))
		rc = err_errno(err, EX_IOERR, "cannot write '%s'", w->name);
	buf_release(&b);
	buf_release(&clean);
	return rc;
}

static void say_cut(const struct eval *e, const struct prompts *p, uint64_t cut)
{
	long most = (long)cfg_int(e->cfg, "generate.max_new_tokens"), window = eval_window(e);
	char end[64] = "";

	if ((long)p->longest + most > window)
		snprintf(end, sizeof(end), ", or at the model's window of %ld tokens", window);
	tool_say(e->tool, "%llu of %zu answers were cut at generate.max_new_tokens=%ld%s",
		(unsigned long long)cut, p->n, most, end);
}

int verb_generate(struct eval *e, struct err *err)
{
	const char *path = e->o.output ? e->o.output : "-";
	struct prompts p = {0};
	struct outfile f = { .slot = -1 };
	struct writer w = { .p = &p, .name = strcmp(path, "-") ? path : "standard output" };
	int rc = eval_load(e, cfg_str(e->cfg, "model.path"), err);

	if (!rc)
		rc = prompts_read(&p, e, false, err);
	if (!rc)
		rc = refuse_input(path, e->tool->argv, (size_t)e->tool->argc, err);
	if (!rc)
		rc = outfile_open(&f, path, e->o.force, err);
	w.fp = f.fp;
	if (!rc)
		rc = answer_prompts(e, &p, write_row, &w, err);
	if (!rc)
		rc = outfile_commit(&f, err);
	outfile_abort(&f);
	if (!rc && w.by_length)
		say_cut(e, &p, w.by_length);
	prompts_release(&p);
	return rc;
}
