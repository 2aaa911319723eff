/* added: the trie of added tokens. */
#include <stdlib.h>
#include <string.h>

#include "libcommon/text/tok.h"

static int new_node(struct trie *x, uint8_t byte, uint32_t next, uint32_t *at, struct err *err)
{
	if (grow(&x->nodes, &x->cap, x->n + 1, sizeof(*x->nodes), err) < 0)
		return -1;
	*at = (uint32_t)x->n;
	x->nodes[x->n++] = (struct trie_node){ TOK_NONE, next, TOK_NONE, byte };
	return 0;
}

int trie_add(struct trie *x, const char *text, size_t n, uint32_t added, struct err *err)
{
	uint8_t b = (uint8_t)text[0];
	uint32_t at, next;
	size_t i;

	if (!x->n) {
		memset(x->first, 0xFF, sizeof(x->first));
		x->only = b;
	}
	if (x->only != b)
		x->only = 256;
	if (x->first[b] == TOK_NONE && new_node(x, b, TOK_NONE, &x->first[b], err) < 0)
		return -1;
	at = x->first[b];
	for (i = 1; i < n; i++) {
		for (next = x->nodes[at].child;
		     next != TOK_NONE && x->nodes[next].byte != (uint8_t)text[i];)
			next = x->nodes[next].next;
		if (next == TOK_NONE) {
			if (new_node(x, (uint8_t)text[i], x->nodes[at].child, &next, err) < 0)
				return -1;
			x->nodes[at].child = next;
		}
		at = next;
	}
	x->nodes[at].added = added;
	return 0;
}

void trie_release(struct trie *x)
{
	free(x->nodes);
	*x = (struct trie){0};
}
