/* Every limit on growth that a guest can drive, with its reason. */
#pragma once

#define PID_MAX_DEFAULT 32768  /* as Linux; ids wrap and skip used ones */
#define TASKS_MAX_DEFAULT 4096 /* guest threads unless --pids says otherwise: ends fork bombs */
#define VMA_MAX 65530          /* as vm.max_map_count, so that programs see the same limit */
#define ARG_MAX_TOTAL                                                                              \
	(2u << 20) /* argv+envp of one exec: Linux allows stack limit / 4 = 2 MiB by default */
#define ARG_STR_MAX (128u << 10)  /* one string (MAX_ARG_STRLEN) */
#define SIGQUEUE_MAX 4096         /* queued real-time signals unless RLIMIT_SIGPENDING is lower */
#define RW_COUNT_MAX 0x7ffff000ul /* bytes one read/write moves (MAX_RW_COUNT) */
#define IOV_MAX_SEGS 1024         /* UIO_MAXIOV */
