#include "launchers/preload.h"

#include "base/path.h"
#include "launchers/start.h"

#include <stdlib.h>
#include <string.h>

/* Splits LD_PRELOAD as the loader does. `kept`: the entries that are not DFTracer's; `found`: the first that
 * is. */
static void split(const char *list, struct buf *kept, struct buf *found)
{
	struct buf entry = {0};

	while (*(list += strspn(list, ": "))) {
		size_t len = strcspn(list, ": ");
		buf_clear(&entry);
		buf_add(&entry, list, len);
		const char *path = buf_str(&entry);
		if (path && strncmp(path_basename(path), "libdftracer", 11) == 0) {
			if (!found->len)
				buf_add_str(found, path);
		} else {
			if (kept->len)
				buf_add_char(kept, ':');
			buf_add(kept, list, len);
		}
		kept->failed |= entry.failed;
		list += len;
	}
	buf_free(&entry);
}

int preload_check(const struct options *options, bool traced)
{
	const char *list = getenv("LD_PRELOAD");
	struct buf kept = {0};
	struct buf found = {0};
	int result = 0;

	if (!list)
		return 0;
	split(list, &kept, &found);
	const char *rest = buf_str(&kept);
	const char *library = buf_str(&found);
	if (!rest || !library)
		result = -1;
	else if (found.len && options->drop_preload)
		result = kept.len ? setenv("LD_PRELOAD", rest, 1) : unsetenv("LD_PRELOAD");
	else if (found.len && traced && options_speaks(options))
		start_say("LD_PRELOAD names %s, so the program is recorded twice; --drop-preload "
			  "removes it",
			  library);
	buf_free(&kept);
	buf_free(&found);
	return result;
}
