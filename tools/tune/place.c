/* place: where things lie, in the source tree and after make install alike. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcommon/file.h"
#include "tools/tune/tune.h"

enum { PATH_LEN = 4096 };

const char *place_bin(void)
{
	static char self[PATH_LEN];
	ssize_t n = *self ? 0 : readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n > 0) {
		self[n] = 0;
		slash = strrchr(self, '/');
		if (slash)
			*slash = 0;
	}
	return self;
}

/* "BIN/up", if it has a folder `has`. */
static bool beside(const char *up, const char *has, char out[PATH_LEN])
{
	char probe[PATH_LEN + 64];
	char real[PATH_LEN];

	if (!*place_bin() || (size_t)snprintf(out, PATH_LEN, "%s/%s", place_bin(), up) >= PATH_LEN)
		return false;
	snprintf(probe, sizeof(probe), "%s/%s", out, has);
	if (!is_dir(probe))
		return false;
	if (realpath(out, real))   /* without the ".." it reads better */
		snprintf(out, PATH_LEN, "%s", real);
	return true;
}

const char *place_data(struct err *err)
{
	static char dir[PATH_LEN];
	const char *env = getenv("TUNE_DATADIR");

	if (env && *env)
		return env;
	/* build/bin, build/san-.../bin, PREFIX/bin */
	if (beside("../..", "recipes", dir) || beside("../../..", "recipes", dir) ||
		beside("../share/tune", "recipes", dir))
		return dir;
	if (is_dir(TUNE_DATADIR))
		return TUNE_DATADIR;
	err_set(
		err, EX_NOINPUT, "no folder with recipes and configs is found; name it with TUNE_DATADIR");
	return NULL;
}

const char *place_man(bool *sections)
{
	static char dir[PATH_LEN];

	*sections = false;
	if (beside("../../man", ".", dir) || beside("../../../man", ".", dir))
		return dir;
	*sections = true;
	return beside("../share/man", "man1", dir) ? dir : NULL;
}
