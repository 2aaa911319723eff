#ifndef TUNE_GGUF_H
#define TUNE_GGUF_H
/*
 * gguf: GGUF v3 files (little-endian; v2 has the same layout and is read), read by mmap with every
 * count, length, type and offset checked (fault S3), and written.  Tensor shapes are given in our
 * order (slowest first: [out, in]), GGUF's own order reversed.
 *
 * Refused: arrays of arrays, keys or tensors that stand twice, tensor types that struct dtype
 * doesn't have (by name), more than 4 dimensions, offsets that are not aligned, overlap or lie
 * outside the file.  What a key means, and that an array's type and length fit its meaning, is the
 * caller's to check.  A struct gguf is not for several threads at once (gguf_arr_str remembers
 * where it was).
 */
#include <stdio.h>

#include "libcommon/formats/safetensors.h"

enum gguf_type {
	GGUF_U8, GGUF_I8, GGUF_U16, GGUF_I16, GGUF_U32, GGUF_I32, GGUF_F32, GGUF_BOOL, GGUF_STR,
	GGUF_ARR, GGUF_U64, GGUF_I64, GGUF_F64
};
/* not NUL-terminated; points into the map */
struct gguf_str { const char *s; uint64_t n; };
struct gguf;
/* By its first bytes, or by its name's suffix. */
bool is_gguf(const char *path);
int gguf_open(struct gguf **g, const char *path, struct err *err);
uint64_t gguf_surplus(const struct gguf *g);   /* bytes after the last tensor and its padding */
size_t gguf_tensor_count(const struct gguf *g);
const struct tensor *gguf_tensor_at(const struct gguf *g, size_t i);       /* file order */
const struct tensor *gguf_tensor_find(const struct gguf *g, const char *name);
/*
 * Keys.  Each returns 1 found, 0 absent, -1 present but of another type (EX_DATAERR, names the
 * key). Any integer type is read as i64.
 */
int gguf_get_int(const struct gguf *g, const char *key, int64_t *v, struct err *err);
int gguf_get_num(const struct gguf *g, const char *key, double *v, struct err *err);
int gguf_get_bool(const struct gguf *g, const char *key, bool *v, struct err *err);
int gguf_get_str(const struct gguf *g, const char *key, struct gguf_str *v, struct err *err);
int gguf_get_arr(
	const struct gguf *g, const char *key, enum gguf_type *type, uint64_t *n, struct err *err);
/* after gguf_get_arr said GGUF_STR; amortised O(1) in order */
struct gguf_str gguf_arr_str(const struct gguf *g, const char *key, uint64_t i);
/*
 * INT64_MIN if the items are no integers or bools, or the value doesn't fit; NAN if they are no
 * numbers; "" if no strings; the same if i is past the end.
 */
int64_t gguf_arr_int(const struct gguf *g, const char *key, uint64_t i);
double gguf_arr_num(const struct gguf *g, const char *key, uint64_t i);
size_t gguf_key_count(const struct gguf *g);
const char *gguf_key_at(const struct gguf *g, size_t i, enum gguf_type *type);
void gguf_close(struct gguf *g);

struct gguf_w;
int gguf_w_new(struct gguf_w **w, struct err *err);
void gguf_w_str(struct gguf_w *w, const char *key, const char *s, size_t n);
void gguf_w_u32(struct gguf_w *w, const char *key, uint32_t v);
void gguf_w_u64(struct gguf_w *w, const char *key, uint64_t v);
void gguf_w_f32(struct gguf_w *w, const char *key, float v);
void gguf_w_bool(struct gguf_w *w, const char *key, bool v);
void gguf_w_strs(struct gguf_w *w, const char *key, const struct gguf_str *v, uint64_t n);
void gguf_w_f32s(struct gguf_w *w, const char *key, const float *v, uint64_t n);
void gguf_w_i32s(struct gguf_w *w, const char *key, const int32_t *v, uint64_t n);
/* our order */
int gguf_w_tensor(struct gguf_w *w, const char *name, enum dtype t, int ndim, const uint64_t *shape,
	struct err *err);
/*
 * Header and keys go out; then data of each tensor in the declared order, in pieces of any size,
 * padded to 32.  fp is the caller's (an outfile); name is for messages.  Memory that ran out while
 * keys were put is reported by begin.
 */
int gguf_w_begin(struct gguf_w *w, FILE *fp, const char *name, struct err *err);
int gguf_w_data(struct gguf_w *w, const void *data, size_t bytes, struct err *err);
int gguf_w_finish(struct gguf_w *w, struct err *err);
void gguf_w_free(struct gguf_w *w);
#endif
