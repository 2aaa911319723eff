#include "cpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libcommon/buf.h"
#include "memory.h"

/* ---- memory ---- */
enum { HUGE_PAGE = 2 << 20 };

static size_t page_round(size_t bytes)
{
	size_t unit = bytes >= HUGE_PAGE ? HUGE_PAGE : 4096;

	return (bytes + unit - 1) / unit * unit;
}

/* Huge pages need their own alignment: map one more and give back what stands over. */
void *cpu_map(size_t bytes)
{
	size_t n = page_round(bytes), extra = n >= HUGE_PAGE ? HUGE_PAGE : 0, head;
	char *p;

	if (n < bytes || n + extra < n)
		return NULL;
	p = mmap(NULL, n + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (!extra)
		return p;
	head = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
	if (head)
		munmap(p, head);
	if (extra - head)
		munmap(p + head + n, extra - head);
	madvise(p + head, n, MADV_HUGEPAGE);   /* advice: small pages do as well */
	return p + head;
}

void cpu_unmap(void *p, size_t bytes)
{
	if (p)
		munmap(p, page_round(bytes));
}

static int cpu_alloc(struct device *d, size_t bytes, struct dmem **p, struct err *err)
{
	(void)d;
	*p = cpu_map(bytes ? bytes : 1);
	return *p ? 0 : err_oom(err, bytes);
}

static void cpu_release(struct device *d, struct dmem *p, size_t bytes)
{
	(void)d;
	cpu_unmap(p, bytes ? bytes : 1);
}

static void cpu_upload(struct device *d, struct dmem *dst, const void *src, size_t bytes)
{
	(void)d;
	if (bytes)
		memcpy(dst, src, bytes);
}

static int cpu_download(
	struct device *d, void *dst, struct dmem *src, size_t bytes, struct err *err)
{
	(void)d, (void)err;
	if (bytes)
		memcpy(dst, src, bytes);
	return 0;
}

static int cpu_sync(struct device *d, struct err *err)
{
	(void)d, (void)err;
	return 0;
}

/* ---- zero and copy: memory-bound, so in large pieces on every thread ---- */
enum { PIECE = 1 << 20 };
struct move { char *dst; const char *src; size_t bytes; };

static void move_task(void *ctx, long task, int worker)
{
	const struct move *m = ctx;
	size_t at = (size_t)task * PIECE, n = m->bytes - at < PIECE ? m->bytes - at : PIECE;

	(void)worker;
	if (m->src)
		memmove(m->dst + at, m->src + at, n);
	else
		memset(m->dst + at, 0, n);
}

static void cpu_zero(struct device *d, struct dmem *p, size_t bytes)
{
	struct move m = { (char *)p, NULL, bytes };

	if (bytes)
		pool_run(((struct cpu *)d->impl)->pool, (long)((bytes + PIECE - 1) / PIECE), move_task, &m);
}

static void cpu_copy(struct device *d, struct dmem *dst, struct dmem *src, size_t bytes)
{
	struct move m = { (char *)dst, (const char *)src, bytes };

	if (bytes)
		pool_run(((struct cpu *)d->impl)->pool, (long)((bytes + PIECE - 1) / PIECE), move_task, &m);
}

static uint64_t cpu_memory_free(struct device *d)
{
	(void)d;
	return memory_available();
}

static void cpu_free(struct device *d)
{
	struct cpu *c = d->impl;

	if (c->pool)
		pool_free(c->pool);
	cpu_unmap(c->space, c->space_bytes);
	free(c);
	free(d);
}

/* ---- paths, best first ---- */
static bool has_plain(void) { return true; }
#if defined(__x86_64__)
static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

static const struct path {
	const char *word, *title;
	bool (*has)(void);
	void (*fill)(struct device *);
} paths[] = {
#if defined(__x86_64__)
	{ "avx2", "AVX2", has_avx2, cpu_path_avx2 },
#endif
	{ "plain", "plain C", has_plain, cpu_path_plain },
};

static const struct path *choose_path(struct err *err)
{
	const char *want = getenv("TUNE_CPU");

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (want && *want && strcmp(want, paths[i].word))
			continue;
		if (paths[i].has())
			return &paths[i];
		if (want && *want) {
			err_set(err, EX_NODEVICE, "TUNE_CPU=%s: this CPU has no %s", want, paths[i].title);
			return NULL;
		}
	}
	err_set(err, EX_USAGE, "TUNE_CPU=%s: this build has the paths plain"
#if defined(__x86_64__)
		" and avx2"
#endif
		, want);
	return NULL;
}

int cpu_device_open(struct device **out, int threads, struct err *err)
{
	const struct path *path = choose_path(err);
	struct device *d = NULL;
	struct cpu *c = NULL;

	*out = NULL;
	if (!path || !(d = mem_zalloc(1, sizeof(*d), err)))
		return -1;
	if (!(c = mem_zalloc(1, sizeof(*c), err))) {
		free(d);
		return -1;
	}
	*d = (struct device){ .name = "cpu",
		.impl = c,
		.alloc = cpu_alloc,
		.release = cpu_release,
		.upload = cpu_upload,
		.download = cpu_download,
		.sync = cpu_sync,
		.zero = cpu_zero,
		.copy = cpu_copy,
		.memory_free = cpu_memory_free,
		.free = cpu_free };
	if (pool_new(&c->pool, threads, err) < 0)
		goto fail;
	c->threads = pool_threads(c->pool);
	path->fill(d);
	c->space = cpu_map(c->space_bytes);
	if (!c->space) {
		err_oom(err, c->space_bytes);
		goto fail;
	}
	snprintf(d->what, sizeof(d->what), "%s, %d thread%s", path->title, c->threads,
		c->threads == 1 ? "" : "s");
	*out = d;
	return 0;
fail:
	cpu_free(d);
	return -1;
}
