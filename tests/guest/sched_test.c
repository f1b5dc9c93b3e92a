/*
 * sched_setparam(2), sched_getparam(2), sched_setscheduler(2), sched_getscheduler(2), sched_get_priority_max(2),
 * sched_get_priority_min(2), sched_rr_get_interval(2), sched_setaffinity(2), sched_getaffinity(2), sched_setattr(2),
 * sched_getattr(2), sched_yield(2), getpriority(2), setpriority(2), ioprio_set(2), ioprio_get(2), getcpu(2),
 * membarrier(2). Nothing here asks for a real-time class, which a container may refuse.
 */
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/guest/t.h"

struct attr {
	unsigned size, policy;
	unsigned long flags;
	int nice;
	unsigned prio;
	unsigned long runtime, deadline, period;
	unsigned util_min, util_max;
};

TEST(policy_reads_back)
{
	struct sched_param p = { 0 };
	CHECK_EQ(syscall(SYS_sched_getscheduler, 0), SCHED_OTHER);
	CHECK_OK(syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &p));
	CHECK_EQ(syscall(SYS_sched_getscheduler, 0), SCHED_BATCH);
	CHECK_OK(syscall(SYS_sched_getparam, 0, &p));
	CHECK_EQ(p.sched_priority, 0);
	CHECK_OK(syscall(SYS_sched_setparam, 0, &p));
	p.sched_priority = 5;
	CHECK_ERR(syscall(SYS_sched_setparam, 0, &p), EINVAL);
}

TEST(policy_errors)
{
	struct sched_param p = { 0 };
	CHECK_ERR(syscall(SYS_sched_setscheduler, -1, SCHED_OTHER, &p), EINVAL);
	CHECK_ERR(syscall(SYS_sched_setscheduler, 0, -1, &p), EINVAL);
	CHECK_ERR(syscall(SYS_sched_setscheduler, 0, 77, &p), EINVAL);
	CHECK_ERR(syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, (void *)1), EFAULT);
	CHECK_ERR(syscall(SYS_sched_setscheduler, 0x7ffffff, SCHED_OTHER, &p), ESRCH);
	CHECK_ERR(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &p), EINVAL);
	CHECK_ERR(syscall(SYS_sched_getscheduler, -1), EINVAL);
	CHECK_ERR(syscall(SYS_sched_getscheduler, 0x7ffffff), ESRCH);
	CHECK_ERR(syscall(SYS_sched_getparam, 0, NULL), EINVAL);
	CHECK_ERR(syscall(SYS_sched_getparam, 0x7ffffff, &p), ESRCH);
}

TEST(priority_ranges)
{
	CHECK_EQ(syscall(SYS_sched_get_priority_max, SCHED_FIFO), 99);
	CHECK_EQ(syscall(SYS_sched_get_priority_min, SCHED_RR), 1);
	CHECK_EQ(syscall(SYS_sched_get_priority_max, SCHED_OTHER), 0);
	CHECK_EQ(syscall(SYS_sched_get_priority_min, SCHED_IDLE), 0);
	CHECK_ERR(syscall(SYS_sched_get_priority_max, 99), EINVAL);
	CHECK_ERR(syscall(SYS_sched_get_priority_min, -1), EINVAL);
}

TEST(rr_interval)
{
	struct timespec ts;
	CHECK_OK(syscall(SYS_sched_rr_get_interval, 0, &ts));
	CHECK_EQ(ts.tv_sec, 0);
	CHECK_ERR(syscall(SYS_sched_rr_get_interval, -1, &ts), EINVAL);
	CHECK_ERR(syscall(SYS_sched_rr_get_interval, 0x7ffffff, &ts), ESRCH);
	CHECK_ERR(syscall(SYS_sched_rr_get_interval, 0, (void *)1), EFAULT);
}

TEST(attributes)
{
	struct attr a = { 0 };
	CHECK_OK(syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0));
	CHECK_EQ(a.size, sizeof(a));
	CHECK_EQ(a.policy, SCHED_OTHER);
	CHECK_ERR(syscall(SYS_sched_getattr, 0, &a, 20, 0), EINVAL);
	CHECK_ERR(syscall(SYS_sched_getattr, 0, &a, sizeof(a), 1), EINVAL);
	CHECK_ERR(syscall(SYS_sched_getattr, -1, &a, sizeof(a), 0), EINVAL);
	a = (struct attr){ .size = 48, .policy = SCHED_BATCH, .nice = 3 };
	CHECK_OK(syscall(SYS_sched_setattr, 0, &a, 0));
	CHECK_EQ(syscall(SYS_sched_getscheduler, 0), SCHED_BATCH);
	CHECK_EQ(getpriority(PRIO_PROCESS, 0), 3);
	CHECK_ERR(syscall(SYS_sched_setattr, 0, NULL, 0), EINVAL);
	CHECK_ERR(syscall(SYS_sched_setattr, 0, &a, 1), EINVAL);
	a.size = 8;
	CHECK_ERR(syscall(SYS_sched_setattr, 0, &a, 0), E2BIG);
	CHECK_EQ(a.size, sizeof(a));
}

TEST(deadline_parameters)
{
	struct attr a = { .size = 48, .policy = 6, .runtime = 100, .deadline = 1000000, .period = 1000000 };
	CHECK_ERR(syscall(SYS_sched_setattr, 0, &a, 0), EINVAL); /* too short a runtime */
	a.runtime = 2000000; /* longer than the deadline */
	CHECK_ERR(syscall(SYS_sched_setattr, 0, &a, 0), EINVAL);
	a.runtime = 100000;
	SKIP_IF(syscall(SYS_sched_setattr, 0, &a, 0) != 0, "deadline class refused: %s", strerror(errno));
	memset(&a, 0, sizeof(a));
	CHECK_OK(syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0));
	CHECK_EQ(a.policy, 6);
	CHECK_EQ(a.runtime, 100000);
	CHECK_EQ(a.deadline, 1000000);
	CHECK_EQ(a.period, 1000000);
}

TEST(reset_on_fork)
{
	struct sched_param p = { .sched_priority = 1 };
	SKIP_IF(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO | 0x40000000, &p) != 0, "real-time class refused: %s",
		strerror(errno));
	CHECK_EQ(syscall(SYS_sched_getscheduler, 0), SCHED_FIFO | 0x40000000);
	pid_t pid = fork();
	if (pid == 0)
		_exit((int)syscall(SYS_sched_getscheduler, 0));
	CHECK_CHILD(pid, SCHED_OTHER);
}

TEST(affinity)
{
	unsigned long m[16] = { 0 }, n[16] = { 0 };
	long size = syscall(SYS_sched_getaffinity, 0, sizeof(m), m);
	CHECK(size >= 8 && size % 8 == 0);
	CHECK(m[0] != 0);
	unsigned long lowest = m[0] & -m[0];
	CHECK_OK(syscall(SYS_sched_setaffinity, 0, sizeof(lowest), &lowest));
	CHECK_EQ(syscall(SYS_sched_getaffinity, 0, sizeof(n), n), size);
	CHECK_EQ(n[0], lowest);
	lowest = 0;
	CHECK_ERR(syscall(SYS_sched_setaffinity, 0, sizeof(lowest), &lowest), EINVAL);
	CHECK_ERR(syscall(SYS_sched_getaffinity, 0, 3, m), EINVAL);
	CHECK_ERR(syscall(SYS_sched_getaffinity, 0, 0, m), EINVAL);
	CHECK_ERR(syscall(SYS_sched_getaffinity, 0x7ffffff, sizeof(m), m), ESRCH);
	CHECK_ERR(syscall(SYS_sched_getaffinity, 0, sizeof(m), (void *)1), EFAULT);
	CHECK_ERR(syscall(SYS_sched_setaffinity, 0, sizeof(m), (void *)1), EFAULT);
}

TEST(nice_values)
{
	int before = getpriority(PRIO_PROCESS, 0);
	CHECK_OK(setpriority(PRIO_PROCESS, 0, before + 2));
	CHECK_EQ(getpriority(PRIO_PROCESS, 0), before + 2);
	CHECK_EQ(syscall(SYS_getpriority, PRIO_PROCESS, 0), 20 - (before + 2));
	CHECK_OK(setpriority(PRIO_PROCESS, 0, 100));
	CHECK_EQ(getpriority(PRIO_PROCESS, 0), 19);
	CHECK_ERR(setpriority(9, 0, 0), EINVAL);
	CHECK_ERR(getpriority(-1, 0), EINVAL);
	CHECK_ERR(setpriority(PRIO_PROCESS, 0x7ffffff, 0), ESRCH);
	CHECK_ERR(getpriority(PRIO_PGRP, 0x7ffffff), ESRCH);
	errno = 0;
	CHECK(getpriority(PRIO_PGRP, 0) <= 19 && errno == 0);
	if (geteuid() == 0)
		CHECK_OK(setresuid(1000, 1000, 1000));
	CHECK_ERR(setpriority(PRIO_PROCESS, 0, 0), EACCES);
}

TEST(nice_is_inherited)
{
	CHECK_OK(setpriority(PRIO_PROCESS, 0, 7));
	pid_t pid = fork();
	if (pid == 0)
		_exit(getpriority(PRIO_PROCESS, 0));
	CHECK_CHILD(pid, 7);
}

TEST(io_priority)
{
	CHECK_OK(syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 6));
	CHECK_EQ(syscall(SYS_ioprio_get, 1, 0), 2 << 13 | 6);
	CHECK_ERR(syscall(SYS_ioprio_set, 1, 0, 5 << 13), EINVAL);
	CHECK_ERR(syscall(SYS_ioprio_set, 9, 0, 2 << 13), EINVAL);
	CHECK_ERR(syscall(SYS_ioprio_get, 9, 0), EINVAL);
	CHECK_ERR(syscall(SYS_ioprio_set, 1, 0x7ffffff, 2 << 13), ESRCH);
	CHECK_ERR(syscall(SYS_ioprio_get, 1, 0x7ffffff), ESRCH);
}

TEST(getcpu_is_allowed_by_the_mask)
{
	unsigned cpu = 9999, node = 9999;
	CHECK_OK(syscall(SYS_getcpu, &cpu, &node, NULL));
	CHECK(cpu < 1024);
	CHECK_OK(syscall(SYS_getcpu, NULL, NULL, NULL));
	CHECK_ERR(syscall(SYS_getcpu, (void *)1, NULL, NULL), EFAULT);
	CHECK_EQ(syscall(SYS_sched_yield), 0);
}

TEST(membarrier_commands)
{
	long all = syscall(SYS_membarrier, 0, 0, 0);
	CHECK(all > 0);
	CHECK_ERR(syscall(SYS_membarrier, 0, 1, 0), EINVAL);
	CHECK_ERR(syscall(SYS_membarrier, 1 << 20, 0, 0), EINVAL);
	CHECK_ERR(syscall(SYS_membarrier, 8, 0, 0), EPERM); /* PRIVATE_EXPEDITED before it was registered */
	CHECK_OK(syscall(SYS_membarrier, 16, 0, 0));
	CHECK_OK(syscall(SYS_membarrier, 8, 0, 0));
}

TEST(io_priority_none_reads_back)
{
	CHECK_OK(syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 6));
	CHECK_EQ(syscall(SYS_ioprio_get, 1, 0), 2 << 13 | 6);
	CHECK_OK(syscall(SYS_ioprio_set, 1, 0, 0));
	CHECK_EQ(syscall(SYS_ioprio_get, 1, 0), 0);
}

TEST(getcpu_keeps_to_the_mask)
{
	cpu_set_t all, one;
	unsigned cpu;
	CHECK_OK(sched_getaffinity(0, sizeof(all), &all));
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		CHECK_OK(sched_setaffinity(0, sizeof(one), &one));
		CHECK_OK(syscall(SYS_getcpu, &cpu, NULL, NULL));
		CHECK_EQ(cpu, i);
	}
}

T_MAIN
