/*
 * What the sandbox may use and does use: memory, CPUs, time since its start. One source for
 * sysinfo(2), /proc/meminfo, sched_getaffinity and the memory limit.
 */
#pragma once

#include "platform/base/types.h"

struct resource_usage {
	uint64_t mem_total; /* bytes: the limit, else the host's memory */
	uint64_t mem_free;  /* bytes: total minus what the guests and tmpfs hold */
	uint64_t uptime_ns; /* since boot of the sandbox */
	unsigned cpu_count;
};

/* Captures the host's figures; before the seccomp filter. memory_limit in bytes, 0 for none. */
int resources_init(uint64_t memory_limit) MUST_CHECK;
void resources_get(struct resource_usage *out);
unsigned resources_cpu_count(void);
/* The host CPUs that this process may run on: bit set of 1024 bits. */
void resources_cpu_mask(uint64_t out[16]);
