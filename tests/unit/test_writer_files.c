/* Trace files: their names, which traces get one, and when. */
#include "test_writer.h"

static void expect_path(const struct place *place, const char *word, const char *suffix)
{
	char path[256];
	struct stat st;
	snprintf(path, sizeof(path), "%s-%016llx-preload%s", place->prefix,
		 (unsigned long long)name_hash_text(word, strlen(word)), suffix);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void names_never_collide(void **state)
{
	struct place place;
	char host[65];
	char word[128];
	char path[256];
	(void)state;
	place_new(&place);
	assert_int_equal(gethostname(host, sizeof(host)), 0);

	/* A symbolic link that waits at the second name must not be followed, nor counted as
	 * free. */
	snprintf(word, sizeof(word), "app-%s-77-2", host);
	snprintf(path, sizeof(path), "%s-%016llx-preload.pfw.gz", place.prefix,
		 (unsigned long long)name_hash_text(word, strlen(word)));
	assert_int_equal(symlink("/tmp/test-writer-nowhere", path), 0);
	for (int i = 0; i < 3; i++) {
		place_start(&place);
		struct trace *trace = open_trace(&place, 77, "app");
		add_pread(&place, trace, 77, NULL, 0);
		assert_int_equal(finish(trace, true), 0);
		place_stop(&place);
	}
	assert_int_equal(find_files(&place, path, sizeof(path)), 4);
	assert_int_not_equal(access("/tmp/test-writer-nowhere", F_OK), 0);
	snprintf(word, sizeof(word), "app-%s-77", host);
	expect_path(&place, word, ".pfw.gz");
	snprintf(word, sizeof(word), "app-%s-77-3", host);
	expect_path(&place, word, ".pfw.gz");
	snprintf(word, sizeof(word), "app-%s-77-4", host);
	expect_path(&place, word, ".pfw.gz");
	place_remove(&place);
}

static void directories_are_made(void **state)
{
	struct place place;
	char host[65];
	char word[128];
	(void)state;
	place_new(&place);
	strcat(place.prefix, "/a/b/c/run 1");
	place.options.compress = false;
	place_start(&place);
	struct trace *trace = open_trace(&place, 77, "app");
	assert_int_not_equal(access(place.prefix, F_OK), 0);
	add_pread(&place, trace, 77, NULL, 0);
	assert_int_equal(finish(trace, true), 0);
	place_stop(&place);
	assert_int_equal(gethostname(host, sizeof(host)), 0);
	snprintf(word, sizeof(word), "app-%s-77", host);
	expect_path(&place, word, ".pfw");
	place_remove(&place);
}

/* An event that alone makes no file. */
static void add_fork(struct place *place, struct trace *trace, pid_t tid)
{
	struct event event = {
		.layer = LAYER_POSIX,
		.name = "fork",
		.pid = tid,
		.tid = tid,
		.start = now(place),
		.id = trace_next_id(trace),
		.level = 1,
	};
	event.end = event.start;
	trace_event(trace, &event, false);
}

static void only_data_makes_a_file(void **state)
{
	struct place place;
	struct contents contents;
	struct writer_totals totals;
	char path[512];
	(void)state;
	place_new(&place);
	place_start(&place);
	struct trace *trace = open_trace(&place, 77, "none");
	add_fork(&place, trace, 77);
	usleep(300000);
	assert_true(writer_next_tick(place.writer) == 0);
	writer_tick(place.writer);
	assert_int_equal(finish(trace, true), 0);
	trace = open_trace(&place, 78, "dropped");
	trace_drop(trace);
	assert_int_equal(find_files(&place, path, sizeof(path)), 0);

	trace = open_trace(&place, 79, "late");
	add_fork(&place, trace, 79);
	add_pread(&place, trace, 79, NULL, 0);
	assert_int_equal(finish(trace, true), 0);
	read_only_trace(&place, &contents);
	assert_int_equal(count_events(&contents.text), 2);
	assert_int_equal(count_text(&contents.text, "\"num_events\":2,\"exit_status\":0"), 1);
	writer_totals(place.writer, &totals);
	assert_int_equal(totals.events, 2);
	assert_int_equal(totals.files, 1);
	assert_int_equal(totals.lost_events, 0);
	place_stop(&place);
	buf_free(&contents.text);
	place_remove(&place);
}

static void the_launched_program_always_has_a_file(void **state)
{
	struct place place;
	struct contents contents;
	(void)state;
	place_new(&place);
	place_start(&place);
	const char *argv[] = {"app"};
	struct trace_info info = {
		.pid = 5, .ppid = 1, .exec = "app", .argv = argv, .argc = 1, .always = true};
	struct trace *trace = trace_new(place.writer, &info);
	char path[512];
	for (int i = 0; i < 100 && find_files(&place, path, sizeof(path)) == 0; i++)
		usleep(20000);
	assert_int_equal(find_files(&place, path, sizeof(path)), 1);
	struct trace_end end = {.how = TRACE_END_SIGNAL, .value = 9};
	assert_int_equal(trace_finish(trace, &end, true, 0), 0);
	place_stop(&place);
	read_only_trace(&place, &contents);
	assert_int_equal(count_events(&contents.text), 0);
	assert_int_equal(count_text(&contents.text, "\"num_events\":0,\"signal\":9"), 1);
	assert_int_equal(contents.members, 1);
	buf_free(&contents.text);
	place_remove(&place);
}

static void what_is_held_is_bounded(void **state)
{
	struct place place;
	struct contents contents;
	(void)state;
	place_new(&place);
	place_start(&place);
	struct trace *trace = open_trace(&place, 77, "forker");
	for (int i = 0; i < 12000; i++)
		add_fork(&place, trace, 77);
	assert_int_equal(finish(trace, true), 0);
	place_stop(&place);
	read_only_trace(&place, &contents);
	assert_int_equal(count_events(&contents.text), 12000);
	buf_free(&contents.text);
	place_remove(&place);
}

static void files_are_limited_by_number(void **state)
{
	struct place place;
	struct writer_totals totals;
	char path[512];
	(void)state;
	place_new(&place);
	place.options.max_files = 2;
	place_start(&place);
	for (int i = 1; i <= 5; i++) {
		struct trace *trace = open_trace(&place, i, "app");
		if (i != 2)
			add_pread(&place, trace, i, NULL, 0);
		add_fork(&place, trace, i);
		trace_property(trace, "k", "v");
		assert_int_equal(finish(trace, true), 0);
	}
	writer_totals(place.writer, &totals);
	assert_int_equal(totals.files, 2);
	assert_int_equal(totals.skipped_files, 2);
	assert_int_equal(totals.events, 4);
	assert_int_equal(totals.lost_events + totals.lost_files, 0);
	assert_int_equal(find_files(&place, path, sizeof(path)), 2);
	place_stop(&place);
	place_remove(&place);
}

static void lines_reach_the_disk_within_a_tick(void **state)
{
	struct place place;
	struct contents contents;
	(void)state;
	place_new(&place);
	place_start(&place);
	struct trace *trace = open_trace(&place, 77, "app");
	add_pread(&place, trace, 77, NULL, 0);
	uint64_t tick = writer_next_tick(place.writer);
	assert_true(tick > now(&place) && tick <= now(&place) + 250 * MS);
	while (now(&place) < tick)
		usleep(1000);
	writer_tick(place.writer);
	assert_true(writer_next_tick(place.writer) == 0);
	struct writer_totals totals = {0};
	for (int i = 0; i < 100 && totals.events == 0; i++) {
		usleep(5000);
		writer_totals(place.writer, &totals);
	}
	read_only_trace(&place, &contents);
	assert_int_equal(count_events(&contents.text), 1);
	assert_int_equal(count_text(&contents.text, "\"name\":\"end\""), 0);
	buf_free(&contents.text);
	/* Freeing the writer flushes what is open, without an end line. */
	add_pread(&place, trace, 77, NULL, 0);
	place_stop(&place);
	read_only_trace(&place, &contents);
	assert_int_equal(count_events(&contents.text), 2);
	assert_int_equal(count_text(&contents.text, "\"name\":\"end\""), 0);
	buf_free(&contents.text);
	place_remove(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_never_collide),
		cmocka_unit_test(directories_are_made),
		cmocka_unit_test(only_data_makes_a_file),
		cmocka_unit_test(the_launched_program_always_has_a_file),
		cmocka_unit_test(what_is_held_is_bounded),
		cmocka_unit_test(files_are_limited_by_number),
		cmocka_unit_test(lines_reach_the_disk_within_a_tick),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
