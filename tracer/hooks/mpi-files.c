/* MPI's files and requests: which path a handle stands for. */
#include "tracer/hooks/mpi.h"
#include "tracer/resolve.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct mpi_file *mpi_file_copy(const struct mpi_file *file)
{
	struct mpi_file *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *file;
	name_ref(copy->path);
	return copy;
}

void mpi_file_free(struct mpi_file *file)
{
	if (!file)
		return;
	name_unref(file->path);
	free(file);
}

struct mpi_request *mpi_request_copy(const struct mpi_request *request)
{
	struct mpi_request *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *request;
	name_ref(copy->path);
	return copy;
}

void mpi_request_free(struct mpi_request *request)
{
	if (!request)
		return;
	name_unref(request->path);
	free(request);
}

const struct mpi_file *mpi_file_find(const struct library_call *call, const struct mpi_state *state)
{
	int n = library_next(call->row, HOOK_A_FILE, -1);

	return n < 0 ? NULL : map_get(&state->files, mpi_argument_key(call, state, n));
}

/* ROMIO takes the kind of file system in front of a path: "ufs:/scratch/x". @return its length, 0: none. */
static size_t file_system(const char *text, size_t len)
{
	static const char *const known[] = {
		"ufs",   "nfs",        "xfs",  "lustre", "panfs",   "gpfs",
		"pvfs2", "testfs",     "daos", "ime",    "zoidfs",  "quobyte",
		"panfs", "bglockless", "pfs",  "piofs",  "unifyfs",
	};
	const char *colon = memchr(text, ':', len);

	for (size_t i = 0; colon && i < sizeof(known) / sizeof(*known); i++) {
		size_t n = strlen(known[i]);
		if ((size_t)(colon - text) == n && strncasecmp(text, known[i], n) == 0)
			return n + 1;
	}
	return 0;
}

static void name_path(const struct library_call *call, int n)
{
	size_t len = 0;
	const char *text = library_text(call, n, &len);
	size_t skip = text ? file_system(text, len) : 0;
	bool wanted;

	if (!text || len == skip)
		return;
	call->frame->path = resolve_path(call->tracer, call->task, AT_FDCWD, text + skip,
					 len - skip, &call->frame->call, &wanted);
}

/* MPI_FILE_NULL is no file that one could know. */
static bool is_null(const struct mpi_state *state, uint64_t key)
{
	for (unsigned i = 0; i < state->nnull_files; i++) {
		if (state->null_files[i] == key)
			return true;
	}
	/* Fortran's is its 0. */
	return key << 1 == 0;
}

void mpi_files_begin(const struct library_call *call, struct mpi_state *state)
{
	int path = library_next(call->row, HOOK_A_PATH, -1);
	int handle = library_next(call->row, HOOK_A_FILE, -1);
	uint64_t key = 0;
	const struct mpi_file *file = NULL;

	if (path >= 0) {
		name_path(call, path);
		return;
	}
	if (mpi_is(call->row, "MPI_File_close")) {
		if (!mpi_read_key(call, state, 0, HOOK_A_FILE, &key))
			return;
		call->frame->notes[1] = key;
	} else if (handle >= 0) {
		key = mpi_argument_key(call, state, handle);
	} else {
		return;
	}
	file = map_get(&state->files, key);
	if (file)
		library_set_file(call, file->path);
	else if (call->frame->record && !is_null(state, key))
		call->task->process->lost[LOST_UNNAMED_MPI]++;
}

static void put_file(struct mpi_state *state, uint64_t key, const struct mpi_file *file)
{
	struct mpi_file *copy = mpi_file_copy(file);

	mpi_file_free(map_remove(&state->files, key));
	if (copy && map_put(&state->files, key, copy) < 0)
		mpi_file_free(copy);
}

static void opened(const struct library_call *call, struct mpi_state *state)
{
	const struct mpi_comm *comm = mpi_comm_find(state, mpi_argument_key(call, state, 0));
	struct mpi_file file = {.path = call->frame->path, .rank = -1, .size = -1};
	uint64_t key;

	if (!file.path ||
	    !mpi_read_key(call, state, library_argument(call->row, "fh"), HOOK_A_FILE, &key))
		return;
	if (comm) {
		file.rank = comm->rank;
		file.size = comm->size;
	}
	put_file(state, key, &file);
}

void mpi_files_end(const struct library_call *call, struct mpi_state *state)
{
	if (!call->done)
		return;
	if (mpi_is(call->row, "MPI_File_c2f")) {
		/* What it returns is Fortran's handle. */
		const struct mpi_file *file = mpi_file_find(call, state);
		if (file)
			put_file(state, mpi_fortran_key(call, state, HOOK_A_FILE), file);
	} else if (call->result != 0) {
		return;
	} else if (mpi_is(call->row, "MPI_File_open")) {
		opened(call, state);
	} else if (mpi_is(call->row, "MPI_File_close")) {
		mpi_file_free(map_remove(&state->files, call->frame->notes[1]));
	}
}

static bool ends_with(const char *name, const char *ending)
{
	size_t len = strlen(name);
	size_t n = strlen(ending);

	return len >= n && strcmp(name + len - n, ending) == 0;
}

bool mpi_is_persistent(const struct hook_row *row)
{
	return ends_with(row->name, "_init") || ends_with(row->name, "_init_c");
}

/* The requests of MPI_Startall and MPI_Waitall, MPI_Start and MPI_Wait: `*first` is the argument. */
static uint64_t requests_of(const struct library_call *call, int *first)
{
	const struct hook_row *row = call->row;

	*first = library_argument(row, "array_of_requests");
	if (*first >= 0)
		return library_value(call, library_next(row, HOOK_A_INT, -1));
	*first = library_argument(row, "request");
	return *first >= 0;
}

/* @return request `i`. */
static struct mpi_request *request_of(const struct library_call *call,
				      const struct mpi_state *state, struct mpi_array *array,
				      uint64_t i)
{
	int64_t handle;

	if (!mpi_array_get(array, i, &handle))
		return NULL;
	return map_get(&state->requests, mpi_key(call, state, HOOK_A_HANDLE, (uint64_t)handle));
}

static bool is_start(const struct hook_row *row)
{
	return mpi_is(row, "MPI_Start") || mpi_is(row, "MPI_Startall");
}

/* What has been prepared moves now. */
static void start(const struct library_call *call, const struct mpi_state *state)
{
	int at;
	uint64_t count = requests_of(call, &at);
	struct mpi_array array = mpi_handles(call, state, library_value(call, at), HOOK_A_HANDLE);
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < count; i++) {
		const struct mpi_request *request = request_of(call, state, &array, i);
		if (!request || !request->sized) {
			call->frame->notes[0] = 1;
			return;
		}
		bytes += request->bytes;
	}
	library_set_size(call, bytes);
}

/* Waiting for requests on one file is about that file. */
static void await(const struct library_call *call, const struct mpi_state *state)
{
	int at;
	uint64_t count = requests_of(call, &at);
	struct mpi_array array = mpi_handles(call, state, library_value(call, at), HOOK_A_HANDLE);
	struct name *path = NULL;

	for (uint64_t i = 0; i < count; i++) {
		const struct mpi_request *request = request_of(call, state, &array, i);
		if (!request || !request->path)
			continue;
		if (path && (path->len != request->path->len ||
			     memcmp(path->text, request->path->text, path->len) != 0))
			return;
		path = request->path;
	}
	library_set_file(call, path);
}

void mpi_request_begin(const struct library_call *call, struct mpi_state *state)
{
	const struct hook_row *row = call->row;

	if (is_start(row))
		start(call, state);
	else if (mpi_is(row, "MPI_Wait") || mpi_is(row, "MPI_Waitall"))
		await(call, state);
	else if (mpi_is(row, "MPI_Request_free"))
		mpi_read_key(call, state, 0, HOOK_A_HANDLE, &call->frame->notes[1]);
}

void mpi_request_end(const struct library_call *call, struct mpi_state *state)
{
	const struct hook_row *row = call->row;
	bool persistent = mpi_is_persistent(row);
	int result = library_argument(row, "request");
	uint64_t key;
	bool sized = call->frame->has_size;

	/* It moves nothing yet. */
	if (persistent)
		call->frame->has_size = false;
	if (!call->done || call->result != 0 || result < 0)
		return;
	if (mpi_is(row, "MPI_Request_free")) {
		mpi_request_free(map_remove(&state->requests, call->frame->notes[1]));
		return;
	}
	if (!persistent && library_next(row, HOOK_A_FILE, -1) < 0)
		return;
	if (!mpi_read_key(call, state, result, HOOK_A_HANDLE, &key))
		return;
	struct mpi_request request = {
		.path = call->frame->path,
		.bytes = call->frame->size_sum,
		.sized = sized,
		.persistent = persistent,
	};
	struct mpi_request *copy = mpi_request_copy(&request);
	mpi_request_free(map_remove(&state->requests, key));
	if (copy && map_put(&state->requests, key, copy) < 0)
		mpi_request_free(copy);
}
