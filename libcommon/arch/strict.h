#ifndef TUNE_STRICT_H
#define TUNE_STRICT_H
/*
 * strict: strict reading of config.json and adapter_config.json: a key that is not known is an
 * error, and null is the same as absent.
 */
#include "libcommon/json.h"

struct strict {
	const struct json *json;       /* an object */
	const char *where;             /* for messages: the file's path */
	struct err *err;
};
/* NULL if absent or null */
const struct json *strict_get(const struct strict *c, const char *name);
/* 1 found, 0 absent (*out keeps its value), -1 wrong type or not within lo..hi, by name. */
int strict_int(const struct strict *c, const char *name, int64_t lo, int64_t hi, int *out);
int strict_num(const struct strict *c, const char *name, double lo, double hi, double *out);
int strict_bool(const struct strict *c, const char *name, bool *out);
bool json_is_number(const struct json *v, double want);

enum key_kind {
	KEY_READ,        /* honoured by the caller */
	KEY_HARMLESS,    /* does not change the computation */
	KEY_FALSE, KEY_ZERO, KEY_ONE, KEY_EMPTY      /* only this value (or null) is what we compute */
};
struct config_key { const char *name; enum key_kind kind; };
/*
 * Every key of the object must be in `own` or, after it, in `shared` (both end with a NULL name),
 * with a value that fits. Names all that don't.
 */
int strict_check_keys(
	const struct strict *c, const struct config_key *own, const struct config_key *shared);
#endif
