#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "libcommon/file.h"
#include "libcommon/formats/gguf.h"
#include "libcommon/outfile.h"
#include "tap.h"

static char dir[] = "/tmp/tune-gguf-XXXXXX";
static char path_[4096];

static const char *at(const char *name)
{
	snprintf(path_, sizeof(path_), "%s/%s", dir, name);
	return path_;
}

static void save(const char *name, const void *p, size_t n)
{
	FILE *fp = fopen(at(name), "wb");

	if (!fp || fwrite(p, 1, n, fp) != n || fclose(fp))
		printf("Bail out! cannot write %s\n", path_);
}

/* ---- files by hand, so that they may be wrong ---- */

static void u(struct buf *b, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		buf_putc(b, i < 8 ? (int)(v >> (8 * i) & 255) : 0);
}

static void str(struct buf *b, const char *s)
{
	u(b, strlen(s), 8);
	buf_puts(b, s);
}

static void head(struct buf *b, uint64_t ntensors, uint64_t nkv)
{
	buf_puts(b, "GGUF");
	u(b, 3, 4);
	u(b, ntensors, 8);
	u(b, nkv, 8);
}

static void key(struct buf *b, const char *name, uint32_t type)
{
	str(b, name);
	u(b, type, 4);
}

static void array(struct buf *b, const char *name, uint32_t item, uint64_t n)
{
	key(b, name, GGUF_ARR);
	u(b, item, 4);
	u(b, n, 8);
}

static void tensor(struct buf *b, const char *name, uint32_t ndim, const uint64_t *dims,
	uint32_t type, uint64_t offset)
{
	str(b, name);
	u(b, ndim, 4);
	for (uint32_t i = 0; i < ndim && i < 8; i++)
		u(b, dims[i], 8);
	u(b, type, 4);
	u(b, offset, 8);
}

static void data(struct buf *b, size_t n)
{
	while (b->n % 32)
		buf_putc(b, 0);
	while (n--)
		buf_putc(b, 7);
}

/*
 * Let the program take at most `more` bytes beyond what it holds (0: no limit).  ASan's shadow
 * would count too: not there.
 */
static void limit_memory(uint64_t more)
{
#ifndef __SANITIZE_ADDRESS__
	struct rlimit r = { RLIM_INFINITY, RLIM_INFINITY };
	unsigned long pages = 0;
	FILE *fp = fopen("/proc/self/statm", "r");

	if (!fp || fscanf(fp, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
		printf("# cannot read /proc/self/statm\n");
	if (fp)
		fclose(fp);
	if (more && pages)
		r.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
	if (setrlimit(RLIMIT_DATA, &r) < 0)
		printf("# cannot limit memory\n");
#else
	(void)more;
#endif
}

/*
 * The file in b is refused with 65, within a second and 64 MiB, and the message holds `what`.
 * Releases b.
 */
static void refused(const char *id, struct buf *b, const char *what)
{
	struct gguf *g = NULL;
	struct err err = {0};
	struct timespec t0, t1;
	int rc;

	save("x.gguf", b->p, b->n);
	buf_release(b);
	clock_gettime(CLOCK_MONOTONIC, &t0);
	limit_memory(64 << 20);
	rc = gguf_open(&g, at("x.gguf"), &err);
	limit_memory(0);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	ok(rc == -1 && !g && err.code == EX_DATAERR && strstr(err.msg, what) &&
			t1.tv_sec - t0.tv_sec < 2,
		"S3 %s: refused: %s", id, what);
	if (!strstr(err.msg, what) || rc != -1)
		printf("# message: %s\n", err.msg);
	gguf_close(g);
}

static void test_counts(void)
{
	struct buf b = {0};

	head(&b, 0, 1ull << 63);
	refused("n_kv = 2^63", &b, "keys don't fit");
	head(&b, 1ull << 63, 0);
	refused("n_tensors = 2^63", &b, "tensors don't fit");
	head(&b, 3, 0);
	u(&b, 0, 8);
	refused("more tensors than the file has bytes for", &b, "tensors don't fit");
	head(&b, 0, 1);
	u(&b, 1ull << 63, 8);
	u(&b, 0, 8);
	refused("key length 2^63", &b, "the file ends within its keys");
	head(&b, 0, 1);
	key(&b, "general.name", GGUF_STR);
	u(&b, 1ull << 63, 8);
	refused("string length 2^63", &b, "the file ends within its keys");
	head(&b, 0, 1);
	array(&b, "a", GGUF_U32, 1ull << 63);
	u(&b, 0, 8);
	refused("array length 2^63", &b, "the file ends within its keys");
	head(&b, 0, 1);
	array(&b, "a", GGUF_U64, (1ull << 61) + 1);   /* times 8 wraps to 8 */
	u(&b, 0, 8);
	refused("array size that wraps", &b, "the file ends within its keys");
	head(&b, 0, 1);
	array(&b, "a", GGUF_STR, 1ull << 63);
	u(&b, 0, 8);
	refused("string array length 2^63", &b, "the file ends within its keys");
	head(&b, 0, 1);
	array(&b, "a", GGUF_STR, 2);
	u(&b, 0, 8);
	u(&b, 1ull << 62, 8);
	refused("string in an array of length 2^62", &b, "the file ends within its keys");
	head(&b, 0, 1);
	array(&b, "a", GGUF_ARR, 1);
	u(&b, GGUF_ARR, 4);
	u(&b, 1ull << 40, 8);
	refused("nested arrays", &b, "arrays of arrays");
	head(&b, 0, 1);
	array(&b, "a", 77, 1);
	u(&b, 0, 8);
	refused("unknown item type", &b, "unknown type of array items");
	head(&b, 0, 1);
	key(&b, "a", 13);
	u(&b, 0, 8);
	refused("unknown value type", &b, "key 'a': unknown type of value");
	head(&b, 0, 1);
	key(&b, "a", GGUF_BOOL);
	u(&b, 2, 1);
	refused("a bool of 2", &b, "neither 0 nor 1");
	head(&b, 0, 1);
	key(&b, "", GGUF_U32);
	u(&b, 2, 4);
	refused("empty key", &b, "empty");
	head(&b, 0, 2);
	key(&b, "same", GGUF_U32);
	u(&b, 2, 4);
	key(&b, "same", GGUF_STR);
	str(&b, "x");
	refused("a key twice", &b, "key 'same': stands twice");
}

/* One tensor that must be refused: its entry as written, bytes of data (0: none at all). */
static const struct {
	const char *what;
	uint32_t ndim;
	uint64_t dims[8];
	uint32_t type;
	uint64_t offset;
	int bytes;
	const char *want;
} bad_tensors[] = {
	{ "n_dims 0", 0, { 32, 4 }, 0, 0, 512, "tensor 't': 0 dimensions" },
	{ "n_dims 5", 5, { 1, 1, 1, 1, 1 }, 0, 0, 512, "5 dimensions" },
	{ "n_dims 2^32-1", UINT32_MAX, { 1, 1, 1, 1, 1, 1, 1, 1 }, 0, 0, 512, "4294967295 dimensions" },
	{ "dim 2^42+1", 2, { (1ull << 42) + 1, 1 }, 0, 0, 512,
		"header describes 17592186044516 bytes, file has" },
	{ "dims product 2^64", 2, { 1ull << 32, 1ull << 32 }, 0, 0, 512,
		"tensor 't': its shape overflows" },
	{ "dims product 2^64 in four", 4, { 1 << 16, 1 << 16, 1 << 16, 1 << 16 }, 0, 0, 512,
		"overflows" },
	{ "dim 2^63", 2, { 1ull << 63, 1 }, 0, 0, 512, "overflows" },
	{ "rows that are no whole blocks", 2, { 33, 4 }, 8, 0, 512,
		"rows of 33 elements can't be Q8_0, whose blocks have 32" },
	{ "unknown type id", 2, { 32, 4 }, 12345, 0, 512, "type 12345 (unknown) is not supported" },
	{ "a type that we don't read", 2, { 32, 4 }, 23, 0, 512, "type 23 (IQ4_XS) is not supported" },
	{ "offset not aligned", 2, { 32, 4 }, 0, 8, 1024, "offset 8 is not a multiple of 32" },
	{ "data past the end", 2, { 32, 4 }, 0, 32, 512, "header describes 640 bytes, file has 608" },
	{ "offset 2^64-32", 2, { 32, 4 }, 0, -32ull, 512, "header describes" },
	{ "no data at all", 2, { 32, 4 }, 0, 0, 0, "header describes 608 bytes, file has 65" },
	{ "C6 one byte is missing", 2, { 32, 4 }, 0, 0, 511,
		"header describes 608 bytes, file has 607" },
};

static void test_tensors(void)
{
	static const uint64_t ok2[] = { 32, 4 };
	struct buf b = {0};

	for (size_t i = 0; i < sizeof(bad_tensors) / sizeof(*bad_tensors); i++) {
		head(&b, 1, 0);
		tensor(&b, "t", bad_tensors[i].ndim, bad_tensors[i].dims, bad_tensors[i].type,
			bad_tensors[i].offset);
		if (bad_tensors[i].bytes)
			data(&b, bad_tensors[i].bytes);
		refused(bad_tensors[i].what, &b, bad_tensors[i].want);
	}
	head(&b, 2, 0);
	tensor(&b, "t", 2, ok2, 0, 0);
	tensor(&b, "v", 2, ok2, 0, 480);
	data(&b, 2048);
	refused("overlap", &b, "tensors 't' and 'v' overlap");
	head(&b, 2, 0);
	tensor(&b, "t", 2, ok2, 0, 0);
	tensor(&b, "t", 2, ok2, 0, 512);
	data(&b, 2048);
	refused("a tensor twice", &b, "tensor 't' stands twice");
	head(&b, 1, 0);
	str(&b, "");
	u(&b, 1, 4);
	data(&b, 512);
	refused("a tensor without a name", &b, "empty");
}

static void alignment(const char *id, uint32_t type, uint64_t v, int bytes)
{
	struct buf b = {0};

	head(&b, 0, 1);
	key(&b, "general.alignment", type);
	u(&b, v, bytes);
	refused(id, &b, "key 'general.alignment' must be a power of two");
}

static void test_header(void)
{
	struct buf b = {0};

	alignment("alignment 0", GGUF_U32, 0, 4);
	alignment("alignment 3", GGUF_U32, 3, 4);
	alignment("alignment 2^30", GGUF_U32, 1 << 30, 4);
	alignment("alignment of a wrong type", GGUF_F32, 32, 4);
	alignment("alignment as u64", GGUF_U64, 32, 8);
	buf_puts(&b, "GGUF");
	u(&b, 1, 4);
	u(&b, 0, 8);
	refused("version 1", &b, "GGUF version 1; versions 2 and 3 are read");
	buf_puts(&b, "GGUF");
	u(&b, 0x03000000, 4);
	u(&b, 0, 16);
	refused("big-endian", &b, "big-endian");
	buf_puts(&b, "GGUF");
	u(&b, 4, 4);
	u(&b, 0, 16);
	refused("a later version", &b, "GGUF version 4");
	buf_puts(&b, "GGML");
	u(&b, 3, 4);
	refused("another magic", &b, "not a GGUF file");
	buf_puts(&b, "GG");
	refused("two bytes", &b, "not a GGUF file");
	buf_put(&b, "", 0);
	refused("an empty file", &b, "not a GGUF file");
}

/* ---- a good file ---- */

static const uint64_t mat[] = { 4, 32 }, vec[] = { 5 }, none[] = { 0, 32 };
static const struct gguf_str tokens[] = { { "a", 1 }, { "", 0 }, { "b\0c", 3 }, { "\xff\xfe", 2 } };
static float weights[128];

static int write_good(const char *name, size_t piece, struct err *err)
{
	static unsigned char q[4 * 34];
	struct gguf_w *w;
	FILE *fp = fopen(at(name), "wb");
	int rc;

	for (int i = 0; i < 128; i++)
		weights[i] = (float)(i - 60) / 16;
	dtype_from_f32(DT_Q8_0, weights, 128, q);
	if (!fp || gguf_w_new(&w, err) < 0)
		return -1;
	gguf_w_str(w, "general.architecture", "llama", 5);
	gguf_w_u32(w, "llama.block_count", 4000000000u);
	gguf_w_u64(w, "big", 1ull << 63);
	gguf_w_f32(w, "eps", 1e-5f);
	gguf_w_bool(w, "yes", true);
	gguf_w_bool(w, "no", false);
	gguf_w_strs(w, "tokens", tokens, 4);
	gguf_w_f32s(w, "scores", (const float[]){ 0.5f, -1 }, 2);
	gguf_w_i32s(w, "types", (const int32_t[]){ 1, -2, 3 }, 3);
	rc = gguf_w_tensor(w, "q", DT_Q8_0, 2, mat, err) |
		gguf_w_tensor(w, "none", DT_F32, 2, none, err) |
		gguf_w_tensor(w, "bias", DT_F32, 1, vec, err) | gguf_w_begin(w, fp, name, err);
	for (size_t i = 0; i < sizeof(q) && rc == 0; i += piece)
		rc = gguf_w_data(w, q + i, i + piece > sizeof(q) ? sizeof(q) - i : piece, err);
	rc = rc ? rc : gguf_w_data(w, weights, 20, err) | gguf_w_finish(w, err);
	gguf_w_free(w);
	return fclose(fp) ? -1 : rc;
}

static void test_keys(const struct gguf *g)
{
	struct err err = {0};
	struct gguf_str s = {0};
	enum gguf_type type = GGUF_U8;
	uint64_t n = 0;
	int64_t i = 0;
	double d = 0;
	bool t = false, f = true;

	ok(gguf_get_str(g, "general.architecture", &s, &err) == 1 && s.n == 5 &&
			!memcmp(s.s, "llama", 5),
		"a string");
	ok(gguf_get_int(g, "llama.block_count", &i, &err) == 1 && i == 4000000000, "a u32 above 2^31");
	ok(gguf_get_int(g, "big", &i, &err) == -1 && err.code == EX_DATAERR &&
			strstr(err.msg, "key 'big': is larger than 2^63 - 1"),
		"a u64 that i64 can't hold is an error");
	ok(gguf_get_num(g, "eps", &d, &err) == 1 && d == (double)1e-5f &&
			gguf_get_num(g, "big", &d, &err) == 1 && d == 0x1p63,
		"numbers");
	ok(gguf_get_bool(g, "yes", &t, &err) == 1 && t && gguf_get_bool(g, "no", &f, &err) == 1 && !f,
		"bools");
	ok(gguf_get_int(g, "absent", &i, &err) == 0 && gguf_get_str(g, "absent", &s, &err) == 0 &&
			gguf_get_arr(g, "absent", &type, &n, &err) == 0 &&
			gguf_get_num(g, "absent", &d, &err) == 0 && gguf_get_bool(g, "absent", &t, &err) == 0,
		"absent keys are 0");
	ok(gguf_get_int(g, "eps", &i, &err) == -1 &&
			strstr(err.msg, "key 'eps' must be a whole number, found f32"),
		"S3 a float for a whole number");
	ok(gguf_get_str(g, "eps", &s, &err) == -1 && strstr(err.msg, "must be a string, found f32"),
		"S3 a float for a string");
	ok(gguf_get_num(g, "yes", &d, &err) == -1 && strstr(err.msg, "must be a number, found bool"),
		"S3 a bool for a number");
	ok(gguf_get_bool(g, "types", &t, &err) == -1 && strstr(err.msg, "must be a bool, found array"),
		"S3 an array for a bool");
	ok(gguf_get_arr(g, "eps", &type, &n, &err) == -1 &&
			strstr(err.msg, "must be an array, found f32"),
		"S3 a scalar for an array");
	ok(gguf_key_count(g) == 9 && !strcmp(gguf_key_at(g, 6, &type), "tokens") && type == GGUF_ARR,
		"keys are listed in file order");

	ok(gguf_get_arr(g, "tokens", &type, &n, &err) == 1 && type == GGUF_STR && n == 4,
		"an array of strings");
	for (int k = 0; k < 2; k++)   /* twice: the second round starts again */
		for (i = 0; i < 4; i++) {
			s = gguf_arr_str(g, "tokens", (uint64_t)i);
			ok(s.n == tokens[i].n && !memcmp(s.s, tokens[i].s, s.n), "its item %d, round %d",
				(int)i, k);
		}
	ok(gguf_arr_str(g, "tokens", 4).n == 0 && gguf_arr_str(g, "scores", 0).n == 0 &&
			gguf_arr_str(g, "absent", 0).n == 0,
		"past the end, no strings");
	ok(gguf_get_arr(g, "scores", &type, &n, &err) == 1 && type == GGUF_F32 && n == 2 &&
			gguf_arr_num(g, "scores", 0) == 0.5 && gguf_arr_num(g, "scores", 1) == -1 &&
			isnan(gguf_arr_num(g, "scores", 2)),
		"an array of floats");
	ok(gguf_get_arr(g, "types", &type, &n, &err) == 1 && type == GGUF_I32 && n == 3 &&
			gguf_arr_int(g, "types", 1) == -2 && gguf_arr_num(g, "types", 1) == -2 &&
			gguf_arr_int(g, "types", 3) == INT64_MIN,
		"an array of integers");
	ok(gguf_arr_int(g, "scores", 0) == INT64_MIN && isnan(gguf_arr_num(g, "tokens", 0)),
		"S3 items of another type are no numbers");
}

static void test_good(void)
{
	struct err err = {0};
	struct gguf *g = NULL;
	struct buf one = {0}, two = {0};
	const struct tensor *t;
	float back[128];

	ok(write_good("good.gguf", 1000, &err) == 0 && gguf_open(&g, at("good.gguf"), &err) == 0,
		"what was written is read");
	if (!g) {
		printf("# %s\n", err.msg);
		return;
	}
	test_keys(g);
	t = gguf_tensor_find(g, "q");
	ok(t && t->dtype == DT_Q8_0 && t->ndim == 2 && t->shape[0] == 4 && t->shape[1] == 32 &&
			t->bytes == 136 && dtype_to_f32(t->dtype, t->data, 128, back) == 0 &&
			fabsf(back[3] - weights[3]) < 0.03f,
		"a matrix: [out, in], dequantised");
	t = gguf_tensor_find(g, "bias");
	ok(t && t->ndim == 1 && t->shape[0] == 5 && !memcmp(t->data, weights, 20) &&
			(t->data - gguf_tensor_find(g, "q")->data) == 160,
		"a vector, padded to 32");
	t = gguf_tensor_find(g, "none");
	ok(t && t->bytes == 0 && tensor_count(t) == 0, "a tensor without elements");
	ok(gguf_tensor_count(g) == 3 && !strcmp(gguf_tensor_at(g, 0)->name, "q") &&
			!gguf_tensor_find(g, "r"),
		"tensors are listed in file order");
	gguf_close(g);
	ok(write_good("again.gguf", 7, &err) == 0 && !file_read(at("good.gguf"), 1 << 20, &one, &err) &&
			!file_read(at("again.gguf"), 1 << 20, &two, &err) && one.n == two.n &&
			!memcmp(one.p, two.p, one.n) && one.n % 32 == 0,
		"equal contents in other pieces give equal bytes");

	/* S3: every cut of a good file is refused, none crashes; version 2 is the same layout. */
	int bad = 0;

	for (size_t n = 0; n < one.n - 12; n++) {   /* the last 12 bytes are padding */
		save("x.gguf", one.p, n);
		bad += gguf_open(&g, at("x.gguf"), &err) != -1 || err.code != EX_DATAERR;
	}
	ok(!bad, "S3 C6 a good file cut at each of its %zu bytes is refused", one.n - 12);
	one.p[4] = 2;
	save("x.gguf", one.p, one.n);
	ok(gguf_open(&g, at("x.gguf"), &err) == 0, "version 2 is read");
	gguf_close(g);
	buf_release(&one);
	buf_release(&two);
	ok(gguf_open(&g, at("absent.gguf"), &err) == -1 && err.code == EX_NOINPUT && !g,
		"an absent file: 66");
}

static void test_writer_errors(void)
{
	struct err err = {0};
	struct gguf_w *w;
	FILE *fp = fopen(at("w.gguf"), "wb"), *full = fopen("/dev/full", "wb");
	char name[65] = "";
	int rc;

	memset(name, 'x', 64);
	gguf_w_new(&w, &err);
	ok(gguf_w_tensor(w, name, DT_F32, 1, vec, &err) == -1 && strstr(err.msg, "longer than 63"),
		"a name that ggml can't hold");
	ok(gguf_w_tensor(w, "u", DT_U8, 1, vec, &err) == -1 &&
			strstr(err.msg, "tensor 'u' can't be in a GGUF file"),
		"a type that GGUF lacks");
	ok(gguf_w_tensor(w, "v", DT_Q8_0, 1, vec, &err) == -1 &&
			strstr(err.msg, "rows of 5 elements can't be Q8_0"),
		"rows that are no blocks");
	ok(gguf_w_tensor(w, "v", DT_F32, 1, vec, &err) == 0 &&
			gguf_w_begin(w, fp, "w.gguf", &err) == 0 && gguf_w_data(w, weights, 16, &err) == 0 &&
			gguf_w_finish(w, &err) == -1 &&
			strstr(err.msg, "4 bytes of tensor 'v' were not written"),
		"a tensor that is not complete");
	ok(gguf_w_data(w, weights, 8, &err) == -1 && err.code == EX_SOFTWARE, "too much data");
	gguf_w_free(w);
	gguf_w_new(&w, &err);
	rc = gguf_w_tensor(w, "m", DT_F32, 2, (const uint64_t[]){ 4, 32 }, &err);
	setvbuf(full, NULL, _IONBF, 0);
	ok(rc == 0 && gguf_w_begin(w, full, "full.gguf", &err) == -1 && err.code == EX_IOERR
		&& strstr(err.msg, "cannot write 'full.gguf': No space left on device"), "a full disk: 74");
	gguf_w_free(w);
	fclose(fp);
	fclose(full);
}

int main(void)
{
	struct err err = {0};

	if (!mkdtemp(dir)) {
		perror("mkdtemp");
		return 1;
	}
	test_counts();
	test_tensors();
	test_header();
	test_good();
	test_writer_errors();
	remove_tree(dir, &err);
	return tap_done();
}
