/* tune version: what a bug report should hold. */
#include <stdio.h>
#include <sys/utsname.h>
#include <yaml.h>
#include <zstd.h>

#include "libcommon/tool.h"
#include "tools/tune/tune.h"

static void print_cpu(void)
{
#if defined(__x86_64__)
	static const char *const names[] = { "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512bf16",
		"avx512vnni" };
	const int has[] = { __builtin_cpu_supports("avx2"), __builtin_cpu_supports("fma"),
		__builtin_cpu_supports("f16c"), __builtin_cpu_supports("avx512f"),
		__builtin_cpu_supports("avx512bw"), __builtin_cpu_supports("avx512bf16"),
		__builtin_cpu_supports("avx512vnni") };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (has[i])
			printf(" %s", names[i]);
#endif
}

int verb_version(int argc, char **argv)
{
	struct tool t = { "tune version", "",
		"Print the version, how it was built and what this CPU has.", NULL };
	struct err err = {0};
	struct utsname u = {0};

	tool_init(&t, argc, argv);
	if (t.argc)
		return tool_exit(&t, err_set(&err, EX_USAGE, "takes no operand"), &err);
	uname(&u);
	printf("tune %s\ncompiler: %s %s\ncpu: %s", TUNE_VERSION,
#ifdef __clang__
		"clang",
#else
		"gcc",
#endif
		__VERSION__, u.machine);
	print_cpu();
	printf("\nlibraries: libyaml %s, zstd %s\ndevices: cpu\n", yaml_get_version_string(),
		ZSTD_versionString());
	return tool_exit(&t, 0, &err);
}
