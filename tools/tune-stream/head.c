/* head: a valid stream of the first N records. */
#include "copy.h"
#include "verbs.h"

int verb_head(const struct args *a, struct err *err)
{
	struct stream_merge *m = NULL;
	char set[40];
	struct copy c = { .prog = "tune-stream head", .set = set };
	struct record r;
	uint64_t n = 0;
	int rc = -1, got = 1;

	if (a->npaths > 1)
		return err_set(err, EX_USAGE, "head takes one STREAM");
	snprintf(set, sizeof(set), "{\"n\":%llu}", (unsigned long long)a->n);
	if (refuse_terminal("-", err) < 0 ||
		stream_merge_open(&m, a->paths, a->npaths, "tune-stream head", err) < 0 ||
		copy_begin(&c, m, err) < 0)
		goto done;
	while (n < a->n && (got = stream_merge_next(m, &r, err)) > 0) {
		if (copy_record(&c, m, &r, err) < 0)
			goto done;
		n += !rec_optional(&r);
	}
	if (got >= 0)
		rc = copy_end(&c, m, err);
done:
	copy_release(&c);
	stream_merge_close(m);
	return rc;
}
