#ifndef TUNE_CPU_H
#define TUNE_CPU_H
/*
 * cpu: what the files of the CPU device share.
 *
 * ops/ holds the kernels, written once over vec.h; path_plain.c and path_avx2.c each compile all of
 * them for one instruction set and fill the operations of a struct device.  cpu.c owns memory,
 * threads and the choice of the path.
 */
#include "libcommon/pool.h"
#include "tools/tune-train/core/device.h"

struct cpu {
	struct pool *pool;
	int threads;
	void *space;              /* packed panels and tiles: ops/gemm.c; touched as shapes need */
	size_t space_bytes;       /* set by the path */
};

/* Fill the operations of d with those of one path, and say how much space they need. */
void cpu_path_plain(struct device *d);
#if defined(__x86_64__)
void cpu_path_avx2(struct device *d);
#endif
/* Zeroed, page-aligned memory in huge pages where there are any; NULL: none left. */
void *cpu_map(size_t bytes);
void cpu_unmap(void *p, size_t bytes);
#endif
