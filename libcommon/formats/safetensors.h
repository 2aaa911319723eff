#ifndef TUNE_SAFETENSORS_H
#define TUNE_SAFETENSORS_H
/*
 * safetensors: an mmap reader that validates the whole header before any use (sizes, shapes,
 * dtypes, overlaps, gaps; faults S1, C6), the sharded index (S2), and a streaming writer (C5:
 * always {"format":"pt"}). Layout: u64le header length, JSON header, data.  The header is at most
 * 100 MB.
 */
#include "libcommon/buf.h"
#include "libcommon/formats/dtype.h"

enum { TENSOR_DIMS_MAX = 8 };
struct tensor {
	const char *name;              /* NUL-terminated, owned by its file */
	enum dtype dtype;
	int ndim;
	uint64_t shape[TENSOR_DIMS_MAX];
	const unsigned char *data;     /* mapped; may be unaligned */
	size_t bytes;
	const char *file;              /* path of the file that holds it, for messages */
};
uint64_t tensor_count(const struct tensor *t);   /* elements */

struct safetensors;
/*
 * One .safetensors file, or a folder with STEM.safetensors or STEM.safetensors.index.json.  Every
 * byte of a file must belong to one tensor; dtypes that struct dtype doesn't have, more than
 * TENSOR_DIMS_MAX dimensions and 2^18 tensors are refused.  An index may name files of its folder
 * only (links: within it, or into a Hugging Face cache's blobs), and must list exactly what the
 * files hold.
 */
int safetensors_open(struct safetensors **s, const char *path, struct err *err);
/* stem "model", "adapter_model", "optim" */
int safetensors_open_dir(
	struct safetensors **s, const char *dir, const char *stem, struct err *err);
size_t safetensors_count(const struct safetensors *s);
const struct tensor *safetensors_at(const struct safetensors *s, size_t i);     /* in name order */
const struct tensor *safetensors_find(const struct safetensors *s, const char *name);
const char *safetensors_meta(const struct safetensors *s, const char *key);     /* NULL if absent */
void safetensors_close(struct safetensors *s);

/*
 * Writer: declare all tensors (name, dtype, shape), then write their data in the declared order, in
 * pieces of any size. The header's order and offsets are the declared order; equal calls give equal
 * bytes.  DIR/STEM.safetensors, or, above max_shard bytes (0 = no limit),
 * STEM-00001-of-0000N.safetensors and the index.  DIR is the caller's (an outdir's tmp): files must
 * not exist, and what was written stays there if the writer fails.  A file that cannot be created
 * is EX_CANTCREAT, one that cannot be written EX_IOERR.
 */
struct st_writer;
int st_writer_new(
	struct st_writer **w, const char *dir, const char *stem, uint64_t max_shard, struct err *err);
int st_writer_meta(struct st_writer *w, const char *key, const char *value, struct err *err);
int st_writer_add(struct st_writer *w, const char *name, enum dtype dtype, int ndim,
	const uint64_t *shape, struct err *err);
/* after the last add */
int st_writer_begin(struct st_writer *w, struct err *err);
/* next bytes of the current tensor */
int st_writer_data(struct st_writer *w, const void *data, size_t bytes, struct err *err);
/* every byte must have come; fsyncs */
int st_writer_finish(struct st_writer *w, struct err *err);
void st_writer_free(struct st_writer *w);
#endif
