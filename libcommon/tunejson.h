#ifndef TUNE_TUNEJSON_H
#define TUNE_TUNEJSON_H
/*
 * tunejson: tune.json, the list of a checkpoint's files with sizes and XXH64, written last
 * (tune-run(5)). A folder without a valid tune.json is no checkpoint.
 *
 *   {"v":1, "files":{"config.json":[612,"0123456789abcdef"], "state/state.json":[...]},
 * "base":"SHA-256 of the base model"}
 */
#include "libcommon/buf.h"
#include "libcommon/hash.h"

/*
 * List every file of dir and of its subfolder state/ (in name order), sync all, write tune.json.
 * base: "" = not recorded.
 */
int tunejson_write(const char *dir, const char *base, struct err *err);
/*
 * Compare the folder with its tune.json: EX_DATAERR names the first file that is missing, of
 * another size or of another hash; EX_NOINPUT: no tune.json. base (may be NULL) gets the recorded
 * base.
 */
int tunejson_verify(const char *dir, char base[SHA256_HEX], struct err *err);
#endif
