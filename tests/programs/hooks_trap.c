/* What a program sees of breakpoints that are not its own: nothing. usage: hooks_trap CASE; to be hooked by -x
 * 'hooked_*'. Prints the same with and without hooks. */
#include "say.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <ucontext.h>
#include <unistd.h>

#include <sys/wait.h>

long hooked_plain(long n);

static _Atomic long calls;

__attribute__((noinline)) long hooked_plain(long n)
{
	__asm__ volatile("" : "+r"(n));
	calls++;
	return n + 1;
}

/* The signal masks of this thread, by the kernel. */
static void masks(const char *when)
{
	FILE *f = fopen("/proc/thread-self/status", "r");
	char line[256];

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		if ((strncmp(line, "Sig", 3) == 0 && line[3] != 'Q') ||
		    strncmp(line, "Shd", 3) == 0)
			printf("%s %s", when, line);
	}
	CHECK(fclose(f) == 0);
}

static void calls_and_streams(void)
{
	FILE *f = fopen("file", "w");

	CHECK(f);
	for (long i = 0; i < 20; i++) {
		CHECK(hooked_plain(i) == i + 1);
		CHECK(fprintf(f, "%ld\n", i) > 0);
	}
	CHECK(fclose(f) == 0);
}

static void show(const char *when)
{
	struct sigaction action;
	sigset_t blocked;

	masks(when);
	CHECK(sigaction(SIGTRAP, NULL, &action) == 0 &&
	      sigprocmask(SIG_BLOCK, NULL, &blocked) == 0);
	printf("%s %s %d %d\n", when,
	       action.sa_handler == SIG_DFL   ? "default"
	       : action.sa_handler == SIG_IGN ? "ignored"
					      : "handled",
	       action.sa_flags, sigismember(&blocked, SIGTRAP));
}

static _Atomic long traps;
static _Atomic long codes;

static void handler(int number, siginfo_t *info, void *context)
{
	const ucontext_t *c = context;
	const unsigned char *rip = (const unsigned char *)c->uc_mcontext.gregs[REG_RIP];

	(void)number;
	traps++;
	codes += info->si_code;
	/* Behind its own int3. */
	CHECK(info->si_code != SI_KERNEL || rip[-1] == 0xcc);
	hooked_plain(1);
}

static void catch (int flags)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};

	CHECK(sigaction(SIGTRAP, &action, NULL) == 0);
}

static void case_state(const char *how)
{
	sigset_t trap;

	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	if (strcmp(how, "ignored") == 0)
		signal(SIGTRAP, SIG_IGN);
	if (strcmp(how, "blocked") == 0)
		sigprocmask(SIG_BLOCK, &trap, NULL);
	if (strcmp(how, "handled") == 0)
		catch (0);
	if (strcmp(how, "pending") == 0) {
		sigprocmask(SIG_BLOCK, &trap, NULL);
		raise(SIGTRAP);
	}
	show("before");
	calls_and_streams();
	show("after");
	printf("calls %ld traps %ld\n", (long)calls, (long)traps);
}

/* Its own breakpoints, and SIGTRAP by other means. */
static void case_own(void)
{
	catch (SA_ONSTACK);
	for (int i = 0; i < 10; i++) {
		__asm__ volatile("int3");
		hooked_plain(i);
		raise(SIGTRAP);
		__asm__ volatile("int $3");
	}
	calls_and_streams();
	printf("traps %ld codes %ld calls %ld\n", (long)traps, (long)codes, (long)calls);
	/* One step. */
	__asm__ volatile("pushfq\norq $0x100, (%%rsp)\npopfq\nnop\npushfq\nandq $~0x100, "
			 "(%%rsp)\npopfq\nnop" ::
				 : "memory", "cc");
	printf("traps %ld\n", (long)traps);
}

static void case_dies(const char *how)
{
	calls_and_streams();
	fflush(stdout);
	if (strcmp(how, "int3") == 0)
		__asm__ volatile("int3");
	if (strcmp(how, "raise") == 0)
		raise(SIGTRAP);
	if (strcmp(how, "kill") == 0)
		kill(getpid(), SIGTRAP);
	if (strcmp(how, "ignored") == 0) {
		/* The kernel forces it through. */
		signal(SIGTRAP, SIG_IGN);
		__asm__ volatile("int3");
	}
	if (strcmp(how, "child") == 0) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			hooked_plain(1);
			__asm__ volatile("int3");
			_exit(0);
		}
		CHECK(waitpid(child, &status, 0) == child);
		printf("status %d\n", status);
	}
}

static uint64_t sum_of(const char *from, size_t length)
{
	uint64_t sum = 0xcbf29ce484222325;

	for (size_t i = 0; i < length; i++)
		sum = (sum ^ (unsigned char)from[i]) * 0x100000001b3;
	return sum;
}

/* A checksum of its own code, read from memory, and whether /proc/self/mem agrees. Only calls without hooks
 * leave the code as the file has it. */
static void case_text(void)
{
	FILE *maps, *mem;
	char line[512];

	CHECK((maps = fopen("/proc/self/maps", "r")) && (mem = fopen("/proc/self/mem", "r")));
	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to, offset;
		char rights[8], path[400] = "";

		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %399s", &from, &to, rights, &offset,
			   path) < 4 ||
		    rights[2] != 'x' || path[0] != '/')
			continue;
		char *copy = malloc(to - from), *file = calloc(1, to - from);
		FILE *object = fopen(path, "r");

		CHECK(copy && file && object);
		CHECK(fseek(mem, (long)from, SEEK_SET) == 0 &&
		      fread(copy, 1, to - from, mem) == to - from);
		CHECK(fseek(object, (long)offset, SEEK_SET) == 0);
		size_t length = fread(file, 1, to - from, object);
		CHECK(sum_of(copy, to - from) == sum_of((const char *)from, to - from));
		size_t other = 0;
		for (size_t i = 0; i < length; i++)
			other += file[i] != copy[i];
		printf("differ\t%zu\t%s\n", other, path);
		fclose(object);
		free(copy);
		free(file);
	}
	fclose(maps);
	fclose(mem);
}

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "", *how = argc > 2 ? argv[2] : "";

	if (strcmp(which, "state") == 0)
		case_state(how);
	else if (strcmp(which, "own") == 0)
		case_own();
	else if (strcmp(which, "dies") == 0)
		case_dies(how);
	else if (strcmp(which, "text") == 0)
		case_text();
	else
		return 2;
	return 0;
}
