/* tune version: what a bug report should hold. */
#include <stdio.h>
#include <sys/utsname.h>
#include <yaml.h>
#include <zstd.h>

#include "libcommon/json.h"
#include "libcommon/tool.h"
#include "tools/tune/tune.h"

#ifdef __clang__
#define COMPILER "clang " __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

enum { FEATURES_MAX = 8 };

/* Names of what this CPU has; returns how many. */
static size_t cpu_features(const char *out[FEATURES_MAX])
{
	size_t n = 0;
#if defined(__x86_64__)
	static const char *const names[] = { "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512bf16",
		"avx512vnni" };
	const int has[] = { __builtin_cpu_supports("avx2"), __builtin_cpu_supports("fma"),
		__builtin_cpu_supports("f16c"), __builtin_cpu_supports("avx512f"),
		__builtin_cpu_supports("avx512bw"), __builtin_cpu_supports("avx512bf16"),
		__builtin_cpu_supports("avx512vnni") };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (has[i])
			out[n++] = names[i];
#else
	(void)out;
#endif
	return n;
}

static int print_json(const char *machine, const char *const *features, size_t n, struct err *err)
{
	struct buf b = {0};
	struct json_w w = { .out = &b };
	int rc;

	json_w_obj(&w);
	json_w_name(&w, "version"); json_w_str(&w, TUNE_VERSION);
	json_w_name(&w, "compiler"); json_w_str(&w, COMPILER);
	json_w_name(&w, "cpu"); json_w_str(&w, machine);
	json_w_name(&w, "features");
	json_w_arr(&w);
	for (size_t i = 0; i < n; i++)
		json_w_str(&w, features[i]);
	json_w_end(&w);
	json_w_name(&w, "libyaml"); json_w_str(&w, yaml_get_version_string());
	json_w_name(&w, "zstd"); json_w_str(&w, ZSTD_versionString());
	json_w_name(&w, "devices");
	json_w_arr(&w);
	json_w_str(&w, "cpu");
	json_w_end(&w);
	json_w_end(&w);
	rc = buf_ok(&b, err);
	if (!rc)
		puts(b.p);      /* tool_exit looks at stdout */
	buf_release(&b);
	return rc;
}

int verb_version(int argc, char **argv)
{
	struct tool t = { "tune version", "",
		"Print the version, how it was built and what this CPU has.", NULL };
	struct err err = {0};
	struct utsname u = {0};
	const char *features[FEATURES_MAX];
	size_t n = cpu_features(features);

	tool_init(&t, argc, argv);
	if (t.argc)
		return tool_exit(&t, err_set(&err, EX_USAGE, "takes no operand"), &err);
	uname(&u);
	if (t.json)
		return tool_exit(&t, print_json(u.machine, features, n, &err), &err);
	printf("tune %s\ncompiler: %s\ncpu: %s", TUNE_VERSION, COMPILER, u.machine);
	for (size_t i = 0; i < n; i++)
		printf(" %s", features[i]);
	printf("\nlibraries: libyaml %s, zstd %s\ndevices: cpu\n", yaml_get_version_string(),
		ZSTD_versionString());
	return tool_exit(&t, 0, &err);
}
