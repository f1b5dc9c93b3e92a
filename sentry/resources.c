/* What the sandbox may use and does use: see resources.h. */
#include "sentry/resources.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "fs/memfile.h"
#include "platform/base/waitq.h"

static uint64_t limit;        /* [I] bytes, 0: none */
static uint64_t boot_ns;      /* [I] */
static uint64_t cpu_mask[16]; /* [I] */
static unsigned cpu_count;    /* [I] */

int resources_init(uint64_t memory_limit)
{
	limit = memory_limit;
	memfile_set_limit(memory_limit / PAGE_SIZE);
	boot_ns = mono_now_ns();
	long n = sched_getaffinity(0, sizeof(cpu_mask), (cpu_set_t *)cpu_mask);
	if (n < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(cpu_mask); i++)
		cpu_count += (unsigned)__builtin_popcountll(cpu_mask[i]);
	return 0;
}

unsigned resources_cpu_count(void)
{
	return cpu_count;
}

void resources_cpu_mask(uint64_t out[16])
{
	memcpy(out, cpu_mask, sizeof(cpu_mask));
}

void resources_get(struct resource_usage *out)
{
	struct sysinfo si = { 0 };

	sysinfo(&si);
	out->mem_total = (uint64_t)si.totalram * si.mem_unit;
	out->mem_free = (uint64_t)si.freeram * si.mem_unit;
	if (limit && limit < out->mem_total) {
		out->mem_free = MIN(out->mem_free, limit);
		out->mem_total = limit;
	}
	out->uptime_ns = mono_now_ns() - boot_ns;
	out->cpu_count = cpu_count;
}
