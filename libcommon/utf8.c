#include "libcommon/utf8.h"

#include "libcommon/buf.h"

/* Bytes of a broken sequence that could have begun a character; Unicode's "maximal subpart". */
static size_t broken_len(const unsigned char *p, size_t n)
{
	unsigned char c = p[0], lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80,
				  hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	size_t most = c < 0xc2 || c > 0xf4 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4, k = 1;

	for (; k < most && k < n && p[k] >= lo && p[k] <= hi; k++) {
		lo = 0x80;
		hi = 0xbf;
	}
	return k;
}

void utf8_repair(const char *p, size_t n, struct buf *out)
{
	const char *end = p + n;

	while (p < end) {
		const char *from = p;
		size_t k;

		while (p < end && (k = utf8_len(p, end)))
			p += k;
		buf_put(out, from, (size_t)(p - from));
		if (p < end) {
			buf_puts(out, "\xef\xbf\xbd");
			p += broken_len((const unsigned char *)p, (size_t)(end - p));
		}
	}
}
