/*
 * The schema table: rows.inc is made by the Makefile, one #include for each *.rows file of the
 * tree.
 */
#include "libcommon/config.h"

#include "gen/names.h" /* LOSS_NAMES, OPTIM_NAMES: "a|b" from the files in loss/ and core/optim/ */

#define R(path, type, def, min, max, choices, help) { path, type, def, min, max, choices, help },
const struct cfg_row cfg_rows[] = {
#include "gen/rows.inc"
};
#undef R
const size_t cfg_nrows = sizeof(cfg_rows) / sizeof(cfg_rows[0]);
