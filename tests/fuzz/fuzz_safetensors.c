/*
 * Any bytes as a .safetensors file, as its header alone, and as the index of a folder: errors, or
 * tensors that all lie within the file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcommon/formats/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void put(int fd, const void *p, size_t n, off_t at)
{
	if (pwrite(fd, p, n, at) != (ssize_t)n)
		abort();
}

static void use(struct safetensors *s)
{
	volatile unsigned sum = 0;
	const char *meta = safetensors_meta(s, "format");

	for (size_t i = 0; i < safetensors_count(s); i++) {
		const struct tensor *t = safetensors_at(s, i);

		if (safetensors_find(s, t->name) != t ||
			tensor_count(t) * (uint64_t)dtype_info[t->dtype].bytes != t->bytes)
			abort();
		for (size_t k = 0; k < t->bytes; k++)
			sum += t->data[k];
	}
	for (; meta && *meta; meta++)
		sum += (unsigned char)*meta;
	safetensors_close(s);
}

static void open_file(const char *path)
{
	struct safetensors *s;
	struct err err = {0};

	if (safetensors_open(&s, path, &err) == 0)
		use(s);
	else if (!err.code || !err.msg[0])
		abort();
}

/* A folder with two shards, each of one tensor, whose index is what the fuzzer says. */
static char dir[] = "/tmp/tune-fuzz-st-XXXXXX", index_path[64];

static void remove_folder(void)
{
	char path[64];

	for (int i = 1; i <= 2; i++) {
		snprintf(path, sizeof(path), "%s/s%d.safetensors", dir, i);
		unlink(path);
	}
	unlink(index_path);
	rmdir(dir);
}

static int make_folder(void)
{
	struct err err = {0};
	struct st_writer *w;
	char stem[8], name[2] = "a";

	if (!mkdtemp(dir))
		abort();
	for (int i = 1; i <= 2; i++, name[0]++) {
		snprintf(stem, sizeof(stem), "s%d", i);
		if (st_writer_new(&w, dir, stem, 0, &err) < 0 ||
			st_writer_add(w, name, DT_U8, 0, NULL, &err) < 0 || st_writer_begin(w, &err) < 0 ||
			st_writer_data(w, "x", 1, &err) < 0 || st_writer_finish(w, &err) < 0)
			abort();
		st_writer_free(w);
	}
	snprintf(index_path, sizeof(index_path), "%s/model.safetensors.index.json", dir);
	atexit(remove_folder);
	return open(index_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static int file = -1, index = -1;
	static char path[32];
	unsigned char len[8];

	if (file < 0) {
		file = memfd_create("fuzz", MFD_CLOEXEC);
		index = make_folder();
		snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	}
	if (file < 0 || index < 0 || ftruncate(file, (off_t)n) < 0)
		abort();
	put(file, data, n, 0);
	open_file(path);
	if (n == 0 || data[0] != '{')
		return 0;
	/* As a header, with as much data as a small model has. */
	for (int i = 0; i < 8; i++)
		len[i] = (unsigned char)(n >> (8 * i));
	put(file, len, 8, 0);
	put(file, data, n, 8);
	if (ftruncate(file, (off_t)(8 + n + 16)) < 0)
		abort();
	open_file(path);
	if (ftruncate(index, (off_t)n) < 0)
		abort();
	put(index, data, n, 0);
	open_file(dir);
	return 0;
}
