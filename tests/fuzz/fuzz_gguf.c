/*
 * Any bytes as a .gguf file: an error, or keys and tensors that all lie within the file and can be
 * read; and the same file as a model and as a tokenizer, which look at what the keys mean (S3).
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libcommon/arch/modelfile.h"
#include "libcommon/text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile unsigned sum;

static void touch(const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum += ((const unsigned char *)p)[i];
}

static void use_array(const struct gguf *g, const char *key, enum gguf_type item, uint64_t n)
{
	struct gguf_str s;

	for (uint64_t i = 0; i <= n && i < 1000; i++) {
		if (item == GGUF_STR) {
			s = gguf_arr_str(g, key, n - i);
			touch(s.s, s.n);
			s = gguf_arr_str(g, key, i);
			touch(s.s, s.n);
		}
		sum += (unsigned)gguf_arr_int(g, key, i) + (gguf_arr_num(g, key, i) > 0);
	}
}

static void use(const struct gguf *g)
{
	static float row[256];

	for (size_t i = 0; i < gguf_key_count(g); i++) {
		enum gguf_type type, item = GGUF_U8;
		const char *key = gguf_key_at(g, i, &type);
		struct err err = {0};
		struct gguf_str s = {0};
		uint64_t n = 0;
		int64_t v;
		double d;
		bool b;

		if (gguf_get_str(g, key, &s, &err) > 0)
			touch(s.s, s.n);
		if (gguf_get_arr(g, key, &item, &n, &err) > 0)
			use_array(g, key, item, n);
		if (!gguf_get_int(g, key, &v, &err) || !gguf_get_num(g, key, &d, &err) ||
			!gguf_get_bool(g, key, &b, &err))
			abort();   /* it is there: 1 or -1 */
	}
	for (size_t i = 0; i < gguf_tensor_count(g); i++) {
		const struct tensor *t = gguf_tensor_at(g, i);

		if (gguf_tensor_find(g, t->name) != t)
			abort();
		touch(t->data, t->bytes);
		if (t->bytes && (dtype_is_float(t->dtype) || t->dtype >= DT_Q4_0))
			dtype_to_f32(t->dtype, t->data, (size_t)dtype_info[t->dtype].block, row);
	}
}

static void use_model(const char *path)
{
	struct modelfile m;
	struct tokenizer *t;
	struct err err = {0};
	float *row;

	if (modelfile_open(&m, path, NULL, true, &err) == 0) {
		for (size_t i = 0; i < m.ntensors; i++) {
			uint64_t last = m.tensors[i].shape[0] - 1;

			row = malloc((m.tensors[i].ndim == 2 ? m.tensors[i].shape[1] : 1) * sizeof(*row));
			if (row && modelfile_read_f32(&m, i, last, 1, row, &err) == 0)
				touch(row, sizeof(*row));
			free(row);
		}
		modelfile_close(&m);
	}
	if (tokenizer_open(&t, path, &err) == 0) {
		for (uint32_t i = 0; i < tokenizer_vocab(t) && i < 1000; i++) {
			enum token_kind kind;
			uint32_t len = 0;
			const char *s = tokenizer_token(t, i, &len, &kind);

			touch(s, s ? len : 0);
		}
		tokenizer_close(t);
	}
}

static char dir[] = "/tmp/tune-fuzz-gguf-XXXXXX", path[64];

static void remove_folder(void)
{
	unlink(path);
	rmdir(dir);
}

/* A file in memory under a name that ends in .gguf. */
static int make_file(void)
{
	int file = memfd_create("fuzz", MFD_CLOEXEC);
	char fd[32];

	snprintf(fd, sizeof(fd), "/proc/self/fd/%d", file);
	if (file < 0 || !mkdtemp(dir))
		abort();
	snprintf(path, sizeof(path), "%s/f.gguf", dir);
	if (symlink(fd, path) < 0)
		abort();
	atexit(remove_folder);
	return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static int file = -1;
	struct err err = {0};
	struct gguf *g;

	if (file < 0)
		file = make_file();
	if (file < 0 || ftruncate(file, (off_t)n) < 0 || pwrite(file, data, n, 0) != (ssize_t)n)
		abort();
	if (gguf_open(&g, path, &err) == 0) {
		use(g);
		gguf_close(g);
		use_model(path);
	} else if (!err.code || !err.msg[0]) {
		abort();
	}
	return 0;
}
