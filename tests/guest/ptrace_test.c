/* ptrace(2). */
#include <elf.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "tests/guest/t.h"

#define EVENT_STOP 128

static long shared_word = 41;

static pid_t traced_child(void (*body)(void))
{
	pid_t pid = fork();
	int st;
	CHECK_OK(pid);
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		body();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &st, 0), pid);
	CHECK(WIFSTOPPED(st) && WSTOPSIG(st) == SIGSTOP);
	return pid;
}

static pid_t pausing(void)
{
	pid_t pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static void stop_at(pid_t pid, int want)
{
	int st = 0;
	CHECK_EQ(waitpid(pid, &st, __WALL), pid);
	if (!WIFSTOPPED(st) || st >> 8 != want)
		FAIL("stopped with %#x, want %#x", st, want);
}

static void nothing(void)
{
}

static void exit_with_word(void)
{
	_exit((int)shared_word);
}

static void make_calls(void)
{
	syscall(SYS_getppid);
	syscall(SYS_kill, -1, 99);
}

TEST(errors)
{
	pid_t pid = pausing();
	CHECK_ERR(ptrace(PTRACE_CONT, pid, 0, 0), ESRCH);
	CHECK_ERR(ptrace(PTRACE_ATTACH, 0x7ffffff, 0, 0), ESRCH);
	CHECK_ERR(ptrace(PTRACE_ATTACH, getpid(), 0, 0), EPERM);
	CHECK_ERR(ptrace(PTRACE_SEIZE, pid, 0, 1ul << 30), EIO);
	CHECK_OK(ptrace(PTRACE_SEIZE, pid, 0, 0));
	CHECK_ERR(ptrace(PTRACE_SEIZE, pid, 0, 0), EPERM);
	CHECK_ERR(ptrace(PTRACE_GETREGS, pid, 0, 0), ESRCH); /* it runs */
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
}

TEST(memory_is_read_and_written)
{
	pid_t pid = traced_child(exit_with_word);
	errno = 0;
	CHECK_EQ(ptrace(PTRACE_PEEKDATA, pid, &shared_word, 0), 41);
	CHECK_OK(ptrace(PTRACE_POKEDATA, pid, &shared_word, 77));
	CHECK_ERR(ptrace(PTRACE_PEEKDATA, pid, 8, 0), EIO);
	CHECK_ERR(ptrace(PTRACE_POKEDATA, pid, 8, 0), EIO);
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	CHECK_CHILD(pid, 77);
}

TEST(text_can_be_patched)
{
	pid_t pid = traced_child(exit_with_word);
	/* the function becomes a breakpoint, although its page is not writable */
	long word = ptrace(PTRACE_PEEKTEXT, pid, exit_with_word, 0);
	CHECK_OK(ptrace(PTRACE_POKETEXT, pid, exit_with_word, (word & ~0xffl) | 0xcc));
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	stop_at(pid, SIGTRAP);
	struct user_regs_struct r;
	CHECK_OK(ptrace(PTRACE_GETREGS, pid, 0, &r));
	CHECK_EQ(r.rip, (long)exit_with_word + 1);
	CHECK_OK(ptrace(PTRACE_POKETEXT, pid, exit_with_word, word));
	r.rip--;
	CHECK_OK(ptrace(PTRACE_SETREGS, pid, 0, &r));
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	CHECK_CHILD(pid, 41);
	CHECK_EQ(shared_word, 41);
}

TEST(system_calls_stop_twice)
{
	pid_t pid = traced_child(make_calls);
	struct user_regs_struct r;
	CHECK_OK(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD));
	for (;;) {
		CHECK_OK(ptrace(PTRACE_SYSCALL, pid, 0, 0));
		stop_at(pid, SIGTRAP | 0x80);
		CHECK_OK(ptrace(PTRACE_GETREGS, pid, 0, &r));
		if (r.orig_rax == SYS_getppid)
			break;
	}
	CHECK_EQ((long)r.rax, -ENOSYS);
	struct __ptrace_syscall_info si;
	CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(si), &si) > 0);
	CHECK_EQ(si.op, PTRACE_SYSCALL_INFO_ENTRY);
	CHECK_EQ(si.entry.nr, SYS_getppid);
	CHECK_OK(ptrace(PTRACE_SYSCALL, pid, 0, 0));
	stop_at(pid, SIGTRAP | 0x80);
	CHECK_EQ(ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, regs.rax), 0), getpid());
	CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(si), &si) > 0);
	CHECK_EQ(si.op, PTRACE_SYSCALL_INFO_EXIT);
	CHECK_EQ(si.exit.rval, getpid());
	/* the next call is replaced by nothing, its answer made up */
	CHECK_OK(ptrace(PTRACE_SYSCALL, pid, 0, 0));
	stop_at(pid, SIGTRAP | 0x80);
	CHECK_OK(ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.orig_rax), -1));
	CHECK_OK(ptrace(PTRACE_SYSCALL, pid, 0, 0));
	stop_at(pid, SIGTRAP | 0x80);
	CHECK_OK(ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.rax), 0));
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	CHECK_CHILD(pid, 0);
}

static void raise_usr1(void)
{
	raise(SIGUSR1);
	_exit(12);
}

TEST(signals_are_shown_changed_and_dropped)
{
	siginfo_t si;
	pid_t pid = traced_child(raise_usr1);
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	stop_at(pid, SIGUSR1);
	CHECK_OK(ptrace(PTRACE_GETSIGINFO, pid, 0, &si));
	CHECK_EQ(si.si_signo, SIGUSR1);
	CHECK_EQ(si.si_code, SI_TKILL);
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	CHECK_CHILD(pid, 12);
	pid = traced_child(raise_usr1);
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	stop_at(pid, SIGUSR1);
	CHECK_ERR(ptrace(PTRACE_CONT, pid, 0, 99), EIO);
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, SIGTERM));
	CHECK_KILLED(pid, SIGTERM);
}

static void count_up(void)
{
	for (volatile int i = 0; i < 1000; i++)
		;
}

TEST(single_steps)
{
	pid_t pid = traced_child(count_up);
	unsigned long last = 0;
	for (int i = 0; i < 50; i++) {
		CHECK_OK(ptrace(PTRACE_SINGLESTEP, pid, 0, 0));
		stop_at(pid, SIGTRAP);
		unsigned long ip = (unsigned long)ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, regs.rip), 0);
		CHECK(ip != last);
		CHECK_EQ(ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, regs.eflags), 0) & 0x100, 0);
		last = ip;
	}
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	CHECK_CHILD(pid, 0);
}

TEST(register_sets)
{
	struct user_regs_struct r;
	struct user_fpregs_struct fp;
	char xsave[16384];
	struct iovec iov = { &r, sizeof(r) }, xiov = { xsave, sizeof(xsave) };
	pid_t pid = traced_child(nothing);
	CHECK_OK(ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &iov));
	CHECK_EQ(iov.iov_len, sizeof(r));
	CHECK_EQ(r.cs, 0x33);
	CHECK_EQ(r.ss, 0x2b);
	CHECK_OK(ptrace(PTRACE_GETFPREGS, pid, 0, &fp));
	CHECK_EQ(fp.mxcsr, 0x1f80);
	fp.xmm_space[0] = 0x1234567;
	CHECK_OK(ptrace(PTRACE_SETFPREGS, pid, 0, &fp));
	memset(&fp, 0, sizeof(fp));
	CHECK_OK(ptrace(PTRACE_GETFPREGS, pid, 0, &fp));
	CHECK_EQ(fp.xmm_space[0], 0x1234567);
	CHECK_OK(ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &xiov));
	CHECK(xiov.iov_len >= 576 && xiov.iov_len < sizeof(xsave));
	CHECK_ERR(ptrace(PTRACE_GETREGSET, pid, 0x7777, &iov), EINVAL);
	CHECK_ERR(ptrace(PTRACE_PEEKUSER, pid, 3, 0), EIO);
	CHECK_ERR(ptrace(PTRACE_PEEKUSER, pid, 100000, 0), EIO);
	CHECK_ERR(ptrace(99, pid, 0, 0), EIO);
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	CHECK_CHILD(pid, 0);
}

static void fork_and_exit(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(3);
	int st;
	waitpid(pid, &st, 0);
	_exit(WEXITSTATUS(st) + 1);
}

TEST(forks_are_followed)
{
	unsigned long msg = 0;
	pid_t pid = traced_child(fork_and_exit);
	CHECK_OK(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEFORK | PTRACE_O_TRACEEXIT));
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	stop_at(pid, SIGTRAP | PTRACE_EVENT_FORK << 8);
	CHECK_OK(ptrace(PTRACE_GETEVENTMSG, pid, 0, &msg));
	pid_t kid = (pid_t)msg;
	stop_at(kid, SIGSTOP);
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	CHECK_OK(ptrace(PTRACE_CONT, kid, 0, 0));
	stop_at(kid, SIGTRAP | PTRACE_EVENT_EXIT << 8);
	CHECK_OK(ptrace(PTRACE_GETEVENTMSG, kid, 0, &msg));
	CHECK_EQ(msg, 3 << 8);
	CHECK_OK(ptrace(PTRACE_CONT, kid, 0, 0));
	CHECK_CHILD(kid, 3);
	int st;
	CHECK_EQ(waitpid(pid, &st, __WALL), pid);
	if (WIFSTOPPED(st) && WSTOPSIG(st) == SIGCHLD) {
		CHECK_OK(ptrace(PTRACE_CONT, pid, 0, SIGCHLD));
		CHECK_EQ(waitpid(pid, &st, __WALL), pid);
	}
	CHECK_EQ(st >> 8, SIGTRAP | PTRACE_EVENT_EXIT << 8);
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	CHECK_CHILD(pid, 4);
}

static void exec_true(void)
{
	execl("/bin/true", "true", (char *)NULL);
	_exit(127);
}

TEST(exec_stops)
{
	pid_t pid = traced_child(exec_true);
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	stop_at(pid, SIGTRAP);
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	CHECK_CHILD(pid, 0);
	pid = traced_child(exec_true);
	CHECK_OK(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACEEXEC));
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	stop_at(pid, SIGTRAP | PTRACE_EVENT_EXEC << 8);
	CHECK_OK(ptrace(PTRACE_DETACH, pid, 0, 0));
	CHECK_CHILD(pid, 0);
}

TEST(attach_and_detach)
{
	struct user_regs_struct r;
	pid_t pid = pausing();
	usleep(20000);
	CHECK_OK(ptrace(PTRACE_ATTACH, pid, 0, 0));
	stop_at(pid, SIGSTOP);
	CHECK_OK(ptrace(PTRACE_GETREGS, pid, 0, &r));
	CHECK_EQ(r.orig_rax, SYS_pause);
	CHECK_OK(ptrace(PTRACE_DETACH, pid, 0, 0));
	usleep(20000);
	int st;
	CHECK_EQ(waitpid(pid, &st, WNOHANG | WUNTRACED), 0); /* it runs on */
	kill(pid, SIGTERM);
	CHECK_KILLED(pid, SIGTERM);
}

TEST(seize_and_interrupt)
{
	pid_t pid = pausing();
	CHECK_OK(ptrace(PTRACE_SEIZE, pid, 0, 0));
	CHECK_OK(ptrace(PTRACE_INTERRUPT, pid, 0, 0));
	stop_at(pid, SIGTRAP | EVENT_STOP << 8);
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	/* a group stop is an event of its own; listening, it is seen to continue */
	kill(pid, SIGSTOP);
	stop_at(pid, SIGSTOP);
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, SIGSTOP));
	stop_at(pid, SIGSTOP | EVENT_STOP << 8);
	CHECK_OK(ptrace(PTRACE_LISTEN, pid, 0, 0));
	kill(pid, SIGCONT);
	stop_at(pid, SIGTRAP | EVENT_STOP << 8);
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	stop_at(pid, SIGCONT);
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
}

TEST(sigkill_ends_a_traced_stop)
{
	pid_t pid = traced_child(nothing);
	kill(pid, SIGKILL);
	CHECK_KILLED(pid, SIGKILL);
}

TEST(the_end_of_the_tracer_lets_go)
{
	int p[2];
	char c = 0;
	pipe(p);
	pid_t pid = fork();
	if (pid == 0) {
		pid_t kid = traced_child(nothing);
		(void)kid;
		_exit(0);
	}
	CHECK_CHILD(pid, 0);
	close(p[1]);
	CHECK_EQ(read(p[0], &c, 1), 0); /* the tracee ran on and ended */
}

static void *thread_body(void *arg)
{
	return arg;
}

static void make_thread(void)
{
	pthread_t th;
	pthread_create(&th, NULL, thread_body, NULL);
	pthread_join(th, NULL);
	_exit(8);
}

TEST(threads_are_followed_and_waited_for)
{
	unsigned long msg = 0;
	int st;
	pid_t pid = traced_child(make_thread);
	CHECK_OK(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACECLONE));
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	stop_at(pid, SIGTRAP | PTRACE_EVENT_CLONE << 8);
	CHECK_OK(ptrace(PTRACE_GETEVENTMSG, pid, 0, &msg));
	pid_t tid = (pid_t)msg;
	stop_at(tid, SIGSTOP);
	CHECK_OK(ptrace(PTRACE_CONT, tid, 0, 0));
	CHECK_OK(ptrace(PTRACE_CONT, pid, 0, 0));
	CHECK_EQ(waitpid(tid, &st, __WALL), tid);
	/* The join may be followed by the end of the process before the thread is collected: then it has its status. */
	CHECK(WIFEXITED(st) && (WEXITSTATUS(st) == 0 || WEXITSTATUS(st) == 8));
	CHECK_CHILD(pid, 8);
}
T_MAIN
