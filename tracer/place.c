#include "tracer/place.h"

#include "base/number.h"
#include "base/proc.h"
#include "tracer/topology.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>

#define MAX_CPUS TOPOLOGY_MAX_CPUS

#define LOOK_STOPS     61  /* no power of two: threads that take turns must not all look like one */
#define REST_STOPS     4   /* sooner at first: short programs have few stops to gain from */
#define LOOK_STOPS_MAX 122 /* … between looks once tracer and tracee keep meeting */
#define LATE_STOPS     3   /* so many stops in a row that take this much longer than before, … */
#define LATE_TIMES     3
#define LATE_MIN_NS    20000u /* … and longer than this, are worth a look at once: they have parted */
#define LOOK_NS        20000000ul /* a look is due after this long, however few the stops */
#define JOIN_GAP_NS    2000000u   /* be where the tracee is when stops come this fast or faster */
#define SPIN_GAP_NS    200000u    /* likewise: look for the next one rather than sleep */
#define SPIN_MAX_NS    200000u
#define MEETING_LOOKS  8 /* so many looks at one thread decide whether binding helps … */
#define MEETING_MIN    3 /* … when it was found on our CPU fewer times */
#define HOLD_NS        100000000ul /* no spinning for this long after somebody else wanted the CPU, … */
#define HOLD_MAX_NS    5000000000ul /* … doubled each time, this at most */
#define TOPOLOGY_STOPS 1000 /* reading the topology takes milliseconds: not for short programs */

enum mode {
	REST,     /* unbound */
	TOGETHER, /* bound to `cpu`, where the tracee last stopped */
	APART,    /* bound away from `cpu`, spinning */
};

struct place {
	bool enabled;
	cpu_set_t *allowed;
	unsigned nallowed;

	/* The loop's. */
	uint64_t stops;
	uint64_t next_look;  /* in stops */
	uint64_t look_stops; /* between looks */
	uint64_t seen;       /* stops at the last look */
	uint64_t looked_at;
	uint64_t stopped_at; /* the last stop */
	uint64_t late_ns;    /* a stop that comes later than this after it is late, 0: none is */
	unsigned late;
	enum mode mode;
	int cpu;
	pid_t looked_tid;
	unsigned looks, met;
	uint64_t spin_ns;
	uint64_t hold_until, hold_ns;
	int schedstat; /* of the loop's thread; -1: unknown, no spinning */
	uint64_t delay_since;
	uint64_t delay; /* what it said last: ns spent runnable without a CPU */
	bool topology_asked;
	pthread_t topology_thread;
	bool topology_started;

	_Atomic(struct topology *) topology; /* NULL: each CPU is a core of its own */

	pthread_mutex_t lock; /* guards what follows */
	cpu_set_t *scratch;
	int avoided; /* CPU that the workers were told to avoid, -1: none */
	pid_t *workers;
	size_t nworkers;
};

static size_t set_size(void)
{
	return CPU_ALLOC_SIZE(MAX_CPUS);
}

struct place *place_new(bool enabled)
{
	struct place *place = calloc(1, sizeof(*place));

	if (!place)
		return NULL;
	place->cpu = place->avoided = place->schedstat = -1;
	place->look_stops = REST_STOPS;
	place->hold_ns = HOLD_NS;
	pthread_mutex_init(&place->lock, NULL);
	if (!enabled)
		return place;
	place->allowed = CPU_ALLOC(MAX_CPUS);
	place->scratch = CPU_ALLOC(MAX_CPUS);
	if (!place->allowed || !place->scratch) {
		place_free(place);
		errno = ENOMEM;
		return NULL;
	}
	/* glibc clears what the kernel does not fill in. */
	if (sched_getaffinity(0, set_size(), place->allowed))
		return place;
	place->nallowed = CPU_COUNT_S(set_size(), place->allowed);
	place->enabled = true;
	return place;
}

/* Fills `set` with the allowed CPUs that share no core with `cpu`, those near it if there are any and
 * `near`; else the ones that are not `cpu`; else all. */
static void others(const struct place *place, int cpu, bool near, cpu_set_t *set)
{
	const struct topology *topology = atomic_load(&place->topology);

	if (cpu < 0) {
		memcpy(set, place->allowed, set_size());
		return;
	}
	if (topology) {
		for (int cached = near; cached >= 0; cached--) {
			memcpy(set, place->allowed, set_size());
			for (int i = 0; i < MAX_CPUS; i++) {
				if (topology->core[i] == topology->core[cpu] ||
				    (cached && topology->cache[i] != topology->cache[cpu]))
					CPU_CLR_S(i, set_size(), set);
			}
			if (CPU_COUNT_S(set_size(), set))
				return;
		}
	}
	memcpy(set, place->allowed, set_size());
	CPU_CLR_S(cpu, set_size(), set);
	if (!CPU_COUNT_S(set_size(), set))
		memcpy(set, place->allowed, set_size());
}

/* A worker may be gone, and its number with a thread of the program by now. */
static bool is_ours(pid_t worker)
{
	return tgkill(getpid(), worker, 0) == 0;
}

/* Sends the workers away from `cpu` (-1: anywhere). Refusals do not matter: they work where they are. */
static void place_workers(struct place *place, int cpu)
{
	pthread_mutex_lock(&place->lock);
	if (cpu != place->avoided) {
		place->avoided = cpu;
		others(place, cpu, false, place->scratch);
		for (size_t i = 0; i < place->nworkers; i++) {
			if (is_ours(place->workers[i]))
				sched_setaffinity(place->workers[i], set_size(), place->scratch);
		}
	}
	pthread_mutex_unlock(&place->lock);
}

void place_worker(void *data)
{
	struct place *place = data;

	if (!place->enabled)
		return;
	if (place->nallowed == 1) {
		/* Not SCHED_IDLE: a fifth of this weight, and then traces would fall far behind a program that
		 * computes. */
		setpriority(PRIO_PROCESS, gettid(), 19);
		return;
	}
	pthread_mutex_lock(&place->lock);
	others(place, place->avoided, false, place->scratch);
	sched_setaffinity(0, set_size(), place->scratch);
	pid_t *workers = reallocarray(place->workers, place->nworkers + 1, sizeof(*workers));
	if (workers) {
		place->workers = workers;
		workers[place->nworkers++] = gettid();
	}
	pthread_mutex_unlock(&place->lock);
}

static void *read_topology(void *data)
{
	struct place *place = data;

	/* The loop's CPU is wanted by the loop and the program. */
	sched_setaffinity(0, set_size(), place->allowed);
	atomic_store(&place->topology, topology_read());
	return NULL;
}

/* In a thread of its own: on a large node it takes longer than thousands of stops. */
static void ask_topology(struct place *place)
{
	sigset_t all, before;

	place->topology_asked = true;
	sigfillset(&all);
	if (pthread_sigmask(SIG_BLOCK, &all, &before))
		return;
	place->topology_started =
		pthread_create(&place->topology_thread, NULL, read_topology, place) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* @return the CPU on which `tid` runs or ran last, -1: it is gone. */
static int cpu_of(pid_t tid)
{
	char path[64], text[1024];
	long cpu;

	/* Through its own task directory: the other form adds up all threads of the process. */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", tid, tid);
	if (!proc_read_text(path, text, sizeof(text)))
		return -1;
	char *rest = strrchr(text, ')');
	/* The name is field 2, the CPU field 39. */
	char *field = strsep(&rest, " ");
	for (int i = 2; i < 39 && field; i++)
		field = strsep(&rest, " ");
	if (!field || number_parse(field, 0, MAX_CPUS - 1, &cpu))
		return -1;
	return (int)cpu;
}

/* @return ns that the loop's thread spent waiting for a CPU so far, UINT64_MAX: unknown. */
static uint64_t run_delay(struct place *place)
{
	char text[128];
	unsigned long long delay;

	if (place->schedstat < 0) {
		place->schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
		if (place->schedstat < 0)
			return UINT64_MAX;
	}
	ssize_t n = pread(place->schedstat, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return UINT64_MAX;
	text[n] = '\0';
	return sscanf(text, "%*u %llu", &delay) == 1 ? delay : UINT64_MAX;
}

static void rest(struct place *place)
{
	place->spin_ns = 0;
	place->look_stops = REST_STOPS;
	if (place->mode == REST)
		return;
	place->mode = REST;
	place->late_ns = 0;
	place->cpu = -1;
	sched_setaffinity(0, set_size(), place->allowed);
	place_workers(place, -1);
}

static void join(struct place *place, int cpu)
{
	cpu_set_t *set = place->scratch;

	place->spin_ns = 0;
	place->look_stops = LOOK_STOPS;
	place->mode = TOGETHER;
	place->cpu = cpu;
	if (!CPU_ISSET_S(cpu, set_size(), place->allowed))
		return; /* the program went where we may not follow */
	pthread_mutex_lock(&place->lock);
	CPU_ZERO_S(set_size(), set);
	CPU_SET_S(cpu, set_size(), set);
	/* Fails when a CPU was taken from the job meanwhile: then the kernel has placed us. */
	sched_setaffinity(0, set_size(), set);
	pthread_mutex_unlock(&place->lock);
}

static void part(struct place *place, int cpu)
{
	place->mode = APART;
	place->late_ns = 0;
	place->look_stops = LOOK_STOPS;
	place->cpu = cpu;
	pthread_mutex_lock(&place->lock);
	others(place, cpu, true, place->scratch);
	sched_setaffinity(0, set_size(), place->scratch);
	pthread_mutex_unlock(&place->lock);
}

/* Bound to the tracee's CPU: follows it, and finds out whether that is of use. */
static void look_together(struct place *place, pid_t tid, int cpu, uint64_t gap, uint64_t now)
{
	bool met = cpu == place->cpu;

	if (met) {
		place_workers(place, cpu);
		/* Late where it was: it is the program that has become slower. */
		place->late_ns = place->late >= LATE_STOPS ? place->late_ns * 2 : gap * LATE_TIMES;
		if (place->late_ns < LATE_MIN_NS)
			place->late_ns = LATE_MIN_NS;
		if (place->look_stops < LOOK_STOPS_MAX)
			place->look_stops *= 2;
	} else {
		join(place, cpu);
	}
	/* Two threads that stop in turn are on two CPUs by right. */
	if (tid == place->looked_tid) {
		place->looks++;
		place->met += met;
	}
	if (place->looks < MEETING_LOOKS)
		return;
	if (place->met < MEETING_MIN && place->nallowed > 1 && gap <= SPIN_GAP_NS &&
	    now >= place->hold_until) {
		part(place, cpu);
		place->delay = run_delay(place);
		place->delay_since = now;
	}
	place->looks = place->met = 0;
}

/* @return whether somebody else wants the CPU on which the loop spins. One preemption says nothing, so it
 * takes as long as the time between two looks by time. */
static bool is_contended(struct place *place, uint64_t now)
{
	uint64_t elapsed = now - place->delay_since;

	if (elapsed < LOOK_NS)
		return false;
	uint64_t delay = run_delay(place);
	bool contended = delay == UINT64_MAX || delay - place->delay > elapsed / 8;
	place->delay = delay;
	place->delay_since = now;
	return contended;
}

/* Spinning on another CPU: goes on as long as stops come fast and that CPU is not wanted. */
static void look_apart(struct place *place, int cpu, uint64_t gap, uint64_t now)
{
	if (is_contended(place, now)) {
		place->hold_until = now + place->hold_ns;
		place->hold_ns =
			place->hold_ns * 2 < HOLD_MAX_NS ? place->hold_ns * 2 : HOLD_MAX_NS;
		join(place, cpu);
		return;
	}
	if (gap > SPIN_GAP_NS) {
		join(place, cpu);
		return;
	}
	if (now > place->hold_until + HOLD_MAX_NS)
		place->hold_ns = HOLD_NS;
	if (cpu != place->cpu)
		part(place, cpu);
	place_workers(place, cpu);
	place->spin_ns = gap * 4 < SPIN_MAX_NS ? gap * 4 : SPIN_MAX_NS;
}

static void look(struct place *place, pid_t tid, uint64_t now)
{
	/* Statuses of one batch may carry times that are not in order. */
	uint64_t elapsed = now > place->looked_at ? now - place->looked_at : 0;
	uint64_t gap = elapsed / (place->stops - place->seen);

	place->looked_at = place->stopped_at = now;
	place->seen = place->stops;
	if (gap > JOIN_GAP_NS) {
		rest(place);
	} else {
		int cpu = cpu_of(tid);
		if (cpu < 0) {
			/* Died at its stop: the next one will tell. */
		} else if (place->mode == REST) {
			join(place, cpu);
			place->looks = place->met = 0;
		} else if (place->mode == TOGETHER) {
			look_together(place, tid, cpu, gap, now);
		} else {
			look_apart(place, cpu, gap, now);
		}
		place->looked_tid = tid;
		if (!place->topology_asked && place->stops >= TOPOLOGY_STOPS && place->nallowed > 2)
			ask_topology(place);
	}
	place->late = 0;
	place->next_look = place->stops + place->look_stops;
}

/* @return whether the last few stops came so late that the kernel has probably moved the tracee. */
static bool is_late(struct place *place, uint64_t now)
{
	bool late = place->late_ns && now > place->stopped_at + place->late_ns;

	place->stopped_at = now;
	place->late = late ? place->late + 1 : 0;
	return place->late >= LATE_STOPS;
}

void place_stop(struct place *place, pid_t tid, uint64_t now)
{
	place->stops++;
	if (!place->enabled || (place->stops < place->next_look &&
				now < place->looked_at + LOOK_NS && !is_late(place, now)))
		return;
	look(place, tid, now);
}

uint64_t place_spin_ns(const struct place *place)
{
	return place->spin_ns;
}

void place_free(struct place *place)
{
	if (!place)
		return;
	if (place->topology_started)
		pthread_join(place->topology_thread, NULL);
	if (place->enabled)
		rest(place);
	if (place->schedstat >= 0)
		close(place->schedstat);
	free(atomic_load(&place->topology));
	free(place->workers);
	if (place->allowed)
		CPU_FREE(place->allowed);
	if (place->scratch)
		CPU_FREE(place->scratch);
	pthread_mutex_destroy(&place->lock);
	free(place);
}
