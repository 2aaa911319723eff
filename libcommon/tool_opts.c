/*
 * tool_opts: the command line, sorted.
 *
 * Not getopt_long: that accepts any unambiguous beginning of a long name, so that a new option
 * breaks old scripts, and it can't say which option was near.
 */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/tool_int.h"

/*
 * Rows of the options that all tools have.  value is an offset into struct tool where it is a field
 * of it.
 */
enum common {
	C_HELP, C_VERSION, C_QUIET, C_VERBOSE, C_JSON, C_PROGRESS, C_COLOR, C_CONFIG, C_PRINT,
	C_LIST_OPTIONS, C_LIST_KEYS
};
static const struct opt common[] = {
	[C_HELP] = { 'h', "help", NULL, OPT_FLAG, NULL, "print this help" },
	[C_VERSION] = { 'V', "version", NULL, OPT_FLAG, NULL, "print the version" },
	[C_QUIET] = { 'q', "quiet", NULL, OPT_FLAG, NULL, "print only warnings and errors" },
	[C_VERBOSE] = { 'v', "verbose", NULL, OPT_FLAG, NULL, "print more" },
	[C_JSON] = { 0, "json", NULL, OPT_FLAG, NULL, "print JSON where there would be a table" },
	[C_PROGRESS] = { 0, "progress", "WHEN", OPT_STR, NULL,
		"draw a progress line: auto (on a terminal), always or never" },
	[C_COLOR] = { 0, "color", "WHEN", OPT_STR, NULL,
		"colour: auto (on a terminal), always or never" },
	[C_CONFIG] = { 'c', "config", "FILE", OPT_STR, NULL,
		"read settings from FILE, or - (repeatable; later ones win)" },
	[C_PRINT] = { 0, "print-config", "[=KEY]", OPT_STR, NULL,
		"print the resolved settings, or KEY's bare value, and stop" },
	/* no help: hidden, for the completion file */
	[C_LIST_OPTIONS] = { 0, "list-options", NULL, OPT_FLAG, NULL, NULL },
	[C_LIST_KEYS] = { 0, "list-keys", NULL, OPT_FLAG, NULL, NULL },
};
enum { N_COMMON = sizeof(common) / sizeof(common[0]) };

static void collect(const struct tool *t, struct tool_parse *p)
{
	size_t n = 0;

	for (const struct opt *o = t->opts; o && o->long_name; o++) {
		assert(n + N_COMMON < TOOL_OPTS_MAX);
		p->opts[n++] = o;
	}
	for (size_t i = 0; i < N_COMMON; i++)
		if (t->uses_config || (i != C_CONFIG && i != C_PRINT && i != C_LIST_KEYS))
			p->opts[n++] = &common[i];
}

static void usage(struct tool_parse *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void usage(struct tool_parse *p, const char *fmt, ...)
{
	char msg[512];
	va_list ap;

	if (p->err.code)
		return;
	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	err_set(&p->err, EX_USAGE, "%s", msg);
}

static void unknown_option(struct tool_parse *p, const char *name, size_t n)
{
	const char *names[TOOL_OPTS_MAX], *near;
	char asked[64];
	size_t k = 0;

	for (size_t i = 0; p->opts[i]; i++)
		if (p->opts[i]->help)
			names[k++] = p->opts[i]->long_name;
	snprintf(asked, sizeof(asked), "%.*s", (int)(n < 63 ? n : 63), name);
	near = nearest_name(asked, names, k);
	usage(p, "unknown option '--%s'%s%s%s", asked, near ? " (did you mean '--" : "",
		near ? near : "", near ? "'?)" : "");
}

static bool parse_u64(const char *s, uint64_t *out)
{
	char *end;

	if (*s < '0' || *s > '9')   /* strtoull takes "-1", " 3" and "" */
		return false;
	errno = 0;
	*out = strtoull(s, &end, 10);
	return !errno && !*end;
}

static bool parse_num(const char *s, double *out)
{
	char *end;

	if (!*s || s[strspn(s, "+-.0123456789eE")])   /* strtod takes hex, nan and white space */
		return false;
	errno = 0;
	*out = strtod(s, &end);
	return !errno && !*end;
}

static enum when parse_when(struct tool_parse *p, const char *shown, const char *s)
{
	static const char *const words[] = {
		[WHEN_AUTO] = "auto", [WHEN_ALWAYS] = "always", [WHEN_NEVER] = "never"
	};

	for (int i = WHEN_AUTO; i <= WHEN_NEVER; i++)
		if (!strcmp(s, words[i]))
			return (enum when)i;
	usage(p, "option '%s' must be auto, always or never, not '%s'", shown, s);
	return WHEN_AUTO;
}

static void take_common(
	struct tool *t, struct tool_parse *p, enum common which, const char *shown, const char *value)
{
	switch (which) {
	case C_HELP: p->help = true; break;
	case C_VERSION: p->version = true; break;
	case C_QUIET: t->quiet = true; break;
	case C_VERBOSE: t->verbose = true; break;
	case C_JSON: t->json = true; break;
	case C_PROGRESS: t->progress = parse_when(p, shown, value); break;
	case C_COLOR: t->color = parse_when(p, shown, value); break;
	case C_LIST_OPTIONS: p->list_options = true; break;
	case C_LIST_KEYS: p->list_keys = true; break;
	case C_PRINT: p->print_config = true; p->print_key = value; break;
	case C_CONFIG:
		if (p->n_configs == TOOL_CONFIGS_MAX)
			usage(p, "more than %d config files", TOOL_CONFIGS_MAX);
		else
			p->configs[p->n_configs++] = value;
		break;
	}
}

/* value: NULL where the option stands without one. */
static void take(
	struct tool *t, struct tool_parse *p, const struct opt *o, const char *shown, const char *value)
{
	if (value && !*value && o->arg)
		usage(p, "option '%s' has an empty value", shown);
	else if (o >= common && o < common + N_COMMON)
		take_common(t, p, (enum common)(o - common), shown, value);
	else if (o->type == OPT_FLAG)
		*(bool *)o->value = true;
	else if (o->type == OPT_STR)
		*(const char **)o->value = value;
	else if (o->type == OPT_KEY)
		p->settings[p->n_settings++] =
			(struct tool_setting){ shown, o->key, value ? value : "true" };
	else if (o->type == OPT_OPT_U64 && !value)
		*(uint64_t *)o->value = o->dflt;
	else if (o->type == OPT_NUM ? !parse_num(value, o->value) : !parse_u64(value, o->value))
		usage(p, "option '%s' must be a %s, not '%s'", shown,
			o->type == OPT_NUM ? "number" : "whole number", value);
}

static bool optional_value(const struct opt *o)
{
	return o->arg && *o->arg == '[';
}

/* The option of a table lasts as long as the table does, so its name can be a value's origin. */
static const char *shown_name(struct tool_parse *p, const struct opt *o, bool is_long)
{
	static char names[TOOL_OPTS_MAX][2][40];
	size_t i = 0;

	while (p->opts[i] != o)
		i++;
	if (is_long)
		snprintf(names[i][1], sizeof(names[i][1]), "--%s", o->long_name);
	else
		snprintf(names[i][0], sizeof(names[i][0]), "-%c", o->short_name);
	return names[i][is_long];
}

/* --name, --name=value, --name value.  Returns how many more words it took. */
static int take_long(struct tool *t, struct tool_parse *p, const char *word, const char *next)
{
	size_t n = strcspn(word, "=");
	const char *value = word[n] ? word + n + 1 : NULL;
	const struct opt *o = NULL;

	for (size_t i = 0; p->opts[i] && !o; i++)
		if (strlen(p->opts[i]->long_name) == n && !strncmp(p->opts[i]->long_name, word, n))
			o = p->opts[i];
	if (!o)
		unknown_option(p, word, n);
	else if (value && !o->arg)
		usage(p, "option '--%s' takes no value", o->long_name);
	else if (value || !o->arg || optional_value(o))
		take(t, p, o, shown_name(p, o, true), value);
	else if (!next)
		usage(p, "option '--%s' needs a value", o->long_name);
	else {
		take(t, p, o, shown_name(p, o, true), next);
		return 1;
	}
	return 0;
}

/* -abc, -ofile, -o file. */
static int take_short(struct tool *t, struct tool_parse *p, const char *word, const char *next)
{
	for (; *word; word++) {
		const struct opt *o = NULL;

		for (size_t i = 0; p->opts[i] && !o; i++)
			if (p->opts[i]->short_name && p->opts[i]->short_name == *word)
				o = p->opts[i];
		if (!o) {
			usage(p, "unknown option '-%c'", *word);
			return 0;
		}
		if (!o->arg || (optional_value(o) && !(word[1] >= '0' && word[1] <= '9'))) {
			take(t, p, o, shown_name(p, o, false), NULL);
			continue;
		}
		if (!word[1] && !next) {
			usage(p, "option '-%c' needs a value", *word);
			return 0;
		}
		take(t, p, o, shown_name(p, o, false), word[1] ? word + 1 : next);
		return !word[1];
	}
	return 0;
}

static void take_verb(struct tool *t, struct tool_parse *p)
{
	size_t n = 0;
	const char *near;

	while (t->verbs[n])
		n++;
	if (!t->argc) {
		usage(p, "say what to do: %s", tool_verb_list(t));
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (!strcmp(t->verbs[i], t->argv[0]))
			t->verb = t->verbs[i];
	near = nearest_name(t->argv[0], t->verbs, n);
	if (!t->verb && near)
		usage(p, "unknown verb '%s' (did you mean '%s'?)", t->argv[0], near);
	else if (!t->verb)
		usage(p, "unknown verb '%s'; there are %s", t->argv[0], tool_verb_list(t));
	t->argc--;
	t->argv++;
}

void tool_parse(struct tool *t, struct tool_parse *p, int argc, char **argv)
{
	bool options = true;

	collect(t, p);
	t->argc = 0;
	t->argv = argv + 1;
	for (int i = 1; i < argc; i++) {
		char *w = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;

		if (options && !strcmp(w, "--"))
			options = false;
		else if (options && w[0] == '-' && w[1] == '-')
			i += take_long(t, p, w + 2, next);
		else if (options && w[0] == '-' && w[1])
			i += take_short(t, p, w + 1, next);
		else if (t->uses_config && cfg_is_setting(w))
			p->settings[p->n_settings++] = (struct tool_setting){ NULL, NULL, w };
		else {
			t->argv[t->argc++] = w;
			options = options && !t->options_first;
		}
	}
	t->argv[t->argc] = NULL;
	if (t->verbs && (t->argc || !p->print_config))   /* settings can be asked for without a verb */
		take_verb(t, p);
}
