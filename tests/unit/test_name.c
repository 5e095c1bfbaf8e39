/* Names: their hashes, and the word that stands for a program. */
#include "writer/name.h"
#include "writer/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void hashes_are_dftracers(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t hash;
	} cases[] = {
		{"vm", 0x6882804a826580cd},
		{"tuolumne1001", 0x8e0caa2d595b2a4d},
		{"data/x", 0x3ef582c7652c68e6},
		{"aprog-vm-4192", 0x6e19c5183754939a},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct name *name = name_new(cases[i].text, strlen(cases[i].text));
		assert_true(name_hash(name) == cases[i].hash);
		assert_true(name_hash(name) == cases[i].hash);
		assert_true(name_hash_text(cases[i].text, strlen(cases[i].text)) == cases[i].hash);
		name_unref(name);
	}
}

static void names_are_counted(void **state)
{
	(void)state;
	struct name *name = name_new("a\0b", 3);
	assert_int_equal(name->len, 3);
	assert_memory_equal(name->text, "a\0b", 4);
	assert_ptr_equal(name_ref(name), name);
	assert_int_equal(name->refs, 2);
	name_unref(name);
	assert_int_equal(name->refs, 1);
	name_unref(name);
	name_unref(NULL);
	name = name_new(NULL, 0);
	assert_string_equal(name->text, "");
	name_unref(name);
}

static void programs_are_named_after_what_they_run(void **state)
{
	(void)state;
	static const struct {
		const char *expected;
		const char *argv[8];
	} cases[] = {
		{"app", {"./app"}},
		{"app", {"/usr/bin/app", "-v", "x"}},
		{"app", {"app", "python3"}},
		{"train.py", {"python3", "-u", "train.py"}},
		{"train.py", {"/opt/bin/python3.11", "/home/u/train.py", "--lr", "1"}},
		{"pytest", {"python3", "-m", "pytest", "tests"}},
		{"x.py", {"python3", "-W", "ignore", "-Wdefault", "x.py"}},
		{"python3", {"python3", "-c", "import x", "arg"}},
		{"python3", {"/usr/bin/python3", "-Bc", "import x"}},
		{"x.py", {"python3", "-E", "x.py"}},
		{"python3", {"python3"}},
		{"bash", {"-bash"}},
		{"bash", {"/bin/bash", "-lc", "cd /x && ./run"}},
		{"sh", {"sh", "-c", "./app", "name"}},
		{"run.sh", {"sh", "-e", "run.sh"}},
		{"run.sh", {"bash", "-euo", "pipefail", "run.sh"}},
		{"run.sh", {"bash", "--norc", "./run.sh"}},
		{"ksh93", {"ksh93", "-c", "x"}},
		{"app", {"env", "A=1", "_B2=x=y", "./app", "C=3"}},
		{"run.py", {"/usr/bin/env", "python3", "run.py"}},
		{"app", {"env", "-u", "HOME", "-i", "app"}},
		{"env", {"env"}},
		{"A=1", {"A=1"}},
		{"p.pl", {"perl", "-w", "-Mre", "p.pl"}},
		{"perl", {"perl", "-ne", "print", "file"}},
		{"s.rb", {"ruby3.2", "s.rb"}},
		{"x.lua", {"lua5.4", "x.lua"}},
		{"x.js", {"node", "--inspect", "x.js"}},
		{"node", {"node", "--eval", "1"}},
		{"x.jl", {"julia", "-O3", "-p", "4", "x.jl"}},
		{"x.R", {"Rscript", "--vanilla", "x.R"}},
		{"Rscript", {"Rscript", "-e", "1"}},
		{"app.jar", {"java", "-Xmx1g", "-jar", "/x/app.jar"}},
		{"pythonic", {"pythonic", "x"}},
		{"bashful", {"/x/bashful"}},
		{"DEFAULT", {""}},
		{"DEFAULT", {NULL}},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf out = {0};
		size_t argc = 0;
		while (argc < 8 && cases[i].argv[argc])
			argc++;
		trace_exec_name(&out, cases[i].argv, argc);
		assert_string_equal(buf_str(&out), cases[i].expected);
		buf_free(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_are_dftracers),
		cmocka_unit_test(names_are_counted),
		cmocka_unit_test(programs_are_named_after_what_they_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
