#ifndef TUNE_SPECIAL_H
#define TUNE_SPECIAL_H
/* special: where content holds strings that are special tokens of the tokenizer (D8). */
#include "libcommon/text/tokenizer.h"

struct specials;
/* t must outlive *s */
int specials_new(struct specials **s, const struct tokenizer *t, struct err *err);
void specials_free(struct specials *s);
/* Count them in text, leftmost and longest; *first (if any) is the first one's token. */
uint64_t specials_count(const struct specials *s, const char *text, size_t n, uint32_t *first);
#endif
