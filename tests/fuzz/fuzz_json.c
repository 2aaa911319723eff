/* fuzz_json: what parses is written and parsed again as the same value. */
#include <assert.h>
#include <string.h>

#include "libcommon/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_doc a = {0}, b = {0};
	struct buf one = {0}, two = {0};
	struct json_w w = { .out = &one };
	struct err err = {0};

	if (json_parse(&a, (const char *)data, size, "fuzz", 1, &err) == 0) {
		json_w_value(&w, &a.root);
		assert(json_parse(&b, one.p, one.n, "again", 1, &err) == 0);
		w = (struct json_w){ .out = &two };
		json_w_value(&w, &b.root);
		assert(one.n == two.n && !memcmp(one.p, two.p, one.n));
	}
	json_release(&a);
	json_release(&b);
	buf_release(&one);
	buf_release(&two);
	return 0;
}
