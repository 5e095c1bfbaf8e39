/* Calls each system call of the classes that are off by default, and says so. */
#include "say.h"

#include <netinet/in.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define CALL(kernel, name, ...) say(#kernel, name, NULL, NULL, syscall(SYS_##kernel, __VA_ARGS__))

static void memory(void)
{
	char *map = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(map != MAP_FAILED);
	say_no_ret("mmap", "mmap", NULL, NULL, 0);
	CALL(mprotect, "mprotect", map, 8192L, PROT_READ | PROT_WRITE);
	CALL(mprotect, "mprotect", map + 1, 4096L, PROT_READ);
	CALL(pkey_mprotect, "pkey_mprotect", map, 8192L, PROT_READ | PROT_WRITE, -1);
	CALL(pkey_mprotect, "pkey_mprotect", map, 4096L, PROT_READ, 99);
	CALL(madvise, "madvise", map, 4096L, MADV_DONTNEED);
	CALL(madvise, "madvise", map, 4096L, 9999);
	map = (char *)syscall(SYS_mremap, map, 8192L, 12288L, MREMAP_MAYMOVE, NULL);
	CHECK(map != MAP_FAILED);
	say_no_ret("mremap", "mremap", NULL, NULL, 0);
	CALL(mremap, "mremap", map + 1, 8192L, 4096L, 0, NULL);
	CALL(munmap, "munmap", map, 12288L);
	CALL(munmap, "munmap", map + 1, 4096L);
	syscall(SYS_brk, NULL);
	say_no_ret("brk", "brk", NULL, NULL, 0);
}

static void messages(int one, int two)
{
	char text[16] = "twelve bytes";
	struct iovec iov = {text, 12};
	struct mmsghdr many = {.msg_hdr = {.msg_iov = &iov, .msg_iovlen = 1}};

	CALL(sendto, "sendto", one, text, 12L, 0, NULL, 0);
	CALL(recvfrom, "recvfrom", two, text, 16L, 0, NULL, NULL);
	CALL(recvfrom, "recvfrom", two, text, 16L, MSG_DONTWAIT, NULL, NULL);
	CALL(sendmsg, "sendmsg", one, &many.msg_hdr, 0);
	CALL(recvmsg, "recvmsg", two, &many.msg_hdr, 0);
	CALL(sendmmsg, "sendmmsg", one, &many, 1, 0);
	CALL(recvmmsg, "recvmmsg", two, &many, 1, 0, NULL);
	CALL(sendmsg, "sendmsg", one, (void *)8, 0);
	CALL(shutdown, "shutdown", one, SHUT_RDWR);
	CALL(shutdown, "shutdown", one, 99);
}

static void network(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(address);
	int pair[2], server, client;

	CALL(socketpair, "socketpair", AF_UNIX, SOCK_SEQPACKET, 0, pair);
	CALL(socketpair, "socketpair", AF_UNIX, 99, 0, pair);
	messages(pair[0], pair[1]);
	server = (int)CALL(socket, "socket", AF_INET, SOCK_STREAM, 0);
	CALL(socket, "socket", 999, SOCK_STREAM, 0);
	CALL(bind, "bind", server, &address, len);
	CALL(bind, "bind", server, &address, len);
	CALL(listen, "listen", server, 5);
	CHECK(getsockname(server, (struct sockaddr *)&address, &len) == 0);
	client = (int)CALL(socket, "socket", AF_INET, SOCK_STREAM, 0);
	CALL(connect, "connect", client, &address, len);
	CALL(accept, "accept", server, NULL, NULL);
	client = (int)CALL(socket, "socket", AF_INET, SOCK_STREAM, 0);
	CALL(connect, "connect", client, &address, len);
	CALL(accept4, "accept", server, NULL, NULL, SOCK_CLOEXEC);
	CALL(accept4, "accept", server, NULL, NULL, 1 << 30);
}

int main(void)
{
	static char out[1 << 16];
	struct timespec moment = {.tv_nsec = 1000};
	int word = 1;

	setvbuf(stdout, out, _IOFBF, sizeof(out));
	memory();
	network();
	CALL(ioctl, "ioctl", 0, FIONREAD, &word);
	CALL(ioctl, "ioctl", 0, 0x12345678, &word);
	word = 1;
	CALL(futex, "futex", &word, FUTEX_WAKE, 1, NULL, NULL, 0);
	CALL(futex, "futex", &word, FUTEX_WAIT, 2, NULL, NULL, 0);
	CALL(nanosleep, "nanosleep", &moment, NULL);
	CALL(nanosleep, "nanosleep", (void *)8, NULL);
	CALL(clock_nanosleep, "clock_nanosleep", CLOCK_MONOTONIC, 0, &moment, NULL);
	CALL(clock_nanosleep, "clock_nanosleep", 999, 0, &moment, NULL);
	return 0;
}
