#include "memory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The number after `key` at the start of a line of a small file; without a key, the file's first
 * word.  false: not there ("max" is no number).
 */
static bool file_number(const char *path, const char *key, uint64_t *value)
{
	char line[256];
	size_t n = key ? strlen(key) : 0;
	bool found = false;
	FILE *f = fopen(path, "re");

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f))
		if (!key || !strncmp(line, key, n))
			found = sscanf(line + n, "%" SCNu64, value) == 1;
	fclose(f);
	return found;
}

/*
 * What a cgroup leaves: its limit less its use; file cache counts as free, the kernel takes it
 * back.
 */
static uint64_t group_left(
	const char *dir, const char *limit_name, const char *use_name, const char *cache_key)
{
	char path[512];
	uint64_t limit, use, cache = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, limit_name);
	if (!file_number(path, NULL, &limit))
		return UINT64_MAX;
	snprintf(path, sizeof(path), "%s/%s", dir, use_name);
	if (!file_number(path, NULL, &use))
		return UINT64_MAX;
	snprintf(path, sizeof(path), "%s/memory.stat", dir);
	file_number(path, cache_key, &cache);
	use = use > cache ? use - cache : 0;
	return limit > use ? limit - use : 0;
}

/*
 * Our own v2 group is named in /proc/self/cgroup ("0::/path"); each group above it may have a limit
 * too.
 */
static uint64_t groups_left(void)
{
	char line[256], dir[320];
	uint64_t left = UINT64_MAX, l;
	FILE *f = fopen("/proc/self/cgroup", "re");

	line[0] = 0;
	while (f && fgets(line, sizeof(line), f) && strncmp(line, "0::", 3))
		line[0] = 0;
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = 0;
	snprintf(dir, sizeof(dir), "/sys/fs/cgroup%s", line[0] ? line + 3 : "");
	for (;;) {
		l = group_left(dir, "memory.max", "memory.current", "file ");
		left = l < left ? l : left;
		if (strlen(dir) <= strlen("/sys/fs/cgroup"))
			break;
		*strrchr(dir, '/') = 0;
	}
	l = group_left(
		"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache ");
	return l < left ? l : left;
}

uint64_t memory_available(void)
{
	uint64_t kib = 0, machine, group = groups_left();

	if (file_number("/proc/meminfo", "MemAvailable:", &kib))
		machine = kib * 1024;
	else
		machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	return group < machine ? group : machine;
}
