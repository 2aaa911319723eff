#ifndef TUNE_PROGRESS_H
#define TUNE_PROGRESS_H
/*
 * progress: one line on stderr with rate, ETA and a few figures.
 *
 * On a terminal of our foreground group the line is redrawn at most 6 times a second, from 1 s on,
 * and cleared at the end. Elsewhere (a file, a pipe, TERM=dumb) nothing is drawn: plain lines come
 * from progress_line, at the caller's interval. The text never holds control bytes other than the
 * redraw's own \r and ESC [K.
 */
#include <stdbool.h>
#include <stdint.h>

enum when { WHEN_AUTO, WHEN_ALWAYS, WHEN_NEVER };   /* --progress, --color */

struct progress {
	const char *name;        /* the tool */
	const char *unit;        /* "rows", "tokens", "steps", "B" (printed as MB, GB) */
	uint64_t total;          /* 0 = unknown: no percentage, no ETA */
	bool draw, drawn;
	double start_s, last_s;
	uint64_t start_done;     /* done at the start (a resumed run), for the rate */
};

void progress_start(struct progress *p, const char *name, const char *unit, uint64_t done,
	uint64_t total, enum when when, bool quiet);
/* extra: figures such as "loss 2.31 lr 1.0e-4", or "". */
void progress_update(struct progress *p, uint64_t done, const char *extra);
/* Clear the drawn line so that a message can be printed (the next update draws again). */
void progress_clear(struct progress *p);
void progress_end(struct progress *p);
double now_s(void);                                   /* monotonic clock */
void format_duration(double s, char out[16]);         /* "1:02:03", "4:05" */
void format_count(double v, char out[16]);            /* 1234 -> "1,234"; large: "12.3M" */
bool use_color(enum when when, int fd);               /* NO_COLOR, TERM=dumb, isatty */
#endif
