#ifndef TUNE_TEXT_SETTINGS_H
#define TUNE_TEXT_SETTINGS_H
/*
 * settings: the data.* keys of a config, for the programs that turn rows into ids (tune-tokenize,
 * tune-eval, tune-train's samples).
 */
#include "libcommon/config.h"
#include "libcommon/text/chat.h"

/* data.template and data.template_vars; *c is NULL if there is no template. */
int chat_open_config(
	struct chat_template **c, const struct tokenizer *t, const struct config *cfg, struct err *err);
/* data.train_on, data.eos, data.special_in_content. */
struct chat_opts chat_opts_config(const struct config *cfg);
#endif
