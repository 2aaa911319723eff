/* The table of losses: every file of loss/. */
#include <string.h>

#include "gen/names.h"
#include "loss/loss.h"

#define X(name) extern const struct loss loss_##name;
LOSSES(X)
#undef X

static const struct loss *const losses[] = {
#define X(name) &loss_##name,
LOSSES(X)
#undef X
};

const struct loss *loss_find(const char *name)
{
	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++)
		if (!strcmp(losses[i]->name, name))
			return losses[i];
	return NULL;
}
