/* tool_help: --help, and --list-options for completion/tune.bash and the tests of the man pages. */
#include <string.h>

#include "libcommon/tool_int.h"

enum { WIDTH = 80, LEFT_MAX = 30 };

/* Print text from column col on, wrapped; further lines start at indent. */
static void wrapped(const char *text, size_t col, size_t indent)
{
	bool fresh = true;

	while (*text) {
		size_t n = strcspn(text, " \n");

		if (!fresh && col + 1 + n > WIDTH) {
			printf("\n%*s", (int)indent, "");
			col = indent;
			fresh = true;
		}
		col += n + !fresh;
		printf("%s%.*s", fresh ? "" : " ", (int)n, text);
		fresh = false;
		text += n;
		if (*text == '\n') {
			printf("\n%*s", (int)indent, "");
			col = indent;
			fresh = true;
		}
		text += *text != 0;
	}
	putchar('\n');
}

static size_t left_side(const struct opt *o, char *out, size_t n)
{
	char s[4] = "   ";

	if (o->short_name)
		snprintf(s, sizeof(s), "-%c,", o->short_name);
	return (size_t)snprintf(out, n, "  %s --%s%s%s", s, o->long_name,
		o->arg && *o->arg != '[' ? " " : "", o->arg ? o->arg : "");
}

static void print_options(const struct tool_parse *p)
{
	char left[128];
	size_t width = 0, n;

	for (size_t i = 0; p->opts[i]; i++) {
		n = left_side(p->opts[i], left, sizeof(left));
		if (p->opts[i]->help && n > width && n <= LEFT_MAX)
			width = n;
	}
	for (size_t i = 0; p->opts[i]; i++) {
		if (!p->opts[i]->help)
			continue;
		n = left_side(p->opts[i], left, sizeof(left));
		if (n > width)
			printf("%s\n%*s", left, (int)width + 2, "");
		else
			printf("%-*s", (int)width + 2, left);
		wrapped(p->opts[i]->help, width + 2, width + 2);
	}
}

const char *tool_verb_list(const struct tool *t)
{
	static char all[512];
	size_t n = 0;

	for (size_t i = 0; t->verbs[i] && n < sizeof(all); i++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s",
			!i                    ? ""
				: t->verbs[i + 1] ? ", "
								  : " or ",
			t->verbs[i]);
	return all;
}

void tool_help(const struct tool *t, const struct tool_parse *p)
{
	size_t indent = strlen("usage: ") + strlen(t->name) + 1;

	printf("usage: %s ", t->name);
	wrapped(t->synopsis, indent, indent);
	wrapped(t->summary, 0, 0);
	putchar('\n');
	print_options(p);
	if (t->uses_config)
		printf("\nSettings (KEY=VALUE) and the files that -c reads: see tune-config(5).\n");
}

/* Options, long and short, then verbs, one a line. */
void tool_list_options(const struct tool *t, const struct tool_parse *p)
{
	for (size_t i = 0; p->opts[i]; i++) {
		if (!p->opts[i]->help)
			continue;
		printf("--%s\n", p->opts[i]->long_name);
		if (p->opts[i]->short_name)
			printf("-%c\n", p->opts[i]->short_name);
	}
	for (size_t i = 0; t->verbs && t->verbs[i]; i++)
		puts(t->verbs[i]);
}
