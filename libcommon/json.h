#ifndef TUNE_JSON_H
#define TUNE_JSON_H
/*
 * json: a strict reader into an arena, and a writer onto a buf.
 *
 * Reader: RFC 8259, UTF-8 checked, depth at most JSON_DEPTH_MAX, strings with length (NULs
 * kept).  A lone surrogate becomes U+FFFD and is counted; NaN, Infinity and numbers too large
 * for a double are refused.
 * Members keep the order of the text; json_get finds the last of equal names (as Python
 * does), and doc->duplicates counts them for readers that must refuse.  Integers that fit
 * stay exact (JSON_INT); other numbers are JSON_NUM.  Made for 200 MB tokenizer files and
 * for one JSON Lines row at a time: parsing again with the same doc reuses its memory.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcommon/arena.h"
#include "libcommon/buf.h"

enum { JSON_DEPTH_MAX = 128 };
enum json_type { JSON_NULL, JSON_BOOL, JSON_INT, JSON_NUM, JSON_STR, JSON_ARR, JSON_OBJ };

struct json_member;
struct json {
	enum json_type type;
	uint32_t n;                      /* STR: bytes (< 4 GiB); ARR, OBJ: children */
	union {
		bool b;
		int64_t i;
		double d;
		const char *s;               /* NUL-terminated too; may hold NULs */
		struct json *items;
		struct json_member *members;
	};
};
struct json_member { struct json name, value; };   /* name.type == JSON_STR */

struct json_doc {
	struct json root;
	struct arena arena;              /* owns all strings and children */
	unsigned replaced;               /* lone surrogates made U+FFFD */
	unsigned duplicates;             /* repeated names within one object */
	struct json *stack;              /* scratch of the parser, kept between calls */
	uint32_t *seen;
	size_t stack_cap, seen_cap;
};

/*
 * Parse text[0..n).  name and line0 (1 for a file, the row's line for JSON Lines) only serve
 * messages "NAME:LINE:COL: ...", EX_DATAERR.  text need not outlive the call.  Trailing white space
 * is allowed, other trailing bytes are an error.  COL counts characters.  A {0} doc is ready for
 * its first call; after a failed call the root is null.
 */
int json_parse(struct json_doc *doc, const char *text, size_t n, const char *name, uint64_t line0,
	struct err *err);
/* strips one BOM */
int json_parse_file(struct json_doc *doc, const char *path, size_t limit, struct err *err);
void json_release(struct json_doc *doc);

/* NULL if absent or not an object */
const struct json *json_get(const struct json *obj, const char *name);
bool json_is(const struct json *v, enum json_type t);                    /* v may be NULL */
/* v may be NULL or of another type */
bool json_str_eq(const struct json *v, const char *s);
/* "a string", "an object", ... */
const char *json_type_name(enum json_type t);
/*
 * Typed members with messages "WHERE: 'name' must be a whole number, found a string" (EX_DATAERR;
 * null is a wrong type). absent: *out keeps its value, returns 0; present: 1; wrong: -1.  2.0 is a
 * whole number; a string that holds a NUL is wrong.
 */
int json_get_int(
	const struct json *obj, const char *name, int64_t *out, const char *where, struct err *err);
int json_get_num(
	const struct json *obj, const char *name, double *out, const char *where, struct err *err);
int json_get_bool(
	const struct json *obj, const char *name, bool *out, const char *where, struct err *err);
int json_get_str(
	const struct json *obj, const char *name, const char **out, const char *where, struct err *err);

/*
 * Writer.  Commas and nesting are the writer's business: calls between begin and end.  Non-finite
 * numbers are written as null; doubles in the shortest form that reads back equal and as JSON_NUM
 * (2.0, not 2); text is UTF-8, escaped only where JSON demands it, a byte that is no UTF-8 becomes
 * U+FFFD. json_w_obj(&w); json_w_name(&w, "a"); json_w_int(&w, 1); json_w_end(&w); indent = 0
 * writes one line with no spaces, else pretty with that many spaces.
 */
struct json_w {
	struct buf *out;
	int indent, depth;
	bool after, named;
	char kind[2 * JSON_DEPTH_MAX];
};
void json_w_obj(struct json_w *w);
void json_w_arr(struct json_w *w);
void json_w_end(struct json_w *w);
void json_w_name(struct json_w *w, const char *name);
void json_w_namen(struct json_w *w, const char *name, size_t n);
void json_w_str(struct json_w *w, const char *s);
void json_w_strn(struct json_w *w, const char *s, size_t n);
void json_w_int(struct json_w *w, int64_t v);
void json_w_num(struct json_w *w, double v);
void json_w_bool(struct json_w *w, bool v);
void json_w_null(struct json_w *w);
void json_w_value(struct json_w *w, const struct json *v);   /* a parsed value, whole */
#endif
