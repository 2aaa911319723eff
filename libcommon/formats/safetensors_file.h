#ifndef TUNE_SAFETENSORS_FILE_H
#define TUNE_SAFETENSORS_FILE_H
/* safetensors_file: what safetensors.c (one file) and safetensors_dir.c (folder, index) share. */
#include "libcommon/arena.h"
#include "libcommon/file.h"
#include "libcommon/formats/safetensors.h"

/*
 * Far above any model (DeepSeek-V3 has 91,991), low enough that a hostile header can't cost memory.
 */
enum { ST_TENSORS_MAX = 1 << 18 };

struct st_file { struct mapped map; const char *path; };
struct st_meta { const char *key, *value; };
struct safetensors {
	struct st_file *files; size_t nfiles, files_cap;
	struct tensor *tensors; size_t n, cap;      /* by name, once st_sort has run */
	struct st_meta *meta; size_t nmeta, meta_cap;
	struct arena names;                         /* owns names, paths and metadata */
};
/* Map a file, check its whole header, append its tensors. */
int st_add_file(struct safetensors *s, const char *path, struct err *err);
/* Order by name; EX_DATAERR names a tensor that two files hold. */
int st_sort(struct safetensors *s, struct err *err);
#endif
