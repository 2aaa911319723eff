#ifndef TUNE_CPU_MEMORY_H
#define TUNE_CPU_MEMORY_H
/*
 * memory: how much this process could still take: the least of what the machine has available and
 * what its cgroups (v2 or v1) leave.
 */
#include <stdint.h>

uint64_t memory_available(void);
#endif
