/* MPI: what its calls say beyond their arguments. */
#include "tracer/hooks/library.h"

#include <stdlib.h>

static void begin(const struct library_call *call)
{
	library_set_path(call, library_argument(call->row, "filename"));
}

static void end(const struct library_call *call, struct event *event)
{
	(void)call;
	(void)event;
}

static void *copy(const void *state)
{
	(void)state;
	return NULL;
}

const struct hook_library hook_mpi = {
	.category = LAYER_MPI,
	.begin = begin,
	.end = end,
	.copy = copy,
	.free = free,
	.marks =
		(const char *const[]){"MPIR_CVAR_", "was called before MPI_INIT was invoked", NULL},
	.variables = (const char *const[]){"ompi_mpi_", NULL},
};
