#include "libcommon/utf8.h"

#include "libcommon/buf.h"

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
			p++;
			/* the rest of the broken sequence */
			while (p < end && ((unsigned char)*p & 0xc0) == 0x80)
				p++;
		}
	}
}
