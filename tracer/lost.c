#include "tracer/lost.h"

#include <stdio.h>

static const char *const lost_names[LOST_COUNT] = {
	[LOST_UNREADABLE] = "unreadable",
	[LOST_UNTRACED] = "untraced",
	[LOST_COMPAT] = "compat",
	[LOST_IO_URING] = "io_uring",
	[LOST_AMBIGUOUS] = "ambiguous",
	[LOST_DROPPED] = "dropped",
	[LOST_SETUID] = "setuid",
	[LOST_UNVERIFIED] = "unverified",
	[LOST_UNHOOKED_STDIO] = "unhooked:stdio",
	[LOST_UNHOOKED_MPI] = "unhooked:mpi",
	[LOST_UNHOOKED_HDF5] = "unhooked:hdf5",
	[LOST_UNSIZED_MPI] = "unsized:mpi",
	[LOST_UNSIZED_HDF5] = "unsized:hdf5",
	[LOST_UNNAMED_MPI] = "unnamed:mpi",
	[LOST_UNNAMED_HDF5] = "unnamed:hdf5",
	[LOST_OWN_FILTER] = "own_filter",
	[LOST_TRUNCATED] = "truncated",
};

static const char *const skipped_names[SKIPPED_COUNT] = {
	[SKIPPED_TTY] = "tty",         [SKIPPED_PIPE] = "pipe",   [SKIPPED_SOCKET] = "socket",
	[SKIPPED_ANON] = "anon",       [SKIPPED_NULL] = "null",   [SKIPPED_BADFD] = "badfd",
	[SKIPPED_DATADIR] = "datadir", [SKIPPED_CLASS] = "class",
};

const char *lost_name(enum lost what)
{
	return lost_names[what];
}

const char *skipped_name(enum skipped what)
{
	return skipped_names[what];
}

enum skipped skipped_for(enum file_skip skip)
{
	switch (skip) {
	case FILE_TTY:
		return SKIPPED_TTY;
	case FILE_PIPE:
		return SKIPPED_PIPE;
	case FILE_SOCKET:
		return SKIPPED_SOCKET;
	case FILE_ANON:
		return SKIPPED_ANON;
	default:
		return SKIPPED_NULL;
	}
}

static void write_count(struct trace *trace, const char *group, const char *name, uint64_t count)
{
	char key[64];

	snprintf(key, sizeof(key), "%s:%s", group, name);
	trace_count(trace, key, count);
}

void lost_write(struct trace *trace, const struct process *process)
{
	for (int i = 0; i < LOST_COUNT; i++)
		write_count(trace, "lost", lost_names[i], process->lost[i]);
	for (int i = 0; i < SKIPPED_COUNT; i++)
		write_count(trace, "skipped", skipped_names[i], process->skipped[i]);
}
