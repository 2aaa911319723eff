#include "libcommon/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcommon/outfile.h"
#include "libcommon/tool_int.h"

static void on_signal(int sig)
{
	outfile_on_signal();
	raise(sig);   /* SA_RESETHAND: now the default action, so the parent sees what killed us */
}

/* A mapped file that became shorter, or whose disk fails, shows itself as this signal. */
static const char *bus_name;

static void on_bus(int sig)
{
	static const char text[] = ": an input file became shorter, or can't be read any more\n";

	(void)sig;
	if (write(STDERR_FILENO, bus_name, strlen(bus_name)) < 0 ||
		write(STDERR_FILENO, text, sizeof(text) - 1) < 0) {
		/* the status says it too */
	}
	outfile_on_signal();
	_exit(EX_IOERR);
}

static void set_signals(const struct tool *t)
{
	static const int fatal[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGUSR1, SIGUSR2,
		SIGALRM, SIGXCPU, SIGXFSZ };
	struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESETHAND | SA_NODEFER }, old;

	sigemptyset(&act.sa_mask);
	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
		/*
		 * What nohup or the shell's & has set stays ignored; SIGPIPE does not: Python's children
		 * inherit that by accident.
		 */
		if (fatal[i] != SIGPIPE && !sigaction(fatal[i], NULL, &old) && old.sa_handler == SIG_IGN)
			continue;
		sigaction(fatal[i], &act, NULL);
	}
	bus_name = t->name;
	act.sa_handler = on_bus;
	sigaction(SIGBUS, &act, NULL);
	if (t->survives_sigpipe)
		signal(SIGPIPE, SIG_IGN);
}

/* A file that is opened must not become fd 0, 1 or 2 and be written to by accident. */
static void open_std_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd < 2);
	if (fd > 2)
		close(fd);
}

static void print_lines(const char *name, const char *msg)
{
	while (*msg) {
		size_t n = strcspn(msg, "\n");

		fprintf(stderr, "%s: %.*s\n", name, (int)n, msg);
		msg += n + (msg[n] == '\n');
	}
}

static void fail(struct tool *t, struct tool_parse *p, struct err *err)
{
	int code = tool_exit(t, -1, err);

	if (code == EX_USAGE)
		fprintf(stderr, "%s: try '%s --help'\n", t->name, t->name);
	free(p->settings);
	exit(code);
}

static void done(struct tool *t, struct tool_parse *p)
{
	struct err err = {0};

	free(p->settings);
	exit(tool_exit(t, 0, &err));
}

static void read_config(struct tool *t, struct tool_parse *p)
{
	struct err err = {0};

	if (cfg_new(&t->cfg, &err) < 0)
		fail(t, p, &err);
	for (size_t i = 0; i < p->n_configs; i++)
		cfg_read_file(t->cfg, p->configs[i], &err);
	for (size_t i = 0; i < p->n_settings; i++) {
		const struct tool_setting *s = &p->settings[i];

		if (s->option)
			cfg_set_option(t->cfg, s->path, s->value, s->option, &err);
		else
			cfg_set_arg(t->cfg, s->value, &err);
	}
	if (err.code)
		fail(t, p, &err);
}

static void print_config(struct tool *t, struct tool_parse *p)
{
	struct buf out = {0};
	struct err err = {0};

	if (p->print_key ? cfg_print_key(t->cfg, p->print_key, &out, &err) < 0
					 : (cfg_print(t->cfg, &out), 0))
		fail(t, p, &err);
	if (buf_ok(&out, &err) < 0)
		fail(t, p, &err);
	if (out.n)
		fwrite(out.p, 1, out.n, stdout);   /* checked by tool_exit */
	buf_release(&out);
	done(t, p);
}

void tool_init(struct tool *t, int argc, char **argv)
{
	struct tool_parse p = {0};

	open_std_fds();
	set_signals(t);
	p.settings = mem_zalloc((size_t)argc + 1, sizeof(*p.settings), &p.err);
	if (!p.settings)
		fail(t, &p, &p.err);
	tool_parse(t, &p, argc, argv);
	if (p.help)
		tool_help(t, &p);
	else if (p.version)
		printf("%s %s\n", t->name, TUNE_VERSION);
	else if (p.list_options)
		tool_list_options(t, &p);
	for (size_t i = 0; p.list_keys && i < cfg_nrows; i++)
		puts(cfg_rows[i].path);
	if (p.help || p.version || p.list_options || p.list_keys)
		done(t, &p);
	if (p.err.code)
		fail(t, &p, &p.err);
	if (t->uses_config)
		read_config(t, &p);
	if (p.print_config)
		print_config(t, &p);
	free(p.settings);
}

int tool_exit(struct tool *t, int rc, struct err *err)
{
	bool bad = ferror(stdout);   /* two statements: the order matters */
	bool unclosed = fclose(stdout) != 0;
	int e = errno;

	cfg_free(t->cfg);
	t->cfg = NULL;
	if (rc < 0)
		print_lines(t->name, err->msg);
	if ((bad || unclosed) && rc >= 0 && !(t->survives_sigpipe && e == EPIPE)) {
		fprintf(stderr, "%s: cannot write standard output%s%s\n", t->name, unclosed ? ": " : "",
			unclosed ? strerror(e) : "");
		return EX_IOERR;
	}
	return rc < 0 ? err->code : rc;
}

static void vsay(const struct tool *t, const char *kind, const char *fmt, va_list ap)
{
	char msg[4096];

	vsnprintf(msg, sizeof(msg), fmt, ap);
	for (char *s = msg; *s; s++)
		if (((unsigned char)*s < 32 && *s != '\n') || *s == 127)
			*s = '?';
	fprintf(stderr, "%s: %s%s\n", t->name, kind, msg);
}

void tool_say(const struct tool *t, const char *fmt, ...)
{
	va_list ap;

	if (t->quiet)
		return;
	va_start(ap, fmt);
	vsay(t, "", fmt, ap);
	va_end(ap);
}

void tool_warn(const struct tool *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsay(t, "warning: ", fmt, ap);
	va_end(ap);
}

int refuse_terminal(const char *path, struct err *err)
{
	if ((path && strcmp(path, "-")) || !isatty(STDOUT_FILENO))
		return 0;
	return err_set(
		err, EX_USAGE, "binary data is not written to a terminal; redirect it: ... >FILE");
}
