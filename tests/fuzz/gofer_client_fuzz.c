/*
 * The sentry against a gofer that says anything: the input is a series of replies, each behind a
 * byte (1: with a descriptor) and a 16-bit length. They lie in the socket before the requests are
 * made. Whatever comes, the file system ends every call and frees what it made.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fs/gofer_client.h"
#include "fs/goferfs.h"
#include "platform/base/alloc.h"
#include "platform/base/log.h"
#include "platform/host/fdpass.h"

#define REPLIES_MAX 60

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* A broken gofer is the normal case here: its message is not wanted. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_ERROR);
	return 0;
}

static void queue_replies(int fd, const uint8_t *data, size_t size)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i < REPLIES_MAX && size > 3; i++) {
		size_t n = MIN((size_t)(data[1] | data[2] << 8), size - 3);
		if (n && host_send_msg(fd, data + 3, n, NULL, 0, data[0] & 1 ? null : -1) != 0)
			break;
		data += 3 + n;
		size -= 3 + n;
	}
	shutdown(fd, SHUT_WR);
	close(null);
}

static int count_entry(struct dir_sink *sink, const char *name, uint64_t ino, unsigned dtype,
		       int64_t off)
{
	(void)sink;
	(void)ino;
	(void)dtype;
	(void)off;
	BUG_ON(strlen(name) > NAME_LEN_MAX || strchr(name, '/'));
	return 0;
}

static void use_file(struct inode *ino)
{
	struct dir_sink sink = { count_entry };
	struct file *f;
	int64_t pos = 0;

	if (!ino->ops->open || ino->ops->open(ino, O_RDWR, NULL, &f) != 0)
		return;
	for (int i = 0; i < 8 && f->ops->readdir; i++)
		if (f->ops->readdir(f, &sink, &pos) != 0)
			break;
	file_put(f);
}

static void use_inode(struct inode *ino)
{
	struct fs_stat st;
	struct iattr a = { .valid = ATTR_MODE, .mode = 0600 };
	char buf[512];

	if (ino->ops->getattr(ino, &st) == 0)
		BUG_ON((st.mode & S_IFMT) != ino->type || st.atime.tv_nsec > 999999999);
	if (ino->ops->readlink) {
		int n = ino->ops->readlink(ino, buf, sizeof(buf));
		BUG_ON(n >= (int)sizeof(buf) || (n >= 0 && buf[n] != 0));
	}
	ssize_t n = ino->ops->getxattr(ino, "user.x", buf, sizeof(buf));
	BUG_ON(n > (ssize_t)sizeof(buf));
	n = ino->ops->listxattr(ino, buf, sizeof(buf));
	BUG_ON(n > (ssize_t)sizeof(buf));
	mutex_lock(&ino->mu);
	(void)!ino->ops->setattr(ino, &a);
	mutex_unlock(&ino->mu);
	use_file(ino);
}

static void use_tree(struct superblock *sb)
{
	struct inode *root = sb->root->inode, *child, *made;
	struct cred *c = cred_new(0, 0, NULL, 0);
	struct fs_statfs sf;

	BUG_ON(!c);
	use_inode(root);
	(void)!sb->ops->statfs(sb, &sf);
	for (int i = 0; i < 4 && root->ops->lookup; i++) {
		if (root->ops->lookup(root, "name", &child) != 0)
			continue;
		use_inode(child);
		inode_put(child);
		if (root->ops->create(root, "new", 0644, c, &made) == 0) {
			use_inode(made);
			inode_put(made);
		}
	}
	cred_put(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gofer_client *c;
	struct superblock *sb;
	int pair[2];
	size_t live = mem_live_count();

	BUG_ON(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0);
	/* Whatever is not read must not block us. */
	struct timeval tv = { .tv_usec = 1000 };
	setsockopt(pair[1], SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	queue_replies(pair[1], data, size);
	BUG_ON(gofer_client_new(pair[0], &c) != 0);
	if (goferfs_new(c, 0, true, &sb) == 0) {
		use_tree(sb);
		superblock_put(sb);
	}
	gofer_client_put(c);
	close(pair[1]);
	BUG_ON(mem_live_count() != live);
	return 0;
}
