/*
 * tune-eval chat: a conversation on the terminal.  Ctrl-C stops the answer, not the chat; Ctrl-D or
 * /quit ends it.
 */
#include <errno.h>
#include <histedit.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eval.h"
#include "libcommon/utf8.h"

enum { LINE_MAX_BYTES = 1 << 20 };

struct talk {
	struct eval *e;
	struct message *m; size_t n, cap;      /* texts owned */
	uint32_t *fed; size_t nfed, fed_cap;   /* what the KV cache holds */
	float *logits; uint32_t *scratch;
	long room;
	uint64_t turn;
	EditLine *el;
	History *hist;
	char *line; size_t line_cap;
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

static char *prompt_text(EditLine *el)
{
	static char text[] = "> ";

	(void)el;
	return text;
}

static int add_message(struct talk *t, enum role role, const char *text, size_t n, struct err *err)
{
	char *copy = mem_strndup(text, n, err);

	if (!copy || grow(&t->m, &t->cap, t->n + 1, sizeof(*t->m), err) < 0) {
		free(copy);
		return -1;
	}
	t->m[t->n++] = (struct message){ role, copy, n };
	return 0;
}

static void drop_messages(struct talk *t, size_t keep)
{
	while (t->n > keep) {
		union { const char *c; char *p; } text = { t->m[--t->n].text };

		free(text.p);
	}
}

/* Feed ids to the cache; what it holds already, if it is their beginning, is not fed again. */
static int feed(struct talk *t, const uint32_t *ids, size_t n, struct err *err)
{
	int slot = 0;
	int32_t len;

	if (t->nfed >= n || (t->nfed && memcmp(t->fed, ids, t->nfed * sizeof(*ids)))) {
		kv_reset(t->e->model, slot);
		t->nfed = 0;
	}
	len = (int32_t)(n - t->nfed);
	if (grow(&t->fed, &t->fed_cap, n, sizeof(*t->fed), err) < 0 ||
	    kv_feed(t->e->model, 1, &slot, &len, ids + t->nfed, t->logits, err) < 0)
		return -1;
	memcpy(t->fed + t->nfed, ids + t->nfed, (size_t)len * sizeof(*ids));
	t->nfed = n;
	return 0;
}

/* Print the whole characters of text that are not printed yet. */
static size_t print_new(const struct buf *text, size_t shown, bool all)
{
	const char *end = text->p + text->n;
	size_t upto = shown, k;

	while (upto < text->n && (k = utf8_len(text->p + upto, end)))
		upto += k;
	/* A sequence that four more bytes have not completed is no character: print it as it is. */
	if (all || text->n - upto > 4)
		upto = text->n;
	fwrite(text->p + shown, 1, upto - shown, stdout);
	fflush(stdout);
	return upto;
}

static bool is_stop(const struct eval *e, uint32_t id)
{
	for (size_t i = 0; i < e->nstop; i++)
		if (e->stop[i] == id)
			return true;
	return false;
}

static int answer(struct talk *t, const struct sample *prompt, struct err *err)
{
	struct sampling how = eval_sampling(t->e);
	struct watch w = { .e = t->e };
	size_t shown = 0;
	int rc = feed(t, prompt->ids, prompt->n, err);

	buf_put(&w.text, "", 0);
	for (long i = 0; !rc && i < how.max_new_tokens && !interrupted; i++) {
		uint32_t id =
			sample_token(t->logits, t->e->file.arch.vocab, &how, t->turn, (uint64_t)i, t->scratch);
		int stop;

		if (is_stop(t->e, id) || (stop = watch_add(&w, id, err)) > 0)
			break;
		rc = stop;
		shown = print_new(&w.text, shown, false);
		if ((long)t->nfed + 1 >= t->room) {
			tool_say(t->e->tool, "the window of %ld tokens is full; /reset starts anew", t->room);
			break;
		}
		if (!rc && (rc = grow(&t->fed, &t->fed_cap, t->nfed + 1, sizeof(*t->fed), err)) == 0) {
			int slot = 0;
			int32_t one = 1;

			t->fed[t->nfed++] = id;
			rc = kv_feed(t->e->model, 1, &slot, &one, &id, t->logits, err);
		}
	}
	if (shown < w.text.n)
		print_new(&w.text, shown, true);
	puts(interrupted ? " [stopped]" : "");
	interrupted = 0;
	t->turn++;
	if (!rc)
		rc = add_message(t, ROLE_ASSISTANT, w.text.p, w.text.n, err);
	buf_release(&w.text);
	return rc;
}

/* 1: a line without its newline; 0: the end; -1: Ctrl-C at the prompt. */
static int read_line(struct talk *t, const char **line, size_t *n)
{
	ssize_t got;

	if (t->el) {
		int count = 0;
		HistEvent ev;

		*line = el_gets(t->el, &count);
		if (!*line || count <= 0) {
			if (interrupted || errno == EINTR) {
				interrupted = 0;
				el_reset(t->el);
				putchar('\n');
				return -1;
			}
			return 0;
		}
		history(t->hist, &ev, H_ENTER, *line);
		*n = (size_t)count;
	} else {
		if ((got = getline(&t->line, &t->line_cap, stdin)) <= 0)
			return 0;
		*line = t->line;
		*n = (size_t)got;
	}
	while (*n && ((*line)[*n - 1] == '\n' || (*line)[*n - 1] == '\r'))
		--*n;
	return 1;
}

static int one_turn(struct talk *t, const char *line, size_t n, struct sample *s, struct err *err)
{
	struct chat_opts o = chat_opts_config(t->e->cfg);
	struct err why = {0};

	if (n > LINE_MAX_BYTES) {
		tool_warn(t->e->tool, "a line of %zu bytes is too long", n);
		return 0;
	}
	if (add_message(t, ROLE_USER, line, n, err) < 0)
		return -1;
	if (sample_prompt(s, t->e->enc, t->e->tok, t->e->chat, t->m, t->n, &o, &why) < 0) {
		tool_warn(t->e->tool, "%s", why.msg);
		drop_messages(t, t->n - 1);
		return 0;
	}
	if ((long)s->n + 1 >= t->room) {
		tool_warn(t->e->tool, "the conversation has %zu tokens, the window %ld; /reset starts anew",
			s->n, t->room);
		drop_messages(t, t->n - 1);
		return 0;
	}
	return answer(t, s, err);
}

static int talk_loop(struct talk *t, struct err *err)
{
	size_t keep = t->n;
	struct sample s = {0};
	const char *line;
	size_t n;
	int rc = 0, got;

	while (!rc && (got = read_line(t, &line, &n)) != 0) {
		if (got < 0 || !n)
			continue;
		if (n == 5 && !memcmp(line, "/quit", 5))
			break;
		if (n == 6 && !memcmp(line, "/reset", 6)) {
			drop_messages(t, keep);
			continue;
		}
		rc = one_turn(t, line, n, &s, err);
	}
	sample_release(&s);
	return rc;
}

static void open_editor(struct talk *t)
{
	HistEvent ev;

	t->el = el_init("tune-eval", stdin, stdout, stderr);
	t->hist = history_init();
	if (!t->el || !t->hist)
		return;
	history(t->hist, &ev, H_SETSIZE, 1000);
	el_set(t->el, EL_PROMPT, prompt_text);
	el_set(t->el, EL_EDITOR, "emacs");
	el_set(t->el, EL_HIST, history, t->hist);
	el_source(t->el, NULL);
	puts("/reset forgets the conversation, /quit ends it; Ctrl-C stops an answer.");
}

int verb_chat(struct eval *e, struct err *err)
{
	struct talk t = { .e = e };
	/* no SA_RESTART: it must break a read */
	struct sigaction sa = { .sa_handler = on_interrupt };
	int rc = -1;

	if (e->tool->argc)
		return err_set(
			err, EX_USAGE, "chat reads from the terminal; for files there is 'tune-eval generate'");
	if (eval_load(e, cfg_str(e->cfg, "model.path"), err) < 0)
		return -1;
	if (!e->chat)
		return err_set(err, EX_CONFIG,
			"the model has no chat template; data.template=chatml or llama3 gives one");
	t.room = eval_room(e);
	t.logits = mem_zalloc((size_t)e->file.arch.vocab, sizeof(float), err);
	t.scratch = mem_zalloc((size_t)e->file.arch.vocab, sizeof(uint32_t), err);
	if (!t.logits || !t.scratch || eval_model(e, 0, 1, t.room, err) < 0)
		goto done;
	if (t.room < eval_window(e))
		tool_say(e->tool, "the memory has room for %ld tokens of the window of %ld", t.room,
			eval_window(e));
	if (e->o.system && add_message(&t, ROLE_SYSTEM, e->o.system, strlen(e->o.system), err) < 0)
		goto done;
	if (isatty(STDIN_FILENO))
		open_editor(&t);
	sigaction(SIGINT, &sa, NULL);
	rc = talk_loop(&t, err);
done:
	if (t.el)
		el_end(t.el);
	if (t.hist)
		history_end(t.hist);
	drop_messages(&t, 0);
	free(t.m);
	free(t.fed);
	free(t.logits);
	free(t.scratch);
	free(t.line);
	return rc;
}
