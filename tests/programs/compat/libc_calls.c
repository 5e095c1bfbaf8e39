/* libc_calls SECTION [DIRECTORY]: calls the functions of the C library that DFTracer's preload library intercepts, with good and with
 * failing arguments, in a fresh directory. What both tracers write of it is compared. The files of
 * the sections data, streams and threads are in DIRECTORY, whose name is put in front of theirs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utime.h>

#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define CHECK(ok)                                                                                  \
	do {                                                                                       \
		if (!(ok)) {                                                                       \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #ok,                \
				strerror(errno));                                                  \
			exit(3);                                                                   \
		}                                                                                  \
	} while (0)

extern char **environ;

static char buffer[65536];
static const char *directory;

/* Where a file is, in one of a few buffers of the thread. */
static const char *at(const char *name)
{
	static __thread char places[4][PATH_MAX];
	static __thread unsigned int next;
	char *place = places[next++ % 4];

	snprintf(place, PATH_MAX, "%s%s%s", directory ? directory : "", directory ? "/" : "", name);
	return place;
}

static void data(void)
{
	struct iovec pieces[2] = {{buffer, 100}, {buffer + 100, 200}};
	int fd = open(at("data"), O_RDWR | O_CREAT | O_TRUNC, 0640), other;

	CHECK(fd >= 0);
	CHECK(write(fd, buffer, 1000) == 1000);
	CHECK(pwrite(fd, buffer, 500, 2000) == 500);
	CHECK(pwrite64(fd, buffer, 10, 5000) == 10);
	CHECK(writev(fd, pieces, 2) == 300);
	CHECK(pwritev(fd, pieces, 2, 8000) == 300);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CHECK(read(fd, buffer, 700) == 700);
	CHECK(read(fd, buffer, 0) == 0);
	CHECK(pread(fd, buffer, 20, 30) == 20);
	CHECK(pread64(fd, buffer, 21, 31) == 21);
	CHECK(readv(fd, pieces, 2) == 300);
	CHECK(preadv(fd, pieces, 2, 100) == 300);
	CHECK(lseek64(fd, -10, SEEK_END) > 0);
	CHECK(lseek(fd, -1, SEEK_SET) == -1);
	CHECK(fsync(fd) == 0);
	CHECK(fdatasync(fd) == 0);
	CHECK(ftruncate(fd, 4000) == 0);
	CHECK(ftruncate64(fd, 4096) == 0);
	CHECK(posix_fadvise(fd, 0, 4096, POSIX_FADV_RANDOM) == 0);
	CHECK(posix_fallocate(fd, 0, 8192) == 0);
	CHECK(flock(fd, LOCK_EX) == 0);
	CHECK(flock(fd, LOCK_UN) == 0);
	CHECK(fcntl(fd, F_GETFL) >= 0);
	CHECK(fcntl(fd, F_SETFD, FD_CLOEXEC) == 0);
	other = open64(at("other"), O_WRONLY | O_CREAT, 0600);
	CHECK(other >= 0);
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CHECK(sendfile(other, fd, NULL, 1000) == 1000);
	CHECK(copy_file_range(fd, NULL, other, NULL, 100, 0) == 100);
	CHECK(close(other) == 0);
	CHECK(close(fd) == 0);
	other = creat(at("made"), 0644);
	CHECK(other >= 0 && close(other) == 0);
	other = open(at("made"), O_RDONLY);
	CHECK(other >= 0 && write(other, buffer, 10) == -1 && close(other) == 0);
	CHECK(open(at("none/none"), O_RDONLY) == -1);
	CHECK(open(at("made"), O_RDONLY | O_DIRECTORY) == -1);
}

static void names(void)
{
	struct statvfs vfs;
	struct stat status;
	int top = open(".", O_RDONLY | O_DIRECTORY), fd, dir;
	char text[PATH_MAX];

	CHECK(top >= 0);
	CHECK(mkdir("d", 0755) == 0);
	CHECK(mkdir("d", 0755) == -1);
	dir = open("d", O_RDONLY | O_DIRECTORY);
	CHECK(dir >= 0);
	fd = openat(dir, "inside", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && write(fd, buffer, 10) == 10 && close(fd) == 0);
	fd = openat(AT_FDCWD, "outside", O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && write(fd, buffer, 20) == 20);
	CHECK(fstat(fd, &status) == 0 && status.st_size == 20);
	CHECK(fchmod(fd, 0640) == 0);
	CHECK(fchown(fd, getuid(), getgid()) == 0);
	CHECK(fstatvfs(fd, &vfs) == 0);
	CHECK(close(fd) == 0);
	CHECK(stat("outside", &status) == 0);
	CHECK(lstat("outside", &status) == 0);
	CHECK(stat("none", &status) == -1);
	CHECK(fstatat(AT_FDCWD, "outside", &status, 0) == 0);
	CHECK(fstatat(dir, "inside", &status, AT_SYMLINK_NOFOLLOW) == 0);
	CHECK(statvfs("d", &vfs) == 0);
	CHECK(access("outside", R_OK) == 0);
	CHECK(access("none", F_OK) == -1);
	CHECK(faccessat(dir, "inside", R_OK, 0) == 0);
	CHECK(chmod("outside", 0600) == 0);
	CHECK(fchmodat(dir, "inside", 0600, 0) == 0);
	CHECK(chown("outside", getuid(), getgid()) == 0);
	CHECK(lchown("outside", getuid(), getgid()) == 0);
	CHECK(fchownat(dir, "inside", getuid(), getgid(), 0) == 0);
	CHECK(utime("outside", NULL) == 0);
	CHECK(truncate("outside", 5) == 0);
	CHECK(truncate64("outside", 6) == 0);
	CHECK(link("outside", "second") == 0);
	CHECK(linkat(dir, "inside", AT_FDCWD, "third", 0) == 0);
	CHECK(symlink("outside", "soft") == 0);
	CHECK(symlinkat("inside", dir, "soft") == 0);
	CHECK(readlink("soft", text, sizeof(text)) == 7);
	CHECK(readlinkat(dir, "soft", text, sizeof(text)) == 6);
	CHECK(rename("second", "moved") == 0);
	CHECK(renameat(dir, "inside", AT_FDCWD, "fourth") == 0);
	CHECK(mkdirat(dir, "deep", 0700) == 0);
	CHECK(unlinkat(dir, "deep", AT_REMOVEDIR) == 0);
	CHECK(unlinkat(dir, "soft", 0) == 0);
	CHECK(mkfifo("pipe", 0600) == 0);
	CHECK(mknod("node", S_IFREG | 0600, 0) == 0);
	CHECK(realpath("soft", text));
	CHECK(getcwd(text, sizeof(text)));
	CHECK(umask(022) <= 0777);
	CHECK(remove("moved") == 0);
	CHECK(unlink("third") == 0);
	CHECK(unlink("third") == -1);
	CHECK(chdir("d") == 0);
	fd = open("below", O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0 && write(fd, buffer, 30) == 30 && close(fd) == 0);
	CHECK(unlink("below") == 0);
	CHECK(chdir("..") == 0);
	CHECK(fchdir(top) == 0);
	CHECK(rmdir("d") == 0);
	CHECK(rmdir("d") == -1);
	CHECK(close(dir) == 0 && close(top) == 0);
}

static void directories(void)
{
	struct dirent *entry;
	DIR *dir;
	int count = 0;

	CHECK(mkdir("many", 0755) == 0);
	for (int i = 0; i < 5; i++) {
		char name[32];
		int fd;

		snprintf(name, sizeof(name), "many/file%d", i);
		fd = open(name, O_WRONLY | O_CREAT, 0600);
		CHECK(fd >= 0 && close(fd) == 0);
	}
	dir = opendir("many");
	CHECK(dir && dirfd(dir) >= 0);
	while ((entry = readdir(dir)))
		count++;
	rewinddir(dir);
	while (readdir64(dir))
		count++;
	CHECK(count == 14);
	CHECK(closedir(dir) == 0);
	CHECK(opendir("none") == NULL);
}

static void maps(void)
{
	int fd = open("mapped", O_RDWR | O_CREAT, 0600);
	char *map, *mine;

	CHECK(fd >= 0 && ftruncate(fd, 8192) == 0);
	map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	memset(map, 'm', 100);
	CHECK(msync(map, 4096, MS_SYNC) == 0);
	CHECK(madvise(map, 8192, MADV_SEQUENTIAL) == 0);
	CHECK(mprotect(map, 4096, PROT_READ) == 0);
	CHECK(mlock(map, 4096) == 0 && munlock(map, 4096) == 0);
	CHECK(munmap(map, 8192) == 0);
	mine = mmap64(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 4096);
	CHECK(mine != MAP_FAILED && munmap(mine, 4096) == 0);
	mine = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mine != MAP_FAILED && munmap(mine, 4096) == 0);
	CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 1) == MAP_FAILED);
	CHECK(sysconf(_SC_PAGESIZE) == 4096);
	CHECK(close(fd) == 0);
}

static void streams(void)
{
	char line[100], *text = NULL;
	size_t size = 0;
	fpos_t place;
	int number;
	FILE *file = fopen(at("stream"), "w+");

	CHECK(file);
	CHECK(fwrite(buffer, 10, 20, file) == 20);
	CHECK(fprintf(file, "\n%d lines\n", 12) > 0);
	CHECK(fputs("seven\n", file) >= 0);
	CHECK(fputc('x', file) == 'x' && putc('y', file) == 'y');
	CHECK(fflush(file) == 0);
	CHECK(fseek(file, 0, SEEK_SET) == 0);
	CHECK(fread(line, 1, 50, file) == 50);
	CHECK(ftell(file) == 50);
	CHECK(fseeko(file, 201, SEEK_SET) == 0 && ftello(file) == 201);
	CHECK(fgets(line, sizeof(line), file));
	CHECK(fgetpos(file, &place) == 0 && fsetpos(file, &place) == 0);
	CHECK(getline(&text, &size, file) > 0);
	CHECK(fgetc(file) == 'x' && ungetc('x', file) == 'x');
	CHECK(!feof(file) && !ferror(file));
	clearerr(file);
	rewind(file);
	CHECK(fileno(file) >= 0);
	CHECK(setvbuf(file, NULL, _IONBF, 0) == 0);
	CHECK(fread(line, 1, 4, file) == 4);
	CHECK(fclose(file) == 0);
	file = fopen64(at("numbers"), "w");
	CHECK(file && fputs("12 13\n", file) >= 0);
	file = freopen(at("numbers"), "r", file);
	CHECK(file && fscanf(file, "%d", &number) == 1 && number == 12);
	CHECK(fclose(file) == 0);
	number = open(at("opened"), O_WRONLY | O_CREAT, 0600);
	file = fdopen(number, "w");
	CHECK(file && fwrite("abc", 1, 3, file) == 3 && fclose(file) == 0);
	CHECK(fopen(at("none/none"), "r") == NULL);
	file = tmpfile();
	CHECK(file && fputs("gone", file) >= 0 && fclose(file) == 0);
	free(text);
}

static void *thread(void *which)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "thread%d", *(int *)which);
	fd = open(at(name), O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0);
	for (int i = 0; i < 50; i++)
		CHECK(pwrite(fd, buffer, (size_t)(10 * *(int *)which + i), i * 100) > 0);
	for (int i = 0; i < 10; i++)
		CHECK(read(fd, buffer, 64) == 64);
	CHECK(close(fd) == 0);
	return NULL;
}

static void threads(void)
{
	pthread_t made[4];
	int which[4] = {1, 2, 3, 4};

	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&made[i], NULL, thread, &which[i]) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(made[i], NULL) == 0);
}

static void child_work(int number)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "child%d", number);
	fd = open(name, O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && write(fd, buffer, (size_t)(100 + number)) == 100 + number);
	CHECK(close(fd) == 0);
}

static void forks(void)
{
	int status, fd = open("before", O_RDWR | O_CREAT, 0600);

	CHECK(fd >= 0);
	for (int i = 1; i <= 3; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0) {
			CHECK(write(fd, buffer, 5) == 5);
			child_work(i);
			exit(i);
		}
		CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == i);
	}
	CHECK(close(fd) == 0);
	CHECK(wait(&status) == -1);
}

static void execs(const char *self)
{
	const char *names[] = {"execv", "execve", "execvp"};
	int status;
	pid_t pid;

	for (int i = 0; i < 3; i++) {
		char *args[] = {(char *)self, "child", (char *)names[i], NULL};

		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			execv("/none", args);
			switch (i) {
			case 0:
				execv(self, args);
				break;
			case 1:
				execve(self, args, environ);
				break;
			default:
				execvp(self, args);
			}
			_exit(99);
		}
		CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
	}
	char *args[] = {(char *)self, "child", "posix_spawn", NULL};

	CHECK(posix_spawn(&pid, self, NULL, NULL, args, environ) == 0);
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
	CHECK(system("true") == 0);
}

static void descriptors(void)
{
	int fd = open("one", O_RDWR | O_CREAT, 0600), copy, ends[2], pair[2];

	CHECK(fd >= 0);
	copy = dup(fd);
	CHECK(copy >= 0 && write(copy, buffer, 11) == 11);
	CHECK(dup2(fd, 50) == 50 && write(50, buffer, 12) == 12 && close(50) == 0);
	CHECK(fcntl(fd, F_DUPFD, 60) == 60 && write(60, buffer, 13) == 13 && close(60) == 0);
	CHECK(close(copy) == 0 && close(fd) == 0 && close(fd) == -1);
	CHECK(pipe(ends) == 0);
	CHECK(write(ends[1], "abc", 3) == 3 && read(ends[0], buffer, 3) == 3);
	CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK(send(pair[0], "abcd", 4, 0) == 4 && recv(pair[1], buffer, 4, 0) == 4);
	CHECK(write(pair[0], "abcd", 4) == 4 && read(pair[1], buffer, 4) == 4);
	CHECK(close(pair[0]) == 0 && close(pair[1]) == 0);
	CHECK(write(1, "out\n", 4) == 4);
}

int main(int argc, char **argv)
{
	const struct {
		const char *name;
		void (*run)(void);
	} sections[] = {{"data", data},
			{"names", names},
			{"directories", directories},
			{"maps", maps},
			{"streams", streams},
			{"threads", threads},
			{"forks", forks},
			{"descriptors", descriptors}};

	if (argc == 3 && strcmp(argv[1], "child") == 0) {
		int fd = open(argv[2], O_WRONLY | O_CREAT, 0600);

		CHECK(fd >= 0 && write(fd, buffer, 40) == 40 && close(fd) == 0);
		return 7;
	}
	CHECK(argc == 2 || argc == 3);
	directory = argv[2];
	if (strcmp(argv[1], "execl") == 0)
		return execl(argv[0], argv[0], "child", "execl", (char *)NULL);
	if (strcmp(argv[1], "execs") == 0) {
		execs(argv[0]);
		return 0;
	}
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		if (strcmp(argv[1], sections[i].name) == 0) {
			sections[i].run();
			return 0;
		}
	}
	CHECK(!"a known section");
}
