/* The platform of this sandbox; set once at boot. */
#pragma once

#include "platform/platform.h"

extern const struct platform_ops *plat;
