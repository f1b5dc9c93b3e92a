/*
 * Slots: the memory that the sentry shares with stub threads (platform/stub/layout.h). One memfd;
 * slot i has the same index in the memfd and in every stub.
 *
 * A slot belongs to the address space in which it was first mapped until that process has been
 * reaped, so no stub ever holds a mapping of a slot that is another's. Inside one address space a
 * slot is used again for a later thread, once the kernel has cleared the earlier thread's tid word.
 */
#include <errno.h>
#include <linux/limits.h>
#include <string.h>
#include <sys/mman.h>

#include "platform/host/host.h"
#include "platform/seccomp/internal.h"

static struct mutex mu = MUTEX_INIT(RANK_HASH);
static uint32_t owned_next[STUB_SLOT_COUNT]; /* [mu for the free list, else the list's own lock] */
static uint32_t idle_next[STUB_SLOT_COUNT];  /* the list's own lock */
static uint32_t free_list;                   /* [mu] */
static uint32_t fresh;                       /* [mu] slots from here on were never used */

int slots_init(void)
{
	size_t size = STUB_SLOT_COUNT * STUB_SLOT_SIZE;

	free_list = SLOT_NONE;
	fresh = 0;
	sec.slots_fd = host_memfd("pinfold-slots");
	if (sec.slots_fd < 0)
		return sec.slots_fd;
	int err = host_ftruncate(sec.slots_fd, size);
	if (err)
		return err;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, sec.slots_fd,
		       0);
	if (p == MAP_FAILED)
		return -errno;
	madvise(p, size, MADV_DONTFORK);
	sec.slots = p;
	return 0;
}

uint32_t slot_alloc(void)
{
	mutex_lock(&mu);
	uint32_t slot = free_list;
	if (slot != SLOT_NONE)
		free_list = owned_next[slot];
	else if (fresh < STUB_SLOT_COUNT)
		slot = fresh++;
	mutex_unlock(&mu);
	return slot;
}

void slot_push(uint32_t *list, uint32_t slot)
{
	owned_next[slot] = *list;
	*list = slot;
}

void slots_release(uint32_t *list)
{
	uint32_t slot = *list;

	*list = SLOT_NONE;
	while (slot != SLOT_NONE) {
		uint32_t next = owned_next[slot];
		/* Gives the pages back and zeroes them for the next owner, who must not read this
		 * one's. */
		if (madvise(slot_shared(slot), STUB_SLOT_SIZE, MADV_REMOVE) < 0)
			memset(slot_shared(slot), 0, STUB_SLOT_SIZE);
		mutex_lock(&mu);
		owned_next[slot] = free_list;
		free_list = slot;
		mutex_unlock(&mu);
		slot = next;
	}
}

void slot_idle_push(uint32_t *list, uint32_t slot)
{
	idle_next[slot] = *list;
	*list = slot;
}

uint32_t slot_idle_take(uint32_t *list)
{
	for (uint32_t *at = list; *at != SLOT_NONE; at = &idle_next[*at]) {
		uint32_t slot = *at;
		if (__atomic_load_n(&slot_shared(slot)->tid, __ATOMIC_ACQUIRE) == 0) {
			*at = idle_next[slot];
			return slot;
		}
	}
	return SLOT_NONE;
}
