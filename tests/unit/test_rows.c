/* Files of rows: kinds of files, shapes, refusals with their place. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcommon/text/rows.h"
#include "tap.h"

static char path[64], txt[64];

static void write_file(const char *name, const char *text, size_t n)
{
	FILE *f = fopen(name, "wb");

	if (!f || fwrite(text, 1, n, f) != n)
		printf("# cannot write %s\n", name);
	if (f)
		fclose(f);
}

static struct rows *open_rows(const char *name, const char *setting)
{
	struct config *cfg;
	static struct config *old;
	struct err err = {0};
	struct rows *r = NULL;

	cfg_free(old);   /* rows borrow column names */
	if (cfg_new(&cfg, &err) < 0 || (setting && cfg_set_arg(cfg, setting, &err) < 0) ||
		rows_open(&r, name, cfg, &err) < 0)
		printf("# %s\n", err.msg);
	old = cfg;
	return r;
}

/*
 * Everything that reading the text gives, one item a row: "u:x a:y;" or "-2 message;", with the
 * file's name as F.
 */
static const char *read_all(const char *name, const char *setting)
{
	static struct buf out;
	struct rows *r = open_rows(name, setting);
	struct row row;
	struct err err = {0};
	size_t i, n = strlen(name);
	int got, limit = 100;

	buf_clear(&out);
	buf_puts(&out, "");
	while (r && limit-- && (got = rows_next(r, &row, &err)) != 0) {
		if (got < 0) {
			buf_printf(&out, "%d %s%s;", got, strncmp(err.msg, name, n) ? "" : "F",
				err.msg + (strncmp(err.msg, name, n) ? 0 : n));
			if (got == -1)
				break;
			continue;
		}
		buf_printf(&out, "%d", (int)row.line);
		for (i = 0; i < row.n; i++)
			buf_printf(
				&out, " %c:%.*s", role_name(row.m[i].role)[0], (int)row.m[i].n, row.m[i].text);
		if (row.shape == SHAPE_TEXT)
			buf_printf(&out, " %.*s", (int)row.ntext, row.text);
		buf_puts(&out, ";");
	}
	rows_close(r);
	return out.p;
}

static int quiet_is(const char *text, size_t n, const char *setting, const char *want)
{
	const char *got;

	write_file(path, text, n);
	got = read_all(path, setting);
	if (!strcmp(got, want))
		return 1;
	printf("# got  %s\n# want %s\n", got, want);
	return 0;
}
#define IS(text, want) quiet_is(text, sizeof(text) - 1, NULL, want)
#define IS_WITH(setting, text, want) quiet_is(text, sizeof(text) - 1, setting, want)

#define U                                                                                       \
	"{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"assistant\",\"content\":" \
	"\"y\"}]}"
#define MSGS(list) "{\"messages\":[" list "]}"

static void files(void)
{
	ok(IS(U "\n" U "\n", "1 u:x a:y;2 u:x a:y;"), "JSON Lines");
	ok(IS(U "\r\n\r\n  \n" U, "1 u:x a:y;4 u:x a:y;"),
		"D9 CRLF, blank lines, a last line without a newline; lines are the file's");
	ok(IS("\xef\xbb\xbf" U "\n", "1 u:x a:y;"), "D9 one BOM is taken off");
	ok(IS("[" U "," U "]", "1 u:x a:y;2 u:x a:y;"), "an array");
	ok(IS("\n [\n" U "\n,\n" U "\n]\n\n", "1 u:x a:y;2 u:x a:y;"),
		"an array over lines, rows counted from 1");
	ok(IS("[]", "") && IS("", "") && IS(" \n", "") && IS("[\n]", ""), "no rows at all");
	ok(IS("{\"text\":\"a\xe2\x80\xa8"
		  "b\xc2\x85"
		  "c\"}\n{\"text\":\"d\"}\n",
		   "1 a\xe2\x80\xa8"
		   "b\xc2\x85"
		   "c;2 d;"),
		"U+2028 and U+0085 in a string end no line");
	ok(IS("{\"text\":\"q\\\"]},{[\\\\\"}\n", "1 q\"]},{[\\;"),
		"brackets and quotes in strings, JSON Lines");
	ok(IS("[{\"text\":\"q\\\"]},{[\\\\\"},{\"text\":\"\\\\\\\"\"}]", "1 q\"]},{[\\;2 \\\";"),
		"brackets and quotes in strings, array");
	ok(IS("plain\n",
		   "-1 F: is neither JSON Lines nor a JSON array (its first byte is 0x70); plain text is "
		   "named .txt or read with data.format=text;"),
		"a file of another kind is refused");
	ok(IS("\xff\xfe{\0", "-1 F: is UTF-16 text; convert it to UTF-8;"), "UTF-16 is named");
	ok(IS_WITH("data.format=text", "a\nb\n", "1 a\nb\n;"),
		"data.format=text: any text is one document");
	ok(IS_WITH("data.format=text", "{\"text\":\"t\",\"prompt\":\"p\"}\n", "1 t;"),
		"but JSON is rows");
	write_file(txt, "\xef\xbb\xbf{not json\nat all", 20);
	ok(!strcmp(read_all(txt, NULL), "1 {not json\nat all;"),
		".txt is one document whatever it holds");
	write_file(txt, "ab\nc\xffz", 6);
	ok(!strcmp(read_all(txt, NULL), "-2 F:2: invalid UTF-8 (byte 0xff at offset 4);"),
		"D9 invalid UTF-8 of a text, with line and byte");
}

static void broken(void)
{
	ok(IS("{\"text\":\"a\"}\n{\"text\":}\n{\"text\":\"b\"}\n",
		   "1 a;-2 F:2:9: expected a value;3 b;"),
		"D9 broken JSON: line and column, the next row is read");
	ok(IS("{\"text\":\"a\xff\"}\n{\"text\":\"b\"}\n", "-2 F:1:11: this is not UTF-8;2 b;"),
		"D9 invalid UTF-8: line and column");
	ok(IS("[1,\"x\",null, {\"text\":\"a\"}]",
		   "-2 F: row 1: a row must be an object, found a whole number;"
		   "-2 F: row 2: a row must be an object, found a string;"
		   "-2 F: row 3: a row must be an object, found null;4 a;"),
		"rows that are no objects");
	ok(IS("[" U,
		   "1 u:x a:y;-1 F:1: the JSON array is broken after row 1: the file ends before ']';"),
		"an array that is cut off behind a row");
	ok(IS("[" U ",{\"mess",
		   "1 u:x a:y;-1 F:1: the JSON array is broken after row 1: the file ends within a row;"),
		"or within one");
	ok(IS("[" U "\n" U "]",
		   "1 u:x a:y;-1 F:2: the JSON array is broken after row 1: expected ',' or ']';"),
		"an array without a comma");
	ok(IS("[" U ",]",
		   "1 u:x a:y;-1 F:1: the JSON array is broken after row 1: expected a row after ',';"),
		"an array with one too many");
	ok(IS("[" U "]\n[]",
		   "1 u:x a:y;-1 F:2: the JSON array is broken after row 1: more follows after ']';"),
		"an array with more after it");
	ok(IS("[{\"text\":\"a\"},\n{\"text\":bad},\n{\"text\":\"c\"}]",
		   "1 a;-2 F:2:9: expected a value;3 c;"),
		"D9 a broken element: the file's line; the next is read");
}

static void shapes(void)
{
	ok(IS("{\"conversations\":[{\"from\":\"system\",\"value\":\"s\"},{\"from\":\"human\",\"value\":"
		  "\"x\"},{\"from\":\"gpt\",\"value\":\"y\"},"
		  "{\"from\":\"user\",\"value\":\"x\"},{\"from\":\"assistant\",\"value\":\"y\"}]}",
		   "1 s:s u:x a:y u:x a:y;"),
		"sharegpt");
	ok(IS("{\"system\":\"s\",\"conversations\":[{\"from\":\"human\",\"value\":\"x\"}]}",
		   "1 s:s u:x;"),
		"sharegpt with a system column");
	ok(IS("{\"instruction\":\"i\",\"input\":\"n\",\"output\":\"o\"}\n{\"instruction\":\"i\","
		  "\"input\":\"\",\"output\":\"o\"}\n"
		  "{\"instruction\":\"i\",\"output\":\"o\"}\n{\"instruction\":\"i\",\"input\":null}",
		   "1 u:i\nn a:o;2 u:i a:o;3 u:i a:o;4 u:i;"),
		"alpaca");
	ok(IS("{\"prompt\":\"p\",\"completion\":\"c\"}\n{\"prompt\":\"p\"}", "1 u:p a:c;2 u:p;"),
		"prompt and completion");
	ok(IS("{\"prompt\":\"p\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}", "1 u:x;"),
		"messages come before prompt");
	ok(IS(MSGS("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":"
			   "\"text\",\"text\":\"b\"}]}"),
		   "1 u:ab;"),
		"text parts are joined");
	ok(IS_WITH("data.columns={prompt: question, completion: answer}",
		   "{\"question\":\"q\",\"answer\":\"a\"}", "1 u:q a:a;"),
		"data.columns");
	ok(IS_WITH("data.columns={messages: chat, role: who, content: what}",
		   "{\"chat\":[{\"who\":\"user\",\"what\":\"x\"}]}", "1 u:x;"),
		"data.columns inside messages");
	ok(IS_WITH("data.format=completion", "{\"text\":\"t\",\"prompt\":\"p\"}", "1 u:p;"),
		"data.format decides");
	ok(IS("{\"question\":\"q\",\"answer\":\"a\"}",
		   "-2 F:1: the row is of no known shape: it has question, answer, and neither messages, "
		   "conversations, instruction, prompt nor text; rename columns, as in "
		   "data.columns='{prompt: question, completion: answer}';"),
		"an unknown shape says what there is and how to rename it");
	ok(IS("{}\n{\"text\":\"a\"}\n{\"prompt\":\"p\"}",
		   "-2 F:1: the row is of no known shape: it has nothing, and neither messages, "
		   "conversations, "
		   "instruction, prompt nor text; rename columns, as in data.columns='{prompt: question, "
		   "completion: answer}';2 a;"
		   "-2 F:3: text: missing (the row has prompt); data.columns='{text: NAME}' names the "
		   "column;"),
		"the first row with a shape decides for the file");
}

static void refusals(void)
{
	ok(IS(MSGS("{\"role\":\"gpt\",\"content\":\"x\"}"),
		   "-2 F:1: messages[0].role: unknown role 'gpt'; known are system, user and assistant;"),
		"D9 role gpt in messages");
	ok(IS(MSGS("{\"role\":\"user\",\"content\":\"x\"},{\"content\":\"x\"}"),
		   "-2 F:1: messages[1].role: missing;"),
		"D9 no role");
	ok(IS(MSGS("{\"role\":\"user\",\"content\":null}"),
		   "-2 F:1: messages[0].content: must be a string, found null;"),
		"D9 null content");
	ok(IS(MSGS("{\"role\":\"user\"}"), "-2 F:1: messages[0].content: missing;"), "D9 no content");
	ok(IS(MSGS("3"), "-2 F:1: messages[0]: must be an object, found a whole number;"),
		"a message that is no object");
	ok(IS(MSGS(""), "-2 F:1: messages: empty;"), "D9 no messages");
	ok(IS("{\"messages\":\"x\"}",
		   "-2 F:1: messages: must be an array of messages, found a string;"),
		"messages that are no array");
	ok(IS(MSGS("{\"role\":\"tool\",\"content\":\"x\"}"),
		   "-2 F:1: messages[0].role: 'tool' messages are not supported;"),
		"tool messages by name");
	ok(IS("{\"conversations\":[{\"from\":\"function_call\",\"value\":\"x\"}]}",
		   "-2 F:1: conversations[0].from: 'function_call' messages are not supported;"),
		"sharegpt's function_call by name");
	ok(IS("{\"conversations\":[{\"from\":\"observation\",\"value\":\"x\"}]}",
		   "-2 F:1: conversations[0].from: 'observation' messages are not supported;"),
		"and observation");
	ok(IS(MSGS("{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{}]}"),
		   "-2 F:1: messages[0].tool_calls: is not supported;"),
		"tool calls by name");
	ok(IS(MSGS("{\"role\":\"user\",\"content\":\"x\",\"tool_calls\":null,\"weight\":1}"), "1 u:x;"),
		"but empty ones say nothing");
	ok(IS(MSGS("{\"role\":\"assistant\",\"content\":\"x\",\"weight\":0}"),
		   "-2 F:1: messages[0].weight: weights other than 1 are not supported;"),
		"weights by name");
	ok(IS("{\"tools\":[{\"a\":1}],"
		  "\"messages\":[]}",
		   "-2 F:1: tools: is not supported;") &&
			IS("{\"tools\":\"[]\",\"text\":\"a\"}", "1 a;"),
		"tools by name");
	ok(IS("{\"prompt\":\"p\",\"chosen\":\"c\",\"rejected\":\"r\"}",
		   "-2 F:1: preference pairs (chosen, rejected) are not supported;"),
		"preference pairs by name");
	ok(IS("{\"prompt\":\"p\",\"completion\":\"c\",\"label\":false}",
		   "-2 F:1: label: an answer judged bad (false) is not supported;") &&
			IS("{\"text\":\"a\",\"label\":false}", "1 a;"),
		"bad answers by name");
	ok(IS(MSGS("{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}"),
		   "-2 F:1: messages[0].content[0].type: 'image_url' is not supported, only 'text';"),
		"images by name");
	ok(IS("{\"prompt\":3}", "-2 F:1: prompt: must be a string, found a whole number;"),
		"a prompt that is no string");
	ok(IS("[" MSGS("{\"role\":\"x\",\"content\":\"\"}") "]",
		   "-2 F: row 1: messages[0].role: unknown role 'x'; known are system, user and "
		   "assistant;"),
		"rows of an array are named so");
}

/* NULs stay, a line over the limit is passed over, chunks may end anywhere. */
static void sizes(void)
{
	struct rows *r;
	struct row row;
	struct err err = {0};
	struct buf b = {0};
	uint64_t bytes, sum;
	int i, got, good = 0;

	write_file(path, "{\"text\":\"a\\u0000b\"}\n", 19);
	r = open_rows(path, NULL);
	ok(rows_next(r, &row, &err) == 1 && row.ntext == 3 && !memcmp(row.text, "a\0b", 3),
		"a NUL in a string is a byte of it");
	ok(rows_next(r, &row, &err) == 0 && rows_next(r, &row, &err) == 0, "the end stays the end");
	rows_sum(r, &bytes, &sum);
	ok(bytes == 19 && sum == hash64("{\"text\":\"a\\u0000b\"}\n", 19), "the input's size and hash");
	rows_close(r);
	for (i = 0; i < 40000; i++)
		buf_printf(&b, "%s{\"text\":\"%0*d\\\"\\\\\"}\n", i ? ", " : "[", i % 97 + 1, i);
	buf_puts(&b, "]");
	write_file(path, b.p, b.n);
	r = open_rows(path, NULL);
	for (i = 0; (got = rows_next(r, &row, &err)) == 1; i++)
		good +=
			row.line == (uint64_t)i + 1 && atol(row.text) == i && row.text[row.ntext - 1] == '\\';
	ok(got == 0 && good == 40000, "an array of %zu bytes, read in pieces", b.n);
	rows_close(r);
	buf_clear(&b);
	buf_puts(&b, "{\"text\":\"a\"}\n{\"text\":\"");
	if (buf_room(&b, ROW_MAX)) {
		memset(b.p + b.n, 'x', ROW_MAX);
		b.n += ROW_MAX;
	}
	buf_puts(&b, "\"}\n{\"text\":\"c\"}\n");
	write_file(path, b.p, b.n);
	buf_release(&b);
	ok(!strcmp(read_all(path, NULL), "1 a;-2 F:2: the line is longer than 200 MB;3 c;"),
		"a line over 200 MB is refused, the next is read");
}

int main(void)
{
	char dir[] = "/tmp/test_rows.XXXXXX";

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/f.jsonl", dir);
	snprintf(txt, sizeof(txt), "%s/f.txt", dir);
	files();
	broken();
	shapes();
	refusals();
	sizes();
	unlink(path);
	unlink(txt);
	rmdir(dir);
	return tap_done();
}
