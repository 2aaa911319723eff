#include "libcommon/hash.h"

#include <errno.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libcommon/buf.h"

uint64_t hash64(const void *p, size_t n)
{
	return XXH64(p, n, 0);
}

/* Our name for xxHash's state, so that the header needs none of xxHash's. */
static XXH64_state_t *state(struct hash64_state *h)
{
	return (XXH64_state_t *)(void *)h;
}

struct hash64_state *hash64_new(struct err *err)
{
	XXH64_state_t *s = XXH64_createState();

	if (!s) {
		err_oom(err, 128);
		return NULL;
	}
	XXH64_reset(s, 0);
	return (struct hash64_state *)(void *)s;
}

void hash64_add(struct hash64_state *h, const void *p, size_t n)
{
	if (n)
		XXH64_update(state(h), p, n);
}

uint64_t hash64_value(const struct hash64_state *h)
{
	return XXH64_digest((const XXH64_state_t *)(const void *)h);
}

void hash64_free(struct hash64_state *h)
{
	XXH64_freeState(state(h));
}

void hash64_hex(uint64_t v, char hex[XXH64_HEX])
{
	snprintf(hex, XXH64_HEX, "%016llx", (unsigned long long)v);
}

int hash64_file(const char *path, uint64_t *value, uint64_t *bytes, struct err *err)
{
	FILE *fp = fopen(path, "rb");
	struct hash64_state *h;
	char *block;
	size_t n;
	int rc = -1;

	*bytes = 0;
	if (!fp)
		return err_errno(err, EX_NOINPUT, "cannot open '%s'", path);
	h = hash64_new(err);
	block = mem_zalloc(1, 1 << 20, err);
	if (!h || !block)
		goto done;
	while ((n = fread(block, 1, 1 << 20, fp))) {
		hash64_add(h, block, n);
		*bytes += n;
	}
	if (ferror(fp)) {
		err_errno(err, EX_IOERR, "cannot read '%s'", path);
		goto done;
	}
	*value = hash64_value(h);
	rc = 0;
done:
	free(block);
	hash64_free(h);
	fclose(fp);
	return rc;
}

struct sha256 { SHA2_CTX x; };

struct sha256 *sha256_new(struct err *err)
{
	struct sha256 *h = mem_zalloc(1, sizeof(*h), err);

	if (h)
		SHA256Init(&h->x);
	return h;
}

void sha256_add(struct sha256 *h, const void *p, size_t n)
{
	if (n)
		SHA256Update(&h->x, p, n);
}

void sha256_add_u32(struct sha256 *h, uint32_t v)
{
	unsigned char b[4] = { (unsigned char)v, (unsigned char)(v >> 8), (unsigned char)(v >> 16),
		(unsigned char)(v >> 24) };

	SHA256Update(&h->x, b, sizeof(b));
}

void sha256_end(struct sha256 *h, char hex[SHA256_HEX])
{
	unsigned char d[32];

	SHA256Final(d, &h->x);
	for (int i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", d[i]);
	free(h);
}
