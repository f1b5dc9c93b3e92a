/* Host threads: see thread.h. */
#include "platform/base/thread.h"

#include <signal.h>

int thread_start(pthread_t *out_thread, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, THREAD_STACK_SIZE);
	sigfillset(&all);
	/* Blocking it would only hide which host call a filter refused (platform/host/seccomp.c).
	 */
	sigdelset(&all, SIGSYS);
	/* The mask is inherited, so the new thread never sees a signal. */
	pthread_sigmask(SIG_BLOCK, &all, &old);
	int err = pthread_create(out_thread, &attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}
