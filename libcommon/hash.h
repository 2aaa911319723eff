#ifndef TUNE_HASH_H
#define TUNE_HASH_H
/* hash: XXH64 (xxHash) for integrity, SHA-256 (libmd) for identity; both as lower-case hex. */
#include <stddef.h>
#include <stdint.h>

#include "libcommon/err.h"

enum { XXH64_HEX = 17, SHA256_HEX = 65 };   /* with the NUL */

uint64_t hash64(const void *p, size_t n);
struct hash64_state;                                        /* streaming XXH64 */
struct hash64_state *hash64_new(struct err *err);
void hash64_add(struct hash64_state *h, const void *p, size_t n);
uint64_t hash64_value(const struct hash64_state *h);        /* may be called at any time */
void hash64_free(struct hash64_state *h);
void hash64_hex(uint64_t v, char hex[XXH64_HEX]);           /* 16 digits, most significant first */
int hash64_file(const char *path, uint64_t *value, uint64_t *bytes, struct err *err);

struct sha256;
struct sha256 *sha256_new(struct err *err);
void sha256_add(struct sha256 *h, const void *p, size_t n);
void sha256_add_u32(struct sha256 *h, uint32_t v);          /* little-endian */
void sha256_end(struct sha256 *h, char hex[SHA256_HEX]);    /* frees h */
#endif
