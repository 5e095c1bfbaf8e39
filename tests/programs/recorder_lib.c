/* A library that reads. Built twice: the second form has its system call elsewhere. */
#include <unistd.h>

#include <sys/syscall.h>

#ifdef OTHER
int other_padding(int x);
int other_padding(int x)
{
	return x * 3 + 1;
}
#endif

long read_data(int fd, char *to);
long read_data(int fd, char *to)
{
	register long r10 asm("r10") = 1;
	long result;

	asm volatile("mov %1,%%eax\nsyscall"
		     : "=a"(result)
		     : "i"(SYS_pread64), "D"(fd), "S"(to), "d"(3L), "r"(r10)
		     : "rcx", "r11", "memory", "cc");
	return result;
}
