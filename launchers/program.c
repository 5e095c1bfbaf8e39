#include "launchers/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/stat.h>

#define DEFAULT_PATH "/usr/local/bin:/bin:/usr/bin"

/* @return 0 if the file can be executed, else errno. */
static int check(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? errno : 0;
}

static int explain(const char *name, int reason, struct buf *error)
{
	switch (reason) {
	case ENOENT:
	case ENOTDIR:
		buf_addf(error, "%s: not found%s", name,
			 strchr(name, '/')
				 ? ""
				 : "; it is in no directory of PATH (./ in front runs one here)");
		return EXIT_NOT_FOUND;
	case EISDIR:
		buf_addf(error, "%s: is a directory; name a program in it", name);
		return EXIT_NOT_RUN;
	case EACCES:
		buf_addf(error,
			 "%s: not executable; chmod +x makes it so, or name its interpreter first",
			 name);
		return EXIT_NOT_RUN;
	default:
		buf_addf(error, "%s: cannot be executed: %s", name, strerror(reason));
		return EXIT_NOT_RUN;
	}
}

int program_find(const char *name, struct buf *path, struct buf *error)
{
	int worst = ENOENT;

	if (strchr(name, '/') || name[0] == '\0') {
		int reason = check(name);
		buf_add_str(path, name);
		return reason ? explain(name, reason, error) : 0;
	}
	const char *dirs = getenv("PATH");
	if (!dirs)
		dirs = DEFAULT_PATH;
	for (;;) {
		size_t len = strcspn(dirs, ":");
		buf_clear(path);
		buf_add(path, dirs, len);
		if (len) /* an empty entry is the working directory */
			buf_add_char(path, '/');
		buf_add_str(path, name);
		const char *candidate = buf_str(path);
		int reason = candidate ? check(candidate) : ENOMEM;
		if (reason == 0)
			return 0;
		/* As shells do: what is found but cannot be run is told if nothing better follows. */
		if (reason != ENOENT && reason != ENOTDIR && reason != EISDIR)
			worst = reason;
		if (!dirs[len])
			return explain(name, worst, error);
		dirs += len + 1;
	}
}

/* @return whether the file is an ELF program: then a refused exec means another machine's. */
static bool is_elf(const char *path)
{
	char magic[SELFMAG] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	ssize_t n = read(fd, magic, sizeof(magic));
	close(fd);
	return n == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/* The environment's array is the caller's; argv gets the shell in front. */
static void exec_shell(const char *path, char **argv)
{
	size_t argc = 0;

	while (argv[argc])
		argc++;
	char **shell = calloc(argc + 3, sizeof(*shell));
	if (!shell)
		return;
	shell[0] = "/bin/sh";
	shell[1] = (char *)path;
	for (size_t i = 1; i < argc; i++)
		shell[i + 1] = argv[i];
	execv(shell[0], shell);
	free(shell);
}

int program_exec(const char *path, char **argv, struct buf *error)
{
	execv(path, argv);
	int reason = errno;
	if (reason == ENOEXEC) {
		if (is_elf(path)) {
			buf_addf(error, "%s: is built for another kind of machine", path);
			return EXIT_NOT_RUN;
		}
		exec_shell(path, argv);
		reason = errno;
	}
	if (reason == ENOENT) {
		/* The file itself was there a moment ago. */
		buf_addf(error, "%s: its interpreter or loader is missing", path);
		return EXIT_NOT_RUN;
	}
	return explain(path, reason, error);
}
