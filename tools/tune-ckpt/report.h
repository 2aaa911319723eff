#ifndef TUNE_CKPT_REPORT_H
#define TUNE_CKPT_REPORT_H
/* report: named facts about a path, as aligned lines or as one JSON object. */
#include "libcommon/json.h"

struct report { bool json; struct buf b; struct json_w w; };
void report_begin(struct report *r, bool json);
void report_str(struct report *r, const char *name, const char *value);
/* text: with thousands' commas */
void report_int(struct report *r, const char *name, int64_t value);
void report_num(struct report *r, const char *name, double value);
/* A list of words: text joins them with spaces. */
void report_strs(struct report *r, const char *name, const char *const *values, size_t n);
void report_ids(struct report *r, const char *name, const uint32_t *ids, size_t n);
void report_end(struct report *r);                                         /* to stdout; releases */
#endif
