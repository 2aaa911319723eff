#ifndef TUNE_TEMPLATE_H
#define TUNE_TEMPLATE_H
/*
 * template: the chat templates that we know, as data.
 *
 * Every known template writes a conversation as a sequence of turns between four strings; a struct
 * dialect says which strings, and what the template does beside that.  Its text is recognised by
 * SHA-256, so nothing is guessed: a template that was changed by one byte is another template.
 */
#include <stddef.h>

enum dialect_flag {
	DIALECT_BOS = 1,           /* bos_token comes first */
	/* white space around content is removed, as Python's str.strip does */
	DIALECT_TRIM = 2,
	DIALECT_ALTERNATE = 4,     /* user and assistant take turns, after at most one system message */
	/* always a system turn with "Cutting Knowledge Date" and "Today Date" (variable date_string) */
	DIALECT_DATES = 8,
	DIALECT_ALWAYS_PROMPT = 16 /* the generation prompt is written whether or not it is asked for */
};
struct turns { const char *begin, *after_role, *end, *after; };

struct dialect {
	/* of the template's text without the one newline at its end, which Jinja drops */
	const char *sha256;
	const char *name;
	const struct turns *turns;
	/*
	 * content of the system turn that is added where the first message is not system; NULL = none
	 */
	const char *system;
	unsigned flags;
};

/* NULL if unknown. */
const struct dialect *dialect_find(const char *sha256);
/* The text of "chatml" or "llama3", for models that have none; NULL for another name. */
const char *dialect_text(const char *name);
/* Every string of special tokens that the dialect writes, in turn; NULL at the end. */
const char *dialect_token(const struct dialect *d, size_t i);
#endif
