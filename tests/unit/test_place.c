/* Where the tracer's threads run: observed by their affinity and class, with a process that the test moves
 * from CPU to CPU in the role of the tracee. Each test binds a process of its own. */

/* The source itself, for the choice among CPUs that this machine does not have. */
#include "tracer/place.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* More stops than there ever are between two looks. */
#define MANY 2000

static void in_child(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(60);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static uint64_t monotonic(void)
{
	struct timespec t;

	CHECK(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static cpu_set_t affinity(pid_t tid)
{
	cpu_set_t set;

	CHECK(sched_getaffinity(tid, sizeof(set), &set) == 0);
	return set;
}

static bool is_bound_to(pid_t tid, int cpu)
{
	cpu_set_t set = affinity(tid);

	return CPU_COUNT(&set) == 1 && CPU_ISSET(cpu, &set);
}

static void bind_to(pid_t tid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CHECK(sched_setaffinity(tid, sizeof(set), &set) == 0);
}

/* The `index`th CPU of the test's set. */
static int allowed_cpu(int index)
{
	cpu_set_t set = affinity(0);

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set) && index-- == 0)
			return cpu;
	}
	return -1;
}

static void need_two_cpus(void)
{
	cpu_set_t set = affinity(0);

	if (CPU_COUNT(&set) < 2)
		skip();
}

/* A process that lets itself be moved. `busy`: it wants all of its CPU. */
static pid_t start_tracee(bool busy)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0); /* it ended before that */
		for (volatile unsigned long spins = 0;; spins++) {
			if (!busy)
				usleep(100);
		}
	}
	return pid;
}

static int stat_cpu(pid_t tid)
{
	char path[64], name[64], state;
	int cpu = -1;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	FILE *stat = fopen(path, "r");
	CHECK(stat);
	CHECK(fscanf(stat, "%*d (%63[^)]) %c", name, &state) == 2);
	for (int field = 4; field <= 39; field++)
		CHECK(fscanf(stat, "%d", &cpu) == 1 || fscanf(stat, "%*s") == 0);
	fclose(stat);
	return cpu;
}

static void move(pid_t tracee, int cpu)
{
	bind_to(tracee, cpu);
	while (stat_cpu(tracee) != cpu)
		usleep(50);
}

static void stop(struct place *place, pid_t tracee, unsigned count, uint64_t *now, uint64_t gap)
{
	while (count--)
		place_stop(place, tracee, *now += gap);
}

static void follows(void)
{
	int first = allowed_cpu(0), second = allowed_cpu(1);
	cpu_set_t before = affinity(0);
	uint64_t now = 1000000000;
	struct place *place = place_new(true);
	pid_t tracee = start_tracee(false);

	CHECK(place);
	move(tracee, second);
	stop(place, tracee, MANY, &now, 10000);
	CHECK(is_bound_to(0, second));
	move(tracee, first);
	stop(place, tracee, MANY, &now, 10000);
	CHECK(is_bound_to(0, first));
	/* Stops that suddenly take longer tell it at once. */
	move(tracee, second);
	stop(place, tracee, LATE_STOPS, &now, 100000);
	CHECK(is_bound_to(0, second));
	move(tracee, first);
	stop(place, tracee, MANY, &now, 10000);
	CHECK(is_bound_to(tracee, first));
	CHECK(sched_getscheduler(tracee) == SCHED_OTHER);
	CHECK(getpriority(PRIO_PROCESS, tracee) == getpriority(PRIO_PROCESS, 0));
	place_free(place);
	cpu_set_t after = affinity(0);
	CHECK(CPU_EQUAL(&before, &after));
}

static void test_follows_the_tracee(void **state)
{
	(void)state;
	need_two_cpus();
	in_child(follows);
}

static void lets_go(void)
{
	cpu_set_t before = affinity(0);
	uint64_t now = 1000000000;
	struct place *place = place_new(true);
	pid_t tracee = start_tracee(false);

	CHECK(place);
	stop(place, tracee, MANY, &now, 10000000);
	cpu_set_t after = affinity(0);
	CHECK(CPU_EQUAL(&before, &after));
	CHECK(sched_getscheduler(0) == SCHED_OTHER);
	stop(place, tracee, MANY, &now, 10000);
	after = affinity(0);
	CHECK(CPU_COUNT(&after) == 1);
	stop(place, tracee, 20, &now, 10000000);
	after = affinity(0);
	CHECK(CPU_EQUAL(&before, &after));
	place_free(place);
}

static void test_rare_stops_bind_nothing(void **state)
{
	(void)state;
	need_two_cpus();
	in_child(lets_go);
}

static void stays_in_set(void)
{
	int first = allowed_cpu(0), second = allowed_cpu(1);
	uint64_t now = 1000000000;
	pid_t tracee = start_tracee(false);

	move(tracee, second);
	bind_to(0, first);
	struct place *place = place_new(true);
	CHECK(place);
	for (int i = 0; i < MANY; i++) {
		stop(place, tracee, 1, &now, 10000);
		CHECK(is_bound_to(0, first));
	}
	CHECK(place_spin_ns(place) == 0);
	place_free(place);
	CHECK(is_bound_to(0, first));
}

static void test_never_leaves_its_cpus(void **state)
{
	(void)state;
	need_two_cpus();
	in_child(stays_in_set);
}

static void disabled(void)
{
	cpu_set_t before = affinity(0);
	uint64_t now = 1000000000;
	pid_t tracee = start_tracee(false);
	struct place *place = place_new(false);

	CHECK(place);
	place_worker(place);
	stop(place, tracee, MANY, &now, 10000);
	cpu_set_t after = affinity(0);
	CHECK(CPU_EQUAL(&before, &after));
	CHECK(sched_getscheduler(0) == SCHED_OTHER);
	CHECK(place_spin_ns(place) == 0);
	place_free(place);
	place_free(NULL);
}

static void test_disabled_does_nothing(void **state)
{
	(void)state;
	in_child(disabled);
}

static void dead(void)
{
	cpu_set_t before = affinity(0);
	uint64_t now = 1000000000;
	pid_t tracee = start_tracee(false);
	struct place *place = place_new(true);

	CHECK(place);
	CHECK(kill(tracee, SIGKILL) == 0);
	CHECK(waitpid(tracee, NULL, 0) == tracee);
	stop(place, tracee, MANY, &now, 10000);
	cpu_set_t after = affinity(0);
	CHECK(CPU_EQUAL(&before, &after));
	/* Times that go back, which a batch of statuses may have. */
	tracee = start_tracee(false);
	stop(place, tracee, MANY, &now, 10000);
	after = affinity(0);
	CHECK(CPU_COUNT(&after) == 1);
	now -= 50000000;
	for (int i = 0; i < MANY; i++) {
		stop(place, tracee, 1, &now, 10000);
		after = affinity(0);
		CHECK(CPU_COUNT(&after) == 1);
	}
	place_free(place);
}

static void test_dead_tracees_do_no_harm(void **state)
{
	(void)state;
	in_child(dead);
}

static void shares_group(void)
{
	uint64_t now = 1000000000;
	pid_t tracee = start_tracee(false);
	struct place *place = place_new(true);

	CHECK(place);
	stop(place, tracee, MANY, &now, 10000);
	CHECK(sched_getscheduler(0) == SCHED_OTHER);
	place_free(place);
}

/* In one scheduling group with the program, SCHED_IDLE would be starvation. */
static void test_keeps_its_class_beside_the_program(void **state)
{
	(void)state;
	in_child(shares_group);
}

struct worker {
	struct place *place;
	pid_t tid;
	pthread_t thread;
	pthread_barrier_t *placed, *done;
};

static void *work(void *data)
{
	struct worker *worker = data;

	place_worker(worker->place);
	worker->tid = gettid();
	pthread_barrier_wait(worker->placed);
	pthread_barrier_wait(worker->done);
	return NULL;
}

#define WORKERS 8

static void start_workers(struct worker *workers, struct place *place, pthread_barrier_t *placed,
			  pthread_barrier_t *done)
{
	CHECK(pthread_barrier_init(placed, NULL, WORKERS + 1) == 0);
	CHECK(pthread_barrier_init(done, NULL, WORKERS + 1) == 0);
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){.place = place, .placed = placed, .done = done};
		CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
	}
	pthread_barrier_wait(placed);
}

static void end_workers(struct worker *workers, pthread_barrier_t *done)
{
	pthread_barrier_wait(done);
	for (int i = 0; i < WORKERS; i++)
		CHECK(pthread_join(workers[i].thread, NULL) == 0);
}

/* Stops from a tracee that is never where the loop is, until it spins. */
static void stop_until_apart(struct place *place, pid_t tracee)
{
	uint64_t deadline = monotonic() + 30000000000u;

	while (!place_spin_ns(place)) {
		int first = allowed_cpu(0);
		CHECK(monotonic() < deadline);
		cpu_set_t ours = affinity(0);
		if (CPU_COUNT(&ours) == 1) {
			cpu_set_t all = affinity(getppid());
			for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
				if (CPU_ISSET(cpu, &all) && cpu != first &&
				    stat_cpu(tracee) == first)
					move(tracee, cpu);
			}
		}
		for (int i = 0; i < LOOK_STOPS; i++)
			place_stop(place, tracee, monotonic());
	}
}

static void spins_apart(void)
{
	pid_t tracee = start_tracee(false);
	struct place *place = place_new(true);

	CHECK(place);
	CHECK(place_spin_ns(place) == 0);
	stop_until_apart(place, tracee);
	CHECK(place_spin_ns(place) <= SPIN_MAX_NS);
	cpu_set_t ours = affinity(0);
	CHECK(!CPU_ISSET(stat_cpu(tracee), &ours));
	/* Fewer stops than are worth it, though enough to stay near. */
	for (int i = 0; i < 150; i++) {
		usleep(300);
		place_stop(place, tracee, monotonic());
	}
	CHECK(place_spin_ns(place) == 0);
	place_free(place);
}

static void test_spins_where_they_do_not_meet(void **state)
{
	(void)state;
	need_two_cpus();
	in_child(spins_apart);
}

static void makes_room(void)
{
	pid_t tracee = start_tracee(false), rival = start_tracee(true);
	struct place *place = place_new(true);
	uint64_t deadline = monotonic() + 30000000000u;

	CHECK(place);
	/* Long preemptions may look like rare stops instead; then once more. */
	while (!place->hold_until) {
		CHECK(monotonic() < deadline);
		stop_until_apart(place, tracee);
		cpu_set_t ours = affinity(0);
		CHECK(sched_setaffinity(rival, sizeof(ours), &ours) == 0);
		while (place_spin_ns(place)) {
			CHECK(monotonic() < deadline);
			place_stop(place, tracee, monotonic());
		}
	}
	CHECK(place_spin_ns(place) == 0);
	place_free(place);
}

static void test_stops_spinning_when_the_cpu_is_wanted(void **state)
{
	cpu_set_t set = affinity(0);

	(void)state;
	/* With many CPUs the rivals would not fill them. */
	if (CPU_COUNT(&set) < 2 || CPU_COUNT(&set) > 4)
		skip();
	in_child(makes_room);
}

static void workers_keep_away(void)
{
	int first = allowed_cpu(0);
	cpu_set_t all = affinity(0);
	uint64_t now = 1000000000;
	pid_t tracee = start_tracee(false);
	struct place *place = place_new(true);
	struct worker workers[WORKERS];
	pthread_barrier_t placed, done;

	CHECK(place);
	start_workers(workers, place, &placed, &done);
	for (int i = 0; i < WORKERS; i++) {
		cpu_set_t set = affinity(workers[i].tid);
		CHECK(CPU_EQUAL(&set, &all));
	}
	move(tracee, first);
	stop(place, tracee, MANY, &now, 10000);
	for (int i = 0; i < WORKERS; i++) {
		cpu_set_t set = affinity(workers[i].tid);
		CHECK(!CPU_ISSET(first, &set) && CPU_COUNT(&set) > 0);
		CPU_AND(&set, &set, &all);
		CHECK(CPU_COUNT(&set) > 0);
		CHECK(sched_getscheduler(workers[i].tid) == SCHED_OTHER);
	}
	stop(place, tracee, 20, &now, 10000000);
	for (int i = 0; i < WORKERS; i++) {
		cpu_set_t set = affinity(workers[i].tid);
		CHECK(CPU_EQUAL(&set, &all));
	}
	end_workers(workers, &done);
	/* Their numbers are nobody's now. */
	stop(place, tracee, MANY, &now, 10000);
	place_free(place);
}

static void test_workers_keep_away_from_the_tracee(void **state)
{
	(void)state;
	need_two_cpus();
	in_child(workers_keep_away);
}

static void workers_stand_back(void)
{
	struct worker workers[WORKERS];
	pthread_barrier_t placed, done;

	bind_to(0, allowed_cpu(0));
	struct place *place = place_new(true);
	CHECK(place);
	start_workers(workers, place, &placed, &done);
	for (int i = 0; i < WORKERS; i++)
		CHECK(getpriority(PRIO_PROCESS, workers[i].tid) == 19);
	CHECK(getpriority(PRIO_PROCESS, getpid()) < 19);
	end_workers(workers, &done);
	place_free(place);
}

static void test_workers_stand_back_on_a_single_cpu(void **state)
{
	(void)state;
	in_child(workers_stand_back);
}

/* Two caches of two cores of two CPUs. */
static void test_others_by_core_and_cache(void **state)
{
	struct place *place = place_new(true);
	struct topology *topology = malloc(sizeof(*topology));
	cpu_set_t *set = CPU_ALLOC(MAX_CPUS);

	(void)state;
	assert_non_null(place);
	assert_non_null(topology);
	assert_non_null(set);
	for (int i = 0; i < MAX_CPUS; i++) {
		topology->core[i] = i / 2;
		topology->cache[i] = i / 4;
	}
	atomic_store(&place->topology, topology);
	CPU_ZERO_S(set_size(), place->allowed);
	for (int i = 0; i < 8; i++)
		CPU_SET_S(i, set_size(), place->allowed);

	others(place, 1, false, set);
	assert_int_equal(CPU_COUNT_S(set_size(), set), 6);
	assert_false(CPU_ISSET_S(0, set_size(), set) || CPU_ISSET_S(1, set_size(), set));
	others(place, 1, true, set);
	assert_int_equal(CPU_COUNT_S(set_size(), set), 2);
	assert_true(CPU_ISSET_S(2, set_size(), set) && CPU_ISSET_S(3, set_size(), set));
	others(place, -1, false, set);
	assert_int_equal(CPU_COUNT_S(set_size(), set), 8);

	/* No other core near, then no other core at all, then no other CPU. */
	CPU_CLR_S(2, set_size(), place->allowed);
	CPU_CLR_S(3, set_size(), place->allowed);
	others(place, 1, true, set);
	assert_int_equal(CPU_COUNT_S(set_size(), set), 4);
	assert_true(CPU_ISSET_S(4, set_size(), set));
	CPU_ZERO_S(set_size(), place->allowed);
	CPU_SET_S(0, set_size(), place->allowed);
	CPU_SET_S(1, set_size(), place->allowed);
	others(place, 1, false, set);
	assert_int_equal(CPU_COUNT_S(set_size(), set), 1);
	assert_true(CPU_ISSET_S(0, set_size(), set));
	CPU_CLR_S(0, set_size(), place->allowed);
	others(place, 1, false, set);
	assert_true(CPU_ISSET_S(1, set_size(), set));

	CPU_FREE(set);
	place_free(place);
}

static void reads_topology(void)
{
	struct place *place = place_new(true);

	CHECK(place);
	ask_topology(place);
	CHECK(place->topology_started);
	CHECK(pthread_join(place->topology_thread, NULL) == 0);
	place->topology_started = false;
	struct topology *topology = atomic_load(&place->topology);
	CHECK(topology);
	for (int cpu = 0, index = 0; (cpu = allowed_cpu(index)) >= 0; index++) {
		char path[128], text[256], *rest = text;
		cpu_set_t siblings;
		CPU_ZERO(&siblings);
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
		CHECK(proc_read_text(path, text, sizeof(text)));
		/* Ranges and single numbers, as in 0-1,8. */
		for (char *range; (range = strsep(&rest, ","));) {
			int from, to;
			int numbers = sscanf(range, "%d-%d", &from, &to);
			CHECK(numbers >= 1);
			for (int i = from; i <= (numbers == 2 ? to : from); i++)
				CPU_SET(i, &siblings);
		}
		for (int other, i = 0; (other = allowed_cpu(i)) >= 0; i++)
			CHECK((topology->core[other] == topology->core[cpu]) ==
			      (CPU_ISSET(other, &siblings) != 0));
	}
	place_free(place);
}

static void test_topology_is_the_kernels(void **state)
{
	(void)state;
	in_child(reads_topology);
}

/* A job's environment may name the topology of another machine, for its own use. */
static void foreign_topology(void)
{
	CHECK(setenv("HWLOC_SYNTHETIC", "core:2 pu:2", 1) == 0);
	struct place *place = place_new(true);
	CHECK(place);
	read_topology(place);
	CHECK(!atomic_load(&place->topology));
	place_free(place);
}

static void test_topology_of_another_machine_is_ignored(void **state)
{
	(void)state;
	in_child(foreign_topology);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_follows_the_tracee),
		cmocka_unit_test(test_rare_stops_bind_nothing),
		cmocka_unit_test(test_never_leaves_its_cpus),
		cmocka_unit_test(test_disabled_does_nothing),
		cmocka_unit_test(test_dead_tracees_do_no_harm),
		cmocka_unit_test(test_keeps_its_class_beside_the_program),
		cmocka_unit_test(test_spins_where_they_do_not_meet),
		cmocka_unit_test(test_stops_spinning_when_the_cpu_is_wanted),
		cmocka_unit_test(test_workers_keep_away_from_the_tracee),
		cmocka_unit_test(test_workers_stand_back_on_a_single_cpu),
		cmocka_unit_test(test_others_by_core_and_cache),
		cmocka_unit_test(test_topology_is_the_kernels),
		cmocka_unit_test(test_topology_of_another_machine_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
