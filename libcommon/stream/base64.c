#include "libcommon/stream/internal.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const void *src, size_t n, struct buf *out)
{
	const uint8_t *p = src;
	size_t i;

	for (i = 0; i < n; i += 3) {
		uint32_t w = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) |
			(i + 2 < n ? p[i + 2] : 0);
		char c[4] = { digits[w >> 18], digits[w >> 12 & 63], i + 1 < n ? digits[w >> 6 & 63] : '=',
			i + 2 < n ? digits[w & 63] : '=' };

		buf_put(out, c, 4);
	}
}

int base64_decode(const char *s, size_t n, struct buf *out, struct err *err)
{
	size_t i, k, pad = n && s[n - 1] == '=' ? (n > 1 && s[n - 2] == '=' ? 2 : 1) : 0;

	if (n % 4)
		return err_set(err, EX_DATAERR, "base64 text must be a multiple of 4 characters");
	for (i = 0; i < n; i += 4) {
		uint32_t w = 0;

		for (k = 0; k < 4; k++) {
			const char *d = i + k < n - pad ? memchr(digits, s[i + k], 64) : digits;

			if (!d)
				return err_set(err, EX_DATAERR, "not base64");
			w = w << 6 | (uint32_t)(d - digits);
		}
		buf_put(
			out, (char[]){ (char)(w >> 16), (char)(w >> 8), (char)w }, i + 4 == n ? 3 - pad : 3);
	}
	return buf_ok(out, err);
}
