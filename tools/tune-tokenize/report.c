/* report: rows that were skipped, grouped by reason, and the sums at the end. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tokenize.h"

/* Behind "FILE:3:17: " or "FILE: row 3: ". */
static const char *behind_place(const char *msg, const char *name)
{
	size_t n = strlen(name);

	if (strncmp(msg, name, n))
		return msg;
	msg += n;
	if (!strncmp(msg, ": row ", 6))
		msg += 6;
	while (*msg == ':' || isdigit((unsigned char)*msg))
		msg++;
	return *msg == ' ' ? msg + 1 : msg;
}

/*
 * The reason without what differs from row to row: "messages[3].role" and "messages[5].role" are
 * one.
 */
static void general(const char *why, char *out, size_t size)
{
	size_t n = 0;

	for (; *why && n + 1 < size; why++) {
		out[n++] = *why;
		if (*why == '[')
			why += strspn(why + 1, "0123456789");
	}
	out[n] = 0;
}

void report_skip(struct tokenize *z, uint32_t src, uint64_t line, const struct err *why)
{
	struct report *r = &z->report;
	char text[512];
	size_t i;

	general(behind_place(why->msg, input_name(z, src)), text, sizeof(text));
	if (!r->skipped++)
		r->first = strdup(why->msg);
	for (i = 0; i < r->nreasons && (r->reasons[i].src != src || strcmp(r->reasons[i].text, text));
		 i++)
		;
	if (i == REASONS_MAX || (i == r->nreasons && !(r->reasons[i].text = strdup(text)))) {
		r->other++;
		return;
	}
	if (i == r->nreasons)
		r->reasons[r->nreasons++].src = src;
	if (r->reasons[i].count < REASON_LINES)
		r->reasons[i].lines[r->reasons[i].count] = line;
	r->reasons[i].count++;
}

static void warn_special(struct tokenize *z, const struct doc *d)
{
	bool row = z->in_array[d->src];

	if (z->report.special_docs++ >= SPECIAL_WARNINGS)
		return;
	progress_clear(&z->progress);
	tool_warn(z->tool,
		"%s:%s%llu: %llu special-token string%s in content, taken as %s (data.special_in_content)",
		input_name(z, d->src), row ? " row " : "", (unsigned long long)d->line,
		(unsigned long long)d->special, d->special == 1 ? "" : "s",
		z->opts.special == SPECIAL_ALLOW ? "tokens" : "plain text");
}

void report_doc(struct tokenize *z, const struct doc *d)
{
	size_t i;

	z->report.docs++;
	z->report.tokens += d->n;
	for (i = 0; i < d->n; i++)
		z->report.trained += d->mask[i];
	z->report.special += d->special;
	if (d->special)
		warn_special(z, d);
}

static void print_reason(const struct tokenize *z, const struct reason *q)
{
	struct buf lines = {0};
	uint64_t i, n = q->count < REASON_LINES ? q->count : REASON_LINES;

	for (i = 0; i < n; i++)
		buf_printf(&lines, "%s%llu", i ? ", " : "", (unsigned long long)q->lines[i]);
	if (n < q->count)
		buf_puts(&lines, ", ...");
	tool_warn(z->tool, "%s: skipped %llu (%s%s %s): %s", input_name(z, q->src),
		(unsigned long long)q->count, z->in_array[q->src] ? "row" : "line",
		q->count == 1 ? "" : "s", lines.oom ? "..." : lines.p, q->text);
	buf_release(&lines);
}

void report_print(struct tokenize *z)
{
	const struct report *r = &z->report;
	char rows[16], tokens[16], trained[16];
	size_t i;

	for (i = 0; i < r->nreasons; i++)
		print_reason(z, &r->reasons[i]);
	if (r->other)
		tool_warn(z->tool, "skipped %llu for other reasons", (unsigned long long)r->other);
	if (r->special_docs > SPECIAL_WARNINGS)
		tool_warn(z->tool, "%llu special-token strings in the content of %llu rows in all",
			(unsigned long long)r->special, (unsigned long long)r->special_docs);
	format_count((double)r->docs, rows);
	format_count((double)r->tokens, tokens);
	format_count((double)r->trained, trained);
	tool_say(z->tool, "%s row%s, %s tokens, %s trained (%.1f %%)", rows, r->docs == 1 ? "" : "s",
		tokens, trained, r->tokens ? 100.0 * (double)r->trained / (double)r->tokens : 0.0);
}

int report_check(const struct tokenize *z, struct err *err)
{
	const struct report *r = &z->report;

	if (r->docs)
		return 0;
	if (!r->rows)
		return err_set(err, EX_DATAERR, "no rows in '%s'%s", input_name(z, 0),
			z->ninputs > 1 ? " and the other files" : "");
	return err_set(err, EX_DATAERR, "0 trainable tokens in %llu row%s (%s)",
		(unsigned long long)r->rows, r->rows == 1 ? "" : "s", r->first ? r->first : "");
}

void report_release(struct report *r)
{
	size_t i;

	for (i = 0; i < r->nreasons; i++)
		free(r->reasons[i].text);
	free(r->first);
}
