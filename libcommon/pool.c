#include "libcommon/pool.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libcommon/buf.h"

/*
 * A job is announced by a new generation number; workers that idle spin for SPIN rounds on it, then
 * sleep. Tasks are taken from one counter.  The caller leaves when every worker has checked out of
 * the job, so that the job's fields can be reused.
 */
enum { SPIN = 2000, THREADS_MAX = 1024 };

struct pool {
	int threads;
	pthread_t *ids;
	struct worker { struct pool *p; int id; } *workers;
	pool_fn *fn;
	void *ctx;
	long ntasks;
	_Atomic long next;
	_Atomic uint32_t generation, busy;
	_Atomic int quit;
};

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Wait until *word differs from value. */
static void wait_change(_Atomic uint32_t *word, uint32_t value)
{
	for (int i = 0; i < SPIN; i++) {
		if (atomic_load_explicit(word, memory_order_acquire) != value)
			return;
		relax();
	}
	while (atomic_load_explicit(word, memory_order_acquire) == value)
		futex_wait(word, value);
}

static void work(struct pool *p, int worker)
{
	long t;

	while ((t = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed)) < p->ntasks)
		p->fn(p->ctx, t, worker);
}

static void *thread_main(void *arg)
{
	struct worker *w = arg;
	struct pool *p = w->p;
	uint32_t seen = 0;

	for (;;) {
		wait_change(&p->generation, seen);
		seen++;
		if (atomic_load(&p->quit))
			return NULL;
		work(p, w->id);
		if (atomic_fetch_sub_explicit(&p->busy, 1, memory_order_acq_rel) == 1)
			futex_wake(&p->busy);
	}
}

int cpu_count(void)
{
	cpu_set_t set;
	int n;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	n = CPU_COUNT(&set);
	return n < 1 ? 1 : n > THREADS_MAX ? THREADS_MAX : n;
}

int pool_new(struct pool **out, int threads, struct err *err)
{
	struct pool *p = mem_zalloc(1, sizeof(*p), err);

	*out = NULL;
	if (!p)
		return -1;
	if (threads <= 0)
		threads = cpu_count();
	if (threads > THREADS_MAX)
		threads = THREADS_MAX;
	p->threads = 1;
	p->ids = mem_zalloc((size_t)threads, sizeof(*p->ids), err);
	p->workers = mem_zalloc((size_t)threads, sizeof(*p->workers), err);
	if (!p->ids || !p->workers) {
		pool_free(p);
		return -1;
	}
	for (int i = 1; i < threads; i++) {
		p->workers[i] = (struct worker){ p, i };
		if ((errno = pthread_create(&p->ids[i], NULL, thread_main, &p->workers[i]))) {
			err_errno(err, EX_OSERR, "cannot start thread %d", i);
			pool_free(p);
			return -1;
		}
		p->threads++;
	}
	*out = p;
	return 0;
}

void pool_run(struct pool *p, long ntasks, pool_fn *fn, void *ctx)
{
	uint32_t left;

	if (p->threads == 1 || ntasks < 2) {
		for (long t = 0; t < ntasks; t++)
			fn(ctx, t, 0);
		return;
	}
	p->fn = fn;
	p->ctx = ctx;
	p->ntasks = ntasks;
	atomic_store(&p->next, 0);
	atomic_store(&p->busy, (uint32_t)p->threads - 1);
	atomic_fetch_add_explicit(&p->generation, 1, memory_order_release);
	futex_wake(&p->generation);
	work(p, 0);
	while ((left = atomic_load_explicit(&p->busy, memory_order_acquire)))
		wait_change(&p->busy, left);
}

int pool_threads(const struct pool *p)
{
	return p->threads;
}

void pool_free(struct pool *p)
{
	if (!p)
		return;
	atomic_store(&p->quit, 1);
	atomic_fetch_add(&p->generation, 1);
	futex_wake(&p->generation);
	for (int i = 1; i < p->threads; i++)
		pthread_join(p->ids[i], NULL);
	free(p->ids);
	free(p->workers);
	free(p);
}
