/*
 * Start-to-end times of several commands, interleaved so that a slow moment of the machine hits all alike.
 * Usage: spawn ROUNDS COMMAND... @@ COMMAND... Prints "index nanoseconds status" per run; output of the
 * commands goes to /dev/null.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COMMANDS_MAX 16

static long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static void run_once(int index, char **argv, posix_spawn_file_actions_t *fa)
{
	pid_t pid;
	int status;
	long long start = now();

	if (posix_spawnp(&pid, argv[0], fa, NULL, argv, environ) != 0) {
		printf("%d 0 127\n", index);
		return;
	}
	waitpid(pid, &status, 0);
	printf("%d %lld %d\n", index, now() - start,
	       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int main(int argc, char **argv)
{
	char **command[COMMANDS_MAX];
	int count = 0;
	posix_spawn_file_actions_t fa;

	if (argc < 3)
		return 2;
	command[count++] = argv + 2;
	for (int i = 2; i < argc; i++)
		if (strcmp(argv[i], "@@") == 0 && count < COMMANDS_MAX) {
			argv[i] = NULL;
			command[count++] = argv + i + 1;
		}
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&fa, 2, "/dev/null", O_WRONLY, 0);
	for (int round = 0; round < atoi(argv[1]); round++)
		for (int i = 0; i < count; i++)
			run_once(i, command[i], &fa);
	return 0;
}
