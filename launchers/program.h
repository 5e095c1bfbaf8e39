/* The program to run: finding it as a shell does, and becoming it. */
#ifndef LAUNCHERS_PROGRAM_H
#define LAUNCHERS_PROGRAM_H

#include "base/buf.h"

#define EXIT_OURS      125 /* a failure of our own */
#define EXIT_NOT_RUN   126 /* found, but cannot be executed */
#define EXIT_NOT_FOUND 127

/* Finds the file for a program's name: with a slash as it is, else along PATH.
 * @return 0 and its path in `path`, or EXIT_NOT_RUN or EXIT_NOT_FOUND and one sentence in `error`. */
int program_find(const char *name, struct buf *path, struct buf *error);

/* Executes it; a file without a known format is given to /bin/sh, as execvp does.
 * @return only on failure: EXIT_NOT_RUN or EXIT_NOT_FOUND, with one sentence in `error`. */
int program_exec(const char *path, char **argv, struct buf *error);

#endif
