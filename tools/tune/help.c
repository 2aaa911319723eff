/* tune help: the manual page of a tool or format. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libcommon/file.h"
#include "libcommon/tool.h"
#include "tools/tune/tune.h"

/* "train", "tune-train", "config", "tune" -> the file of the page. */
static bool find_page(const char *dir, bool sections, const char *name, char *out, size_t n)
{
	bool whole = !strcmp(name, "tune") || !strncmp(name, "tune-", 5);

	for (const char *s = "157"; *s; s++) {
		if (sections)
			snprintf(out, n, "%s/man%c/%s%s.%c", dir, *s, whole ? "" : "tune-", name, *s);
		else
			snprintf(out, n, "%s/%s%s.%c", dir, whole ? "" : "tune-", name, *s);
		if (is_file(out))
			return true;
	}
	return false;
}

int verb_help(int argc, char **argv)
{
	struct tool t = { "tune help", "[NAME]",
		"Show the manual page of a tool or format: train, config, stream, ...", NULL };
	struct err err = {0};
	const char *dir, *name;
	char page[8192];
	bool sections;

	tool_init(&t, argc, argv);
	name = t.argc ? t.argv[0] : "tune";
	dir = place_man(&sections);
	for (const char *const *v = tune_verbs; *v; v++)
		if (!strcmp(*v, name))
			name = "tune";   /* the verbs stand in its page */
	if (t.argc > 1) {
		err_set(&err, EX_USAGE, "takes one name");
	} else if (strchr(name, '/') || !dir || !find_page(dir, sections, name, page, sizeof(page))) {
		err_set(&err, EX_NOINPUT, "no manual page for '%s'", name);
	} else {
		execlp("man", "man", "-l", page, (char *)NULL);
		if (errno == ENOENT) {
			printf("%s\n", page);
			tool_say(&t, "man is not installed; the page is the file above");
			return tool_exit(&t, 0, &err);
		}
		err_errno(&err, 126, "cannot run man");
	}
	return tool_exit(&t, -1, &err);
}
