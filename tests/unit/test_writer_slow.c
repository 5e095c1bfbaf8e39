/* A disk that hangs or is slow, and many traces at once. This program has a pwrite of its own
 * that waits as long as it is told to. */
#include "test_writer.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>

#include <sys/resource.h>
#include <sys/syscall.h>

static atomic_bool hang;     /* pwrite does not return */
static atomic_bool hang_one; /* the same for the first file only that comes */
static atomic_int hung_fd;   /* that file's, 0: none yet */
static atomic_uint hanging;  /* calls that wait now */
static atomic_uint delay_us; /* before each pwrite */

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	if (delay_us)
		usleep(delay_us);
	hanging++;
	int none = 0;
	while (hang ||
	       (hang_one && (atomic_compare_exchange_strong(&hung_fd, &none, fd) || hung_fd == fd)))
		usleep(1000);
	hanging--;
	return syscall(SYS_pwrite64, fd, bytes, len, at);
}

static void wait_until_it_hangs(void)
{
	for (int i = 0; i < 5000 && !hanging; i++)
		usleep(1000);
	assert_true(hanging > 0);
}

/* Sanitizers need memory of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MEMORY_COUNTS = 0 };
#else
enum { MEMORY_COUNTS = 1 };
#endif

static size_t resident_kib(void)
{
	size_t pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*u %zu", &pages), 1);
	fclose(f);
	return pages * 4;
}

static void *release_later(void *data)
{
	usleep(*(useconds_t *)data);
	hang = false;
	return NULL;
}

static void a_full_queue_makes_the_caller_wait(void **state)
{
	struct place place;
	struct contents contents;
	useconds_t after = 1500000;
	pthread_t thread;
	enum {
		EVENTS = 90000 /* 18 MB of lines */
	};
	(void)state;
	place_new(&place);
	place_start(&place);
	struct trace *trace = open_trace(&place, 77, "app");
	size_t before = resident_kib();
	hang = true;
	assert_int_equal(pthread_create(&thread, NULL, release_later, &after), 0);
	uint64_t start = now(&place);
	/* Times in the past: what is measured is the limit in bytes, not that in time. */
	for (int i = 0; i < EVENTS; i++)
		add_pread(&place, trace, 77, NULL, start);
	uint64_t took = now(&place) - start;
	size_t grown = resident_kib() - before;
	pthread_join(thread, NULL);
	assert_true(took >= 1300 * MS);
	assert_true(!MEMORY_COUNTS || grown < 14 << 10);
	assert_int_equal(finish(trace, true), 0);
	read_only_trace(&place, &contents);
	assert_int_equal(count_events(&contents.text), EVENTS);
	place_stop(&place);
	buf_free(&contents.text);
	place_remove(&place);
}

static void late_workers_make_the_caller_wait_a_little(void **state)
{
	struct place place;
	(void)state;
	place_new(&place);
	place_start(&place);
	struct trace *trace = open_trace(&place, 77, "app");
	hang = true;
	add_pread(&place, trace, 77, NULL, now(&place) + 400 * MS);
	uint64_t start = now(&place);
	for (int i = 0; i < 100; i++)
		add_pread(&place, trace, 77, NULL, 0);
	assert_true(now(&place) - start < 40 * MS);
	usleep(800000);
	start = now(&place);
	for (int i = 0; i < 3; i++)
		add_pread(&place, trace, 77, NULL, 0);
	uint64_t took = now(&place) - start;
	assert_true(took >= 140 * MS && took < 2000 * MS);
	/* What is on its way is neither there nor lost. */
	struct writer_totals totals;
	writer_totals(place.writer, &totals);
	assert_int_equal(totals.events + totals.files + totals.lost_events, 0);
	assert_true(totals.late_events > 0);
	assert_int_equal(totals.late_files, 1);
	hang = false;
	/* Once they have caught up, nothing waits. */
	do {
		usleep(1000);
		writer_totals(place.writer, &totals);
	} while (totals.events == 0);
	usleep(50000);
	start = now(&place);
	for (int i = 0; i < 100; i++)
		add_pread(&place, trace, 77, NULL, 0);
	assert_true(now(&place) - start < 40 * MS);
	assert_int_equal(finish(trace, true), 0);
	place_stop(&place);
	place_remove(&place);
}

static int finish_by(struct place *place, struct trace *trace, uint64_t ms, uint64_t *took)
{
	struct trace_end end = {.how = TRACE_END_EXIT, .value = 3};
	uint64_t start = now(place);
	errno = 0;
	int result = trace_finish(trace, &end, true, start + ms * MS);
	*took = (now(place) - start) / MS;
	if (result < 0)
		assert_int_equal(errno, ETIMEDOUT);
	return result;
}

static void finishing_waits_for_a_hang_once(void **state)
{
	struct place place;
	uint64_t took;
	char path[512];
	(void)state;
	place_new(&place);
	place_start(&place);
	struct trace *traces[4];
	for (int i = 0; i < 4; i++) {
		traces[i] = open_trace(&place, 77 + i, "app");
		add_pread(&place, traces[i], 77 + i, NULL, 0);
	}
	hang = true;
	assert_int_equal(finish_by(&place, traces[0], 300, &took), -1);
	assert_true(took >= 290 && took < 1000);
	assert_int_equal(finish_by(&place, traces[1], 300, &took), -1);
	assert_true(took < 100);
	assert_int_equal(finish_by(&place, traces[2], 300, &took), -1);
	assert_true(took < 100);
	hang = false;
	struct writer_totals totals = {0};
	while (totals.events == 0) {
		usleep(1000);
		writer_totals(place.writer, &totals);
	}
	assert_int_equal(finish_by(&place, traces[3], 10000, &took), 0);
	place_stop(&place);
	/* What was not waited for was finished all the same. */
	assert_int_equal(find_files(&place, path, sizeof(path)), 4);
	char command[128];
	snprintf(command, sizeof(command), "test $(zcat %s/*.gz | grep -c exit_status.:3) = 4",
		 place.dir);
	assert_int_equal(system(command), 0);
	place_remove(&place);
}

static void freeing_leaves_a_hung_worker_behind(void **state)
{
	struct place place;
	(void)state;
	place_new(&place);
	place.options.workers = 2;
	place_start(&place);
	struct trace *trace = open_trace(&place, 77, "app");
	hang = true;
	add_pread(&place, trace, 77, NULL, now(&place) + 400 * MS);
	wait_until_it_hangs();
	uint64_t start = now(&place);
	errno = 0;
	assert_int_equal(writer_free(place.writer, start + 200 * MS), -1);
	assert_int_equal(errno, ETIMEDOUT);
	uint64_t took = (now(&place) - start) / MS;
	assert_true(took >= 190 && took < 1000);
	/* It comes back to memory that is still there. */
	hang = false;
	usleep(200000);
	place_remove(&place);
}

static void another_trace_is_written_while_one_hangs(void **state)
{
	struct place place;
	uint64_t took;
	(void)state;
	place_new(&place);
	place.options.workers = 2;
	place_start(&place);
	struct trace *stuck = open_trace(&place, 77, "app");
	struct trace *free_one = open_trace(&place, 78, "app");
	add_pread(&place, free_one, 78, NULL, 0);
	hang_one = true;
	add_pread(&place, stuck, 77, NULL, now(&place) + 400 * MS);
	wait_until_it_hangs();
	assert_int_equal(finish_by(&place, free_one, 5000, &took), 0);
	assert_true(took < 1000);
	assert_true(hanging > 0);
	hang_one = false;
	hung_fd = 0;
	assert_int_equal(finish(stuck, true), 0);
	place_stop(&place);
	place_remove(&place);
}

static unsigned count_threads(const char *prefix)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		char path[300];
		char comm[32] = "";
		char status[64];
		unsigned long long blocked = 0;
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		FILE *f = fopen(path, "re");
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f) && strncmp(comm, prefix, strlen(prefix)) == 0)
			count++;
		fclose(f);
		if (strncmp(comm, prefix, strlen(prefix)) != 0)
			continue;
		/* No signal may choose a worker. */
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		f = fopen(path, "re");
		assert_non_null(f);
		while (fgets(status, sizeof(status), f))
			sscanf(status, "SigBlk: %llx", &blocked);
		fclose(f);
		assert_true((blocked & 0x7fffffff) == (0x7fffffff & ~(1U << 8 | 1U << 18)));
	}
	closedir(dir);
	return count;
}

static void worker_started(void *data)
{
	atomic_uint *count = data;
	usleep(20000);
	(*count)++;
}

static void workers_take_their_places_first(void **state)
{
	struct place place;
	atomic_uint count = 0;
	(void)state;
	place_new(&place);
	place.options.workers = 3;
	place.options.worker_started = worker_started;
	place.options.worker_data = &count;
	place_start(&place);
	assert_int_equal(count, 3);
	assert_int_equal(count_threads("dftrace-write"), 3);
	place_stop(&place);
	assert_int_equal(count_threads("dftrace-write"), 0);
	place.options.workers = 0;
	place.options.worker_started = NULL;
	place_start(&place);
	assert_in_range(count_threads("dftrace-write"), 1, 4);
	place_stop(&place);
	place_remove(&place);
}

/* Many traces, events in all of them in turn, on several workers. */
static void thousands_of_traces_fit(void **state)
{
	struct place place;
	enum {
		TRACES = 2000,
		ROUNDS = 30,
	};
	static struct trace *traces[TRACES];
	struct rlimit limit;
	DIR *dir;
	struct dirent *entry;
	unsigned files = 0;
	(void)state;
	/* Fewer descriptors than traces. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	struct rlimit few = {512, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	place_new(&place);
	place.options.workers = 3;
	place_start(&place);
	size_t before = resident_kib();
	size_t most = before;
	struct name *file = name_of("/data/x");
	for (int i = 0; i < TRACES; i++)
		traces[i] = open_trace(&place, 1000 + i, "app");
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < TRACES; i++) {
			/* Every third round the chunk is old. */
			uint64_t at = round % 3 == 2 ? now(&place) + 400 * MS : 0;
			add_pread(&place, traces[i], 1000 + i, file, at);
		}
		size_t size = resident_kib();
		most = size > most ? size : most;
	}
	for (int i = 0; i < TRACES; i++)
		assert_int_equal(finish(traces[i], i == TRACES - 1), 0);
	name_unref(file);
	assert_int_equal(writer_free(place.writer, 0), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	/* Per trace a chunk of 4 to 8 KiB and its maps, 192 KiB per stream, 8 MiB of queue. */
	assert_true(!MEMORY_COUNTS || most - before < 40 << 10);

	dir = opendir(place.dir);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		struct contents contents;
		char path[512];
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", place.dir, entry->d_name);
		read_trace(path, &contents);
		assert_true(contents.valid && contents.behind == 0 && contents.members == 1);
		assert_int_equal(count_events(&contents.text), ROUNDS);
		/* Lines of another trace would have another pid; and each stands in order. */
		const char *p = contents.text.data;
		char pid[32];
		p = strstr(p, "\"pid\":");
		assert_non_null(p);
		snprintf(pid, sizeof(pid), "%.*s", 10, p);
		assert_int_equal(count_text(&contents.text, pid),
				 count_text(&contents.text, "\"pid\":"));
		uint64_t id = 0;
		while ((p = strstr(p, "\n{\"id\":"))) {
			uint64_t next = strtoull(p + 7, NULL, 10);
			p++;
			/* Only the lines that introduce a name come after their event's number. */
			assert_true(next > id || next + 2 >= id);
			id = next;
		}
		buf_free(&contents.text);
		files++;
	}
	closedir(dir);
	assert_int_equal(files, TRACES);
	place_remove(&place);
}

static void a_slow_disk_loses_nothing(void **state)
{
	struct place place;
	struct writer_totals totals;
	enum {
		TRACES = 5,
		EVENTS = 20000,
	};
	struct trace *traces[TRACES];
	(void)state;
	place_new(&place);
	place.options.workers = 2;
	place_start(&place);
	delay_us = 3000;
	for (int i = 0; i < TRACES; i++)
		traces[i] = open_trace(&place, 1000 + i, "app");
	for (int n = 0; n < EVENTS; n++) {
		for (int i = 0; i < TRACES; i++)
			add_pread(&place, traces[i], 1000 + i, NULL, 0);
	}
	for (int i = 0; i < TRACES; i++)
		assert_int_equal(finish(traces[i], true), 0);
	delay_us = 0;
	writer_totals(place.writer, &totals);
	assert_int_equal(totals.events, TRACES * EVENTS);
	assert_int_equal(totals.files, TRACES);
	assert_int_equal(totals.lost_events, 0);
	place_stop(&place);
	char command[160];
	snprintf(command, sizeof(command), "test $(zcat %s/*.gz | grep -c '\"pread\"') = %d",
		 place.dir, TRACES * EVENTS);
	assert_int_equal(system(command), 0);
	place_remove(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_take_their_places_first),
		cmocka_unit_test(a_full_queue_makes_the_caller_wait),
		cmocka_unit_test(late_workers_make_the_caller_wait_a_little),
		cmocka_unit_test(finishing_waits_for_a_hang_once),
		cmocka_unit_test(another_trace_is_written_while_one_hangs),
		cmocka_unit_test(freeing_leaves_a_hung_worker_behind),
		cmocka_unit_test(thousands_of_traces_fit),
		cmocka_unit_test(a_slow_disk_loses_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
