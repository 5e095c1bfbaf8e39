#include "check/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 30 };

static const uint64_t step = 100000000; /* ns between two drawings */

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void progress_begin(struct progress *progress, const char *what, uint64_t total, bool wanted)
{
	*progress = (struct progress){
		.on = wanted && total > 0 && isatty(STDERR_FILENO),
		.total = total,
		.began = now(),
		.what = what,
	};
}

static void draw(const struct progress *progress, uint64_t done)
{
	unsigned part =
		done >= progress->total ? WIDTH : (unsigned)(done * WIDTH / progress->total);
	char bar[WIDTH + 1];

	for (unsigned i = 0; i < WIDTH; i++)
		bar[i] = i < part ? '#' : '.';
	bar[WIDTH] = '\0';
	fprintf(stderr, "\r%s [%s] %3u %%", progress->what, bar, part * 100 / WIDTH);
	fflush(stderr);
}

void progress_at(struct progress *progress, uint64_t bytes)
{
	if (!progress || !progress->on)
		return;
	uint64_t time = now();
	uint64_t before = progress->shown ? progress->shown : progress->began;
	if (time - before < step)
		return;
	progress->shown = time;
	draw(progress, progress->done + bytes);
}

void progress_next(struct progress *progress, uint64_t size)
{
	progress->done += size;
}

void progress_clear(struct progress *progress)
{
	if (!progress->shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	progress->shown = 0;
	progress->began = now();
}
