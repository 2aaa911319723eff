/* RUN/metrics.jsonl, and the same lines on stdout for the next program in a pipe. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libcommon/file.h"
#include "train.h"

/* A line that a full disk cut off is ended, so that the next one stands by itself. */
static void end_line(FILE *f)
{
	bool cut = !fseek(f, -1, SEEK_END) && fgetc(f) != '\n';

	fseek(f, 0, SEEK_END);
	if (cut)
		fputc('\n', f);
}

int metrics_open(struct metrics *m, struct tool *t, const char *dir, struct err *err)
{
	char *path = path_join(dir, "metrics.jsonl");

	*m = (struct metrics){ .tool = t, .to_stdout = t->json || !isatty(STDOUT_FILENO) };
	if (!path)
		return err_oom(err, 256);
	if (!(m->file = fopen(path, "a+")))
		err_errno(err, EX_CANTCREAT, "cannot open '%s'", path);
	else
		end_line(m->file);
	free(path);
	return m->file ? 0 : -1;
}

void metrics_begin(struct json_w *w, struct buf *b, const char *event)
{
	*b = (struct buf){0};
	*w = (struct json_w){ .out = b };
	json_w_obj(w);
	json_w_name(w, "event");
	json_w_str(w, event);
}

int metrics_end(struct metrics *m, struct json_w *w, struct buf *b, struct err *err)
{
	int rc;

	json_w_end(w);
	buf_putc(b, '\n');
	rc = buf_ok(b, err);
	if (!rc && m->file && (fwrite(b->p, 1, b->n, m->file) != b->n || fflush(m->file)))
		rc = err_errno(err, EX_IOERR, "cannot write the run's metrics.jsonl");
	if (!rc && m->to_stdout && (fwrite(b->p, 1, b->n, stdout) != b->n || fflush(stdout))) {
		/* A reader that went away, or its full disk, must not end the training. */
		tool_warn(m->tool,
			"the reader of the metrics is gone (%s); training goes on, metrics.jsonl has all",
			strerror(errno));
		m->to_stdout = false;
		clearerr(stdout);
	}
	buf_release(b);
	return rc;
}

void metrics_close(struct metrics *m)
{
	if (m->file)
		fclose(m->file);
	m->file = NULL;
}

uint64_t peak_memory(void)
{
	struct rusage u;

	return getrusage(RUSAGE_SELF, &u) < 0 ? 0 : (uint64_t)u.ru_maxrss << 10;
}
