#include "tracer/syscalls.h"

#include "tracer/arch/arch.h"
#include "tracer/select.h"

#include <assert.h>

#define FIELDS(...)                                                                                \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define NOTHING                                                                                    \
	{                                                                                          \
		0                                                                                  \
	}
#define FD(n, k)                                                                                   \
	{                                                                                          \
		FIELD_FD, n, 0, k                                                                  \
	}
#define OUT_FD(n, k)                                                                               \
	{                                                                                          \
		FIELD_OUT_FD, n, 0, k                                                              \
	}
#define DIRFD(n)                                                                                   \
	{                                                                                          \
		FIELD_DIRFD, n, 0, NULL                                                            \
	}
#define PATH(n)                                                                                    \
	{                                                                                          \
		FIELD_PATH, n, 0, NULL                                                             \
	}
#define NEW_PATH(n)                                                                                \
	{                                                                                          \
		FIELD_NEW_PATH, n, 0, NULL                                                         \
	}
#define TARGET(n)                                                                                  \
	{                                                                                          \
		FIELD_TARGET, n, 0, NULL                                                           \
	}
#define INT(n, k)                                                                                  \
	{                                                                                          \
		FIELD_INT, n, 0, k                                                                 \
	}
#define LONG(n, k)                                                                                 \
	{                                                                                          \
		FIELD_LONG, n, 0, k                                                                \
	}
#define U32(n, k)                                                                                  \
	{                                                                                          \
		FIELD_U32, n, 0, k                                                                 \
	}
#define U64(n, k)                                                                                  \
	{                                                                                          \
		FIELD_U64, n, 0, k                                                                 \
	}
#define ADDRESS(n, k)                                                                              \
	{                                                                                          \
		FIELD_U64, n, 0, k                                                                 \
	}
#define NZ32(n, k)                                                                                 \
	{                                                                                          \
		FIELD_NZ32, n, 0, k                                                                \
	}
#define MODE(n, k)                                                                                 \
	{                                                                                          \
		FIELD_MODE, n, 0, k                                                                \
	}
#define IOVEC(n)                                                                                   \
	{                                                                                          \
		FIELD_IOVEC, n, 0, NULL                                                            \
	}
#define OFFSET_AT(n, k)                                                                            \
	{                                                                                          \
		FIELD_OFFSET_AT, n, 0, k                                                           \
	}
#define TEXT(n, k)                                                                                 \
	{                                                                                          \
		FIELD_TEXT, n, 0, k                                                                \
	}
#define IN(n, bytes)                                                                               \
	{                                                                                          \
		FIELD_IN, n, bytes, NULL                                                           \
	}
#define OUT(n, bytes)                                                                              \
	{                                                                                          \
		FIELD_OUT, n, bytes, NULL                                                          \
	}

const struct syscall_row syscall_rows[] = {
#define CALL(name, word, group, change, ...)                                                       \
	{.nr = __NR_##name,                                                                        \
	 .kernel = #name,                                                                          \
	 .written = (word),                                                                        \
	 .class = CLASS_##group,                                                                   \
	 .effect = EFFECT_##change,                                                                \
	 .fields = __VA_ARGS__},
#include "tracer/syscalls.def"
#undef CALL
};

const size_t syscall_row_count = sizeof(syscall_rows) / sizeof(*syscall_rows);
static_assert(sizeof(syscall_rows) / sizeof(*syscall_rows) <= SELECTION_MAX_ROWS,
	      "a selection has a flag per row");

enum {
#define CALL(name, ...) ROW_##name,
#include "tracer/syscalls.def"
#undef CALL
};

/* Row number + 1 by system call number. */
static const unsigned char row_of[ARCH_SYSCALL_LIMIT] = {
#define CALL(name, ...) [__NR_##name] = ROW_##name + 1,
#include "tracer/syscalls.def"
#undef CALL
};

const struct syscall_row *syscall_row(uint64_t nr)
{
	if (nr >= ARCH_SYSCALL_LIMIT || !row_of[nr])
		return NULL;
	return &syscall_rows[row_of[nr] - 1];
}

bool syscall_row_is_state(const struct syscall_row *row)
{
	switch (row->effect) {
	case EFFECT_NONE:
	case EFFECT_RENAME:
	case EFFECT_SIGMASK:
	case EFFECT_SIGACTION:
	case EFFECT_MMAP:
	case EFFECT_MPROTECT:
	case EFFECT_MREMAP:
	case EFFECT_IOCTL:
	case EFFECT_WAIT4:
	case EFFECT_WAITID:
	case EFFECT_AIO_SUBMIT:
	case EFFECT_AIO_REAP:
		return row->nr == __NR_restart_syscall;
	default:
		return true;
	}
}
