#ifndef TUNE_NFC_H
#define TUNE_NFC_H
/*
 * nfc: Unicode normalization form C as Hugging Face tokenizers computes it (characters of Unicode
 * 9.0; later ones are left alone), with a map from the result back to the source.
 */
#include <stdbool.h>
#include <stdint.h>

#include "libcommon/buf.h"

/* out[at .. at + n) was made from in[from .. from + m); between patches bytes were copied. */
struct nfc_patch { uint32_t at, n, from, m; };
struct nfc_char { uint32_t c; uint8_t ccc; };
struct nfc {
	struct buf out;
	struct nfc_patch *patches; size_t n, cap;
	struct nfc_char *chars; size_t nchars, chars_cap;   /* scratch */
};

/*
 * Normalise in[0..n), valid UTF-8.  1: the result is in x; 0: in is in NFC already, x is not to be
 * used; -1: out of memory.
 */
int nfc(struct nfc *x, const char *in, size_t n, struct err *err);
void nfc_release(struct nfc *x);
/*
 * Where byte `at` of the result lies in the source.  A place strictly within a patch gives the
 * begin (up = false) or the end (up = true) of what the patch was made from.  *hint is the patch to
 * look from: start with 0, ask with growing `at`.
 */
uint32_t nfc_source(const struct nfc *x, uint32_t at, bool up, size_t *hint);
#endif
