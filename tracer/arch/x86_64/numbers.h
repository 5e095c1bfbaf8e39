/* Numbers of system calls that are newer than the oldest kernel headers we build with. Source: the
 * kernel's arch/x86/entry/syscalls/syscall_64.tbl. */
#ifndef TRACER_ARCH_X86_64_NUMBERS_H
#define TRACER_ARCH_X86_64_NUMBERS_H

#include <asm/unistd_64.h>

#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif
#ifndef __NR_setxattrat
#define __NR_setxattrat    463
#define __NR_getxattrat    464
#define __NR_listxattrat   465
#define __NR_removexattrat 466
#endif

#endif
