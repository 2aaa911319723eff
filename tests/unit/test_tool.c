/*
 * tool_init ends the program, so each case runs in a child; its status and what it wrote are looked
 * at here.
 */
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcommon/file.h"
#include "libcommon/outfile.h"
#include "libcommon/tool.h"
#include "tap.h"

static char out[8192];
static char dir[] = "/tmp/tune-tool-XXXXXX";

/* A program with every kind of option; prints what it was given. */
static int program(int argc, char **argv)
{
	static const char *const verbs[] = { "loss", "generate", NULL };
	const char *output = NULL;
	bool force = false;
	uint64_t n = 7, preview = 0;
	double min = NAN;
	const struct opt opts[] = {
		{ 'f', "force", NULL, OPT_FLAG, &force, "replace what is there" },
		{ 'o', "output", "FILE", OPT_STR, &output, "write to FILE" },
		{ 'n', "count", "N", OPT_U64, &n, "how many" },
		{ 0, "min", "X", OPT_NUM, &min, "the least" },
		{ 'p', "preview", "[=N]", OPT_OPT_U64, &preview, "show N rows", 5 },
		{ 'm', "model", "MODEL", OPT_KEY, NULL, "the model", .key = "model.path" },
		{ 'j', "threads", "N", OPT_KEY, NULL, "threads", .key = "train.threads" },
		{ 0 }
	};
	struct tool t = { "tune-x", "[-f] [-o FILE] [FILE]...", "Try the options.", opts,
		.uses_config = true, .verbs = verbs };
	struct err err = {0};

	tool_init(&t, argc, argv);
	printf("verb=%s f=%d o=%s n=%d min=%g p=%d q=%d", t.verb, force, output ? output : "", (int)n,
		min, (int)preview, t.quiet);
	printf(" model=%s(%s) j=%d", cfg_str(t.cfg, "model.path"), cfg_origin(t.cfg, "model.path"),
		(int)cfg_int(t.cfg, "train.threads"));
	for (int i = 0; i < t.argc; i++)
		printf(" [%s]", t.argv[i]);
	putchar('\n');
	tool_say(&t, "said %d", 1);
	tool_warn(&t, "warned\033");
	if (t.argc && !strcmp(t.argv[0], "bad"))
		return tool_exit(
			&t, (err_more(&err, EX_DATAERR, "first"), err_more(&err, EX_DATAERR, "second")), &err);
	return tool_exit(&t, 1, &err);
}

/* Run it with the words of line; what it writes on both outputs is in out. */
static int run(const char *line, int (*f)(int, char **))
{
	char words[1024], name[] = "tune-x", *argv[32] = { name };
	int argc = 1, fds[2], status;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	snprintf(words, sizeof(words), "%s", line);
	for (char *s = words; *s && argc < 31; argc++) {
		argv[argc] = s;
		s += strcspn(s, " ");
		if (*s)
			*s++ = 0;
	}
	if (pipe(fds) < 0 || (pid = fork()) < 0)
		abort();
	if (!pid) {
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		close(fds[0]);
		exit(f(argc, argv));
	}
	close(fds[1]);
	while ((got = read(fds[0], out + n, sizeof(out) - 1 - n)) > 0)
		n += (size_t)got;
	out[n] = 0;
	close(fds[0]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void says(const char *line, int status, const char *want)
{
	int got = run(line, program);
	bool good = got == status && strstr(out, want) != NULL;

	ok(good, "%s", line);
	if (!good)
		printf("# status %d, not %d, or no '%s' in '%s'\n", got, status, want, out);
}

static void test_options(void)
{
	says("loss", 1, "verb=loss f=0 o= n=7 min=nan p=0 q=0 model=(default) j=0\n");
	says("loss", 1, "tune-x: said 1\ntune-x: warning: warned?\n");
	says("-q loss", 1, "tune-x: warning: warned?\nverb=loss f=0 o= n=7 min=nan p=0 q=1 ");
	says("loss -fqofile x", 1, "f=1 o=file n=7 min=nan p=0 q=1 model=(default) j=0 [x]\n");
	says("loss -o - -n 3 --min=-1.5e3 -", 1, "o=- n=3 min=-1500 p=0 q=0 model=(default) j=0 [-]\n");
	says("loss --output=a=b --preview x", 1, "o=a=b n=7 min=nan p=5 q=0 model=(default) j=0 [x]\n");
	says("loss --preview=12 -p", 1, "p=5 ");
	says("loss -p12", 1, "p=12 ");
	says("loss -fp", 1, "f=1 o= n=7 min=nan p=5 ");
	says("loss -- -f model.path=x ./lora.rank=1", 1,
		"model=x(command line) j=0 [-f] [./lora.rank=1]\n");
	says("loss -m a model.path=b", 1, "model=b(command line)");
	says("loss model.path=b --model a", 1, "model=a(--model)");
	says("loss model.path=b -ma -j2", 1, "model=a(-m) j=2");
	says("generate bad x", 65, "tune-x: first\ntune-x: second\n");
}

static void test_errors(void)
{
	static const char try[] = "\ntune-x: try 'tune-x --help'\n";
	char want[256];
	static const char *const cases[][2] = {
		{ "", "say what to do: loss or generate" },
		{ "los", "unknown verb 'los' (did you mean 'loss'?)" },
		{ "xxxx", "unknown verb 'xxxx'; there are loss or generate" },
		{ "loss -o", "option '-o' needs a value" },
		{ "loss -fo", "option '-o' needs a value" },
		{ "loss --output", "option '--output' needs a value" },
		{ "loss --output=", "option '--output' has an empty value" },
		{ "loss -m --", NULL },   /* the value is "--" */
		{ "loss --force=1", "option '--force' takes no value" },
		{ "loss --outptu=x", "unknown option '--outptu' (did you mean '--output'?)" },
		{ "loss --out=x", NULL },
		{ "loss -x", "unknown option '-x'" },
		{ "loss -n -1", "option '-n' must be a whole number, not '-1'" },
		{ "loss -n 1x", "option '-n' must be a whole number, not '1x'" },
		{ "loss -n 99999999999999999999",
			"option '-n' must be a whole number, not '99999999999999999999'" },
		{ "loss --min nan", "option '--min' must be a number, not 'nan'" },
		{ "loss --min 0x1", "option '--min' must be a number, not '0x1'" },
		{ "loss --progress=maybe",
			"option '--progress' must be auto, always or never, not 'maybe'" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!cases[i][1])
			continue;
		snprintf(want, sizeof(want), "tune-x: %s%s", cases[i][1], try);
		says(cases[i][0], EX_USAGE, want);
	}
	says("loss -m --", 1, "model=--(-m)");
	says("loss --out=x", EX_USAGE, "unknown option '--out'");   /* no beginnings of names */
	says("loss -j two", EX_CONFIG,
		"tune-x: -j: train.threads must be a whole number, found 'two'\n");
	says("loss optim.lrr=1 lora.rank=x", EX_CONFIG,
		"tune-x: optim.lrr=1: unknown key 'optim.lrr' (did you mean 'optim.lr'?)\ntune-x: "
		"lora.rank=x: ");
	says("loss -c /nonexistent", EX_NOINPUT,
		"tune-x: cannot open '/nonexistent': No such file or directory\n");
}

static void test_texts(void)
{
	says("--nope -h", 0,
		"usage: tune-x [-f] [-o FILE] [FILE]...\nTry the options.\n\n  -f, --force ");
	says("-h", 0, "  -p, --preview[=N] ");
	says("-h", 0, "see tune-config(5)");
	ok(!strstr(out, "list-options"), "what is for the completion file is not in the help");
	says("loss -V", 0, "tune-x " TUNE_VERSION "\n");
	says("--list-options", 0, "--force\n-f\n--output\n-o\n");
	ok(strstr(out, "\n--print-config\n") && strstr(out, "\nloss\ngenerate\n") &&
			!strstr(out, "list-keys"),
		"--list-options has verbs, and no hidden ones");
	says("--list-keys", 0, "optim.lr\n");
	says("--print-config=train.threads -j3", 0, "3\n");
	ok(!strcmp(out, "3\n"), "a bare value and nothing else, without a verb too");
	says("--print-config", 0, "optim:\n");
}

/* ---- signals ---- */

static int holds_file(int argc, char **argv)
{
	struct tool t = { "tune-x", "", "", NULL };
	struct outfile f = {0};
	struct err err = {0};

	tool_init(&t, argc, argv);
	if (outfile_open(&f, t.argv[1], false, &err) < 0)
		return 99;
	raise((int)strtol(t.argv[0], NULL, 10));
	outfile_abort(&f);
	return 0;
}

static int closes_pipe(int argc, char **argv)
{
	struct tool t = { "tune-x", "", "", NULL, .survives_sigpipe = argc > 1 };
	struct err err = {0};
	int fds[2];

	tool_init(&t, argc, argv);
	if (pipe(fds) < 0)
		return 99;
	dup2(fds[1], 1);
	close(fds[0]);
	close(fds[1]);
	puts("x");
	return tool_exit(&t, 0, &err);
}

static int full_disk(int argc, char **argv)
{
	struct tool t = { "tune-x", "", "", NULL };
	struct err err = {0};

	tool_init(&t, argc, argv);
	dup2(open("/dev/full", O_WRONLY), 1);
	puts("x");
	return tool_exit(&t, 0, &err);
}

static int loses_its_input(int argc, char **argv)
{
	struct tool t = { "tune-x", "", "", NULL };
	struct err err = {0};
	struct mapped m;

	tool_init(&t, argc, argv);
	if (file_map(&m, t.argv[0], &err) < 0 || truncate(t.argv[0], 0) < 0)
		return 7;
	return ((const volatile unsigned char *)m.data)[4096];
}

static int ignores_hup(int argc, char **argv)
{
	struct tool t = { "tune-x", "", "", NULL };

	signal(SIGHUP, SIG_IGN);
	tool_init(&t, argc, argv);
	raise(SIGHUP);
	return 5;
}

static int no_std_fds(int argc, char **argv)
{
	struct tool t = { "tune-x", "", "", NULL };

	close(0);
	close(1);
	close(2);
	tool_init(&t, argc, argv);
	return open("/dev/null", O_RDONLY) > 2 ? 6 : 0;
}

static bool is_empty(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	int n = 0;

	if (!d)
		return false;
	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return !n;
}

static void test_signals(void)
{
	static const int sigs[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
	char line[128];
	FILE *f;

	for (size_t i = 0; i < 4; i++) {
		snprintf(line, sizeof(line), "%d %s/f", sigs[i], dir);
		ok(run(line, holds_file) == 128 + sigs[i], "signal %d kills with itself", sigs[i]);
		ok(is_empty(dir), "and leaves no temporary file");
	}
	ok(run("", closes_pipe) == 128 + SIGPIPE && !*out, "a reader that goes away is quiet");
	ok(run("x", closes_pipe) == 0 && !*out, "a tool that survives SIGPIPE does");
	ok(access("/dev/full", W_OK) ||
			(run("", full_disk) == EX_IOERR &&
				!strcmp(out, "tune-x: cannot write standard output: No space left on device\n")),
		"a full disk is 74");
	snprintf(line, sizeof(line), "%s/map", dir);
	f = fopen(line, "w");
	for (int i = 0; f && i < 8192; i++)
		fputc('x', f);
	if (f)
		fclose(f);
	ok(run(line, loses_its_input) == EX_IOERR &&
			!strcmp(out, "tune-x: an input file became shorter, or can't be read any more\n"),
		"a mapped file that is cut is 74: %s", out);
	unlink(line);
	ok(run("", ignores_hup) == 5, "nohup is honoured");
	ok(run("", no_std_fds) == 6, "closed standard streams are opened");
}

int main(void)
{
	struct err err = {0};

	/*
	 * Whoever runs the tests may ignore some (nohup, a background job of a shell): the programs
	 * here start with the defaults.
	 */
	signal(SIGHUP, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);

	if (!mkdtemp(dir))
		return 1;
	test_options();
	test_errors();
	test_texts();
	test_signals();
	ok(!refuse_terminal("file", &err), "a file is no terminal");
	ok(!rmdir(dir), "the folder is empty");
	return tap_done();
}
