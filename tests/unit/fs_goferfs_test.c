/* goferfs against the real gofer process over a temporary tree. Works as any user. */
#include <errno.h>
#include <linux/fs.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fs/dcache.h"
#include "fs/gofer_client.h"
#include "fs/goferfs.h"
#include "gofer/gofer.h"
#include "platform/base/alloc.h"
#include "platform/host/host.h"
#include "tests/unit/fs_rig.h"

static struct fs_rig r;
static struct gofer_client *client;
static pid_t gofer_pid;
static char top[150];

static void host_put(const char *name, const char *text)
{
	char path[400];
	snprintf(path, sizeof(path), "%s/%s", top, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static const char *host_text(const char *name)
{
	static char buf[200];
	char path[400];
	snprintf(path, sizeof(path), "%s/%s", top, name);
	FILE *f = fopen(path, "r");
	if (!f)
		return "none";
	buf[fread(buf, 1, sizeof(buf) - 1, f)] = 0;
	fclose(f);
	return buf;
}

static void host_sh(const char *cmd)
{
	char line[600];
	snprintf(line, sizeof(line), "cd %s && { %s; }", top, cmd);
	assert_int_equal(system(line), 0);
}

static void make_tree(void)
{
	rig_temp_dir(top, sizeof(top));
	host_sh("mkdir -p d/e secret deep/er; echo no >secret/key; echo no >hidden; mkfifo fifo");
	host_put("f", "hello");
	host_put("d/g", "inner");
	host_sh("ln -s d/g link; ln -s /etc/passwd out; ln -s .. d/up; ln f d/f2; ln hidden "
		"d/alias");
}

static void start(const char *sub, bool writable, bool shared)
{
	char root[400], hidden[4][400];
	snprintf(root, sizeof(root), "%s%s", top, sub);
	snprintf(hidden[0], sizeof(hidden[0]), "%s/secret", top);
	snprintf(hidden[1], sizeof(hidden[1]), "%s/hidden", top);
	snprintf(hidden[2], sizeof(hidden[2]), "%s/d/later", top);
	snprintf(hidden[3], sizeof(hidden[3]), "%s/nodir/yet/key", top);
	const char *list[] = { hidden[0], hidden[1], hidden[2], hidden[3] };
	struct gofer_export e = { root, writable };
	struct gofer_config cfg = {
		.exports = &e, .export_count = 1, .hidden = list, .hidden_count = 4
	};
	struct superblock *sb;
	int fd;
	fs_rig_begin(&r);
	assert_int_equal(gofer_start(&cfg, &fd, &gofer_pid), 0);
	assert_int_equal(gofer_client_new(fd, &client), 0);
	assert_int_equal(goferfs_new(client, 0, shared, &sb), 0);
	fs_rig_mount(&r, sb, geteuid());
}

static void stop(void)
{
	int status;
	fs_rig_unmount(&r);
	gofer_client_put(client);
	assert_int_equal(waitpid(gofer_pid, &status, 0), gofer_pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	fs_rig_end(&r);
}

static int setup_ro(void **state)
{
	(void)state;
	make_tree();
	start("", false, true);
	return 0;
}

static int setup_rw(void **state)
{
	(void)state;
	make_tree();
	start("", true, true);
	return 0;
}

static int teardown(void **state)
{
	char line[400];
	(void)state;
	stop();
	snprintf(line, sizeof(line), "chmod -R u+rwx %s; rm -rf %s", top, top);
	return system(line);
}

static struct fs_stat st_of(const char *name)
{
	struct fs_stat st;
	assert_int_equal(rig_stat(&r, name, &st), 0);
	return st;
}

static void reading(void **state)
{
	(void)state;
	struct stat host;
	char path[400];
	assert_string_equal(rig_text(&r, "/f"), "hello");
	assert_string_equal(rig_text(&r, "/link"), "inner");
	assert_string_equal(rig_text(&r, "/d/up/f"), "hello");
	assert_string_equal(rig_text(&r, "/../../f"), "hello");
	/* An absolute link is the guest's own affair: there is no /etc in this tree. */
	assert_string_equal(rig_text(&r, "/out"), "error -2");
	assert_string_equal(rig_names(&r, "/"), "d deep f fifo link out");
	assert_string_equal(rig_names(&r, "/d"), "e f2 g up");
	snprintf(path, sizeof(path), "%s/f", top);
	assert_int_equal(stat(path, &host), 0);
	struct fs_stat st = st_of("/f");
	assert_int_equal(st.ino, host.st_ino);
	assert_int_equal(st.size, 5);
	assert_int_equal(st.nlink, 2);
	assert_int_equal(st.uid, geteuid());
	assert_int_equal(st.mtime.tv_nsec, host.st_mtim.tv_nsec);
	assert_int_equal(st_of("/d/f2").ino, host.st_ino);
	assert_true(S_ISFIFO(st_of("/fifo").mode));
}

static void refusals(void **state)
{
	(void)state;
	struct file *f;
	assert_int_equal(rig_put(&r, "/f", "x"), -EROFS);
	assert_int_equal(rig_put(&r, "/new", "x"), -EROFS);
	assert_int_equal(vfs_mkdir(&r.at, "/n", 0755), -EROFS);
	assert_int_equal(vfs_unlink(&r.at, "/f"), -EROFS);
	assert_int_equal(rig_chmod(&r, "/f", 0600), -EROFS);
	/* The second time in the gofer, past the VFS. */
	struct inode *root = r.mnt->sb->root->inode, *made;
	mutex_lock(&root->mu);
	assert_int_equal(root->ops->create(root, "new", 0644, r.cred, &made), -EROFS);
	assert_int_equal(root->ops->mkdir(root, "new", 0755, r.cred, &made), -EROFS);
	struct inode *file;
	assert_int_equal(root->ops->lookup(root, "f", &file), 0);
	assert_int_equal(root->ops->unlink(root, "f", file), -EROFS);
	mutex_unlock(&root->mu);
	assert_int_equal(file->ops->open(file, O_RDWR, r.cred, &f), -EROFS);
	struct iattr a = { .valid = ATTR_MODE, .mode = 0777 };
	mutex_lock(&file->mu);
	assert_int_equal(file->ops->setattr(file, &a), -EROFS);
	mutex_unlock(&file->mu);
	inode_put(file);
	/* Names that are none, straight at the gofer. */
	struct gofer_node root_node, node;
	unsigned n;
	int stopped;
	bool writable;
	assert_int_equal(gofer_attach(client, 0, &root_node, &writable), 0);
	assert_false(writable);
	static const char *const bad[] = { "..", ".", "", "d/g", "/f" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(gofer_walk(client, root_node.fid, &bad[i], 1, &node, &n, &stopped),
				 -EPROTO);
	const char *through[] = { "link", "x" };
	struct gofer_node two[2];
	assert_int_equal(gofer_walk(client, root_node.fid, through, 2, two, &n, &stopped), 0);
	assert_int_equal(n, 1);
	assert_int_equal(stopped, -ENOTDIR);
	assert_int_equal(gofer_attach(client, 1, &node, &writable), -ENOENT);
	assert_int_equal(gofer_getattr(client, root_node.fid + 100, &node.attr), -ESTALE);
	const char *fifo = "fifo";
	int fd;
	assert_int_equal(gofer_walk(client, root_node.fid, &fifo, 1, &node, &n, &stopped), 0);
	assert_int_equal(gofer_open(client, node.fid, O_RDONLY, &fd), -ENXIO);
	assert_int_equal(gofer_open(client, root_node.fid, O_RDONLY, &fd), -EISDIR);
}

static void hidden(void **state)
{
	(void)state;
	struct fs_stat st;
	assert_int_equal(rig_stat(&r, "/secret", &st), -ENOENT);
	assert_int_equal(rig_stat(&r, "/secret/key", &st), -ENOENT);
	assert_int_equal(rig_stat(&r, "/hidden", &st), -ENOENT);
	/* By identity: the hard link; by name: what appears later. */
	assert_int_equal(rig_stat(&r, "/d/alias", &st), -ENOENT);
	host_put("d/later", "no");
	host_sh("mv secret moved; mkdir -p nodir/yet; echo no >nodir/yet/key; mv d dd; echo no "
		">dd/later");
	dcache_purge(r.mnt->sb);
	assert_int_equal(rig_stat(&r, "/moved", &st), -ENOENT);
	assert_int_equal(rig_stat(&r, "/nodir/yet/key", &st), -ENOENT);
	assert_int_equal(rig_stat(&r, "/dd/later", &st), -ENOENT);
	assert_string_equal(rig_names(&r, "/nodir/yet"), "");
	assert_string_equal(rig_names(&r, "/dd"), "e f2 g up");
	assert_string_equal(rig_names(&r, "/"), "dd deep f fifo link nodir out");
	/* An editor's way: a new file under the old name, then a hard link of that. */
	host_sh("echo new >t; mv t hidden; ls >/dev/null");
	dcache_purge(r.mnt->sb);
	assert_int_equal(rig_stat(&r, "/hidden", &st), -ENOENT);
	host_sh("ln hidden again");
	assert_int_equal(rig_stat(&r, "/again", &st), -ENOENT);
	host_sh("mv nodir/yet nodir/moved");
	assert_int_equal(rig_stat(&r, "/nodir/moved/key", &st), -ENOENT);
}

/* Edits on the host show up after a second at most. */
static void shared_tree(void **state)
{
	(void)state;
	struct fs_stat st;
	assert_int_equal(st_of("/f").size, 5);
	assert_int_equal(rig_stat(&r, "/new", &st), -ENOENT);
	host_put("new", "1234");
	host_sh("echo 'much longer now' >f; mv d/g d/h");
	usleep(1100000);
	assert_int_equal(st_of("/f").size, 16);
	assert_int_equal(st_of("/new").size, 4);
	assert_int_equal(rig_stat(&r, "/d/g", &st), -ENOENT);
	assert_string_equal(rig_text(&r, "/d/h"), "inner");
}

static void writing(void **state)
{
	(void)state;
	struct file *f;
	assert_int_equal(rig_put(&r, "/f", "changed"), 0);
	assert_string_equal(host_text("f"), "changed");
	assert_int_equal(rig_append(&r, "/f", "+"), 0);
	assert_string_equal(host_text("f"), "changed+");
	assert_int_equal(rig_put(&r, "/new", "made"), 0);
	assert_string_equal(host_text("new"), "made");
	assert_int_equal(st_of("/new").size, 4);
	assert_int_equal(st_of("/new").mode, S_IFREG | 0644);
	assert_int_equal(rig_open(&r, "/two", O_CREAT | O_EXCL | O_RDONLY, 04755, &f), 0);
	assert_int_equal(rig_pwrite(f, "x", 1, 0), -EBADF);
	file_put(f);
	/* No set-user-ID programs on the host. */
	assert_int_equal(st_of("/two").mode, S_IFREG | 0755);
	assert_int_equal(rig_chmod(&r, "/two", 04700), 0);
	assert_int_equal(st_of("/two").mode, S_IFREG | 0700);
	assert_int_equal(rig_truncate(&r, "/new", 2), 0);
	assert_string_equal(host_text("new"), "ma");
	assert_int_equal(vfs_mkdir(&r.at, "/dir", 0700), 0);
	assert_int_equal(st_of("/dir").mode, S_IFDIR | 0700);
	assert_int_equal(vfs_symlink(&r.at, "f", "/dir/sl"), 0);
	assert_int_equal(vfs_rename(&r.at, "/new", &r.at, "/dir/moved", 0), 0);
	assert_string_equal(host_text("dir/moved"), "ma");
	assert_string_equal(rig_text(&r, "/dir/moved"), "ma");
	assert_int_equal(vfs_link(&r.at, "/dir/moved", &r.at, "/hard", 0), 0);
	assert_int_equal(st_of("/hard").nlink, 2);
	assert_int_equal(vfs_unlink(&r.at, "/hard"), 0);
	assert_int_equal(st_of("/dir/moved").nlink, 1);
	assert_int_equal(vfs_rmdir(&r.at, "/dir"), -ENOTEMPTY);
	assert_int_equal(vfs_rename(&r.at, "/dir", &r.at, "/d", RENAME_EXCHANGE), 0);
	assert_string_equal(rig_names(&r, "/d"), "moved sl");
	assert_int_equal(vfs_mknod(&r.at, "/pipe", S_IFIFO | 0600, 0), 0);
	assert_true(S_ISFIFO(st_of("/pipe").mode));
	assert_int_equal(vfs_mknod(&r.at, "/dev", S_IFCHR | 0600, 0x103), -EPERM);
	struct iattr old = { .valid = ATTR_ATIME | ATTR_MTIME_NOW, .atime = { 1000, 5 } };
	struct path p;
	assert_int_equal(path_lookup(&r.at, "/f", 0, &p), 0);
	assert_int_equal(vfs_setattr(p, r.cred, &old), 0);
	path_put(p);
	assert_int_equal(st_of("/f").atime.tv_sec, 1000);
	assert_true(st_of("/f").mtime.tv_sec > 1000000);
}

static void hidden_writing(void **state)
{
	(void)state;
	assert_int_equal(rig_put(&r, "/hidden", "x"), -EACCES);
	assert_int_equal(vfs_mkdir(&r.at, "/secret", 0755), -EACCES);
	assert_int_equal(vfs_rename(&r.at, "/f", &r.at, "/hidden", 0), -EACCES);
	assert_int_equal(vfs_unlink(&r.at, "/hidden"), -ENOENT);
	assert_int_equal(rig_put(&r, "/d/later", "x"), -EACCES);
	assert_string_equal(host_text("hidden"), "no\n");
	assert_string_equal(host_text("secret/key"), "no\n");
}

static void data(void **state)
{
	(void)state;
	struct file *f;
	struct file_map m;
	char buf[16];
	assert_int_equal(rig_open(&r, "/f", O_RDWR, 0, &f), 0);
	assert_int_equal(rig_pwrite(f, "J", 1, 0), 1);
	assert_int_equal(f->ops->mmap(f, 3, true, &m), 0);
	assert_int_equal(host_pread(m.host_fd, buf, 5, m.off_add), 5);
	assert_memory_equal(buf, "Jello", 5);
	assert_int_equal(f->ops->seek(f, -2, SEEK_END), 3);
	assert_int_equal(rig_pread(f, buf, 16, -1), 2);
	assert_int_equal(f->ops->fsync(f, true), 0);
	assert_int_equal(f->ops->seek(f, 0, SEEK_HOLE), 5);
	file_put(f);
	assert_int_equal(vfs_unlink(&r.at, "/f"), 0);
	assert_int_equal(rig_open(&r, "/d/f2", O_RDONLY, 0, &f), 0);
	assert_int_equal(vfs_unlink(&r.at, "/d/f2"), 0);
	assert_int_equal(rig_pread(f, buf, 16, 0), 5);
	file_put(f);
}

static void tmpfiles(void **state)
{
	(void)state;
	struct file *f;
	int err = rig_open(&r, "/", O_TMPFILE | O_RDWR, 0600, &f);
	if (err == -EOPNOTSUPP)
		skip();
	assert_int_equal(err, 0);
	assert_int_equal(rig_pwrite(f, "data", 4, 0), 4);
	struct fs_lookup by_file = r.at;
	by_file.base = f->path;
	assert_int_equal(vfs_link(&by_file, "", &r.at, "/named", LOOKUP_EMPTY), 0);
	file_put(f);
	assert_string_equal(host_text("named"), "data");
}

static void xattrs(void **state)
{
	(void)state;
	char buf[64];
	int err = rig_setxattr(&r, "/f", "user.key", "value");
	if (err == -EOPNOTSUPP)
		skip();
	assert_int_equal(err, 0);
	assert_int_equal(rig_getxattr(&r, "/f", "user.key", buf, sizeof(buf)), 5);
	assert_memory_equal(buf, "value", 5);
	assert_int_equal(rig_getxattr(&r, "/f", "user.key", NULL, 0), 5);
	assert_int_equal(rig_getxattr(&r, "/f", "user.none", buf, sizeof(buf)), -ENODATA);
	assert_int_equal(rig_getxattr(&r, "/f", "security.selinux", buf, sizeof(buf)), -ENODATA);
	assert_int_equal(rig_setxattr(&r, "/f", "security.capability", "x"), -EPERM);
}

static void big_directory(void **state)
{
	(void)state;
	char buf[32];
	host_sh("mkdir big; cd big; for i in $(seq 3000); do : >a-rather-long-name-$i; done");
	assert_int_equal(rig_list(&r, "/big", buf, sizeof(buf)), 3000);
}

static void single_file(void **state)
{
	(void)state;
	make_tree();
	start("/f", false, false);
	assert_int_equal(r.mnt->root->inode->type, S_IFREG);
	struct file *f;
	char buf[8];
	assert_int_equal(vfs_open_path((struct path){ r.mnt, r.mnt->root }, O_RDONLY, r.cred, &f),
			 0);
	assert_int_equal(rig_pread(f, buf, 8, 0), 5);
	file_put(f);
	teardown(NULL);
}

static void host_kernel_trees(void **state)
{
	(void)state;
	struct gofer_export e = { "/", false };
	struct gofer_config cfg = { .exports = &e, .export_count = 1 };
	struct superblock *sb;
	int fd;
	fs_rig_begin(&r);
	assert_int_equal(gofer_start(&cfg, &fd, &gofer_pid), 0);
	assert_int_equal(gofer_client_new(fd, &client), 0);
	assert_int_equal(goferfs_new(client, 0, false, &sb), 0);
	fs_rig_mount(&r, sb, geteuid());
	assert_string_equal(rig_names(&r, "/proc"), "");
	assert_string_equal(rig_names(&r, "/sys"), "");
	/* Mode bits are the host's. */
	if (access("/dev", R_OK | X_OK) == 0)
		assert_string_equal(rig_names(&r, "/dev"), "");
	assert_string_equal(rig_text(&r, "/proc/self/environ"), "error -2");
	stop();
	e.host_path = "/proc/self";
	fs_rig_begin(&r);
	assert_int_equal(gofer_start(&cfg, &fd, &gofer_pid), 0);
	assert_int_equal(gofer_client_new(fd, &client), 0);
	assert_int_equal(goferfs_new(client, 0, false, &sb), 0);
	fs_rig_mount(&r, sb, geteuid());
	assert_string_equal(rig_names(&r, "/"), "");
	stop();
	e.host_path = "/nonexistent/dir";
	assert_int_equal(gofer_start(&cfg, &fd, &gofer_pid), -EINVAL);
}

static void gofer_dies(void **state)
{
	(void)state;
	struct fs_stat st;
	int status;
	assert_int_equal(kill(gofer_pid, SIGKILL), 0);
	assert_int_equal(rig_stat(&r, "/d/e", &st), -EIO);
	fs_rig_unmount(&r);
	gofer_client_put(client);
	assert_int_equal(waitpid(gofer_pid, &status, 0), gofer_pid);
	fs_rig_end(&r);
	start("", false, true); /* for teardown */
}

static void failing_allocations(void **state)
{
	(void)state;
	for (unsigned n = 1; n < 60; n++) {
		struct file *f;
		mem_fail_nth(n);
		int e1 = rig_open(&r, "/link", O_RDONLY, 0, &f);
		int e2 = vfs_mkdir(&r.at, "/d/new", 0777);
		mem_fail_nth(0);
		if (!e1)
			file_put(f);
		assert_true(e1 == 0 || e1 == -ENOMEM);
		assert_true(e2 == 0 || e2 == -ENOMEM);
		(void)!vfs_rmdir(&r.at, "/d/new");
		dcache_purge(r.mnt->sb);
	}
}

int main(void)
{
#define RO(f) cmocka_unit_test_setup_teardown(f, setup_ro, teardown)
#define RW(f) cmocka_unit_test_setup_teardown(f, setup_rw, teardown)
	const struct CMUnitTest tests[] = {
		RO(reading),
		RO(refusals),
		RO(hidden),
		RO(shared_tree),
		RO(big_directory),
		RO(gofer_dies),
		RW(writing),
		RW(hidden_writing),
		RW(data),
		RW(tmpfiles),
		RW(xattrs),
		RW(failing_allocations),
		cmocka_unit_test(single_file),
		cmocka_unit_test(host_kernel_trees),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
