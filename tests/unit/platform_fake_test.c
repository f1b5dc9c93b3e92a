/* The fake platform itself: memory, script and record. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "platform/base/alloc.h"
#include "platform/fake.h"

static const struct platform_ops *const ops = &fake_platform;

static int map(struct plat_ctx *ctx, uint64_t addr, uint64_t size, int prot)
{
	struct plat_map m = { .addr = addr, .size = size, .prot = prot, .flags = PLAT_MAP_ANON };

	return ops->map(ctx, &m);
}

static void test_memory(void **state)
{
	struct plat_as *as, *child;
	struct plat_ctx *ctx, *child_ctx;
	char buf[8] = "";
	size_t live = mem_live_count();

	(void)state;
	fake_reset();
	assert_int_equal(ops->as_new(&as, &ctx), 0);
	assert_int_equal(map(ctx, 0x10000, 0x4000, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(ops->copy_out(as, 0x10ffc, "abcdefg", 8), 8);
	assert_int_equal(ops->unmap(ctx, 0x11000, 0x1000), 0);
	assert_int_equal(ops->copy_in(as, buf, 0x10ffc, 8), 4);
	assert_memory_equal(buf, "abcd", 4);
	assert_int_equal(ops->copy_in(as, buf, 0x11000, 1), -EFAULT);
	assert_int_equal(ops->remap(ctx, 0x10000, 0x1000, 0x20000, 0x2000, false), 0);
	assert_int_equal(ops->copy_in(as, buf, 0x20ffc, 8), 8);
	assert_memory_equal(buf, "abcd\0\0\0", 8);
	assert_int_equal(ops->as_fork(ctx, &child, &child_ctx), 0);
	assert_int_equal(ops->copy_out(child, 0x20ffc, "X", 1), 1);
	assert_int_equal(ops->copy_in(as, buf, 0x20ffc, 1), 1);
	assert_int_equal(buf[0], 'a');
	fake_fail_nth(2, -ENOMEM);
	assert_int_equal(ops->unmap(ctx, 0x20000, 0x1000), 0);
	assert_int_equal(map(ctx, 0x30000, 0x1000, PROT_READ), -ENOMEM);
	assert_non_null(strstr(fake_record(), "map 0x30000 0x1000 1\n"));
	ops->ctx_free(child_ctx);
	ops->as_free(child);
	ops->ctx_free(ctx);
	ops->as_free(as);
	assert_int_equal(mem_live_count(), live);
}

static void test_script(void **state)
{
	struct plat_as *as;
	struct plat_ctx *ctx;
	struct regs regs = { .rip = 0x1000, .rax = 5 };
	struct plat_event ev;

	(void)state;
	fake_reset();
	assert_int_equal(ops->as_new(&as, &ctx), 0);
	fake_push_syscall(39, 1, 2, 3, 4, 5, 6);
	fake_push(&(struct plat_event){ .kind = PLAT_FAULT, .signo = 11 }, NULL, NULL);
	ops->interrupt(ctx);
	ops->run(ctx, &regs, &ev);
	assert_int_equal(ev.kind, PLAT_INTERRUPT);
	ops->run(ctx, &regs, &ev);
	assert_int_equal(ev.kind, PLAT_SYSCALL);
	assert_int_equal(regs.orig_rax, 39);
	assert_int_equal(regs.r9, 6);
	assert_int_equal(regs.rip, 0x1002);
	assert_int_equal(fake_last_regs()->rax, 5);
	ops->run(ctx, &regs, &ev);
	assert_int_equal(ev.signo, 11);
	ops->run(ctx, &regs, &ev);
	assert_int_equal(ev.kind, PLAT_DEAD);
	ops->ctx_free(ctx);
	ops->as_free(as);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_script),
	};

	return cmocka_run_group_tests_name("platform: fake", tests, NULL, NULL);
}
