/* The stub's seccomp filter, generated from stub_calls.def. */
#pragma once

#include <linux/filter.h>

#include "platform/base/types.h"

#define FILTER_MAX 1024

struct filter {
	struct sock_filter code[FILTER_MAX];
	size_t len;
};

void filter_build(struct filter *f);
