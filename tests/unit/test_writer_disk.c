/* What is on disk at any moment: after each write, after a kill, and when the disk refuses. This
 * program has a pwrite of its own, so that it can look at the file after each call and let calls
 * fail. */
#include "test_writer.h"

#include <signal.h>
#include <stdatomic.h>

#include <sys/resource.h>
#include <sys/syscall.h>

enum { PAGE = 4096 };

/* What the next calls of pwrite do. */
static struct {
	atomic_bool watch;    /* read the file after each */
	atomic_ulong calls;   /* so far */
	atomic_ulong valid;   /* after how many of them the file was valid, bytes behind allowed */
	atomic_ulong clean;   /* and had no bytes behind */
	atomic_ulong crossed; /* overwrites that crossed a page */
	atomic_long seen;     /* events at the last look */
	atomic_long less;     /* looks that saw fewer events than the one before */
	atomic_long budget;   /* bytes until the disk is full; < 0: no limit */
	atomic_int error;     /* what a full disk answers */
} disk = {.budget = -1};

static void reset_disk(void)
{
	disk.watch = false;
	disk.calls = disk.valid = disk.clean = disk.crossed = 0;
	disk.seen = disk.less = 0;
	disk.budget = -1;
	disk.error = ENOSPC;
}

static void look(int fd)
{
	char link[64];
	char path[512];
	struct contents contents;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, path, sizeof(path) - 1);
	if (len < 0)
		return;
	path[len] = '\0';
	read_trace(path, &contents);
	long events = contents.valid ? count_events(&contents.text) : -1;
	if (events >= 0 && contents.cut_at_lines)
		disk.valid++;
	if (events >= 0 && contents.behind == 0)
		disk.clean++;
	if (events < disk.seen)
		disk.less++;
	disk.seen = events;
	buf_free(&contents.text);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	struct stat st;

	disk.calls++;
	if (fstat(fd, &st) == 0 && at < st.st_size && at / PAGE != (at + (off_t)len - 1) / PAGE)
		disk.crossed++;
	if (disk.budget >= 0) {
		/* What replaces bytes needs no room. */
		off_t end = at + (off_t)len;
		off_t more = end > st.st_size ? end - st.st_size : 0;
		if (more > disk.budget) {
			more = disk.budget;
			if (more == 0) {
				errno = disk.error;
				return -1;
			}
			len = (size_t)(st.st_size + more - at);
		}
		disk.budget -= more;
	}
	ssize_t n = syscall(SYS_pwrite64, fd, bytes, len, at);
	if (disk.watch)
		look(fd);
	return n;
}

/* Waits until the workers have nothing to do. */
static void settle(struct place *place, uint64_t events)
{
	struct writer_totals totals;
	uint64_t until = now(place) + 20000 * MS;
	do {
		usleep(100);
		writer_totals(place->writer, &totals);
	} while (totals.events + totals.lost_events < events && now(place) < until);
	assert_int_equal(totals.events + totals.lost_events, events);
}

/* Adds events and has them flushed: one that ends well after the chunk's first makes it old. */
static void add_flush(struct place *place, struct trace *trace, struct name *file, unsigned events)
{
	for (unsigned i = 1; i < events; i++)
		add_pread(place, trace, 77, file, 0);
	add_pread(place, trace, 77, file, now(place) + 400 * MS);
	settle(place, trace_events(trace));
}

static void the_file_is_valid_after_each_write(void **state)
{
	(void)state;
	/* Each kind of file; flushes of one line to many. */
	for (unsigned kind = 0; kind < 4; kind++) {
		bool plain = kind & 1;
		struct place place;
		struct contents contents;
		struct name *file = name_of("/data/x");
		reset_disk();
		place_new(&place);
		place.options.compress = !plain;
		place.options.v2 = kind & 2;
		place_start(&place);
		struct trace *trace = open_trace(&place, 77, "app");
		disk.watch = !plain;
		srandom(5);
		for (int i = 0; i < 1500; i++)
			add_flush(&place, trace, file, random() % 8 ? 1 : 1 + random() % 50);
		uint64_t events = trace_events(trace);
		assert_int_equal(finish(trace, true), 0);
		disk.watch = false;
		if (!plain) {
			assert_true(disk.calls > 3000);
			assert_int_equal(disk.valid, disk.calls);
			assert_true(disk.clean >= disk.calls / 2);
			assert_int_equal(disk.less, 0);
		}
		assert_int_equal(disk.crossed, 0);
		read_only_trace(&place, &contents);
		assert_int_equal(count_events(&contents.text), events);
		assert_true(contents.size > 10 * PAGE);
		place_stop(&place);
		name_unref(file);
		buf_free(&contents.text);
		place_remove(&place);
	}
}

static void gzip_itself_agrees(void **state)
{
	struct place place;
	char command[256];
	(void)state;
	reset_disk();
	place_new(&place);
	place_start(&place);
	struct trace *trace = open_trace(&place, 77, "app");
	for (int i = 0; i < 20; i++)
		add_flush(&place, trace, NULL, 100);
	snprintf(command, sizeof(command), "gzip -t %s/*.gz", place.dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(finish(trace, true), 0);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command), "test $(zcat %s/*.gz | grep -c pread) = 2000",
		 place.dir);
	assert_int_equal(system(command), 0);
	place_stop(&place);
	place_remove(&place);
}

static void members_end_after_8_mib(void **state)
{
	struct place place;
	struct contents contents;
	struct name *file = name_of("/data/x");
	(void)state;
	reset_disk();
	place_new(&place);
	place_start(&place);
	struct trace *trace = open_trace(&place, 77, "app");
	for (int i = 0; i < 120000; i++)
		add_pread(&place, trace, 77, file, 0);
	assert_int_equal(finish(trace, true), 0);
	read_only_trace(&place, &contents);
	assert_int_equal(count_events(&contents.text), 120000);
	assert_true(contents.members >= 3);
	assert_true(contents.cut_at_lines);
	assert_true(contents.biggest >= 8 << 20 && contents.biggest < 9 << 20);
	place_stop(&place);
	name_unref(file);
	buf_free(&contents.text);
	place_remove(&place);
}

/* Writes until the disk is full after `budget` bytes, and checks what is left. */
static void fill_disk(long budget, int error, bool compress)
{
	struct place place;
	struct contents contents;
	struct writer_totals totals;
	struct name *file = name_of("/data/x");
	char path[512];

	reset_disk();
	place_new(&place);
	place.options.compress = compress;
	place_start(&place);
	struct trace *trace = open_trace(&place, 77, "app");
	disk.budget = budget;
	disk.error = error;
	for (int i = 0; i < 60; i++)
		add_flush(&place, trace, file, 20);
	disk.budget = -1;
	/* The trace has ended; it does not come back when there is room again. */
	for (int i = 0; i < 10; i++)
		add_pread(&place, trace, 77, file, 0);
	uint64_t events = trace_events(trace);
	assert_int_equal(events, 1210);
	assert_int_equal(finish(trace, true), 0);

	writer_totals(place.writer, &totals);
	assert_int_equal(totals.first_errno, error);
	assert_non_null(totals.first_path);
	assert_memory_equal(totals.first_path, place.prefix, strlen(place.prefix));
	assert_int_equal(totals.lost_files, 1);
	assert_int_equal(totals.events + totals.lost_events, events);
	assert_true(totals.lost_events >= 10);
	unsigned files = find_files(&place, path, sizeof(path));
	assert_int_equal(files, totals.files);
	if (files) {
		read_only_trace(&place, &contents);
		assert_int_equal(count_events(&contents.text), totals.events);
		assert_true(totals.events > 0);
		buf_free(&contents.text);
	} else {
		assert_int_equal(totals.events, 0);
	}
	place_stop(&place);
	name_unref(file);
	place_remove(&place);
}

static void a_full_disk_ends_the_trace_where_it_was_valid(void **state)
{
	(void)state;
	for (long budget = 0; budget < 1200; budget += 7)
		fill_disk(budget, ENOSPC, true);
	for (long budget = 4000; budget < 4200; budget += 7)
		fill_disk(budget, EDQUOT, true);
	for (long budget = 0; budget < 12000; budget += 531)
		fill_disk(budget, EIO, false);
}

/* The same by the kernel's own limit, in a process of its own. */
static void a_file_size_limit_ends_the_trace(void **state)
{
	struct place place;
	struct contents contents;
	int status;
	(void)state;
	reset_disk();
	place_new(&place);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct writer_totals totals;
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){10000, 10000});
		place_start(&place);
		struct trace *trace = open_trace(&place, 77, "app");
		for (int i = 0; i < 100; i++)
			add_flush(&place, trace, NULL, 60);
		finish(trace, true);
		writer_totals(place.writer, &totals);
		bool right = totals.first_errno == EFBIG && totals.lost_files == 1 &&
			     totals.lost_events > 0 && totals.events > 0 &&
			     totals.lost_events + totals.events == 6000;
		place_stop(&place);
		_exit(right ? (int)(totals.events / 60) : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) > 0);
	read_only_trace(&place, &contents);
	assert_int_equal(count_events(&contents.text), 60 * WEXITSTATUS(status));
	buf_free(&contents.text);
	place_remove(&place);
}

static void a_file_that_cannot_be_made_is_counted(void **state)
{
	struct place place;
	struct writer_totals totals;
	char path[512];
	(void)state;
	reset_disk();
	place_new(&place);
	strcat(place.prefix, "/sub/t");
	place_start(&place);
	/* A file where a directory should be. */
	snprintf(path, sizeof(path), "%s/t", place.dir);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	for (int i = 0; i < 2; i++) {
		struct trace *trace = open_trace(&place, 77 + i, "app");
		add_pread(&place, trace, 77 + i, NULL, 0);
		add_pread(&place, trace, 77 + i, NULL, 0);
		assert_int_equal(finish(trace, true), 0);
	}
	writer_totals(place.writer, &totals);
	assert_int_equal(totals.first_errno, ENOTDIR);
	assert_memory_equal(totals.first_path, place.prefix, strlen(place.prefix));
	assert_int_equal(totals.lost_files, 2);
	assert_int_equal(totals.lost_events, 4);
	assert_int_equal(totals.files + totals.events, 0);

	/* The next one, when the directory can be made again, is written. */
	assert_int_equal(unlink(path), 0);
	struct trace *trace = open_trace(&place, 80, "app");
	add_pread(&place, trace, 80, NULL, 0);
	assert_int_equal(finish(trace, true), 0);
	writer_totals(place.writer, &totals);
	assert_int_equal(totals.files, 1);
	assert_int_equal(totals.events, 1);
	place_stop(&place);
	place_remove(&place);
}

static void a_removed_file_is_counted_as_lost(void **state)
{
	struct place place;
	struct writer_totals totals;
	char command[128];
	(void)state;
	reset_disk();
	place_new(&place);
	place_start(&place);
	struct trace *trace = open_trace(&place, 77, "app");
	add_flush(&place, trace, NULL, 10);
	snprintf(command, sizeof(command), "rm -r %s", place.dir);
	assert_int_equal(system(command), 0);
	add_flush(&place, trace, NULL, 10);
	assert_int_equal(finish(trace, true), 0);
	writer_totals(place.writer, &totals);
	assert_int_equal(totals.first_errno, ENOENT);
	assert_int_equal(totals.lost_files, 1);
	assert_int_equal(totals.lost_events, 20);
	assert_int_equal(totals.files + totals.events, 0);
	place_stop(&place);
}

/* Writes until it is killed, and tells before each event when it is given. */
static void write_until_killed(struct place *place, int told)
{
	struct name *file = name_of("/data/x");
	place_start(place);
	struct trace *trace = open_trace(place, 77, "app");
	for (uint64_t n = 1;; n++) {
		uint64_t at = now(place);
		add_pread(place, trace, 77, file, at);
		if (writer_next_tick(place->writer) && writer_next_tick(place->writer) < at)
			writer_tick(place->writer);
		uint64_t told_now[2] = {n, at};
		if (n % 16 == 0 && write(told, told_now, sizeof(told_now)) < 0)
			_exit(1);
		if (n % 64 == 0)
			usleep(200);
	}
}

static void nothing_but_the_last_second_dies_with_us(void **state)
{
	(void)state;
	srandom(11);
	for (int round = 0; round < 24; round++) {
		struct place place;
		struct contents contents;
		char path[512];
		int told[2];
		uint64_t last[2];
		uint64_t old = 0;
		int status;

		reset_disk();
		place_new(&place);
		assert_int_equal(pipe2(told, O_CLOEXEC), 0);
		pid_t child = fork();
		assert_true(child >= 0);
		if (child == 0)
			write_until_killed(&place, told[1]);
		close(told[1]);
		/* Some die before there is a file, the others at any moment of a flush. */
		uint64_t kill_at = now(&place) + (uint64_t)(random() % 600) * MS +
				   (round % 4 == 0 ? 1000 * MS : 0);
		uint64_t must_have = kill_at - 1000 * MS;
		while (now(&place) < kill_at && read(told[0], last, sizeof(last)) > 0) {
			if (last[1] < must_have)
				old = last[0];
		}
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		close(told[0]);

		unsigned files = find_files(&place, path, sizeof(path));
		struct stat st;
		/* Between creation and first write it is empty: microseconds, but possible. */
		if (files && stat(path, &st) == 0 && st.st_size > 0) {
			read_trace(path, &contents);
			assert_true(contents.valid);
			long events = count_events(&contents.text);
			assert_true(events >= (long)old);
			buf_free(&contents.text);
		} else {
			assert_int_equal(old, 0);
		}
		place_remove(&place);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_file_is_valid_after_each_write),
		cmocka_unit_test(gzip_itself_agrees),
		cmocka_unit_test(members_end_after_8_mib),
		cmocka_unit_test(a_full_disk_ends_the_trace_where_it_was_valid),
		cmocka_unit_test(a_file_size_limit_ends_the_trace),
		cmocka_unit_test(a_file_that_cannot_be_made_is_counted),
		cmocka_unit_test(a_removed_file_is_counted_as_lost),
		cmocka_unit_test(nothing_but_the_last_second_dies_with_us),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
