/* The syscall table: see syscalls.def. */
#ifndef TRACER_SYSCALLS_H
#define TRACER_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum syscall_class {
	CLASS_DATA,
	CLASS_DESC,
	CLASS_META,
	CLASS_PROCESS,
	CLASS_STATE, /* never written */
	CLASS_MEMORY,
	CLASS_NETWORK,
	CLASS_IOCTL,
	CLASS_SYNC,
	CLASS_TIME,
	CLASS_IPC, /* no calls of its own: the descriptors that are otherwise skipped */
	CLASS_COUNT,
};

enum effect {
	EFFECT_NONE,
	EFFECT_OPEN,
	EFFECT_OPENAT2,
	EFFECT_CREAT,
	EFFECT_OPEN_HANDLE,
	EFFECT_CLOSE,
	EFFECT_CLOSE_RANGE,
	EFFECT_DUP,
	EFFECT_DUP2,
	EFFECT_FCNTL,
	EFFECT_IOCTL,
	EFFECT_PIPE,
	EFFECT_MMAP,
	EFFECT_MPROTECT,
	EFFECT_MREMAP,
	EFFECT_CHDIR,
	EFFECT_RENAME,
	EFFECT_CHROOT,
	EFFECT_CLONE,
	EFFECT_EXEC,
	EFFECT_UNSHARE,
	EFFECT_WAIT4,
	EFFECT_WAITID,
	EFFECT_SIGRETURN,
	EFFECT_SIGMASK,
	EFFECT_SIGACTION,
	EFFECT_OWN_FILTER,
	EFFECT_PTRACE,
	EFFECT_AIO_SUBMIT,
	EFFECT_AIO_REAP,
	EFFECT_URING_SETUP,
	EFFECT_URING_ENTER,
};

enum field_kind {
	FIELD_END,
	FIELD_FD,
	FIELD_OUT_FD,
	FIELD_DIRFD,
	FIELD_PATH,
	FIELD_NEW_PATH,
	FIELD_TARGET,
	FIELD_INT,
	FIELD_LONG,
	FIELD_U32,
	FIELD_U64,
	FIELD_NZ32,
	FIELD_MODE,
	FIELD_IOVEC,
	FIELD_OFFSET_AT,
	FIELD_TEXT,
	FIELD_IN,
	FIELD_OUT,
};

struct field {
	enum field_kind kind;
	unsigned char arg;  /* position of the system call's argument */
	unsigned char size; /* bytes of IN and OUT; 0: the effect knows */
	const char *key;    /* NULL: not written */
};

#define SYSCALL_MAX_FIELDS 6

struct syscall_row {
	int nr;
	const char *kernel;
	const char *written; /* NULL: never written */
	enum syscall_class class;
	enum effect effect;
	struct field fields[SYSCALL_MAX_FIELDS]; /* up to the first FIELD_END */
	unsigned char at_flags;                  /* 0: none; argument 0 never holds flags */
	unsigned char flags;                     /* 0: none */
	enum { RET_ALWAYS, RET_ERROR, RET_LENGTH } ret;
	bool null_is_fd;
	bool empty_is_fd;
	bool minor;
	bool always;
	const char *fd_name;
	const char *nofollow_name;
	const char *rmdir_name;
};

/* The rows, in the order of the table, and their number. */
extern const struct syscall_row syscall_rows[];
extern const size_t syscall_row_count;

/* @return the row of a system call by its number, NULL if the table has none. */
const struct syscall_row *syscall_row(uint64_t nr);

/* @return whether the state of the traced program depends on the call, so that it is followed even when
 * it is not recorded. */
bool syscall_row_is_state(const struct syscall_row *row);

#endif
