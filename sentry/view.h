/* Builds the guest's tree of mounts from the views of the spec. */
#pragma once

#include "fs/namei.h"
#include "sentry/boot.h"

struct gofer_client;

/*
 * Mounts all views, then proc, sys, dev, dev/pts and dev/shm. View i that shows a host
 * tree is export number "how many such views came before". Gives the root path. 0 or -errno after a
 * line that names the view.
 */
int view_build(const struct sandbox_spec *spec, struct gofer_client *gofer, const struct cred *cred,
	       struct path *out_root) MUST_CHECK;
