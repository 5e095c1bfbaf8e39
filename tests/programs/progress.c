/* progress FILE [COUNT]: call N writes the time at which it is made at offset 8 N of FILE, until it is killed
 * or COUNT calls are made; so whoever looks at FILE knows which calls there were, and when. With COUNT 0 and
 * a third argument, it sleeps that many microseconds between the calls. */
#include "say.h"

#include <fcntl.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long count = argc > 2 ? atol(argv[2]) : 0, pause = argc > 3 ? atol(argv[3]) : 0;
	int fd;

	CHECK(argc >= 2);
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0);
	for (long i = 0; count == 0 || i < count; i++) {
		struct timespec now;
		uint64_t ns;

		CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
		ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
		CHECK(pwrite(fd, &ns, sizeof(ns), i * 8) == sizeof(ns));
		if (pause)
			usleep((useconds_t)pause);
	}
	return 0;
}
