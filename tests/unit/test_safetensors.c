#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libcommon/file.h"
#include "libcommon/formats/safetensors.h"
#include "libcommon/outfile.h"
#include "tap.h"

static char dir[] = "/tmp/tune-st-XXXXXX";
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

/*
 * A file with this header (announced to be `announced` bytes, or its own length) and `data` bytes
 * after it.
 */
static void file_with(
	const char *name, const char *header, size_t n, uint64_t announced, size_t data)
{
	struct buf b = {0};

	for (int i = 0; i < 8; i++)
		buf_putc(&b, (int)((announced ? announced : n) >> (8 * i) & 255));
	buf_put(&b, header, n);
	for (size_t i = 0; i < data; i++)
		buf_putc(&b, (int)(i * 7 & 255));
	save(name, b.p, b.n);
	buf_release(&b);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
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

/* The file is refused with 65, within a second and 64 MiB, and the message holds `what`. */
static void refused(const char *id, const char *name, const char *what)
{
	struct safetensors *s = NULL;
	struct err err = {0};
	double t0 = now();
	int rc;

	limit_memory(64 << 20);
	rc = safetensors_open(&s, at(name), &err);
	limit_memory(0);
	ok(rc == -1 && !s && err.code == EX_DATAERR && strstr(err.msg, what) && now() - t0 < 1,
		"%s: refused: %s", id, what);
	if (!strstr(err.msg, what))
		printf("# message: %.300s\n", err.msg);
	safetensors_close(s);
}

struct hostile { const char *id, *header; uint64_t announced; size_t data; const char *what; };
#define T(name, dtype, shape, off) \
	"\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" off "}"
static const struct hostile corpus[] = {
	{ "S1 N = 0", "", 0, 0, "does not start with '{'" },
	{ "S1 N = 2^63", "{}", 1ull << 63, 0, "more than 104857600" },
	{ "S1 N = 2^64-5", "{}", -5ull, 0, "more than 104857600" },
	{ "S1 N > file", "{}", 1000, 0, "header describes 1008 bytes or more, file has 10" },
	{ "S1 begin > end", "{" T("a", "F32", "[2]", "[8,0]") "}", 0, 8, "begin <= end" },
	{ "S1 C6 end > data", "{" T("a", "F32", "[2]", "[0,8]") "}", 0, 7,
		"header describes 70 bytes, file has 69" },
	{ "S1 C6 data > end", "{" T("a", "F32", "[2]", "[0,8]") "}", 0, 9,
		"header describes 70 bytes, file has 71" },
	{ "S1 C6 header only", "{" T("a", "F32", "[2]", "[0,8]") "}", 0, 0,
		"header describes 70 bytes, file has 62" },
	{ "S1 overlap", "{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[2]", "[4,12]") "}", 0, 12,
		"'a' and 'b' overlap" },
	{ "S1 same bytes twice",
		"{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[2]", "[0,8]") "}", 0, 8, "overlap" },
	{ "S1 gap", "{" T("a", "F32", "[2]", "[0,8]") "," T("b", "F32", "[2]", "[12,20]") "}", 0, 20,
		"4 bytes before tensor 'b'" },
	{ "S1 gap at the start", "{" T("a", "F32", "[2]", "[4,12]") "}", 0, 12,
		"4 bytes before tensor 'a'" },
	{ "S1 shape product wraps", "{" T("a", "U8", "[4294967296,4294967296]", "[0,0]") "}", 0, 0,
		"overflows" },
	{ "S1 shape product wraps with the element size",
		"{" T("a", "F64", "[2305843009213693952]", "[0,0]") "}", 0, 0, "overflows" },
	{ "S1 end wraps",
		"{" T("a", "U8", "[9223372036854775807]", "[0,9223372036854775807]") "," T(
			"b", "U8", "[9223372036854775807]", "[9223372036854775807,18446744073709551614]") "}",
		0, 0, "whole numbers" },
	{ "S1 shape and offsets differ", "{" T("a", "F32", "[3]", "[0,8]") "}", 0, 8,
		"need 12 bytes, data_offsets give 8" },
	{ "S1 dtype and offsets differ", "{" T("a", "F16", "[2]", "[0,8]") "}", 0, 8,
		"need 4 bytes, data_offsets give 8" },
	{ "S1 one offset", "{" T("a", "F32", "[2]", "[8]") "}", 0, 8, "begin and an end" },
	{ "S1 three offsets", "{" T("a", "F32", "[2]", "[0,4,8]") "}", 0, 8, "begin and an end" },
	{ "S1 negative offset", "{" T("a", "F32", "[2]", "[-8,0]") "}", 0, 8, "begin and an end" },
	{ "S1 negative dimension", "{" T("a", "F32", "[-2]", "[0,8]") "}", 0, 8, "not negative" },
	{ "S1 two negative dimensions", "{" T("a", "F32", "[-1,-2]", "[0,8]") "}", 0, 8,
		"not negative" },
	{ "S1 float dimension", "{" T("a", "F32", "[2.0]", "[0,8]") "}", 0, 8, "whole numbers" },
	{ "S1 float offset", "{" T("a", "F32", "[2]", "[0,8.0]") "}", 0, 8, "whole numbers" },
	{ "S1 1e400", "{" T("a", "F32", "[1e400]", "[0,8]") "}", 0, 8, "" },
	{ "S1 2^64 as dimension", "{" T("a", "F32", "[18446744073709551618]", "[0,8]") "}", 0, 8,
		"whole numbers" },
	{ "S1 nine dimensions", "{" T("a", "U8", "[1,1,1,1,1,1,1,1,8]", "[0,8]") "}", 0, 8,
		"has 9 dimensions" },
	{ "S1 unknown dtype", "{" T("a", "F8_E4M3", "[8]", "[0,8]") "}", 0, 8,
		"dtype 'F8_E4M3' is not supported" },
	{ "S1 entry is no object", "{\"a\":[1]}", 0, 0, "not an object" },
	{ "S1 entry without shape", "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 0, 8,
		"must have" },
	{ "S1 surplus member",
		"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", 0, 8,
		"no more" },
	{ "S1 header is an array", "[]", 0, 0, "does not start with '{'" },
	{ "S1 header starts with a space", " {}", 0, 0, "does not start with '{'" },
	{ "S1 NUL in a name", "{" T("a\\u0000b", "F32", "[2]", "[0,8]") "}", 0, 8, "NUL" },
	{ "S1 invalid UTF-8 in a name", "{" T("a\xff", "F32", "[2]", "[0,8]") "}", 0, 8, "UTF-8" },
	{ "S1 a name twice", "{" T("a", "F32", "[2]", "[0,8]") "," T("a", "F32", "[2]", "[8,16]") "}",
		0, 16, "twice" },
	{ "S1 cut JSON", "{" T("a", "F32", "[2]", "[0,8]"), 0, 8, "" },
	{ "S1 bytes after the object", "{}x", 0, 0, "" },
	{ "S1 metadata that is no string", "{\"__metadata__\":{\"format\":1}}", 0, 0,
		"'format' is not a string" },
	{ "S1 metadata that is no object", "{\"__metadata__\":[]}", 0, 0,
		"__metadata__ is not an object" },
};

static void test_hostile(void)
{
	struct buf b = {0};

	for (size_t i = 0; i < sizeof(corpus) / sizeof(corpus[0]); i++) {
		const struct hostile *h = &corpus[i];

		file_with("x.safetensors", h->header, strlen(h->header), h->announced, h->data);
		refused(h->id, "x.safetensors", h->what);
	}
	file_with("x.safetensors", "{\0}", 3, 0, 0);
	refused("S1 NUL in the JSON", "x.safetensors", "");
	save("x.safetensors", "\2\0\0\0\0\0\0", 7);
	refused("S1 seven bytes", "x.safetensors", "hold no header");
	save("x.safetensors", "", 0);
	refused("S1 empty file", "x.safetensors", "hold no header");

	buf_puts(&b, "{\"a\":");
	for (int i = 0; i < 100000; i++)
		buf_putc(&b, '[');
	file_with("x.safetensors", b.p, b.n, 0, 0);
	refused("S1 depth 100000", "x.safetensors", "");
	buf_clear(&b);
	for (int i = 0; i < 1000000; i++)
		buf_printf(&b, "%c\"%d\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[%d,%d]}",
			i ? ',' : '{', i, i, i + 1);
	buf_putc(&b, '}');
	file_with("x.safetensors", b.p, b.n, 0, 1000000);
	refused("S1 1e6 tensors", "x.safetensors", "more than 262144 tensors");
	buf_clear(&b);
	buf_puts(&b, "{\"a\":{\"dtype\":\"U8\",\"shape\":[1");
	for (int i = 0; i < 5000000; i++)
		buf_puts(&b, ",1");
	buf_puts(&b, "],\"data_offsets\":[0,1]}}");
	file_with("x.safetensors", b.p, b.n, 0, 1);
	refused("S1 5e6 dimensions", "x.safetensors", "more than 262144 tensors");
	buf_release(&b);
}

static void test_pickle(void)
{
	save("x.safetensors", "PK\3\4\0\0\10\10\0\0\0\0\0\0", 14);
	refused("S5 zip", "x.safetensors",
		"zip archive (PyTorch's pickle format), not safetensors; pickle is not read");
	save("x.safetensors", "\200\2}q\0.", 6);
	refused("S5 pickle", "x.safetensors", "Python pickle, not safetensors; pickle is not read");
	save("x.safetensors", "GGUF\3\0\0\0", 8);
	refused("a GGUF file under the wrong name", "x.safetensors", "this is a GGUF file");
	save("x.safetensors", "version https://git-lfs.github.com/spec/v1\noid", 46);
	refused("a Git LFS pointer", "x.safetensors", "git lfs pull");
}

static struct safetensors *opened(const char *name)
{
	struct safetensors *s = NULL;
	struct err err = {0};

	if (safetensors_open(&s, at(name), &err) < 0)
		printf("# %s\n", err.msg);
	return s;
}

static void test_accepted(void)
{
	static const struct { const char *what, *header; size_t data; } good[] = {
		{ "S1 0-element tensors are accepted", "{" T("a", "F32", "[0,7]", "[0,0]") "," T("b", "F32",
			"[1]", "[0,4]") ","
			T("c", "I64", "[3,0]", "[4,4]") "}", 4 },
		{ "C5 __metadata__ absent", "{" T("a", "BF16", "[2]", "[0,4]") "}", 4 },
		{ "C5 __metadata__ {}", "{\"__metadata__\":{}," T("a", "BF16", "[2]", "[0,4]") "}", 4 },
		{ "C5 __metadata__ null", "{\"__metadata__\":null," T("a", "BF16", "[2]", "[0,4]") "}", 4 },
		{ "C5 __metadata__ with other strings",
			"{\"__metadata__\":{\"x\":\"y\",\"format\":\"pt\"}," T("a", "BF16", "[2]", "[0,4]") "}",
			4 },
		{ "a header padded with spaces", "{" T("a", "BF16", "[2]", "[0,4]") "}       ", 4 },
		{ "no tensors", "{}", 0 },
		{ "a scalar", "{" T("a", "F64", "[]", "[0,8]") "}", 8 },
		{ "a name that is long and odd", "{" T("a.\\\"\\u00e9/../x", "BOOL", "[2]", "[0,2]") "}",
			2 },
	};
	struct safetensors *s;
	const struct tensor *t;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		file_with("x.safetensors", good[i].header, strlen(good[i].header), 0, good[i].data);
		ok(s = opened("x.safetensors"), "%s", good[i].what);
		safetensors_close(s);
	}
	/* Data order is not name order: b's bytes come first. */
	file_with("x.safetensors",
		"{" T("a", "BF16", "[2]", "[2,6]") "," T("b", "U8", "[2]", "[0,2]") "}", 2 * 52 + 3, 0, 6);
	s = opened("x.safetensors");
	t = s ? safetensors_find(s, "a") : NULL;
	ok(t && t->bytes == 4 && t->ndim == 1 && t->shape[0] == 2 && t->dtype == DT_BF16 &&
			t->data[0] == 14 && t->data[3] == 35 && !strcmp(t->file, path_) &&
			safetensors_find(s, "b")->data[0] == 0 && tensor_count(t) == 2,
		"a tensor is where its offsets say");
	ok(s && safetensors_count(s) == 2 && !strcmp(safetensors_at(s, 0)->name, "a") &&
			!strcmp(safetensors_at(s, 1)->name, "b") && !safetensors_find(s, "c") &&
			!safetensors_meta(s, "format"),
		"names are in order, absent ones NULL");
	safetensors_close(s);
}

/* ---- writer ---- */

static struct st_writer *start(const char *stem, uint64_t max_shard, struct err *err)
{
	static const uint64_t sa[] = { 2, 3 }, sb[] = { 4 }, sz[] = { 0, 5 };
	struct st_writer *w;

	if (st_writer_new(&w, dir, stem, max_shard, err) < 0 ||
		st_writer_meta(w, "made", "by a test \"é\"", err) < 0 ||
		st_writer_add(w, "z.first", DT_F32, 2, sa, err) < 0 ||
		st_writer_add(w, "none", DT_F32, 2, sz, err) < 0 ||
		st_writer_add(w, "a", DT_BF16, 1, sb, err) < 0 ||
		st_writer_add(w, "s", DT_I64, 0, NULL, err) < 0)
		printf("# %s\n", err->msg);
	return w;
}

static const unsigned char data[24 + 8 + 8 + 1] = "abcdefghijklmnopqrstuvwxABCDEFGH01234567";

static int write_all(const char *stem, uint64_t max_shard, size_t piece, struct err *err)
{
	struct st_writer *w = start(stem, max_shard, err);
	static const size_t ends[] = { 24, 32, 40 };
	int rc = st_writer_begin(w, err);

	for (size_t i = 0, e = 0; e < 3 && rc == 0;) {
		size_t n = ends[e] - i < piece ? ends[e] - i : piece;

		rc = st_writer_data(w, data + i, n, err);
		i += n;
		e += i == ends[e];
	}
	if (rc == 0)
		rc = st_writer_finish(w, err);
	st_writer_free(w);
	return rc;
}

static bool holds_all(const struct safetensors *s)
{
	const struct tensor *z = safetensors_find(s, "z.first"), *a = safetensors_find(s, "a"),
						*n = safetensors_find(s, "none"), *sc = safetensors_find(s, "s");

	return z && a && n && sc && safetensors_count(s) == 4 && !memcmp(z->data, data, 24) &&
		!memcmp(a->data, data + 24, 8) && !memcmp(sc->data, data + 32, 8) && sc->ndim == 0 &&
		n->bytes == 0 && n->shape[1] == 5 && z->shape[0] == 2 && z->dtype == DT_F32 &&
		a->dtype == DT_BF16 && !strcmp(safetensors_meta(s, "made"), "by a test \"é\"");
}

static void test_writer(void)
{
	struct err err = {0};
	struct safetensors *s;
	struct buf one = {0}, two = {0};
	struct st_writer *w;

	ok(write_all("model", 0, 1000, &err) == 0, "a file is written");
	s = opened("model.safetensors");
	ok(s && holds_all(s), "and holds what was declared");
	ok(s && !strcmp(safetensors_meta(s, "format"), "pt"), "C5: every file has format pt");
	safetensors_close(s);
	ok(write_all("again", 1 << 20, 3, &err) == 0 &&
			!file_read(at("model.safetensors"), 4096, &one, &err) &&
			!file_read(at("again.safetensors"), 4096, &two, &err) && one.n == two.n &&
			!memcmp(one.p, two.p, one.n) && one.n % 8 == 0,
		"equal tensors in other pieces give equal bytes");
	ok(write_all("model", 0, 1000, &err) == -1 && err.code == EX_CANTCREAT,
		"an existing file is not overwritten");

	w = start("short", 0, &err);
	ok(st_writer_begin(w, &err) == 0 && st_writer_data(w, data, 23, &err) == 0 &&
			st_writer_finish(w, &err) == -1 &&
			strstr(err.msg, "1 bytes of tensor 'z.first' were not written"),
		"a tensor that is not complete is an error");
	st_writer_free(w);
	w = start("long", 0, &err);
	ok(st_writer_begin(w, &err) == 0 && st_writer_data(w, data, 25, &err) == -1 &&
			err.code == EX_SOFTWARE,
		"so is too much data");
	st_writer_free(w);
	ok(st_writer_new(&w, dir, "q", 0, &err) == 0 &&
			st_writer_add(w, "q", DT_Q8_0, 1, (const uint64_t[]){ 32 }, &err) == -1 &&
			strstr(err.msg, "no type Q8_0"),
		"a block type is refused");
	st_writer_free(w);
	w = start("twice", 0, &err);
	ok(st_writer_add(w, "a", DT_F32, 0, NULL, &err) == 0 && st_writer_begin(w, &err) == -1 &&
			strstr(err.msg, "'a' is written twice"),
		"a name twice is refused");
	st_writer_free(w);
	ok(st_writer_new(&w, "/nonexistent", "q", 0, &err) == 0 && st_writer_begin(w, &err) == -1 &&
			err.code == EX_CANTCREAT &&
			strstr(err.msg, "cannot create '/nonexistent/q.safetensors'"),
		"a folder that is not there: 73 with the path");
	st_writer_free(w);
	buf_release(&one);
	buf_release(&two);
}

static void test_sharded_writer(void)
{
	struct err err = {0};
	struct safetensors *s = NULL;
	struct buf index = {0};

	ok(write_all("sharded", 24, 5, &err) == 0, "a sharded model is written");
	ok(!safetensors_open_dir(&s, dir, "sharded", &err) && s && holds_all(s),
		"and read through its index");
	ok(s && strstr(safetensors_find(s, "a")->file, "sharded-00002-of-00002.safetensors") &&
			strstr(safetensors_find(s, "none")->file, "sharded-00001-of-00002.safetensors"),
		"shards are filled in the declared order");
	safetensors_close(s);
	ok(!file_read(at("sharded.safetensors.index.json"), 4096, &index, &err) &&
			strstr(index.p, "\"total_size\": 40") &&
			strstr(index.p, "\"z.first\": \"sharded-00001-of-00002.safetensors\""),
		"the index has the total size and the map");
	ok(!is_file(at("sharded.safetensors")), "there is no single file beside it");
	buf_release(&index);
}

/* ---- the index ---- */

static void index_refused(const char *id, const char *index, size_t n, const char *what)
{
	struct safetensors *s = NULL;
	struct err err = {0};
	int rc;

	save("m/model.safetensors.index.json", index, n);
	rc = safetensors_open(&s, at("m"), &err);
	ok(rc == -1 && !s && (err.code == EX_DATAERR || err.code == EX_NOINPUT) &&
			strstr(err.msg, what) &&
			(!strncmp(what, "weight_map must", 15) || strstr(err.msg, "'a'") ||
				strstr(err.msg, "'b'") || strstr(err.msg, "'a?b'")),
		"%s: refused with the key's name", id);
	if (!strstr(err.msg, what) || rc != -1)
		printf("# message: %s\n", err.msg);
	safetensors_close(s);
}

static void index_of(const char *id, const char *file, const char *what)
{
	struct buf b = {0};

	buf_printf(&b, "{\"weight_map\":{\"a\":\"%s\"}}", file);
	index_refused(id, b.p, b.n, what);
	buf_release(&b);
}

static void test_index(void)
{
	static const char in[] = "{\"weight_map\":{\"a\":\"in.safetensors\"}}";
	static const char two[] =
		"{\"weight_map\":{\"a\":\"s1.safetensors\",\"b\":\"s2.safetensors\"}}";
	static const char extra[] = "{\"weight_map\":{\"a\":\"s1.safetensors\"}}";
	static const char absent[] =
		"{\"weight_map\":{\"a\":\"s1.safetensors\",\"b\":\"s1.safetensors\"}}";
	static const char other[] =
		"{\"weight_map\":{\"a\":\"s1.safetensors\",\"b\":\"s2.safetensors\"}}";
	static const char twice[] =
		"{\"weight_map\":{\"a\":\"s1.safetensors\",\"a\":\"s1.safetensors\"}}";
	const char *a = "{" T("a", "F32", "[1]", "[0,4]") "}",
			   *b = "{" T("b", "F32", "[1]", "[0,4]") "}",
			   *ab = "{" T("a", "F32", "[1]", "[0,4]") "," T("b", "F32", "[1]", "[4,8]") "}";
	struct err err = {0};
	struct safetensors *s = NULL;

	mkdir(at("m"), 0777);
	mkdir(at("m/sub"), 0777);
	file_with("x.safetensors", a, strlen(a), 0, 4);
	file_with("m/s1.safetensors", a, strlen(a), 0, 4);
	file_with("m/s2.safetensors", b, strlen(b), 0, 4);
	file_with("m/sub/x.safetensors", a, strlen(a), 0, 4);
	save("m/model.safetensors.index.json", two, sizeof(two) - 1);
	ok(!safetensors_open(&s, at("m"), &err) && safetensors_count(s) == 2, "a good index is read");
	safetensors_close(s);

	index_of("S2 ../x.safetensors", "../x.safetensors", "not the name of a file of this folder");
	index_of("S2 /etc/passwd", "/etc/passwd", "'/etc/passwd' is not the name");
	index_of("S2 a/../../x", "a/../../x.safetensors", "not the name of a file of this folder");
	index_of("S2 sub/x", "sub/x.safetensors", "not the name of a file of this folder");
	index_of("S2 empty name", "", "not the name of a file of this folder");
	index_of("S2 x\\0y", "s1.safetensors\\u0000y", "not the name of a file of this folder");
	index_of("S2 ..", "..", "not the name of a file of this folder");
	index_of("S2 .", ".", "not the name of a file of this folder");
	index_of("S2 a file that is not there", "none.safetensors", "No such file");
	index_of("S2 the folder's subfolder", "sub", "not a regular file");
	ok(symlink("../x.safetensors", at("m/out.safetensors")) == 0, "a link that leads out");
	index_of("S2 symlink pointing out", "out.safetensors", "link that leads out of the folder");
	ok(symlink("s1.safetensors", at("m/in.safetensors")) == 0, "a link that stays in");
	save("m/model.safetensors.index.json", in, sizeof(in) - 1);
	ok(!safetensors_open(&s, at("m"), &err), "is followed");
	safetensors_close(s);

	index_refused("S2 listed but absent in the shard", absent, sizeof(absent) - 1,
		"'b' is not in 's1.safetensors'");
	file_with("m/s2.safetensors", ab, strlen(ab), 0, 8);
	index_refused("S2 a tensor in two shards", two, sizeof(two) - 1, "is in both");
	file_with("m/s1.safetensors", ab, strlen(ab), 0, 8);
	index_refused("S2 a tensor that the index does not list", extra, sizeof(extra) - 1,
		"does not list tensor 'b' of 's1.safetensors'");
	file_with("m/s2.safetensors", "{}", 2, 0, 0);
	index_refused("S2 a tensor in another shard than listed", other, sizeof(other) - 1,
		"'b' is not in 's2.safetensors' but in s1.safetensors");
	index_refused("S2 a tensor listed twice", twice, sizeof(twice) - 1, "weight_map must");
	index_refused("S2 a NUL in a tensor's name",
		"{\"weight_map\":{\"a\\u0000b\":\"s1.safetensors\"}}", 44, "holds a NUL");
	index_refused(
		"S2 a number for a file", "{\"weight_map\":{\"a\":7}}", 22, "not the name of a file");
	index_refused("S2 no weight_map", "{}", 2, "weight_map must");
	index_refused("S2 an empty weight_map", "{\"weight_map\":{}}", 17, "weight_map must");
	ok(safetensors_open(&s, at("m/sub"), &err) == -1 && err.code == EX_NOINPUT &&
			strstr(err.msg, "has neither model.safetensors"),
		"a folder without weights: 66");
}

/* In a Hugging Face cache the files of a snapshot are links to ../../blobs. */
static void test_hub_cache(void)
{
	static const char one[] = "{\"weight_map\":{\"a\":\"s1.safetensors\"}}";
	const char *a = "{" T("a", "F32", "[1]", "[0,4]") "}";
	struct err err = {0};
	struct safetensors *s = NULL;

	mkdir(at("models--o--n"), 0777);
	mkdir(at("models--o--n/blobs"), 0777);
	mkdir(at("models--o--n/snapshots"), 0777);
	mkdir(at("models--o--n/snapshots/1"), 0777);
	file_with("models--o--n/blobs/abc", a, strlen(a), 0, 4);
	save("models--o--n/snapshots/1/model.safetensors.index.json", one, sizeof(one) - 1);
	ok(symlink("../../blobs/abc", at("models--o--n/snapshots/1/s1.safetensors")) == 0 &&
			!safetensors_open(&s, at("models--o--n/snapshots/1"), &err),
		"a snapshot of a Hugging Face cache is read");
	safetensors_close(s);
}

int main(void)
{
	struct err err = {0};

	if (!mkdtemp(dir)) {
		perror("mkdtemp");
		return 1;
	}
	test_hostile();
	test_pickle();
	test_accepted();
	test_writer();
	test_sharded_writer();
	test_index();
	test_hub_cache();
	remove_tree(dir, &err);
	return tap_done();
}
