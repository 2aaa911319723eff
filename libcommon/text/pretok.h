#ifndef TUNE_PRETOK_H
#define TUNE_PRETOK_H
/*
 * pretok: the splitters that stand before BPE, by hand, each exactly the regular expression that a
 * tokenizer.json names; and what a GGUF's tokenizer.ggml.pre implies.
 */
#include <stdbool.h>
#include <stddef.h>

struct pretok {
	const char *name;               /* ours: "gpt2", ... */
	/* End of the first piece of p[0 .. end - p), which is valid UTF-8 and not empty. */
	const char *(*piece)(const char *p, const char *end);
	const char *regex;              /* of the Split before ByteLevel; NULL: not written so */
};
extern const struct pretok pretoks[];   /* ends with name NULL */
const struct pretok *pretok_find(const char *name);   /* NULL if there is none */

/*
 * As llama.cpp has it, but for the normalizer: llama.cpp never normalizes, the models of qwen2 were
 * trained on NFC.  The first row of a kind is the one to write.
 */
struct pretok_gguf {
	const char *pre;                    /* tokenizer.ggml.pre */
	const char *name;
	bool nfc, ignore_merges, add_bos;   /* add_bos: where the file does not say */
};
extern const struct pretok_gguf pretok_ggufs[];       /* ends with pre NULL */
#endif
