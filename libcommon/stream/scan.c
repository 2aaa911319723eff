#include "libcommon/stream/internal.h"

enum { VALUES_MAX = 4 << 20 };   /* msgpack-c takes 24 bytes a value: at most 100 MB a record */

/*
 * What follows the first byte 0xc0 + i: bytes of a length, or of a fixed payload, and what the
 * length counts.
 */
enum what { PLAIN, BYTES, EXT, ARRAY, MAP, NEVER };
static const struct form { uint8_t length, fixed, what; } forms[32] = {
	/* nil, reserved, false, true */
	{ 0, 0, PLAIN }, { 0, 0, NEVER }, { 0, 0, PLAIN }, { 0, 0, PLAIN },
	{ 1, 0, BYTES }, { 2, 0, BYTES }, { 4, 0, BYTES },                       /* bin */
	{ 1, 0, EXT }, { 2, 0, EXT }, { 4, 0, EXT },
	{ 0, 4, PLAIN }, { 0, 8, PLAIN },                                        /* float */
	{ 0, 1, PLAIN }, { 0, 2, PLAIN }, { 0, 4, PLAIN }, { 0, 8, PLAIN },      /* uint */
	{ 0, 1, PLAIN }, { 0, 2, PLAIN }, { 0, 4, PLAIN }, { 0, 8, PLAIN },      /* int */
	/* fixext */
	{ 0, 2, PLAIN }, { 0, 3, PLAIN }, { 0, 5, PLAIN }, { 0, 9, PLAIN }, { 0, 17, PLAIN },
	{ 1, 0, BYTES }, { 2, 0, BYTES }, { 4, 0, BYTES },                       /* str */
	{ 2, 0, ARRAY }, { 4, 0, ARRAY }, { 2, 0, MAP }, { 4, 0, MAP },
};

void scan_init(struct scan *s)
{
	*s = (struct scan){ .left = { 1 } };
}

/*
 * The head at p: its bytes, the payload's bytes, and how many values follow inside.  False: more
 * bytes are needed.
 */
static bool head(const uint8_t *p, size_t n, enum what *what, size_t *bytes, uint64_t *inside)
{
	uint8_t b = p[0];
	const struct form *f = &forms[b & 31];
	uint64_t len = 0;
	int i;

	*what = PLAIN;
	*bytes = 1;
	*inside = 0;
	if (b < 0x80 || b >= 0xe0)
		return true;
	if (b < 0xc0) {
		if (b >= 0xa0)
			*bytes += b & 31;
		else
			*inside = (uint64_t)(b & 15) << (b < 0x90);   /* a map's pairs are two values each */
		return true;
	}
	*what = f->what;
	*bytes += f->length + f->fixed;
	if (n < (size_t)f->length + 1)
		return f->length == 0;
	for (i = 1; i <= f->length; i++)
		len = len << 8 | p[i];
	if (f->what == BYTES || f->what == EXT)
		*bytes += len + (f->what == EXT);
	else
		*inside = len << (f->what == MAP);
	return true;
}

enum scan_result scan_value(struct scan *s, const uint8_t *p, size_t n, size_t limit, size_t *need)
{
	for (;;) {
		enum what what;
		size_t bytes;
		uint64_t inside;

		while (s->depth && !s->left[s->depth])
			s->depth--;
		if (!s->left[s->depth])
			return SCAN_DONE;
		if (s->pos >= n || !head(p + s->pos, n - s->pos, &what, &bytes, &inside)) {
			*need = s->pos >= n ? s->pos + 1 : s->pos + 5;
			return s->pos >= limit ? SCAN_LARGE : SCAN_MORE;
		}
		if (what == NEVER)
			return SCAN_BAD;
		/* a value is one byte at least */
		if (bytes > limit - s->pos || inside > limit - s->pos - bytes)
			return SCAN_LARGE;
		if (bytes > n - s->pos) {
			*need = s->pos + bytes;
			return SCAN_MORE;
		}
		if ((s->values += inside) > VALUES_MAX)
			return SCAN_MANY;
		s->pos += bytes;
		s->left[s->depth]--;
		if (inside) {
			if (s->depth == STREAM_DEPTH_MAX)
				return SCAN_DEEP;
			s->left[++s->depth] = inside;
		}
	}
}

int scan_error(enum scan_result r, size_t limit, struct err *err)
{
	switch (r) {
	case SCAN_DEEP:
		return err_set(err, EX_DATAERR, "nested deeper than %d levels", STREAM_DEPTH_MAX);
	case SCAN_LARGE:
		return err_set(err, EX_DATAERR, "larger than the limit of %zu bytes", limit);
	case SCAN_MANY:
		return err_set(err, EX_DATAERR, "more than %d values", VALUES_MAX);
	default:
		return err_set(err, EX_DATAERR, "not msgpack");
	}
}
