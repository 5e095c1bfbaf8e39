/* check/: lines, ids, names, nesting, bytes, and what reading a file says. */
#include "check/ids.h"
#include "check/line.h"
#include "check/names.h"
#include "check/nesting.h"
#include "check/source.h"
#include "check/tally.h"
#include "writer/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct text text_of(const char *s)
{
	return (struct text){s, strlen(s)};
}

/* @return whether the text is a line. */
static bool reads(struct line *line, const char *text)
{
	return line_read(line, text, strlen(text)) == 0;
}

static void line_has_its_fields(void **state)
{
	(void)state;
	struct line line = {0};
	int64_t number;
	uint64_t hash;

	assert_true(reads(
		&line,
		"{\"id\":11,\"name\":\"pwrite\",\"cat\":\"POSIX\",\"ts\":5,\"ph\":\"X\",\"args\":{"
		"\"hhash\":\"96567aa8c9616994\",\"p_idx\":-1,\"x\":"
		"\"\\u00e4\\\"\\n\\ud83d\\ude00\"}}"));
	assert_true(field_integer(&line.top[KEY_ID], &number));
	assert_int_equal(number, 11);
	assert_true(field_is(&line.top[KEY_NAME], "pwrite"));
	assert_true(field_integer(line.arg[ARG_P_IDX], &number));
	assert_int_equal(number, -1);
	assert_true(field_hash(line.arg[ARG_HHASH], &hash));
	assert_true(hash == 0x96567aa8c9616994);
	assert_int_equal(line.nargs, 3);
	assert_true(text_is(line.args[2].text, "ä\"\n\xf0\x9f\x98\x80"));
	assert_null(line.arg[ARG_RET]);
	assert_int_equal(line.top[KEY_DUR].kind, FIELD_ABSENT);
	assert_false(line.has_blanks || line.out_of_order || line.has_stranger || line.has_null);
	/* Nothing of a line is left in the next one. */
	assert_true(reads(&line, "{\"name\":\"a\"}"));
	assert_null(line.arg[ARG_P_IDX]);
	assert_int_equal(line.top[KEY_ID].kind, FIELD_ABSENT);
	line_free(&line);
}

static void line_says_what_is_odd(void **state)
{
	(void)state;
	struct line line = {0};

	assert_true(reads(&line, "{ \"id\" : 1 }"));
	assert_true(line.has_blanks);
	assert_true(reads(&line, "{\"dur\":1,\"ts\":1}"));
	assert_true(line.out_of_order);
	assert_true(reads(&line, "{\"other\":1}"));
	assert_true(line.has_stranger);
	assert_true(reads(&line, "{\"args\":{\"a\":null,\"b\":1.5,\"c\":[1,{\"d\":true}]}}"));
	assert_true(line.has_null && line.has_fraction);
	assert_int_equal(line.args[2].kind, FIELD_OTHER);
	assert_true(text_is(line.args[2].raw, "[1,{\"d\":true}]"));
	assert_true(reads(&line, "{}"));
	assert_true(reads(&line, "{\"args\":{}}"));
	line_free(&line);
}

static void line_refuses_what_is_no_json(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"",
		"{",
		"}",
		"[]",
		"{\"id\"}",
		"{\"id\":}",
		"{\"id\":1",
		"{\"id\":1}}",
		"{\"id\":1} x",
		"{\"id\":1,}",
		"{\"id\":1 \"ts\":2}",
		"{\"id\":01}",
		"{\"id\":-}",
		"{\"id\":1.}",
		"{\"id\":1e}",
		"{\"id\":0x10}",
		"{\"id\":1,\"id\":1}",
		"{\"args\":{\"a\":1,\"a\":1}}",
		"{\"args\":{\"fd\":1,\"fd\":1}}",
		"{\"name\":\"a}",
		"{\"name\":\"\\x\"}",
		"{\"name\":\"\\u12g4\"}",
		"{\"name\":\"\\ud800\"}",
		"{\"name\":\"\\udc00\"}",
		"{\"name\":\"\x01\"}",
		"{\"name\":\"\xff\"}",
		"{\"name\":\"\xc0\x80\"}",
		"{\"name\":\"\xed\xa0\x80\"}",
		"{\"args\":{\"a\":[1,2}}",
		"{\"args\":{\"a\":nul}}",
		"{\"args\":{\"a\":[\"\\q\"]}}",
		"{\"a\":{\"b\":1,\"b\":2}}",
	};
	struct line line = {0};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (reads(&line, wrong[i]))
			fail_msg("taken: %s", wrong[i]);
		assert_non_null(line.wrong);
	}
	line_free(&line);
}

static void numbers_and_hashes_have_bounds(void **state)
{
	(void)state;
	struct line line = {0};
	int64_t number;
	uint64_t hash;

	assert_true(reads(&line,
			  "{\"id\":9223372036854775807,\"pid\":-9223372036854775808,\"tid\":\"42\","
			  "\"ts\":9223372036854775808,\"dur\":18446744073709551616}"));
	assert_true(field_integer(&line.top[KEY_ID], &number) && number == INT64_MAX);
	assert_true(field_integer(&line.top[KEY_PID], &number) && number == INT64_MIN);
	assert_true(field_integer(&line.top[KEY_TID], &number) && number == 42);
	assert_false(field_integer(&line.top[KEY_TS], &number));
	assert_true(field_hash(&line.top[KEY_TS], &hash) && hash == (uint64_t)1 << 63);
	assert_int_equal(line.top[KEY_DUR].kind, FIELD_FRACTION);
	assert_false(field_hash(&line.top[KEY_TID], &hash));
	assert_true(reads(&line, "{\"name\":\"00ABCdef00000000\",\"cat\":\"\",\"pid\":\"\",\"tid\":"
				 "\"-\",\"ph\":\"4x\"}"));
	assert_false(field_hash(&line.top[KEY_NAME], &hash));
	assert_false(field_hash(&line.top[KEY_CAT], &hash));
	assert_false(field_integer(&line.top[KEY_PID], &number));
	assert_false(field_integer(&line.top[KEY_TID], &number));
	assert_false(field_integer(&line.top[KEY_PH], &number));
	assert_false(field_integer(NULL, &number));
	line_free(&line);
}

static void ids_are_found_again(void **state)
{
	(void)state;
	struct ids ids = {0};

	for (uint64_t id = 20000; id >= 1; id--)
		assert_int_equal(ids_add(&ids, id), IDS_NEW);
	for (uint64_t id = 1; id <= 20000; id++)
		assert_int_equal(ids_add(&ids, id), IDS_TWICE);
	/* Whole blocks are no memory: what is left are the ends. */
	assert_true(ids.allocated <= 2);
	assert_int_equal(ids_add(&ids, UINT64_MAX), IDS_NEW);
	assert_int_equal(ids_add(&ids, UINT64_MAX), IDS_TWICE);
	uint64_t id = UINT64_MAX / 2;
	enum ids_answer answer = IDS_NEW;
	for (unsigned i = 0; i < IDS_BLOCKS && answer == IDS_NEW; i++, id += IDS_BLOCK)
		answer = ids_add(&ids, id);
	assert_int_equal(answer, IDS_WILD);
	ids_free(&ids);
}

static void hashes_of_each_generation(void **state)
{
	(void)state;
	enum name_form form;
	struct field number = {.kind = FIELD_NUMBER, .magnitude = 5692};

	assert_true(name_hash_in(NAME_HEX, text_of("vm")) == 0x6882804a826580cd);
	assert_true(name_hash_in(NAME_HEX, text_of("data/x")) == 0x3ef582c7652c68e6);
	assert_true(name_hash_in(NAME_NIBBLES, text_of("vm")) == 7386335834152862147U);
	assert_true(name_hash_in(NAME_SHORT, text_of("DEFAULT")) == 14683);
	assert_true(name_form_of(text_of("corona173"), &number, &form) && form == NAME_SHORT);
	assert_false(name_form_of(text_of("corona174"), &number, &form));
	struct names names = {0};
	assert_int_equal(names_kinds(&names, 0), 0);
	assert_int_equal(names_add(&names, 0, NAME_FILE), 0);
	assert_int_equal(names_add(&names, 0, NAME_HOST), 0);
	assert_int_equal(names_kinds(&names, 0), NAME_FILE | NAME_HOST);
	names_free(&names);
}

static void rows_of_bytes_are_sorted(void **state)
{
	(void)state;
	const struct bytes_row *before = bytes_row_at(0);

	for (size_t i = 0; bytes_row_at(i); before = bytes_row_at(i++)) {
		const struct bytes_row *row = bytes_row_at(i);
		assert_true(i == 0 || strcmp(before->name, row->name) < 0);
		assert_ptr_equal(bytes_row(row->name, strlen(row->name)), row);
	}
	assert_null(bytes_row("rea", 3));
	assert_null(bytes_row("", 0));
	assert_null(bytes_row("zzz", 3));
}

static uint64_t found(const struct findings *findings, enum finding_kind kind)
{
	return findings->items[kind].count;
}

static void take(struct nesting *nesting, struct findings *findings, uint64_t id, int64_t parent,
		 int64_t level, uint64_t start, uint64_t end, uint64_t tid)
{
	struct nesting_call call = {.line = id,
				    .id = id,
				    .pid = 1,
				    .tid = tid,
				    .start = start,
				    .end = end,
				    .parent = parent,
				    .level = level};
	assert_int_equal(nesting_call(nesting, &call, findings), 0);
}

static void children_come_before_their_parents(void **state)
{
	(void)state;
	struct nesting nesting = {0};
	struct findings findings = {0};

	take(&nesting, &findings, 3, 2, 3, 12, 14, 1);
	take(&nesting, &findings, 2, 1, 2, 11, 15, 1);
	take(&nesting, &findings, 5, 1, 2, 15, 15, 1);
	take(&nesting, &findings, 9, -1, 1, 11, 13, 2);
	take(&nesting, &findings, 1, -1, 1, 10, 16, 1);
	nesting_finish(&nesting, false, &findings);
	assert_int_equal(findings_count(&findings, true), 0);
	take(&nesting, &findings, 20, 10, 2, 30, 31, 1);
	nesting_finish(&nesting, true, &findings);
	assert_int_equal(found(&findings, FINDING_PARENT_MISSING), 0);
	nesting_finish(&nesting, false, &findings);
	assert_int_equal(found(&findings, FINDING_PARENT_MISSING), 1);
	take(&nesting, &findings, 10, -1, 1, 31, 40, 2);
	assert_int_equal(found(&findings, FINDING_PARENT_THREAD), 1);
	assert_int_equal(found(&findings, FINDING_PARENT_TIME), 1);
	assert_int_equal(found(&findings, FINDING_OVERLAP), 0);
	take(&nesting, &findings, 11, -1, 1, 39, 41, 2);
	assert_int_equal(found(&findings, FINDING_OVERLAP), 1);
	nesting_free(&nesting);
}

static void categories_are_bounded(void **state)
{
	(void)state;
	struct tally tally;
	struct tally sum;
	char name[16];

	tally_init(&tally);
	tally_init(&sum);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 100; i++) {
			snprintf(name, sizeof(name), "c%d", i);
			tally_category(&tally, text_of(name))->events++;
			tally_add_count(&tally, text_of(name), 1);
		}
	}
	assert_int_equal(tally.ncategories, TALLY_CATEGORIES);
	assert_int_equal(tally_find(&tally, "C0")->events, 2);
	assert_int_equal(tally_find(&tally, "others")->events, 2 * (100 - TALLY_CATEGORIES + 1));
	tally_add(&sum, &tally);
	tally_add(&sum, &tally);
	assert_int_equal(tally_find(&sum, "c0")->events, 4);
	assert_int_equal(tally_counted(&sum, "c0"), 4);
}

/* Writes a file and counts its lines. */
static unsigned lines_of(const char *bytes, size_t len, enum source_end end)
{
	char path[] = "/tmp/test-check-XXXXXX";
	char why[64];
	struct source_line line;
	unsigned count = 0;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	close(fd);
	struct source *source = source_open(path, why, sizeof(why));
	assert_non_null(source);
	while (source_next(source, &line))
		count++;
	assert_int_equal(source_end(source, NULL), end);
	source_close(source);
	unlink(path);
	return count;
}

static void a_source_gives_whole_lines(void **state)
{
	(void)state;
	/* Two members: "[\n{}\n" and "{}\n]\n". */
	static const char zipped[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x8b\xe6\xaa\xae\xe5"
				     "\x02\x00\x9c\x9d\x3a\x10"
				     "\x05\x00\x00\x00";
	assert_int_equal(lines_of("[\n{}\n]\n", 7, SOURCE_WHOLE), 3);
	assert_int_equal(lines_of("[\n{}", 4, SOURCE_WHOLE), 2);
	/* Its sum is wrong, its lines are there. */
	assert_int_equal(lines_of(zipped, sizeof(zipped) - 1, SOURCE_DAMAGED), 2);
	assert_int_equal(lines_of(zipped, 15, SOURCE_TRUNCATED), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_has_its_fields),
		cmocka_unit_test(line_says_what_is_odd),
		cmocka_unit_test(line_refuses_what_is_no_json),
		cmocka_unit_test(numbers_and_hashes_have_bounds),
		cmocka_unit_test(ids_are_found_again),
		cmocka_unit_test(hashes_of_each_generation),
		cmocka_unit_test(rows_of_bytes_are_sorted),
		cmocka_unit_test(children_come_before_their_parents),
		cmocka_unit_test(categories_are_bounded),
		cmocka_unit_test(a_source_gives_whole_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
