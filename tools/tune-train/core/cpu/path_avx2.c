/* AVX2 and FMA: compiled with -mavx2 -mfma (Makefile) and only called where the CPU has both. */
#if defined(__AVX2__) && defined(__FMA__)
#define CPU_PATH cpu_path_avx2
#include "ops/path.h"
#endif
