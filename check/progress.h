/* A bar on a terminal for what takes longer than a moment. */
#ifndef CHECK_PROGRESS_H
#define CHECK_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool on;
	uint64_t total; /* bytes */
	uint64_t done;  /* of the files that are finished */
	uint64_t shown; /* ns: when it was drawn last; 0: not on the screen */
	uint64_t began;
	const char *what;
};

/* Prepares a bar for so many bytes; silent unless stderr is a terminal. */
void progress_begin(struct progress *progress, const char *what, uint64_t total, bool wanted);

/* So many bytes of the present file are done. */
void progress_at(struct progress *progress, uint64_t bytes);

/* The present file is finished. */
void progress_next(struct progress *progress, uint64_t size);

/* Takes the bar from the screen, before anything else is written there. */
void progress_clear(struct progress *progress);

#endif
