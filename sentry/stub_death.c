/* Guest processes follow their stubs: see stub_death.h. */
#include "sentry/stub_death.h"

#include <signal.h>

#include "sentry/plat.h"
#include "sentry/signal.h"
#include "sentry/task.h"

/* A platform has no pid for an address space whose process has died. */
static bool lost_its_stub(struct group *g)
{
	bool lost = false;

	mutex_lock(&tasks_mu);
	list_for_each(l, &g->threads) {
		struct task *t = list_entry(l, struct task, group_link);
		mutex_lock(&t->mu);
		if (t->mm && t->mm->as && plat->host_pid(t->mm->as) <= 0)
			lost = true;
		mutex_unlock(&t->mu);
	}
	mutex_unlock(&tasks_mu);
	return lost;
}

void stub_death_check(void)
{
	struct k_siginfo info;
	struct group *g;

	siginfo_init(&info, SIGKILL, SI_KERNEL);
	for (int from = 1; (g = group_next(from));) {
		from = g->tgid + 1;
		if (lost_its_stub(g))
			signal_send_group(g, &info);
		group_put(g);
	}
}
