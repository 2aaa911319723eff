/*
 * The path that every machine has: 4 floats at a time (SSE2, NEON), or what the compiler makes of
 * that.
 */
#define CPU_PATH cpu_path_plain
#include "ops/path.h"
