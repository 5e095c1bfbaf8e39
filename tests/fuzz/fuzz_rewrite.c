/* What dftrace-check writes from any bytes can be read again, and what was repaired needs no repair. */
#include "check/rewrite.h"
#include "check/set.h"
#include "tests/fuzz/fuzz.h"

#include <limits.h>

static void check(const char *path, bool repaired)
{
	static struct trace trace;

	trace_check(&trace, path, NULL);
	FUZZ_HOLDS(!repaired || !findings_repairable(&trace.findings));
	trace_free(&trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *const ways[] = {"--repair", "--to=v1", "--to=v2", "--anonymize"};
	enum { WAYS = sizeof(ways) / sizeof(ways[0]) };
	char merged[PATH_MAX];
	struct check_options options;
	struct files files = {0}, written = {0};
	struct buf error = {0};

	if (size == 0)
		return 0;
	/* The first byte says what is done with what follows. */
	char *path = (char *)fuzz_file(data[0] & 1 ? "t.pfw.gz" : "t.pfw", data + 1, size - 1);
	unsigned way = (data[0] >> 1) % (WAYS + 1);
	snprintf(merged, sizeof(merged), "%s/all.pfw%s", fuzz_directory(),
		 data[0] & 128 ? ".gz" : "");
	char *convert[] = {"dftrace-check", ways[way % WAYS], path, NULL};
	char *merge[] = {"dftrace-check", "--merge", merged, path, NULL};
	FUZZ_HOLDS(check_options_parse(&options, way == WAYS ? 4 : 3, way == WAYS ? merge : convert,
				       &error) == 0);
	if (files_add(&files, path, &error) == 0)
		rewrite(&options, &files, &written, &error);
	for (size_t i = 0; i < written.count; i++)
		check(written.paths[i], options.repair);
	files_free(&files);
	files_free(&written);
	buf_free(&error);
	fuzz_clean();
	return 0;
}
