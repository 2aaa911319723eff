#include "libcommon/text/settings.h"

#include <stdlib.h>
#include <string.h>

int chat_open_config(
	struct chat_template **c, const struct tokenizer *t, const struct config *cfg, struct err *err)
{
	size_t n = cfg_count(cfg, "data.template_vars");
	const char *(*vars)[2] = mem_zalloc(n, sizeof(*vars), err);
	int rc;

	if (!vars)
		return -1;
	for (size_t i = 0; i < n; i++) {
		vars[i][0] = cfg_item_name(cfg, "data.template_vars", i);
		vars[i][1] = cfg_item(cfg, "data.template_vars", i);
	}
	rc = chat_open(c, t, cfg_str(cfg, "data.template"), (const char *const (*)[2])vars, n, err);
	free(vars);
	return rc;
}

struct chat_opts chat_opts_config(const struct config *cfg)
{
	const char *on = cfg_str(cfg, "data.train_on"),
			   *special = cfg_str(cfg, "data.special_in_content");

	return (struct chat_opts){
		.train_on = !strcmp(on, "all") ? TRAIN_ALL
			: !strcmp(on, "last")      ? TRAIN_LAST
									   : TRAIN_ASSISTANT,
		.eos = cfg_bool(cfg, "data.eos"),
		.special = !strcmp(special, "allow") ? SPECIAL_ALLOW
			: !strcmp(special, "error")      ? SPECIAL_ERROR
											 : SPECIAL_TEXT,
	};
}
