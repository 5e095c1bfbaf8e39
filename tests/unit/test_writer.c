/* Traces: their lines, byte by byte. */
#include "test_writer.h"

#include <time.h>

/* Replaces each ${word} of the template. */
static void expand(struct buf *out, const char *template, const char *const pairs[][2])
{
	for (const char *p = template; *p; p++) {
		if (p[0] != '$') {
			buf_add_char(out, *p);
			continue;
		}
		const char *close = strchr(p, '}');
		bool found = false;
		for (size_t i = 0; pairs[i][0]; i++) {
			if (strlen(pairs[i][0]) == (size_t)(close - p - 2) &&
			    strncmp(p + 2, pairs[i][0], (size_t)(close - p - 2)) == 0) {
				buf_add_str(out, pairs[i][1]);
				found = true;
			}
		}
		assert_true(found);
		p = close;
	}
	assert_non_null(buf_str(out));
}

/* The text between two marks, behind the line that contains `line`. */
static void pick(char *to, size_t size, const struct buf *text, const char *line, const char *from,
		 const char *until)
{
	const char *p = strstr(text->data, line);
	assert_non_null(p);
	p = strstr(p, from);
	assert_non_null(p);
	p += strlen(from);
	const char *end = strstr(p, until);
	assert_non_null(end);
	assert_true((size_t)(end - p) < size);
	memcpy(to, p, (size_t)(end - p));
	to[end - p] = '\0';
}

static void check_times(const char *ts, const char *date, uint64_t before, uint64_t after)
{
	uint64_t us = strtoull(ts, NULL, 10);
	assert_true(us >= before / 1000 && us <= after / 1000);
	time_t seconds = (time_t)(us / 1000000);
	char expected[64];
	strftime(expected, sizeof(expected), "%a %b %e %H:%M:%S %Y", localtime(&seconds));
	assert_string_equal(date, expected);
}

/* A trace with a bit of everything. */
static void write_small_trace(struct place *place, const char *rank)
{
	struct name *cwd = name_of("/work dir");
	struct name *file = name_of("/data/x");
	struct name *other = name_of("/data/y");
	struct name *program = name_of("/bin/next");
	const char *argv[] = {"python3", "train.py", "a;b"};
	struct trace_info info = {
		.pid = 4242,
		.ppid = 4200,
		.exec = "train.py",
		.argv = argv,
		.argc = 3,
		.cwd = cwd,
		.comm = "python3",
		.rank = rank,
	};
	struct trace *trace = trace_new(place->writer, &info);
	assert_non_null(trace);
	trace_property(trace, "world_size", "4");

	assert_false(trace_thread_is_new(trace, 4242));
	assert_int_equal(trace_thread_is_new(trace, 4243), place->options.thread_ids);
	trace_thread(trace, 4243, "pool \"1\"");
	uint64_t outer = trace_next_id(trace);
	struct event event = {
		.layer = LAYER_POSIX,
		.name = "pwrite",
		.pid = 4242,
		.tid = 4243,
		.start = 1727387307981713999,
		.end = 1727387307981721000,
		.id = trace_next_id(trace),
		.parent = outer,
		.level = 2,
		.file = file,
		.nargs = 5,
		.args = {{"fd", EVENT_INT, {.i = -100}},
			 {"count", EVENT_UINT, {.u = UINT64_MAX}},
			 {"mode", EVENT_STRING, {.string = {"r\n+", 3}}},
			 {"newpath_hash", EVENT_NAME, {.ref = other}},
			 {"nothing", EVENT_NAME, {.ref = NULL}}},
	};
	trace_event(trace, &event, true);
	event = (struct event){
		.layer = LAYER_MPI,
		.name = "MPI_Send",
		.pid = 4242,
		.tid = 4243,
		.start = 1727387307000000000,
		.end = 1727387307999999999,
		.id = outer,
		.level = 1,
	};
	trace_event(trace, &event, true);
	event.layer = LAYER_STDIO;
	event.name = "fclose";
	event.tid = 4244;
	event.id = trace_next_id(trace);
	event.file = other;
	event.start = event.end;
	trace_event(trace, &event, true);
	assert_int_equal(trace_events(trace), 3);
	assert_false(trace_thread_is_new(trace, 4244));
	trace_thread_over(trace, 4244);
	assert_int_equal(trace_thread_is_new(trace, 4244), place->options.thread_ids);
	trace_thread_over(trace, 4245);
	trace_count(trace, "skipped:tty", 0);
	trace_count(trace, "lost:write", UINT64_MAX);

	struct trace_end end = {.how = TRACE_END_EXEC, .exec = program};
	assert_int_equal(trace_finish(trace, &end, true, 0), 0);
	name_unref(cwd);
	name_unref(file);
	name_unref(other);
	name_unref(program);
}

/* Writes the small trace and compares all of it. */
static void check_small_trace(struct place *place, const char *rank, const char *template)
{
	struct contents contents;
	struct buf expected = {0};
	char host[65];
	char hhash[17];
	char start[32];
	char end[32];
	char date[64];

	place_start(place);
	uint64_t before = now(place);
	write_small_trace(place, rank);
	uint64_t after = now(place);
	read_only_trace(place, &contents);

	assert_int_equal(gethostname(host, sizeof(host)), 0);
	snprintf(hhash, sizeof(hhash), "%016llx",
		 (unsigned long long)name_hash_text(host, strlen(host)));
	pick(start, sizeof(start), &contents.text, "\"name\":\"start\"", "\"ts\":", ",");
	pick(end, sizeof(end), &contents.text, "\"name\":\"end\"", "\"ts\":", ",");
	assert_true(strtoull(end, NULL, 10) >= strtoull(start, NULL, 10));
	if (place->options.metadata) {
		pick(date, sizeof(date), &contents.text, "\"name\":\"start\"", "\"date\":\"", "\"");
		check_times(start, date, before, after);
	}
	expand(&expected, template,
	       (const char *const[][2]){{"host", host},
					{"hhash", hhash},
					{"start", start},
					{"end", end},
					{"date", date},
					{NULL, NULL}});
	assert_string_equal(contents.text.data, expected.data);
	assert_int_equal(contents.text.len, expected.len);

	struct writer_totals totals;
	writer_totals(place->writer, &totals);
	assert_int_equal(totals.events, 3);
	assert_int_equal(totals.files, 1);
	assert_int_equal(totals.lost_events + totals.lost_files + totals.skipped_files, 0);
	assert_int_equal(totals.first_errno, 0);
	place_stop(place);
	buf_free(&contents.text);
	buf_free(&expected);
}

/* Taken from md5sum. */
#define CMD    "7f6e2691f3c4bd12"
#define EXEC   "e44ae882deb2fa49"
#define CWD    "f66e3cf43e1ff3b6"
#define FILE_X "8ddb8b5180f4b376"
#define FILE_Y "f920c57a9cc3c46d"
#define NEXT   "b59945bd5bc8baa3"

/* clang-format off: one line of the templates is one line of a trace */
#define M(id, kind, tid, name, value)                                                              \
	"{\"id\":" id ",\"name\":\"" kind "\",\"cat\":\"dftracer\",\"pid\":4242,\"tid\":" tid      \
	",\"ph\":\"M\",\"args\":{\"hhash\":\"${hhash}\",\"name\":\"" name "\",\"value\":\"" value  \
	"\"}}\n"
#define X(id, name, cat, tid, ts, dur, args)                                                       \
	"{\"id\":" id ",\"name\":\"" name "\",\"cat\":\"" cat "\",\"pid\":4242,\"tid\":" tid       \
	",\"ts\":" ts ",\"dur\":" dur ",\"ph\":\"X\"" args "}\n"
#define ARGS(args) ",\"args\":{\"hhash\":\"${hhash}\"" args "}"

static void v1_is_as_the_contract_says(void **state)
{
	struct place place;
	(void)state;
	place_new(&place);
	check_small_trace(
		&place, "3",
		"[\n" M("1", "HH", "4242", "${host}", "${hhash}") M(
			"2", "process_name", "4242", "Rank 3 train.py",
			"process_name") M("3", "PR", "4242", "rank",
					  "3") M("4", "rank", "4242", "rank",
						 "3") M("5", "thread_name", "4242", "python3",
							"thread_name") M("6", "SH", "4242",
									 "python3;train.py;a;b",
									 CMD) M("7", "SH", "4242",
										"train.py", EXEC)
			M("8", "FH", "4242", "/work dir", CWD) X(
				"9", "start", "dftracer", "4242", "${start}", "0",
				ARGS(",\"cmd_hash\":\"" CMD "\",\"exec_hash\":\"" EXEC
				     "\",\"cwd\":\"" CWD
				     "\",\"version\":\"1.2.3\",\"date\":\"${date}\",\"ppid\":4200"))
				M("10", "PR", "4242", "world_size",
				  "4") M("13", "thread_name", "4243", "pool \\\"1\\\"",
					 "thread_name") M("14", "FH", "4243", "/data/x",
							  FILE_X) M("15", "FH", "4243", "/data/y",
								    FILE_Y)
					X("12", "pwrite", "POSIX", "4243", "1727387307981713", "8",
					  ARGS(",\"p_idx\":11,\"level\":2,\"fhash\":\"" FILE_X
					       "\",\"fd\":-100,\"count\":18446744073709551615,"
					       "\"mode\":\"r\\n+\","
					       "\"newpath_hash\":\"" FILE_Y
					       "\"")) X("11", "MPI_Send", "MPI", "4243",
							"1727387307000000", "999999",
							ARGS(",\"p_idx\":-1,\"level\":1"))
						M("17", "thread_name", "4244", "4244",
						  "thread_name") X("16", "fclose", "STDIO", "4244",
								   "1727387307999999", "0",
								   ARGS(",\"p_idx\":-1,\"level\":1,"
									"\"fhash\":\"" FILE_Y "\""))
							M("18", "PR", "4242", "lost:write",
							  "18446744073709551615")
								M("19", "FH", "4242", "/bin/next",
								  NEXT) X("20", "end", "dftracer",
									  "4242", "${end}", "0",
									  ARGS(",\"num_events\":3,"
									       "\"exec\":\"" NEXT
									       "\"")) "]\n");
	place_remove(&place);
}

static void without_metadata_only_the_args_go(void **state)
{
	struct place place;
	(void)state;
	place_new(&place);
	place.options.metadata = false;
	place.options.thread_ids = false;
	place.options.compress = false;
	check_small_trace(
		&place, NULL,
		"[\n" M("1", "HH", "0", "${host}", "${hhash}") M(
			"2", "process_name", "0", "train.py",
			"process_name") M("3", "thread_name", "0", "python3",
					  "thread_name") M("4", "SH", "0", "python3;train.py;a;b",
							   CMD) M("5", "SH", "0", "train.py", EXEC)
			M("6", "FH", "0", "/work dir",
			  CWD) X("7", "start", "dftracer", "0", "${start}", "0",
				 "") M("8", "PR", "0", "world_size",
				       "4") M("11", "FH", "0", "/data/x",
					      FILE_X) M("12", "FH", "0", "/data/y", FILE_Y)
				X("10", "pwrite", "POSIX", "0", "1727387307981713", "8",
				  "") X("9", "MPI_Send", "MPI", "0", "1727387307000000", "999999",
					"") X("13", "fclose", "STDIO", "0", "1727387307999999", "0",
					      "") M("14", "PR", "0", "lost:write",
						    "18446744073709551615") M("15", "FH", "0",
									      "/bin/next", NEXT)
					X("16", "end", "dftracer", "0", "${end}", "0", "") "]\n");
	place_remove(&place);
}

#undef M
#undef X
#define M(kind, tid, name, value)                                                                  \
	"{\"name\":\"" kind "\",\"cat\":\"dftracer\",\"type\":1,\"pid\":4242,\"tid\":" tid         \
	",\"ph\":4,\"args\":{\"hhash\":\"${hhash}\",\"name\":\"" name "\",\"value\":\"" value      \
	"\"}}\n"
#define X(id, name, cat, type, tid, ts, dur, args)                                                 \
	"{\"id\":" id ",\"name\":\"" name "\",\"cat\":\"" cat "\",\"type\":" type                  \
	",\"pid\":4242,\"tid\":" tid ",\"ts\":" ts ",\"dur\":" dur ",\"ph\":1" args "}\n"

static void v2_is_as_the_contract_says(void **state)
{
	struct place place;
	(void)state;
	place_new(&place);
	place.options.v2 = true;
	check_small_trace(
		&place, NULL,
		M("HH", "4242", "${host}", "${hhash}") M(
			"process_name", "4242", "train.py",
			"process_name") M("thread_name", "4242", "python3",
					  "thread_name") M("CM", "4242", "time_metric",
							   "US") M("SH", "4242",
								   "python3;train.py;a;b", CMD)
			M("SH", "4242", "train.py", EXEC) M("FH", "4242", "/work dir", CWD) X(
				"1", "start", "dftracer", "1", "4242", "${start}", "0",
				ARGS(",\"cmd_hash\":\"" CMD "\",\"exec_hash\":\"" EXEC
				     "\",\"cwd\":\"" CWD
				     "\",\"version\":\"1.2.3\",\"date\":\"${date}\",\"ppid\":4200"))
				M("PR", "4242", "world_size",
				  "4") M("thread_name", "4243", "pool \\\"1\\\"",
					 "thread_name") M("FH", "4243", "/data/x",
							  FILE_X) M("FH", "4243", "/data/y", FILE_Y)
					X("3", "pwrite", "POSIX", "3", "4243", "1727387307981713",
					  "8",
					  ARGS(",\"fhash\":\"" FILE_X
					       "\",\"fd\":-100,\"count\":18446744073709551615,"
					       "\"mode\":\"r\\n+\","
					       "\"newpath_hash\":\"" FILE_Y
					       "\"")) X("2", "MPI_Send", "MPI", "10", "4243",
							"1727387307000000", "999999", ARGS(""))
						M("thread_name", "4244", "4244", "thread_name") X(
							"4", "fclose", "STDIO", "3", "4244",
							"1727387307999999", "0",
							ARGS(",\"fhash\":\"" FILE_Y
							     "\"")) M("PR", "4242", "lost:write",
								      "18446744073709551615")
							M("FH", "4242", "/bin/next", NEXT)
								X("5", "end", "dftracer", "1",
								  "4242", "${end}", "0",
								  ARGS(",\"num_events\":3,\"exec\":"
								       "\"" NEXT "\"")));
	place_remove(&place);
}
/* clang-format on */

/* What format.md makes of each byte, by a rule of its own: all 256, alone, between letters. */
static void every_byte_is_escaped_or_replaced(void **state)
{
	struct place place;
	struct contents contents;
	(void)state;
	place_new(&place);
	place_start(&place);
	struct trace *trace = open_trace(&place, 77, "app");
	char all[3 * 256];
	struct buf expected = {0};
	for (int c = 0; c < 256; c++) {
		memcpy(&all[3 * c], (char[]){'a', (char)c, 'b'}, 3);
		buf_add_char(&expected, 'a');
		switch (c) {
		case '\b':
			buf_add_str(&expected, "\\b");
			break;
		case '\t':
			buf_add_str(&expected, "\\t");
			break;
		case '\n':
			buf_add_str(&expected, "\\n");
			break;
		case '\f':
			buf_add_str(&expected, "\\f");
			break;
		case '\r':
			buf_add_str(&expected, "\\r");
			break;
		case '"':
		case '\\':
			buf_addf(&expected, "\\%c", c);
			break;
		default:
			if (c < 0x20)
				buf_addf(&expected, "\\u%04x", c);
			else if (c < 0x80)
				buf_add_char(&expected, (char)c);
			else
				buf_add_str(&expected, "\xef\xbf\xbd");
		}
		buf_add_char(&expected, 'b');
	}
	struct name *name = name_new(all, sizeof(all));
	uint64_t hash = name_hash_text(all, sizeof(all));
	add_pread(&place, trace, 77, name, 0);
	name_unref(name);

	/* Sequences: valid ones stay, each byte of an invalid one is replaced. */
#define BAD "\xef\xbf\xbd"
	static const char *const sequences[][2] = {
		{"\xc3\xa9", "\xc3\xa9"},
		{"\xe2\x82\xac", "\xe2\x82\xac"},
		{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
		{"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
		{"\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80"},
		{"\xe0\xa0\x80\xf0\x90\x80\x80", "\xe0\xa0\x80\xf0\x90\x80\x80"},
		{"\xc3", BAD},
		{"\xc3(", BAD "("},
		{"\xe2\x82", BAD BAD},
		{"\xe2\x82(", BAD BAD "("},
		{"\xf0\x9f\x98", BAD BAD BAD},
		{"\xc0\xaf", BAD BAD},
		{"\xc1\xbf", BAD BAD},
		{"\xe0\x9f\xbf", BAD BAD BAD},
		{"\xed\xa0\x80", BAD BAD BAD},
		{"\xf0\x8f\xbf\xbf", BAD BAD BAD BAD},
		{"\xf4\x90\x80\x80", BAD BAD BAD BAD},
		{"\xf5\x80\x80\x80", BAD BAD BAD BAD},
		{"\x80\xc3\xa9", BAD "\xc3\xa9"},
		{"\xe2\xc3\xa9", BAD "\xc3\xa9"},
	};
	enum { SEQUENCES = sizeof(sequences) / sizeof(sequences[0]) };
	for (size_t i = 0; i < SEQUENCES; i++)
		trace_property(trace, "sequence", sequences[i][0]);
	assert_int_equal(finish(trace, true), 0);
	place_stop(&place);

	read_only_trace(&place, &contents);
	struct buf line = {0};
	buf_addf(&line, "\"name\":\"%s\",\"value\":\"%016llx\"}}\n", buf_str(&expected),
		 (unsigned long long)hash);
	assert_int_equal(count_text(&contents.text, buf_str(&line)), 1);
	const char *p = contents.text.data;
	for (size_t i = 0; i < SEQUENCES; i++) {
		buf_clear(&line);
		buf_addf(&line, "\"name\":\"sequence\",\"value\":\"%s\"}}\n", sequences[i][1]);
		p = strstr(p, "\"sequence\"");
		assert_non_null(p);
		p -= strlen("\"name\":");
		assert_memory_equal(p, buf_str(&line), line.len);
		p += line.len;
	}
	assert_int_equal(count_events(&contents.text), 1);
	buf_free(&line);
	buf_free(&expected);
	buf_free(&contents.text);
	place_remove(&place);
}

static void rank_may_become_known_later(void **state)
{
	struct place place;
	struct contents contents;
	(void)state;
	place_new(&place);
	place_start(&place);
	struct trace *trace = open_trace(&place, 77, "app");
	add_pread(&place, trace, 77, NULL, 0);
	trace_property(trace, "rank", "12");
	trace_property(trace, "rank", "12");
	assert_int_equal(finish(trace, true), 0);
	place_stop(&place);
	read_only_trace(&place, &contents);
	const char *plain =
		strstr(contents.text.data, "\"name\":\"app\",\"value\":\"process_name\"");
	const char *ranked =
		strstr(contents.text.data, "\"name\":\"Rank 12 app\",\"value\":\"process_name\"");
	assert_non_null(plain);
	assert_non_null(ranked);
	assert_true(plain < ranked);
	assert_int_equal(count_text(&contents.text, "\"name\":\"process_name\""), 2);
	assert_int_equal(count_text(&contents.text, "\"name\":\"rank\",\"value\":\"12\"}"), 2);
	assert_int_equal(count_text(&contents.text, "\"name\":\"rank\",\"cat\":\"dftracer\""), 1);
	buf_free(&contents.text);
	place_remove(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(v1_is_as_the_contract_says),
		cmocka_unit_test(without_metadata_only_the_args_go),
		cmocka_unit_test(v2_is_as_the_contract_says),
		cmocka_unit_test(every_byte_is_escaped_or_replaced),
		cmocka_unit_test(rank_may_become_known_later),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
