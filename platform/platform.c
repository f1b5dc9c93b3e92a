/* The list of platforms: see platforms.def. */
#include "platform/platform.h"

#include <string.h>

#define PLATFORM(name, ops) extern const struct platform_ops ops;
#include "platform/platforms.def"
#undef PLATFORM

static const struct platform_ops *const all[] = {
#define PLATFORM(name, ops) &ops,
#include "platform/platforms.def"
#undef PLATFORM
};

const struct platform_ops *platform_at(size_t i)
{
	return i < ARRAY_SIZE(all) ? all[i] : NULL;
}

const struct platform_ops *platform_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}
