#include "libcommon/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const double FIRST_S = 1.0, EVERY_S = 1.0 / 6;

double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool dumb(void)
{
	const char *term = getenv("TERM");

	return !term || !*term || !strcmp(term, "dumb");
}

bool use_color(enum when when, int fd)
{
	const char *no = getenv("NO_COLOR");

	if (when != WHEN_AUTO)
		return when == WHEN_ALWAYS;
	return isatty(fd) && !(no && *no) && !dumb();
}

void format_duration(double s, char out[16])
{
	unsigned t = s < 0 ? 0 : s > 3.6e7 ? 36000000 : (unsigned)(s + 0.5);

	if (t >= 3600)
		snprintf(out, 16, "%u:%02u:%02u", t / 3600 % 100000, t / 60 % 60, t % 60);
	else
		snprintf(out, 16, "%u:%02u", t / 60, t % 60);
}

void format_count(double v, char out[16])
{
	if (v >= 1e9)
		snprintf(out, 16, "%.2fG", v / 1e9);
	else if (v >= 1e7)
		snprintf(out, 16, "%.1fM", v / 1e6);
	else if (v >= 1e6)
		snprintf(out, 16, "%u,%03u,%03u", (unsigned)v / 1000000, (unsigned)v / 1000 % 1000,
			(unsigned)v % 1000);
	else if (v >= 1e3)
		snprintf(out, 16, "%u,%03u", (unsigned)v / 1000, (unsigned)v % 1000);
	else if (v >= 10 || v == (double)(unsigned)v)
		snprintf(out, 16, "%.0f", v);
	else
		snprintf(out, 16, "%.2f", v);
}

void progress_start(struct progress *p, const char *name, const char *unit, uint64_t done,
	uint64_t total, enum when when, bool quiet)
{
	*p = (struct progress){ .name = name, .unit = unit, .total = total, .start_done = done };
	p->start_s = p->last_s = now_s();
	p->draw = !quiet && (when == WHEN_ALWAYS || (when == WHEN_AUTO && isatty(2) && !dumb()));
	if (when == WHEN_ALWAYS)
		p->last_s -= FIRST_S;
}

/* On a terminal that another job owns, drawing would stop us or spoil its screen. */
static bool foreground(void)
{
	pid_t g = tcgetpgrp(2);

	return g < 0 || g == getpgrp();
}

static void amount(const char *unit, double v, char out[16])
{
	if (!strcmp(unit, "B"))
		snprintf(out, 16, v >= 1e9 ? "%.2f GB" : "%.1f MB", v >= 1e9 ? v / 1e9 : v / 1e6);
	else
		format_count(v, out);
}

void progress_update(struct progress *p, uint64_t done, const char *extra)
{
	double t, rate;
	char line[512], a[16], b[16], r[16], eta[16] = "";
	struct winsize ws = {0};
	size_t width, n;

	if (!p->draw || (t = now_s()) - p->start_s < (p->last_s < p->start_s ? 0 : FIRST_S) ||
		t - p->last_s < EVERY_S || !foreground())
		return;
	p->last_s = t;
	rate = t > p->start_s ? (double)(done - p->start_done) / (t - p->start_s) : 0;
	amount(p->unit, (double)done, a);
	amount(p->unit, rate, r);
	if (p->total) {
		amount(p->unit, (double)p->total, b);
		if (rate > 0 && done <= p->total)
			format_duration((double)(p->total - done) / rate, eta);
		snprintf(line, sizeof(line), "%s: %s/%s %s  %d %%  %s/s  ETA %s  %s", p->name, a, b,
			strcmp(p->unit, "B") ? p->unit : "", (int)(100.0 * (double)done / (double)p->total), r,
			eta[0] ? eta : "-", extra);
	} else {
		snprintf(line, sizeof(line), "%s: %s %s  %s/s  %s", p->name, a,
			strcmp(p->unit, "B") ? p->unit : "", r, extra);
	}
	width = ioctl(2, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 20 ? ws.ws_col - 1u : 79;
	n = strlen(line);
	if (n > width)
		line[width] = 0;   /* a wrapped line could not be redrawn */
	fprintf(stderr, "\r%s\033[K", line);
	fflush(stderr);
	p->drawn = true;
}

void progress_clear(struct progress *p)
{
	if (p->drawn) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
	p->drawn = false;
}

void progress_end(struct progress *p)
{
	progress_clear(p);
	p->draw = false;
}
