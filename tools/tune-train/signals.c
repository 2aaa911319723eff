/* The first SIGINT, SIGTERM or SIGUSR1 asks for a checkpoint and exit 75; the second one kills. */
#include <signal.h>
#include <stdatomic.h>

#include "libcommon/outfile.h"
#include "train.h"

static volatile sig_atomic_t seen;

static void on_signal(int sig)
{
	if (seen) {
		outfile_on_signal();
		signal(sig, SIG_DFL);
		raise(sig);
	}
	seen = 1;
}

void signals_install(void)
{
	static const int sigs[] = { SIGINT, SIGTERM, SIGUSR1 };
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		sigaction(sigs[i], &sa, NULL);
}

bool signal_seen(void)
{
	return seen;
}
