/* stress SEED SECONDS: processes that start, fork, exec, make threads, signal and kill each other at random.
 * The first one writes down what became of all of them: `log` has a line for each process made, by its maker
 * (`made PID`), by itself (`am PID`), and for each write that is done (`did PID BYTES`); a process that is
 * killed may not have come to it. */
#include "hostile.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define SLOTS 24

/* Shared by all, by way of a file, since they exec. */
struct board {
	pid_t slots[SLOTS];
	long made;
	int stop;
};

static struct board *board;
static int log_fd = -1;
static uint64_t state;

static uint32_t any(uint32_t below)
{
	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(state >> 33) % below;
}

static void log_line(const char *word, pid_t pid, long more)
{
	char line[64];
	int n = snprintf(line, sizeof(line), "%s %d %ld\n", word, pid, more);

	(void)!write(log_fd, line, (size_t)n);
}

static void open_board(void)
{
	int fd = open("board", O_RDWR | O_CREAT | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && ftruncate(fd, sizeof(*board)) == 0);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(board != MAP_FAILED && close(fd) == 0);
	log_fd = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	CHECK(log_fd >= 0);
}

/* @return a free slot for a new process, -1: there are enough. */
static int take_slot(void)
{
	for (int i = 0; i < SLOTS; i++) {
		pid_t none = 0;
		if (__atomic_compare_exchange_n(&board->slots[i], &none, -1, false,
						__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return i;
	}
	return -1;
}

static void work(void)
{
	static const char text[64];
	char name[32];
	long size = 1 + any(60);

	snprintf(name, sizeof(name), "data%u", any(8));
	int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	if (write(fd, text, (size_t)size) == size)
		log_line("did", getpid(), size);
	close(fd);
}

static void exec_self(const char *how)
{
	char seed[32];
	char *const args[] = {"stress", (char *)how, seed, NULL};

	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)state);
	execv("/proc/self/exe", args);
	_exit(50);
}

static void run_on(void);

/* `how`: 0 fork, 1 fork and exec, 2 vfork and exec, 3 clone that asks not to be traced, 4 a child that leaves
 * a child behind. */
static void make(int how)
{
	int slot = take_slot();
	pid_t pid;

	if (slot < 0)
		return;
	state++;
	if (how == 2) {
		pid = vfork();
		if (pid == 0)
			exec_self("leaf");
	} else if (how == 3) {
		pid = (pid_t)syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0);
	} else {
		pid = fork();
	}
	if (pid == 0) {
		state ^= (uint64_t)getpid() << 20;
		board->slots[slot] = getpid();
		log_line("am", getpid(), how);
		if (how == 1)
			exec_self("go");
		if (how == 4) {
			make(0);
			_exit(0);
		}
		run_on();
		_exit((int)any(100));
	}
	if (pid > 0) {
		log_line("made", pid, how);
		__atomic_add_fetch(&board->made, 1, __ATOMIC_SEQ_CST);
		if (how == 2)
			board->slots[slot] = pid;
	} else {
		board->slots[slot] = 0;
	}
}

static void *thread(void *data)
{
	uint64_t until = (uintptr_t)data;

	for (uint64_t i = 0; i < until; i++)
		(void)!access("data0", F_OK);
	return NULL;
}

static void *exec_from_thread(void *data)
{
	(void)data;
	exec_self("go");
	return NULL;
}

static void threads(bool exec)
{
	pthread_t made[4];
	int n = 0;

	for (; n < 4; n++)
		if (pthread_create(&made[n], NULL, thread, (void *)(uintptr_t)any(20)))
			break;
	if (exec && pthread_create(&made[0], NULL, exec_from_thread, NULL) == 0)
		pause_ms(1000);
	for (int i = 0; i < n; i++) {
		if (any(4) == 0)
			pthread_detach(made[i]);
		else
			pthread_join(made[i], NULL);
	}
}

static void signal_someone(void)
{
	const int signals[] = {SIGUSR1, SIGUSR1, SIGTERM, SIGKILL, SIGKILL,
			       SIGSTOP, SIGCONT, SIGALRM, SIGSEGV, SIGCHLD};
	pid_t pid = board->slots[any(SLOTS)];

	if (pid > 0 && kill(pid, signals[any(sizeof(signals) / sizeof(*signals))]) == 0)
		kill(pid, SIGCONT);
}

static void reap_some(void)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (int i = 0; i < SLOTS; i++)
			if (board->slots[i] == pid)
				board->slots[i] = 0;
}

static void nothing(int signal)
{
	(void)signal;
}

/* Acts at random for a while. */
static void run_on(void)
{
	signal(SIGUSR1, nothing);
	for (uint32_t i = 5 + any(30); i > 0 && !board->stop; i--) {
		switch (any(12)) {
		case 0:
			make(0);
			break;
		case 1:
			make(1);
			break;
		case 2:
			make(2);
			break;
		case 3:
			make(3);
			break;
		case 4:
			make(4);
			break;
		case 5:
			threads(false);
			break;
		case 6:
			signal_someone();
			break;
		case 7:
			if (any(4) == 0)
				threads(true);
			break;
		case 8:
			if (any(4) == 0)
				exec_self("go");
			break;
		case 9:
			reap_some();
			break;
		default:
			work();
		}
	}
}

/* Slots of processes that were killed before they could write their number there. */
static void free_slots(bool was_unknown[SLOTS])
{
	for (int i = 0; i < SLOTS; i++) {
		bool unknown = board->slots[i] == -1;
		if (unknown && was_unknown[i])
			board->slots[i] = 0;
		was_unknown[i] = unknown;
	}
}

static void first(long seed, long seconds)
{
	bool unknown[SLOTS] = {false};
	struct timespec now;
	long turn = 0;

	state = (uint64_t)seed * 7919 + 1;
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
	open_board();
	clock_gettime(CLOCK_MONOTONIC, &now);
	for (time_t end = now.tv_sec + seconds; now.tv_sec < end;) {
		make((int)any(5));
		work();
		signal_someone();
		reap_some();
		pause_ms(any(3));
		if (++turn % 256 == 0)
			free_slots(unknown);
		clock_gettime(CLOCK_MONOTONIC, &now);
	}
	board->stop = 1;
	for (;;) {
		/* Who was stopped, or forks on, is killed in the end. */
		for (int i = 0; i < SLOTS; i++)
			if (board->slots[i] > 0)
				kill(board->slots[i], SIGKILL);
		pid_t pid = waitpid(-1, NULL, WNOHANG);
		if (pid < 0 && errno == ECHILD)
			break;
		if (pid == 0)
			pause_ms(5);
		/* A slot whose owner is not known belongs to a descendant that we reap as well. */
		for (int i = 0; i < SLOTS; i++)
			if (pid > 0 && board->slots[i] == pid)
				board->slots[i] = 0;
	}
	tell("made\t%ld", board->made);
}

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	if (strcmp(argv[1], "leaf") == 0 || strcmp(argv[1], "go") == 0) {
		state = strtoull(argv[2], NULL, 10);
		open_board();
		if (strcmp(argv[1], "leaf") == 0) {
			log_line("am", getpid(), 2);
			work();
			_exit(0);
		}
		run_on();
		return (int)any(100);
	}
	first(atol(argv[1]), atol(argv[2]));
	return 0;
}
