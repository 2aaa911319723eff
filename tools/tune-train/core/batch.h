#ifndef TUNE_BATCH_H
#define TUNE_BATCH_H
/*
 * batch: one micro-batch in host memory: documents end to end, each isolated from the others.
 *
 * Token t of document d is predicted by the position before it; a trained token is one with mask 1
 * (never a document's first). Filled by the feed, owned by it; capacity is fixed before the first
 * step.
 */
#include <stdint.h>

struct batch {
	long t;                    /* tokens */
	int docs;
	const uint32_t *ids;       /* [t] */
	const uint8_t *mask;       /* [t] */
	const int32_t *cu;         /* [docs + 1] */
	/* [docs]: position of the document's record in the global batch (keys dropout) */
	const uint32_t *rec;
	const uint32_t *off0;      /* [docs]: index of the document's first token within its record */
	long trained;              /* number of mask 1 */
	int group;                 /* documents a group: 1, or 2 for pairs (chosen, rejected) */
};
#endif
