/* Host and domain name of the sandbox: see uts.h. */
#include "sentry/uts.h"

#include <string.h>

#include "platform/base/lock.h"

static struct mutex uts_mu = MUTEX_INIT(RANK_HASH);
static char hostname[65] = "pinfold";  /* [uts_mu] */
static char domainname[65] = "(none)"; /* [uts_mu] */

static void set_name(char dst[65], const char *name, size_t len)
{
	mutex_lock(&uts_mu);
	memset(dst, 0, 65);
	memcpy(dst, name, MIN(len, (size_t)64));
	mutex_unlock(&uts_mu);
}

static void get_name(char out[65], const char src[65])
{
	mutex_lock(&uts_mu);
	memcpy(out, src, 65);
	mutex_unlock(&uts_mu);
}

void uts_init(const char *name)
{
	if (name)
		set_name(hostname, name, strlen(name));
}

void uts_get_hostname(char out[65])
{
	get_name(out, hostname);
}

void uts_get_domainname(char out[65])
{
	get_name(out, domainname);
}

void uts_set_hostname(const char *name, size_t len)
{
	set_name(hostname, name, len);
}

void uts_set_domainname(const char *name, size_t len)
{
	set_name(domainname, name, len);
}
