#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libcommon/json.h"
#include "tap.h"

static struct err e;
static struct json_doc d;

static bool parses(const char *text, size_t n)
{
	e = (struct err){0};
	return json_parse(&d, text, n, "f", 1, &e) == 0;
}

/* The parsed text written again on one line. */
static const char *again(const char *text)
{
	static struct buf b;
	struct json_w w = { .out = &b };

	buf_clear(&b);
	if (!parses(text, strlen(text)))
		return e.msg;
	json_w_value(&w, &d.root);
	return b.p;
}

/* Text, and what the writer makes of it (NULL: the same). */
static const char *const good[][2] = {
	{ "null", NULL }, { "true", NULL }, { "false", NULL }, { "0", NULL }, { "-0", "0" },
	{ "-1", NULL }, { "\"\"", NULL },
	{ "[]", NULL }, { "{}", NULL }, { " [ ] \n", "[]" }, { "{ }\t\r\n", "{}" }, { "[[]]", NULL },
		{ "[{}]", NULL },
	{ "{\"\":0}", NULL }, { "{\"a\":[1,2,{\"b\":null}],\"c\":{}}", NULL },
	{ "[1 , 2\n,3]", "[1,2,3]" },
	{ "9223372036854775807", NULL }, { "-9223372036854775808", NULL },
	{ "9223372036854775808", "9.223372036854776e+18" },
	{ "-9223372036854775809", "-9.223372036854776e+18" },
	{ "123456789012345678901234567890", "1.2345678901234568e+29" },
	{ "1.0", NULL }, { "1e2", "100.0" }, { "1E+2", "100.0" }, { "1e-2", "0.01" }, { "-0.0", NULL },
		{ "0e0", "0.0" },
	{ "0.1", NULL }, { "1e-05", NULL }, { "5e-324", "4.94065645841247e-324" },
		{ "1.7976931348623157e308", "1.7976931348623157e+308" },
	{ "1e-400", "0.0" }, { "2.2250738585072011e-308", "2.225073858507201e-308" },
		{ "3.141592653589793", NULL },
	{ "0.30000000000000004", NULL }, { "9007199254740993.0", "9007199254740992.0" },
	{ "1e23", "1e+23" }, { "8.5e-7", "8.5e-07" },
	{ "\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", "\"A\303\251\342\202\254\360\237\230\200\"" },
	{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\"" },
	{ "\"\\u001f\\u007f\"", "\"\\u001f\177\"" },
	{ "\"a\\u0000b\"", NULL }, { "\"\\uDBFF\\uDFFF\"", "\"\364\217\277\277\"" },
		{ "\"\357\277\277\"", NULL },
	{ "\"\304\240the quick brown fox \304\240\304\240jumps\"", NULL },
		{ "\"1234567\\n12345678\\n123456789\"", NULL },
	{ "[\"a\",\"bb\",\"ccc\",\"dddddddd\",\"eeeeeeeee\"]", NULL },
};

/* What is refused, and the message. */
static const char *const bad[][2] = {
	{ "", "f:1:1: the text ends where a value is expected" },
	{ " \n ", "f:2:2: the text ends where a value is expected" },
	{ "[", "f:1:2: the text ends where a value is expected" },
	{ "{", "f:1:2: expected a name in double quotes" },
	{ "[1", "f:1:3: the text ends inside an array" },
	{ "{\"a\":1", "f:1:7: the text ends inside an object" },
	{ "[1,]", "f:1:4: expected a value" },
	{ "[,1]", "f:1:2: expected a value" },
	{ "[1,,2]", "f:1:4: expected a value" },
	{ "[1 2]", "f:1:4: expected ',' or ']'" },
	{ "[1}", "f:1:3: expected ',' or ']'" },
	{ "{\"a\":1]", "f:1:7: expected ',' or '}'" },
	{ "{\"a\"}", "f:1:5: expected ':' after a name" },
	{ "{\"a\":}", "f:1:6: expected a value" },
	{ "{\"a\" 1}", "f:1:6: expected ':' after a name" },
	{ "{\"a\":1,}", "f:1:8: expected a name in double quotes" },
	{ "{a:1}", "f:1:2: expected a name in double quotes" },
	{ "{'a':1}", "f:1:2: expected a name in double quotes" },
	{ "{1:1}", "f:1:2: expected a name in double quotes" },
	{ "{\"a\":1,,\"b\":2}", "f:1:8: expected a name in double quotes" },
	{ "]", "f:1:1: expected a value" },
	{ "}", "f:1:1: expected a value" },
	{ "1 2", "f:1:3: unexpected text after the value" },
	{ "[]]", "f:1:3: unexpected text after the value" },
	{ "{}x", "f:1:3: unexpected text after the value" },
	{ "01", "f:1:1: a number may not start with 0" },
	{ "-01", "f:1:1: a number may not start with 0" },
	{ "+1", "f:1:1: expected a value" },
	{ ".5", "f:1:1: expected a value" },
	{ "-", "f:1:1: expected a value" },
	{ "-a", "f:1:1: expected a value" },
	{ "- 1", "f:1:1: expected a value" },
	{ "1.", "f:1:3: expected a digit" },
	{ "1.e5", "f:1:3: expected a digit" },
	{ "1e", "f:1:3: expected a digit" },
	{ "1e+", "f:1:4: expected a digit" },
	{ "1.5e-x", "f:1:6: expected a digit" },
	{ "0x10", "f:1:2: unexpected text after the value" },
	{ "1_000", "f:1:2: unexpected text after the value" },
	{ "1a", "f:1:2: unexpected text after the value" },
	{ "1e400", "f:1:1: this number is too large" },
	{ "[-1e309]", "f:1:2: this number is too large" },
	{ "NaN", "f:1:1: expected a value" },
	{ "nan", "f:1:1: expected a value" },
	{ "Infinity", "f:1:1: expected a value" },
	{ "-Infinity", "f:1:1: expected a value" },
	{ "inf", "f:1:1: expected a value" },
	{ "nul", "f:1:1: expected a value" },
	{ "True", "f:1:1: expected a value" },
	{ "truex", "f:1:5: unexpected text after the value" },
	{ "\"", "f:1:1: this string has no end" },
	{ "[\"abc", "f:1:2: this string has no end" },
	{ "\"\\", "f:1:3: the text ends inside a string" },
	{ "\"\\x\"", "f:1:2: unknown escape in a string" },
	{ "\"\\'\"", "f:1:2: unknown escape in a string" },
	{ "\"\\u12\"", "f:1:4: \\u needs four hexadecimal digits" },
	{ "\"\\u00g0\"", "f:1:4: \\u needs four hexadecimal digits" },
	{ "\"\\U0041\"", "f:1:2: unknown escape in a string" },
	{ "\"a\nb\"", "f:1:3: a control character in a string must be escaped" },
	{ "\"a\tb\"", "f:1:3: a control character in a string must be escaped" },
	{ "\"12345678\001\"", "f:1:10: a control character in a string must be escaped" },
	{ "\"\377\"", "f:1:2: this is not UTF-8" },
	{ "\"\300\200\"", "f:1:2: this is not UTF-8" },
	{ "\"\303\"", "f:1:2: this is not UTF-8" },
	{ "\"\355\240\200\"", "f:1:2: this is not UTF-8" },
	{ "\"\340\200\200\"", "f:1:2: this is not UTF-8" },
	{ "\"\360\200\200\200\"", "f:1:2: this is not UTF-8" },
	{ "\"\364\220\200\200\"", "f:1:2: this is not UTF-8" },
	{ "\"\365\200\200\200\"", "f:1:2: this is not UTF-8" },
	{ "\"ab\342\202\"", "f:1:4: this is not UTF-8" },
	{ "\"\200\"", "f:1:2: this is not UTF-8" },
	{ "\303\251", "f:1:1: expected a value" },
	{ "\357\273\277{}", "f:1:1: expected a value" },
	{ "[1]\f", "f:1:4: unexpected text after the value" },
	{ "\240[]", "f:1:1: expected a value" },
	{ "[1,\n 2,\n  x]", "f:3:3: expected a value" },
	{ "[\"\303\251\342\202\254\",x]", "f:1:7: expected a value" },
	{ "/* c */ 1", "f:1:1: expected a value" },
	{ "[1] // c", "f:1:5: unexpected text after the value" },
};

static void check_tables(void)
{
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		const char *want = good[i][1] ? good[i][1] : good[i][0], *got = again(good[i][0]);

		ok(!strcmp(got, want), "%zu. a good text comes back", i);
		if (strcmp(got, want))
			printf("# got %s, want %s\n", got, want);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		bool refused = !parses(bad[i][0], strlen(bad[i][0])) && e.code == EX_DATAERR;

		ok(refused && !strcmp(e.msg, bad[i][1]), "%zu. refused: %s", i, bad[i][1]);
		if (!refused || strcmp(e.msg, bad[i][1]))
			printf("# got %s\n", e.msg);
		ok(d.root.type == JSON_NULL, "%zu. and nothing is left of it", i);
	}
}

static void check_strings(void)
{
	const char nul[] = "[\"a\0b\"]";
	const char *s;
	size_t i;

	ok(!parses(nul, sizeof(nul) - 1) &&
			!strcmp(e.msg, "f:1:4: a control character in a string must be escaped"),
		"a raw NUL in a string");
	ok(!parses("[1]\0", 4) && !strcmp(e.msg, "f:1:4: unexpected text after the value"),
		"a raw NUL after the value");
	parses("\"a\\u0000b\"", 10);
	ok(d.root.n == 3 && !memcmp(d.root.s, "a\0b", 4),
		"an escaped NUL is kept, and one more ends the string");
	s = "[\"\\ud800\", \"\\udc00x\", \"\\ud800\\ud800\\udc00\", \"\\ud83d\\n\"]";
	parses(s, strlen(s));
	ok(d.replaced == 4, "lone surrogates are counted: %u", d.replaced);
	ok(json_str_eq(&d.root.items[0], "\357\277\275") &&
			json_str_eq(&d.root.items[1], "\357\277\275x") &&
			json_str_eq(&d.root.items[2], "\357\277\275\360\220\200\200") &&
			json_str_eq(&d.root.items[3], "\357\277\275\n"),
		"and become U+FFFD");
	for (i = 0; i < 40; i++) {   /* each offset against the 8-byte steps */
		char text[64] = "\"";
		struct json v;

		memset(text + 1, 'x', i);
		memcpy(text + 1 + i, "\304\240\\n\"", 6);
		if (!parses(text, strlen(text)))
			break;
		v = d.root;
		if (v.n != i + 3 || memcmp(v.s + i, "\304\240\n", 4))
			break;
	}
	ok(i == 40, "non-ASCII and escapes at every offset");
	for (i = 0; i < 256; i++) {   /* each byte alone, first and ninth in a string */
		char text[] = "\"........\"";
		bool fine = i >= 0x20 && i < 0x80 && i != '\\' && i != '"', got;

		text[1] = (char)i;
		got = parses(text, 10);
		text[1] = '.';
		text[8] = (char)i;
		if (got != fine || parses(text, 10) != fine)
			break;
	}
	ok(i == 256, "each byte is taken or refused as it should");
	s = "{\"a\":1,\"b\":2,\"a\":3}";
	parses(s, strlen(s));
	ok(d.duplicates == 1 && json_get(&d.root, "a")->i == 3 && d.root.n == 3,
		"the last of equal names counts, all are kept");
}

static void check_limits(void)
{
	char deep[2 * (JSON_DEPTH_MAX + 1)];
	struct buf b = {0};
	struct json_w w = { .out = &b };
	int i;
	size_t n = 200000;
	char *many = malloc(n);

	memset(deep, '[', JSON_DEPTH_MAX + 1);
	memset(deep + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
	ok(parses(deep + 1, 2 * JSON_DEPTH_MAX), "depth 128 is read");
	json_w_value(&w, &d.root);
	ok(b.n == 2 * JSON_DEPTH_MAX, "and written");
	ok(!parses(deep, sizeof(deep)) && !strcmp(e.msg, "f:1:129: nested too deeply (limit 128)"),
		"depth 129 is refused");
	memset(many, '[', n);
	ok(!parses(many, n) && e.code == EX_DATAERR, "200000 brackets are refused");
	free(many);
	buf_clear(&b);
	buf_putc(&b, '{');
	for (i = 0; i < 20000; i++)
		buf_printf(&b, "%s\"name%d\":%d", i ? "," : "", i % 19990, i);
	buf_putc(&b, '}');
	ok(parses(b.p, b.n) && d.root.n == 20000 && d.duplicates == 10,
		"duplicates among many names: %u", d.duplicates);
	ok(json_get(&d.root, "name5")->i == 19995 && json_get(&d.root, "name77")->i == 77,
		"json_get finds the last of many");
	ok(json_parse(&d, "\n\n x", 4, "rows.jsonl", 311, &e) < 0 &&
			!strcmp(e.msg, "rows.jsonl:313:2: expected a value"),
		"lines count from line0");
	ok(json_parse_file(&d, "/nonexistent/x.json", 100, &e) < 0 && e.code == EX_NOINPUT,
		"a missing file is EX_NOINPUT");
	buf_release(&b);
}

static void check_getters(void)
{
	const char *text = "{\"i\":3,\"f\":2.0,\"g\":2.5,\"s\":\"x\",\"b\":true,\"z\":null,\"n\":"
					   "\"a\\u0000\",\"big\":1e300}";
	int64_t i = 7;
	double f = 0;
	bool b = false;
	const char *s = NULL;

	parses(text, strlen(text));
	ok(json_get_int(&d.root, "none", &i, "c", &e) == 0 && i == 7, "absent keeps the value");
	ok(json_get_int(&d.root, "i", &i, "c", &e) == 1 && i == 3, "a whole number");
	ok(json_get_int(&d.root, "f", &i, "c", &e) == 1 && i == 2, "2.0 is whole");
	ok(json_get_int(&d.root, "g", &i, "c.json", &e) < 0 &&
			!strcmp(e.msg, "c.json: 'g' must be a whole number, found a number"),
		"2.5 is not");
	ok(json_get_int(&d.root, "big", &i, "c", &e) < 0, "nor is 1e300");
	ok(json_get_int(&d.root, "z", &i, "c", &e) < 0 &&
			!strcmp(e.msg, "c: 'z' must be a whole number, found null"),
		"null is no number");
	ok(json_get_num(&d.root, "i", &f, "c", &e) == 1 && f == 3 &&
			json_get_num(&d.root, "g", &f, "c", &e) == 1 && f == 2.5,
		"numbers");
	ok(json_get_num(&d.root, "s", &f, "c", &e) < 0 &&
			!strcmp(e.msg, "c: 's' must be a number, found a string"),
		"a string is no number");
	ok(json_get_bool(&d.root, "b", &b, "c", &e) == 1 && b &&
			json_get_bool(&d.root, "i", &b, "c", &e) < 0,
		"booleans");
	ok(json_get_str(&d.root, "s", &s, "c", &e) == 1 && !strcmp(s, "x") &&
			json_get_str(&d.root, "b", &s, "c", &e) < 0,
		"strings");
	ok(json_get_str(&d.root, "n", &s, "c", &e) < 0 &&
			!strcmp(e.msg, "c: 'n' holds a NUL character"),
		"a string with a NUL is no C string");
	ok(!json_get(NULL, "a") && !json_get(json_get(&d.root, "i"), "a"), "no object, no member");
}

static void check_writer(void)
{
	struct buf b = {0};
	struct json_w w = { .out = &b };
	struct json_w p = { .out = &b, .indent = 2 };
	int i, wrong = 0;
	uint64_t x = 88172645463325252;

	json_w_obj(&w);
	json_w_name(&w, "a\n");
	json_w_int(&w, -5);
	json_w_name(&w, "b");
	json_w_arr(&w);
	json_w_num(&w, 0.1);
	json_w_num(&w, NAN);
	json_w_num(&w, -INFINITY);
	json_w_bool(&w, true);
	json_w_null(&w);
	json_w_strn(&w, "x\0\377\303\251\355\240\200", 8);
	json_w_end(&w);
	json_w_name(&w, "c");
	json_w_obj(&w);
	json_w_end(&w);
	json_w_end(&w);
	ok(!strcmp(b.p,
		   "{\"a\\n\":-5,\"b\":[0.1,null,null,true,null,"
		   "\"x\\u0000\357\277\275\303\251\357\277\275\357\277\275\357\277\275\"],\"c\":{}}"),
		"one line; non-finite is null, bad bytes are U+FFFD");
	buf_clear(&b);
	parses("{\"a\":[1,{\"b\":[]}],\"c\":{}}", 25);
	json_w_value(&p, &d.root);
	ok(!strcmp(b.p, "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {}\n}"),
		"pretty with an indent");
	for (i = 0; i < 20000; i++) {
		double v;

		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		memcpy(&v, &x, 8);
		if (!isfinite(v))
			continue;
		buf_clear(&b);
		w = (struct json_w){ .out = &b };
		json_w_num(&w, v);
		wrong += !parses(b.p, b.n) || d.root.type != JSON_NUM || memcmp(&d.root.d, &v, 8);
	}
	ok(!wrong, "random doubles come back bit for bit");
	buf_release(&b);
}

int main(void)
{
	check_tables();
	check_strings();
	check_limits();
	check_getters();
	check_writer();
	json_release(&d);
	return tap_done();
}
