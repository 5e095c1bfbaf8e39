/* dftrace-check's readers: any bytes, as a trace file. The first byte says what it is called. */
#include "check/report.h"
#include "check/set.h"
#include "tests/fuzz/fuzz.h"

static FILE *nowhere;

static void report(const struct trace *trace, const struct set *set)
{
	json_t *array = json_array();

	report_file(nowhere, trace, false);
	report_total(nowhere, set, false);
	json_array_append_new(array, report_json_file(trace));
	json_t *all = report_json(set, array);
	FUZZ_HOLDS(all && json_dumpf(all, nowhere, 0) == 0);
	json_decref(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *required[] = {"POSIX", "rank"};
	static struct trace trace;
	struct set set;

	if (size == 0)
		return 0;
	if (!nowhere)
		nowhere = fopen("/dev/null", "we");
	FUZZ_HOLDS(nowhere);
	const char *path = fuzz_file(data[0] % 2 ? "t.pfw.gz" : "t.pfw", data + 1, size - 1);
	set_init(&set);
	trace_check(&trace, path, NULL);
	set_add(&set, &trace, data[0] & 2);
	set_finish(&set, required, data[0] & 4 ? 2 : 0);
	FUZZ_HOLDS(set_status(&set) >= 0 && set_status(&set) <= 2);
	report(&trace, &set);
	trace_free(&trace);
	set_free(&set);
	fuzz_clean();
	return 0;
}
