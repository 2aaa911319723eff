#include <errno.h>
#include <string.h>

#include "libcommon/buf.h"
#include "tap.h"

int main(void)
{
	struct err e = {0};
	struct buf b = {0};
	int i;

	ok(err_set(&e, EX_DATAERR, "bad %d", 7) == -1, "err_set returns -1");
	ok(!strcmp(e.msg, "bad 7") && e.code == 65, "message and code are kept");
	errno = ENOENT;
	err_errno(&e, EX_NOINPUT, "cannot open '%s'", "x\033[31m");
	ok(!strcmp(e.msg, "cannot open 'x?[31m': No such file or directory"),
		"errno text is appended, escapes are defused");
	err_prefix(&e, "%s:%d: ", "f", 3);
	ok(!strcmp(e.msg, "f:3: cannot open 'x?[31m': No such file or directory") && e.code == 66,
		"a prefix goes in front");
	e = (struct err){0};
	for (i = 0; i < 400; i++)
		err_more(&e, EX_CONFIG, "line %d of many errors in one file", i);
	ok(!strncmp(e.msg, "line 0 of many errors in one file\nline 1", 40), "lines are kept in order");
	ok(!strcmp(e.msg + strlen(e.msg) - 13, "\n... and more"),
		"too many lines end in one that says so");
	for (i = 0; i < 1000; i++)
		buf_printf(&b, "%d,", i);
	ok(!buf_ok(&b, &e) && b.n == 3890 && !strncmp(b.p, "0,1,2,", 6) && b.p[b.n] == 0,
		"a buf grows and is terminated");
	buf_release(&b);
	return tap_done();
}
