/* Decoding needs calls only: here they are made up, and come in another order between threads than they
 * happened, as a recorder's batches would. No program is traced. */
#include "tracer/arch/arch.h"
#include "tracer/decode.h"
#include "tracer/image.h"
#include "tracer/tracer.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fixture {
	char dir[32];
	char prefix[64];
	struct selection selection;
	struct tracer_options options;
	struct tracer *tracer;
	struct process *process;
	struct task *tasks[2]; /* two threads of this very process, as far as the decoder knows */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct buf error = {0};

	*state = f;
	strcpy(f->dir, "/tmp/test_decode.XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	snprintf(f->prefix, sizeof(f->prefix), "%s/t", f->dir);
	selection_default(&f->selection);
	f->options = (struct tracer_options){
		.prefix = f->prefix,
		.shown_prefix = f->prefix,
		.selection = &f->selection,
		.metadata = true,
	};
	f->tracer = tracer_new(&f->options, &error);
	f->process = process_new(getpid());
	f->process->started = true;
	for (int i = 0; i < 2; i++) {
		struct task *task = f->tasks[i] = task_new(getpid() + i);
		task->process = process_ref(f->process);
		task->mm = i ? mm_ref(f->tasks[0]->mm) : mm_new();
		task->files = i ? files_ref(f->tasks[0]->files) : files_new();
		task->fs = i ? fs_ref(f->tasks[0]->fs) : fs_new();
	}
	/* Calls that began at any time may still come. */
	f->tasks[0]->files->horizon = 0;
	return f->tracer ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[64];

	task_free(f->tasks[0]);
	task_free(f->tasks[1]);
	process_unref(f->process);
	tracer_free(f->tracer);
	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	int result = system(command);
	free(f);
	return result;
}

/* A whole call, from `start` to `end` µs; `path` is what argument `path_arg` points to. */
static void call(struct fixture *f, int thread, int nr, const uint64_t args[6], const char *path,
		 unsigned path_arg, int64_t ret, uint64_t start, uint64_t end)
{
	struct task *task = f->tasks[thread];
	struct frame *frame = task_push(task);
	struct call *c = &frame->call;

	c->row = syscall_row((uint64_t)nr);
	c->tid = task->tid;
	memcpy(c->args, args, sizeof(c->args));
	c->start = start * 1000;
	if (path) {
		c->args[path_arg] = 1;
		c->data[path_arg] = (struct call_data){DATA_COPIED, c->bytes.len, strlen(path)};
		buf_add_str(&c->bytes, path);
	}
	decode_begin(f->tracer, task, frame);
	c->state = CALL_DONE;
	c->ret = ret;
	c->end = end * 1000;
	decode_end(f->tracer, task, frame);
	task_pop(task);
}

static void open_file(struct fixture *f, int thread, const char *path, int fd, uint64_t start,
		      uint64_t end)
{
	call(f, thread, __NR_openat, (uint64_t[6]){(uint64_t)AT_FDCWD, 0, O_RDWR}, path, 1, fd,
	     start, end);
}

static void write_file(struct fixture *f, int thread, int fd, uint64_t count, uint64_t start)
{
	call(f, thread, __NR_write, (uint64_t[6]){(uint64_t)fd, 0, count}, NULL, 0, (int64_t)count,
	     start, start + 5);
}

static void close_file(struct fixture *f, int thread, int fd, uint64_t start)
{
	call(f, thread, __NR_close, (uint64_t[6]){(uint64_t)fd}, NULL, 0, 0, start, start + 5);
}

/* Ends the image and reads its file. */
static char *finish(struct fixture *f)
{
	const struct trace_end end = {.how = TRACE_END_EXIT};
	char command[128];
	size_t size = 0;
	char *text = NULL;

	image_end(f->tracer, f->process, &end, true, clock_now(&f->tracer->clock));
	snprintf(command, sizeof(command), "cat %s/t-*.pfw", f->dir);
	FILE *pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_true(getdelim(&text, &size, '\0', pipe) > 0);
	pclose(pipe);
	return text;
}

/* @return the path that the event with this count has written to. */
static const char *written_to(char *text, uint64_t count, char *path, size_t size)
{
	char key[64];
	char fhash[17] = "";

	snprintf(key, sizeof(key), "\"count\":%llu,", (unsigned long long)count);
	char *at = strstr(text, key);
	assert_non_null(at);
	while (at > text && at[-1] != '\n')
		at--;
	assert_int_equal(sscanf(strstr(at, "\"fhash\":\""), "\"fhash\":\"%16[0-9a-f]", fhash), 1);
	snprintf(key, sizeof(key), "\",\"value\":\"%s\"", fhash);
	char *end = strstr(text, key);
	assert_non_null(end);
	char *begin = end;
	while (begin[-1] != '"')
		begin--;
	snprintf(path, size, "%.*s", (int)(end - begin), begin);
	return path;
}

/* Both threads use number 1005 in turn; thread 1's news comes first. */
static void test_threads_in_any_order(void **state)
{
	struct fixture *f = *state;
	char path[64];

	open_file(f, 0, "/first", 1005, 100, 110);
	open_file(f, 1, "/second", 1005, 390, 400);
	write_file(f, 1, 1005, 2222, 450);
	close_file(f, 1, 1005, 500);
	open_file(f, 1, "/third", 1005, 600, 610);
	write_file(f, 1, 1005, 3333, 620);
	write_file(f, 0, 1005, 1111, 200);
	close_file(f, 0, 1005, 300);
	char *text = finish(f);
	assert_string_equal(written_to(text, 1111, path, sizeof(path)), "/first");
	assert_string_equal(written_to(text, 2222, path, sizeof(path)), "/second");
	assert_string_equal(written_to(text, 3333, path, sizeof(path)), "/third");
	assert_non_null(strstr(text, "\"num_events\":8"));
	free(text);
}

static void test_failures_and_relative_paths(void **state)
{
	struct fixture *f = *state;

	call(f, 0, __NR_openat, (uint64_t[6]){(uint64_t)AT_FDCWD, 0, O_RDONLY}, "/no/../gone/./x",
	     1, -ENOENT, 10, 20);
	open_file(f, 0, "/dir", 1007, 30, 40);
	call(f, 0, __NR_mkdirat, (uint64_t[6]){1007, 0, 0755}, "sub/", 1, 0, 50, 60);
	/* Not open, whatever it is: left out and counted. */
	write_file(f, 0, 1008, 4444, 70);
	char *text = finish(f);
	assert_non_null(strstr(text, "\"name\":\"/gone/x\""));
	assert_non_null(strstr(text, "\"flags\":0,\"ret\":-1,\"errno\":2}"));
	assert_non_null(strstr(text, "\"name\":\"/dir/sub\""));
	assert_non_null(strstr(text, "\"name\":\"mkdir\",\"cat\":\"POSIX\""));
	assert_non_null(strstr(text, "\"mode\":493,\"ret\":0}"));
	assert_null(strstr(text, "\"ret\":4444"));
	assert_non_null(strstr(text, "\"name\":\"skipped:badfd\",\"value\":\"1\""));
	free(text);
}

/* A thread that dies in a call leaves it cut. */
static void test_cut(void **state)
{
	struct fixture *f = *state;

	open_file(f, 0, "/fifo", 1005, 10, 20);
	struct frame *frame = task_push(f->tasks[0]);
	frame->call.row = syscall_row(__NR_read);
	frame->call.tid = f->tasks[0]->tid;
	frame->call.args[0] = 1005;
	frame->call.args[2] = 77;
	frame->call.start = 30000;
	decode_begin(f->tracer, f->tasks[0], frame);
	decode_cut(f->tracer, f->tasks[0], 0, 90000);
	char *text = finish(f);
	assert_non_null(strstr(text, "\"fd\":1005,\"count\":77,\"cut\":1}"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_threads_in_any_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failures_and_relative_paths, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
