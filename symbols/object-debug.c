/* Separate debug files: by build-id, then by the name and checksum in .gnu_debuglink. */
#include "base/buf.h"
#include "base/path.h"
#include "symbols/object-parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <sys/stat.h>

#define SYSTEM_DIR   "/usr/lib/debug"
#define BUILD_ID_MAX 64

struct search {
	struct elf_file *debug; /* what is found */
	const struct elf_file *object;
	const char *const *dirs;
	size_t ndirs;
	char root[32];  /* the program's root directory as seen from here; "": ours */
	char *location; /* the object's path below that root */
	const unsigned char *id;
	size_t id_len;
	const char *link;
	uint32_t checksum;
	struct buf path;
};

static bool has_id(const struct elf_file *file, const unsigned char *id, size_t len)
{
	size_t other_len;
	const unsigned char *other = elf_file_build_id(file, &other_len);

	return other && other_len == len && memcmp(other, id, len) == 0;
}

static bool has_checksum(const struct elf_file *file, uint32_t checksum)
{
	return (uint32_t)crc32_z(0, file->bytes, file->size) == checksum;
}

/* Maps the file of s->path if it is the one. @return 0, or -1 with errno; ENOENT: go on looking. */
static int try(struct search *s, bool by_id)
{
	struct stat st;
	const char *path = buf_str(&s->path);

	if (!path) {
		errno = ENOMEM;
		return -1;
	}
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		errno = ENOENT;
		return -1;
	}
	int result = -1;
	errno = ENOENT;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		result = elf_file_map(s->debug, fd, (size_t)st.st_size);
	int error = errno == ENOMEM ? ENOMEM : ENOENT;
	close(fd);
	if (result == 0 &&
	    !(by_id ? has_id(s->debug, s->id, s->id_len) : has_checksum(s->debug, s->checksum))) {
		elf_file_unmap(s->debug);
		result = -1;
	}
	errno = error;
	return result;
}

/* ROOT DIR /.build-id/ab/cdef….debug */
static int try_id(struct search *s, const char *root, const char *dir)
{
	buf_clear(&s->path);
	buf_addf(&s->path, "%s%s/.build-id/%02x/", root, dir, s->id[0]);
	for (size_t i = 1; i < s->id_len; i++)
		buf_addf(&s->path, "%02x", s->id[i]);
	buf_add_str(&s->path, ".debug");
	return try(s, true);
}

/* ROOT DIR, the directory of the object, SUB, the link */
static int try_link(struct search *s, const char *root, const char *dir, const char *sub)
{
	size_t len = (size_t)(path_basename(s->location) - s->location);

	buf_clear(&s->path);
	buf_addf(&s->path, "%s%s%.*s%s%s", root, dir, (int)len, s->location, sub, s->link);
	return try(s, false);
}

static int try_flat(struct search *s, const char *dir)
{
	buf_clear(&s->path);
	buf_addf(&s->path, "%s/%s", dir, s->link);
	return try(s, false);
}

#define STOP_UNLESS_ABSENT(attempt)                                                                \
	do {                                                                                       \
		if ((attempt) == 0)                                                                \
			return 0;                                                                  \
		if (errno != ENOENT)                                                               \
			return -1;                                                                 \
	} while (0)

static int find_by_id(struct search *s)
{
	for (size_t i = 0; i < s->ndirs; i++)
		STOP_UNLESS_ABSENT(try_id(s, "", s->dirs[i]));
	if (s->root[0])
		STOP_UNLESS_ABSENT(try_id(s, s->root, SYSTEM_DIR));
	return try_id(s, "", SYSTEM_DIR);
}

static int find_by_link(struct search *s)
{
	for (size_t i = 0; i < s->ndirs; i++) {
		STOP_UNLESS_ABSENT(try_flat(s, s->dirs[i]));
		if (s->location[0] == '/')
			STOP_UNLESS_ABSENT(try_link(s, "", s->dirs[i], ""));
	}
	/* The object itself may have the link's name: its checksum differs. */
	STOP_UNLESS_ABSENT(try_link(s, s->root, "", ""));
	STOP_UNLESS_ABSENT(try_link(s, s->root, "", ".debug/"));
	if (s->location[0] != '/') {
		errno = ENOENT;
		return -1;
	}
	if (s->root[0])
		STOP_UNLESS_ABSENT(try_link(s, s->root, SYSTEM_DIR, ""));
	return try_link(s, "", SYSTEM_DIR, "");
}

static void read_link(struct search *s)
{
	size_t len;
	const Elf64_Shdr *section =
		elf_file_section(s->object, SHT_PROGBITS, ".gnu_debuglink", NULL);
	const char *link =
		section ? (const char *)elf_file_contents(s->object, section, &len) : NULL;

	if (!link)
		return;
	size_t name = strnlen(link, len);
	size_t at = (name + 4) & ~(size_t)3; /* behind the name's NUL, aligned */
	/* A name with a directory in it would lead anywhere. */
	if (!name || at + 4 > len || memchr(link, '/', name))
		return;
	s->link = link;
	memcpy(&s->checksum, link + at, 4);
}

/* Splits /proc/PID/root/… and /proc/PID/map_files/… into the program's root and a path below it;
 * resolves links of other paths, because debug files lie where the file is, not where a link to
 * it is. */
static int locate(struct search *s, const char *path)
{
	int pid = 0;
	int end = 0;
	char target[PATH_MAX];

	if (sscanf(path, "/proc/%d/%n", &pid, &end) == 1 && end) {
		snprintf(s->root, sizeof(s->root), "/proc/%d/root", pid);
		if (strncmp(path + end, "root/", 5) == 0) {
			s->location = strdup(path + end + 4);
			return s->location ? 0 : -1;
		}
		ssize_t len = readlink(path, target, sizeof(target) - 1);
		target[len > 0 ? len : 0] = '\0';
		s->location = strdup(target);
		return s->location ? 0 : -1;
	}
	s->location = realpath(path, NULL);
	if (!s->location && errno != ENOMEM)
		s->location = strdup(path);
	return s->location ? 0 : -1;
}

int debug_file_map(struct elf_file *debug, const struct elf_file *object, const char *path,
		   const char *const *dirs, size_t ndirs)
{
	struct search s = {.debug = debug, .object = object, .dirs = dirs, .ndirs = ndirs};
	int result = -1;

	s.id = elf_file_build_id(object, &s.id_len);
	if (s.id_len > BUILD_ID_MAX)
		s.id = NULL;
	read_link(&s);
	errno = ENOENT;
	if (!s.id && !s.link)
		return -1;
	if (locate(&s, path) < 0)
		return -1;
	errno = ENOENT;
	if (s.id)
		result = find_by_id(&s);
	if (result < 0 && errno == ENOENT && s.link)
		result = find_by_link(&s);
	int error = errno;
	buf_free(&s.path);
	free(s.location);
	errno = error;
	return result;
}
