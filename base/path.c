#include "base/path.h"

#include <string.h>

/* Appends the components of `path`; `..` never climbs above `floor` bytes. */
static void add_components(struct buf *out, size_t floor, const char *path, size_t len)
{
	const char *end = path + len;
	while (path < end) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		size_t n = (size_t)((slash ? slash : end) - path);
		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (out->len > floor && out->data[out->len - 1] != '/')
				out->len--;
			if (out->len > floor)
				out->len--;
		} else if (n > 0 && !(n == 1 && path[0] == '.')) {
			buf_add_char(out, '/');
			buf_add(out, path, n);
		}
		path += n + 1;
	}
}

void path_absolute(struct buf *out, const char *base, size_t base_len, const char *path,
		   size_t path_len)
{
	size_t floor = 0;

	buf_clear(out);
	if (path_len == 0 || path[0] != '/') {
		if (base_len > 0 && base[0] != '/') {
			buf_add(out, base, base_len);
			floor = out->len;
		} else {
			add_components(out, 0, base, base_len);
		}
	}
	add_components(out, floor, path, path_len);
	if (out->len == 0)
		buf_add_char(out, '/');
}

bool path_is_below(const char *path, const char *dir)
{
	size_t len = strlen(dir);
	if (len == 1 && dir[0] == '/')
		return path[0] == '/';
	return strncmp(path, dir, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

const char *path_basename(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}
