/* Shared by exec.c (the sequence), exec_load.c (images) and exec_cred.c (identity). */
#pragma once

#include "sentry/elf.h"
#include "sentry/task.h"

#define EXEC_HEAD_SIZE 256 /* bytes of a file that decide its format (BINPRM_BUF_SIZE) */

/* An open executable; writing to it is denied while it is here. */
struct exec_image {
	struct file *file;
	struct elf_header header;
	struct elf_image elf; /* elf.segs is owned */
	uint64_t bias;        /* load address minus ELF address */
};

struct exec {
	struct task *t;
	const char *name; /* as the caller named the program: AT_EXECFN, comm */
	bool name_vanishes;
	struct exec_image main, interp; /* interp.file NULL: none */
	char *strings;                  /* current arguments; owned when != caller_strings */
	char *caller_strings;
	size_t strings_size;
	int argc, envc;
	char head[EXEC_HEAD_SIZE]; /* of main.file, zero-filled */
	struct mm *mm;             /* the new address space, until it is the task's */
	struct plat_ctx *ctx;
	struct cred *cred; /* new credentials, likewise */
	bool secure;       /* AT_SECURE */
	bool randomize;
	uint64_t stack_top;
	uint64_t entry, sp;
};

/* Looks `path` up and opens it for execution: EACCES unless a regular file with x on a mount that
 * allows it, ETXTBSY while it is open for writing. */
int exec_open(struct task *t, const struct path *dir, const char *path, unsigned lookup_flags,
	      struct file **out) MUST_CHECK;
/* The same for an open file that has no path (memfd). */
int exec_open_nameless(struct task *t, struct file *f, struct file **out) MUST_CHECK;
void exec_close(struct file *f);
/* Up to n bytes at off; short only at the end of the file. */
ssize_t exec_read(struct file *f, void *buf, size_t n, uint64_t off) MUST_CHECK;
/* Program headers of img->file, whose header begins in head. `bad` is the error for malformed ones.
 */
int exec_parse(struct exec_image *img, const char *head, size_t size, int bad) MUST_CHECK;
void exec_image_fini(struct exec_image *img);
/* Opens PT_INTERP of x->main, if any. */
int exec_find_interp(struct exec *x) MUST_CHECK;
/* x->mm becomes a blank address space with both images mapped. */
int exec_map(struct exec *x) MUST_CHECK;

/* Fills x->cred and x->secure from the identity of the caller and the set-id bits of x->main.file.
 */
int exec_new_cred(struct exec *x) MUST_CHECK;
