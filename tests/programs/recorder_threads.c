/* recorder_threads WHAT COUNT ROUNDS: threads, children and libraries that come and go among calls that are made often.
 * Prints how many calls of each name there were on the file `data`. */
#include "say.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <time.h>
#include <unistd.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* include/uapi/linux/fs.h */
#ifndef RENAME_EXCHANGE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE  2
#endif

extern char **environ;

static int data;
static long rounds;

/* Both forms of places: with the number before the call, and with a compare behind it. What a sanitizer adds would
 * change r10. */
__attribute__((no_sanitize("thread"))) static long read_once(char *to)
{
	register long r10 asm("r10") = 1;
	long result = SYS_pread64;

	asm volatile("syscall\ncmp $-4095,%0"
		     : "+a"(result)
		     : "D"(data), "S"(to), "d"(3L), "r"(r10)
		     : "rcx", "r11", "memory", "cc");
	return result;
}

static void *hammer(void *calls)
{
	char bytes[4];

	for (long i = 0; i < rounds; i++) {
		CHECK(pread(data, bytes, 3, 1) == 3 && memcmp(bytes, "ell", 3) == 0);
		CHECK(read_once(bytes) == 3 && memcmp(bytes, "ell", 3) == 0);
		CHECK(lseek(data, 0, SEEK_CUR) >= 0);
		*(long *)calls += 1;
	}
	return NULL;
}

/* All at once, while what they stand on is changed. */
static void together(long count)
{
	pthread_t threads[256];
	long calls[256] = {0};
	long sum = 0;

	CHECK(count <= 256);
	for (long i = 0; i < count; i++)
		CHECK(pthread_create(&threads[i], NULL, hammer, &calls[i]) == 0);
	for (long i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		sum += calls[i];
	}
	printf("pread\t%ld\nlseek\t%ld\n", 2 * sum, sum);
}

/* @return the number behind a key of a process's status, 0: none. */
static long status_of(long pid, const char *key)
{
	char text[4096] = "";
	char path[64];

	snprintf(path, sizeof(path), "/proc/%ld/status", pid);
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	const char *found = n > 0 ? strstr(text, key) : NULL;
	return found ? atol(found + strlen(key)) : 0;
}

/* … and the most memory, in KiB, that this and the tracer had. */
static void peaks(long count)
{
	together(count);
	printf("own\t%ld\n", status_of(getpid(), "VmHWM:"));
	printf("tracer\t%ld\n", status_of(status_of(getpid(), "TracerPid:"), "VmHWM:"));
}

/* One after the other. */
static void shortly(long count)
{
	pthread_t thread;
	long calls = 0;

	for (long i = 0; i < count; i++) {
		CHECK(pthread_create(&thread, NULL, hammer, &calls) == 0);
		pthread_join(thread, NULL);
	}
	printf("pread\t%ld\nlseek\t%ld\n", 2 * calls, calls);
}

static void wait_for(pid_t child)
{
	int status;

	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static pid_t by_fork(void)
{
	long own = 0;
	pid_t child = fork();

	if (child == 0) {
		hammer(&own);
		_exit(own == rounds ? 0 : 98);
	}
	return child;
}

static pid_t by_vfork(char *const args[])
{
	char bytes[4];
	pid_t child = vfork();

	if (child == 0) {
		if (pread(data, bytes, 3, 1) != 3 || close(data) != 0)
			_exit(97);
		execv("/bin/true", args);
		_exit(96);
	}
	return child;
}

/* Children by fork, by vfork and exec, and by posix_spawn. */
static void children(long count)
{
	char *const args[] = {"true", NULL};
	long calls = 0;
	pid_t child;

	for (long i = 0; i < count; i++) {
		hammer(&calls);
		wait_for(by_fork());
		calls += rounds;
		wait_for(by_vfork(args));
		CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, args, environ) == 0);
		wait_for(child);
	}
	printf("pread\t%ld\nlseek\t%ld\n", 2 * calls + count, calls);
}

/* Code that is unmapped and mapped again, other code in its place. */
static void code(long count)
{
	/* mov $17,%eax; syscall; ret, and one that does nothing of the kind */
	static const unsigned char calls_pread[] = {0xb8, 17, 0, 0, 0, 0x0f, 0x05, 0xc3};
	static const unsigned char returns_three[] = {0xb8, 3, 0, 0, 0, 0x90, 0x90, 0xc3};
	unsigned char *const place = (void *)0x10000000;
	char bytes[4];
	long calls = 0;

	for (int which = 0; which < 2; which++) {
		int fd = open(which ? "other" : "code", O_RDWR | O_CREAT | O_TRUNC, 0700);
		CHECK(fd >= 0);
		CHECK(write(fd, which ? returns_three : calls_pread, 8) == 8 && close(fd) == 0);
	}
	for (long i = 0; i < count; i++) {
		int fd = open(i % 2 ? "other" : "code", O_RDONLY);
		CHECK(mmap(place, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) ==
		      place);
		close(fd);
		long (*call)(int, void *, size_t, long) = (void *)place;
		for (long k = 0; k < rounds; k++) {
			register long r10 asm("r10") = 1;
			long result;
			asm volatile("call *%5"
				     : "=a"(result)
				     : "D"(data), "S"(bytes), "d"(3L), "r"(r10), "r"(call)
				     : "rcx", "r11", "memory", "cc");
			CHECK(result == 3);
			calls += i % 2 == 0;
		}
		CHECK(munmap(place, 4096) == 0);
	}
	printf("pread\t%ld\n", calls);
}

/* A library that is loaded and unloaded, and another one in its place. */
static void library(long count)
{
	long calls = 0;

	for (long i = 0; i < count; i++) {
		void *handle = dlopen(i % 2 ? "./two.so" : "./one.so", RTLD_NOW);
		CHECK(handle);
		long (*call)(int, char *) = (long (*)(int, char *))dlsym(handle, "read_data");
		char bytes[4];
		for (long k = 0; k < rounds; k++, calls++)
			CHECK(call(data, bytes) == 3 && memcmp(bytes, "ell", 3) == 0);
		CHECK(dlclose(handle) == 0);
	}
	printf("pread\t%ld\n", calls);
}

/* Code on a page of its own: both forms of places again, and one of any call. */
asm(".section .movable,\"ax\",@progbits\n.balign 4096\n.globl movable\n"
    ".type movable,@function\nmovable:\n"
    "mov %rcx,%r10\nmov $17,%eax\nsyscall\nret\n.size movable,.-movable\n.balign 64\n"
    ".type movable_too,@function\nmovable_too:\n"
    "mov %rcx,%r10\nmov $17,%eax\nnop\nsyscall\ncmp $-4095,%rax\nret\n"
    ".size movable_too,.-movable_too\n.balign 64\n"
    ".type movable_any,@function\nmovable_any:\nmov %rdi,%rax\nmov %rsi,%rdi\nmov %rdx,%rsi\n"
    "mov %rcx,%rdx\nnop\nsyscall\ncmp $-4095,%rax\nret\n.size movable_any,.-movable_any\n.balign "
    "4096\n.zero 4096\n.text\n");
extern char movable[];

/* Code that the kernel moves to where it likes, while other threads run. */
static void moved(long count)
{
	long calls = 0;
	long others = 0;
	pthread_t thread;
	char *place = movable;
	char bytes[4];

	CHECK(pthread_create(&thread, NULL, hammer, &others) == 0);
	for (long i = 0; i < count; i++) {
		for (long k = 0; k < rounds; k++, calls++) {
			long (*call)(int, void *, size_t, long) = (void *)(place + k % 2 * 64);
			CHECK(call(data, bytes, 3, 1) == 3 && memcmp(bytes, "ell", 3) == 0);
		}
		/* It cannot grow where it is. */
		char *wall = mmap(
			place + 4096, 4096, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | (i ? MAP_FIXED_NOREPLACE : MAP_FIXED), -1, 0);
		CHECK(wall == place + 4096 || (wall == MAP_FAILED && errno == EEXIST));
		char *to = mremap(place, 4096, 8192, MREMAP_MAYMOVE);
		CHECK(to != MAP_FAILED && to != place && munmap(to + 4096, 4096) == 0);
		place = to;
	}
	pthread_join(thread, NULL);
	printf("pread\t%ld\nlseek\t%ld\n", calls + 2 * others, others);
}

static long any_call(long number, long a, long b, long c)
{
	return ((long (*)(long, long, long, long))(void *)(movable + 128))(number, a, b, c);
}

static volatile bool settled;

/* Returns from the kernel to code that is changed, or changed back, meanwhile. */
static void *sleeps(void *ns)
{
	for (long i = 0; !settled; i++) {
		const struct timespec time = {0, (long)ns * (i % 16)};
		CHECK(any_call(SYS_nanosleep, (long)&time, 0, 0) == 0);
	}
	return NULL;
}

static void *forks(void *calls)
{
	while (!settled) {
		pid_t child = fork();
		if (child == 0) {
			for (int k = 0; k < 4; k++)
				CHECK(any_call(SYS_lseek, data, 0, SEEK_CUR) == 5);
			_exit(0);
		}
		wait_for(child);
		*(long *)calls += 4;
	}
	return NULL;
}

/* Code that may move each time, and does not, while others run in it: its changes are taken back. */
static void withdrawn(long count)
{
	pthread_t threads[5];
	long calls = 0;

	for (long i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, sleeps, (void *)(10000 + i * 3000)) == 0);
	CHECK(pthread_create(&threads[4], NULL, forks, &calls) == 0);
	for (long i = 0; i < count; i++) {
		for (long k = 0; k < rounds; k++)
			CHECK(any_call(SYS_lseek, data, 0, SEEK_CUR) == 5);
		CHECK(mremap(movable, 4096, 4096, MREMAP_MAYMOVE) == movable);
	}
	settled = true;
	for (int i = 0; i < 5; i++)
		pthread_join(threads[i], NULL);
	printf("lseek\t%ld\n", calls + count * rounds);
}

/* Many places of both forms, so that there is always one more to be changed. */
#define PLACES 2000
asm(".text\n.balign 32\nplaces:\n.rept 1000\n"
    ".balign 32\n.cfi_startproc\nmov $8,%eax\nsyscall\nret\n.cfi_endproc\n"
    ".balign 32\n.cfi_startproc\nxor %eax,%eax\nmov $8,%al\nsyscall\nnopl "
    "0(%rax,%rax)\nret\n.cfi_endproc\n"
    ".endr\n");
extern char places[];

static volatile long place_now;

static void call_at(long place)
{
	long (*call)(int, long, long) = (void *)(places + 32 * place);

	CHECK(call(data, 0, SEEK_CUR) == 5);
}

static void *everywhere(void *calls)
{
	for (long i = 0; i < PLACES; i++) {
		place_now = i;
		for (long k = 0; k < rounds; k++, ++*(long *)calls)
			call_at(i);
	}
	place_now = -1;
	return NULL;
}

/* Children whose memory is copied while another thread's calls are changed there. */
static void copied(long unused)
{
	long calls = 0;
	long others = 0;
	pthread_t thread;
	int status;

	(void)unused;
	CHECK(pthread_create(&thread, NULL, everywhere, &others) == 0);
	while (place_now >= 0) {
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0) {
			long now = place_now;
			int own = 0;
			for (long i = now - 1; i <= now + 1; i++) {
				for (int k = 0; k < 2 && i >= 0 && i < PLACES; k++, own++)
					call_at(i);
			}
			_exit(own);
		}
		CHECK(waitpid(child, &status, 0) == child);
		if (WIFSIGNALED(status))
			fprintf(stderr, "a child has died of signal %d\n", WTERMSIG(status));
		CHECK(WIFEXITED(status));
		calls += WEXITSTATUS(status);
	}
	pthread_join(thread, NULL);
	printf("lseek\t%ld\n", calls + others);
}

static pthread_barrier_t everybody;
static int lowest;

static void *opens(void *calls)
{
	pthread_barrier_wait(&everybody);
	for (long i = 0; i < rounds; i++) {
		int fd = open("data", O_RDONLY);
		CHECK(fd == lowest);
		CHECK(close(fd) == 0);
	}
	return calls;
}

/* No descriptor is there that is not the program's, however shortly, when a thread's calls begin to be recorded. */
static void alone(long count)
{
	static long unused;

	CHECK((lowest = open("data", O_RDONLY)) >= 0 && close(lowest) == 0);
	for (long i = 0; i < count; i++) {
		pthread_t threads[2];
		int status;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid) {
			CHECK(waitpid(pid, &status, 0) == pid && status == 0);
			continue;
		}
		pthread_barrier_init(&everybody, NULL, 2);
		CHECK(pthread_create(&threads[0], NULL, opens, NULL) == 0);
		CHECK(pthread_create(&threads[1], NULL, hammer, &unused) == 0);
		pthread_barrier_wait(&everybody);
		for (long k = 0; k < rounds; k++)
			CHECK(lseek(data, 0, SEEK_CUR) >= 0);
		pthread_join(threads[0], NULL);
		pthread_join(threads[1], NULL);
		_exit(0);
	}
	printf("open\t%ld\nclose\t%ld\nlseek\t%ld\n", count * rounds, count * rounds,
	       2 * count * rounds);
}

static void touch(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);

	CHECK(fd >= 0 && close(fd) == 0);
}

/* The directory it is in changes its name, or has another one's, by calls that are recorded like those that start from
 * there. */
static void renamed(long count)
{
	CHECK(mkdir("in-one", 0700) == 0 && mkdir("in-one/below", 0700) == 0);
	CHECK(chdir("in-one/below") == 0);
	for (long i = 0; i < count; i++) {
		touch("in-one");
		CHECK(rename("../../in-one", "../../in-two") == 0);
		touch("in-two");
		CHECK(syscall(SYS_renameat2, AT_FDCWD, "../../in-two", AT_FDCWD, "../../in-one",
			      RENAME_NOREPLACE) == 0);
	}
	CHECK(mkdir("../../in-two", 0700) == 0 && mkdir("../../in-two/below", 0700) == 0);
	for (long i = 0; i < count; i++) {
		touch("in-one");
		CHECK(syscall(SYS_renameat2, AT_FDCWD, "../../in-two", AT_FDCWD, "../../in-one",
			      RENAME_EXCHANGE) == 0);
		touch("in-two");
		CHECK(syscall(SYS_renameat2, AT_FDCWD, "../../in-two", AT_FDCWD, "../../in-one",
			      RENAME_EXCHANGE) == 0);
	}
}

/* … by another process. */
static void renamed_by_another(long count)
{
	_Atomic int *now =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(now != MAP_FAILED && mkdir("in-one", 0700) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		CHECK(chdir("in-one") == 0);
		for (long i = 0; i < count; i++)
			touch("in-one");
		*now = 1;
		while (*now == 1)
			;
		/* What is sure, a little later. */
		for (int i = 0; i < 300; i++) {
			touch("soon");
			usleep(1000);
		}
		for (long i = 0; i < count; i++)
			touch("in-two");
		_exit(0);
	}
	while (!*now)
		;
	usleep(100000);
	CHECK(rename("in-one", "in-two") == 0);
	*now = 2;
	wait_for(pid);
}

static _Atomic long *turn;

static void wait_for_turn(long which)
{
	while (*turn != which)
		sched_yield();
}

/* A process without its memory that goes to another directory goes there with it. */
static void taken_along(long count)
{
	turn = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(turn != MAP_FAILED && mkdir("in-one", 0700) == 0 && mkdir("in-two", 0700) == 0);
	CHECK(chdir("in-one") == 0);
	for (long i = 0; i < count; i++)
		touch("first");
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_FS | SIGCHLD, 0, 0, 0, 0);
	for (long i = 0; pid == 0 && i < count; i++) {
		wait_for_turn(2 * i + 1);
		CHECK(chdir(i % 2 ? "../in-one" : "../in-two") == 0);
		*turn = 2 * i + 2;
	}
	if (pid == 0)
		_exit(0);
	for (long i = 0; i < count; i++) {
		touch(i % 2 ? "in-two" : "in-one");
		*turn = 2 * i + 1;
		wait_for_turn(2 * i + 2);
	}
	wait_for(pid);
}

static void *hammer_and_wait(void *calls)
{
	hammer(calls);
	pthread_barrier_wait(&everybody);
	pthread_barrier_wait(&everybody);
	return NULL;
}

/* @return the least that a call takes, of a few hundred that stop, in ns. */
static long stop_takes(void)
{
	const long stops = 400;
	struct timespec before;
	struct timespec after;
	long least = -1;

	for (int batch = 0; batch < 5; batch++) {
		CHECK(clock_gettime(CLOCK_MONOTONIC, &before) == 0);
		for (long i = 0; i < stops; i++)
			CHECK(fcntl(data, F_GETFD) == 0);
		CHECK(clock_gettime(CLOCK_MONOTONIC, &after) == 0);
		long ns = (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec -
			  before.tv_nsec;
		if (least < 0 || ns / stops < least)
			least = ns / stops;
	}
	return least;
}

/* How much shared memory there is, in KiB, with many threads and when they are gone, and how long a stop takes before
 * them and behind. */
static void gone(long count)
{
	pthread_t threads[1024];
	pthread_attr_t small;
	long calls = 0;

	CHECK(count <= 1024 && pthread_attr_init(&small) == 0);
	CHECK(pthread_attr_setstacksize(&small, 65536) == 0);
	CHECK(pthread_barrier_init(&everybody, NULL, (unsigned)count + 1) == 0);
	hammer(&calls);
	printf("before\t%ld\n", stop_takes());
	for (long i = 0; i < count; i++)
		CHECK(pthread_create(&threads[i], &small, hammer_and_wait, &calls) == 0);
	pthread_barrier_wait(&everybody);
	printf("threads\t%ld\n", status_of(getpid(), "RssShmem:"));
	pthread_barrier_wait(&everybody);
	for (long i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	/* Their ends may still be waiting for the tracer. */
	usleep(500000);
	printf("left\t%ld\n", status_of(getpid(), "RssShmem:"));
	printf("behind\t%ld\n", stop_takes());
}

/* Says in shared memory how many calls have ended, until it is killed. */
static void counting(long unused)
{
	long *ended;
	char byte;

	(void)unused;
	int fd = open("counter", O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
	ended = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(ended != MAP_FAILED);
	for (;;) {
		CHECK(pread(data, &byte, 1, 1) == 1);
		__atomic_store_n(ended, *ended + 1, __ATOMIC_RELEASE);
	}
}

/* exec while other threads are at it. */
static void replaced(long count)
{
	pthread_t thread;
	static long calls[256];
	char *const args[] = {"true", NULL};

	rounds = 1L << 40;
	for (long i = 0; i < count; i++)
		CHECK(pthread_create(&thread, NULL, hammer, &calls[i]) == 0);
	usleep(100000);
	execv("/bin/true", args);
}

/* Descriptors that mean another file each time, also such as nobody saw being made. */
static void descriptors(long count)
{
	long reads = 0;
	char bytes[4];

	for (long i = 0; i < count; i++) {
		int pair[2];
		int fd = open("data", O_RDONLY);
		CHECK(fd >= 0 && pread(fd, bytes, 3, 1) == 3);
		reads++;
		CHECK(close(fd) == 0);
		CHECK(pipe(pair) == 0 && pair[0] == fd);
		CHECK(write(pair[1], "abc", 3) == 3 && read(pair[0], bytes, 3) == 3);
		CHECK(dup2(data, pair[0]) == pair[0] && pread(pair[0], bytes, 3, 1) == 3);
		reads++;
		CHECK(close(pair[0]) == 0 && close(pair[1]) == 0);
	}
	printf("pread\t%ld\nread\t0\nwrite\t1\n", reads);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(long count);
	} runs[] = {{"together", together},
		    {"shortly", shortly},
		    {"children", children},
		    {"code", code},
		    {"library", library},
		    {"counting", counting},
		    {"replaced", replaced},
		    {"descriptors", descriptors},
		    {"moved", moved},
		    {"alone", alone},
		    {"peaks", peaks},
		    {"renamed", renamed},
		    {"renamed-by-another", renamed_by_another},
		    {"taken-along", taken_along},
		    {"gone", gone},
		    {"copied", copied},
		    {"withdrawn", withdrawn}};

	CHECK(argc == 4);
	rounds = atol(argv[3]);
	data = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
	CHECK(data >= 0 && write(data, "hello", 5) == 5);
	for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
		if (strcmp(argv[1], runs[i].name) == 0)
			runs[i].run(atol(argv[2]));
	}
	return 0;
}
