#include "symbols/hooks.h"

#define FIELDS(...)                                                                                \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define NAMES(...)                                                                                 \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define NOTHING                                                                                    \
	{                                                                                          \
		HOOK_END, 0, NULL                                                                  \
	}
#define STREAM(n)                                                                                  \
	{                                                                                          \
		HOOK_STREAM, n, NULL                                                               \
	}
#define STDIN                                                                                      \
	{                                                                                          \
		HOOK_STDIN, 0, NULL                                                                \
	}
#define STDOUT                                                                                     \
	{                                                                                          \
		HOOK_STDOUT, 0, NULL                                                               \
	}
#define STDERR                                                                                     \
	{                                                                                          \
		HOOK_STDERR, 0, NULL                                                               \
	}
#define OPENS(n)                                                                                   \
	{                                                                                          \
		HOOK_OPENS, n, NULL                                                                \
	}
#define ON_FD(n, key)                                                                              \
	{                                                                                          \
		HOOK_ON_FD, n, key                                                                 \
	}
#define INT(n, key)                                                                                \
	{                                                                                          \
		HOOK_INT, n, key                                                                   \
	}
#define LONG(n, key)                                                                               \
	{                                                                                          \
		HOOK_LONG, n, key                                                                  \
	}
#define SIZE(n, key)                                                                               \
	{                                                                                          \
		HOOK_SIZE, n, key                                                                  \
	}
#define TEXT(n, key)                                                                               \
	{                                                                                          \
		HOOK_TEXT, n, key                                                                  \
	}
#define FLUSHES                                                                                    \
	{                                                                                          \
		HOOK_FLUSHES, 0, NULL                                                              \
	}
#define B_NONE      HOOK_B_NONE, 0
#define B_ITEMS(n)  HOOK_B_ITEMS, n
#define B_RESULT    HOOK_B_RESULT, 0
#define B_STRING(n) HOOK_B_STRING, n
#define B_LINE(n)   HOOK_B_LINE, n
#define B_FILLED(n) HOOK_B_FILLED, n
#define B_ONE       HOOK_B_ONE, 0

/* NOLINTBEGIN(bugprone-macro-parentheses): initialisers, which parentheses would break */
/* `moved` is two initialisers, the kind and the argument. */
#define HOOK(word, values, returns, moved, names)                                                  \
	{.name = #word,                                                                            \
	 .layer = HOOK_STDIO,                                                                      \
	 .group = "stdio",                                                                         \
	 .fields = values,                                                                         \
	 .result = HOOK_##returns,                                                                 \
	 moved,                                                                                    \
	 .symbols = names},

static const struct hook_row stdio_rows[] = {
#include "symbols/hooks/stdio.def"
};
#undef INT
#undef LONG
#undef TEXT
#undef NOTHING

/* The libraries' tables. */
#define ARG(kind, word)                                                                            \
	{                                                                                          \
		HOOK_A_##kind, #word                                                               \
	}
#define INT(word)     ARG(INT, word)
#define UINT(word)    ARG(UINT, word)
#define LONG(word)    ARG(LONG, word)
#define ULONG(word)   ARG(ULONG, word)
#define TEXT(word)    ARG(TEXT, word)
#define PATH(word)    ARG(PATH, word)
#define POINTER(word) ARG(POINTER, word)
#define BUFFER(word)  ARG(BUFFER, word)
#define DOUBLE(word)  ARG(DOUBLE, word)
#define C_ONLY(word)  ARG(C_ONLY, word)
#define ID(word)      ARG(ID, word)
#define COUNT(word)   ARG(COUNT, word)
#define RANK(word)    ARG(RANK, word)
#define OFFSET(word)  ARG(OFFSET, word)
#define TYPE(word)    ARG(TYPE, word)
#define COMM(word)    ARG(COMM, word)
#define FILE(word)    ARG(FILE, word)
#define HANDLE(word)  ARG(HANDLE, word)
#define COUNTS(word)  ARG(COUNTS, word)
#define TYPES(word)   ARG(TYPES, word)
#define ARGS(...)     __VA_ARGS__
#define NONE          ARG_END
#define ARG_END                                                                                    \
	{                                                                                          \
		HOOK_A_END, NULL                                                                   \
	}

/* The arguments come last, since they are many once ARGS has been replaced. */
#define ROW(library, word, group_name, when, served, returns, is_large, ...)                       \
	{.name = word,                                                                             \
	 .layer = HOOK_##library,                                                                  \
	 .group = #group_name,                                                                     \
	 .mode = HOOK_##when,                                                                      \
	 .serves = HOOK_FOR_##served,                                                              \
	 .result = HOOK_##returns,                                                                 \
	 .large = is_large,                                                                        \
	 .args = (const struct hook_arg[]){__VA_ARGS__, ARG_END}},

#define CALL(word, group, when, served, returns, list)                                             \
	ROW(MPI, #word, group, when, served, returns, false, list)
/* The same function twice, the second time with large counts. */
#define CALL_C(word, group, when, served, returns, list)                                           \
	ROW(MPI, #word, group, when, served, returns, false, list)                                 \
	ROW(MPI, #word "_c", group, when, served, returns, true, list)

static const struct hook_row mpi_rows[] = {
#include "symbols/hooks/mpi.def"
};
#undef CALL
#undef CALL_C

#define CALL(word, group, when, served, returns, list)                                             \
	ROW(HDF5, #word, group, when, served, returns, false, list)

static const struct hook_row hdf5_rows[] = {
#include "symbols/hooks/hdf5.def"
};
#undef CALL

#define ANNOTATION(word, group_name, does, symbol)                                                 \
	{.name = word,                                                                             \
	 .layer = HOOK_APP,                                                                        \
	 .group = #group_name,                                                                     \
	 .annotates = HOOK_ANNOTATES_##does,                                                       \
	 .of_library = sizeof(#group_name) == sizeof("library"),                                   \
	 .symbols = {symbol}},

static const struct hook_row app_rows[] = {
#include "symbols/hooks/annotate.def"
};
/* NOLINTEND(bugprone-macro-parentheses) */

#define TABLE(word, array)                                                                         \
	{                                                                                          \
		word, array, sizeof(array) / sizeof(*(array))                                      \
	}

const struct hook_table hook_tables[HOOK_LAYERS] = {
	[HOOK_STDIO] = TABLE("stdio", stdio_rows),
	[HOOK_MPI] = TABLE("mpi", mpi_rows),
	[HOOK_HDF5] = TABLE("hdf5", hdf5_rows),
	[HOOK_APP] = TABLE("app", app_rows),
};

_Static_assert(sizeof(stdio_rows) / sizeof(*stdio_rows) <= HOOK_MOST_ROWS, "HOOK_MOST_ROWS");
_Static_assert(sizeof(mpi_rows) / sizeof(*mpi_rows) <= HOOK_MOST_ROWS, "HOOK_MOST_ROWS");
_Static_assert(sizeof(hdf5_rows) / sizeof(*hdf5_rows) <= HOOK_MOST_ROWS, "HOOK_MOST_ROWS");

const struct hook_kind hook_kinds[HOOK_A_KINDS] = {
	[HOOK_A_INT] = {.size = 4, .is_signed = true, .by_value = true, .written = true},
	[HOOK_A_UINT] = {.size = 4, .by_value = true, .written = true},
	[HOOK_A_LONG] = {.size = 8, .is_signed = true, .by_value = true, .written = true},
	[HOOK_A_ULONG] = {.size = 8, .by_value = true, .written = true},
	[HOOK_A_TEXT] = {.size = 8, .is_string = true, .written = true},
	[HOOK_A_PATH] = {.size = 8, .is_string = true},
	[HOOK_A_POINTER] = {.size = 8},
	[HOOK_A_BUFFER] = {.size = 8},
	[HOOK_A_DOUBLE] = {.size = 8},
	[HOOK_A_C_ONLY] = {.size = 8},
	[HOOK_A_ID] = {.size = 8, .is_signed = true, .by_value = true},
	[HOOK_A_COUNT] = {.size = 4, .is_signed = true, .by_value = true, .written = true},
	[HOOK_A_RANK] = {.size = 4, .is_signed = true, .by_value = true, .written = true},
	[HOOK_A_OFFSET] = {.size = 8, .is_signed = true, .by_value = true, .written = true},
	[HOOK_A_TYPE] = {.size = 8, .by_value = true},
	[HOOK_A_COMM] = {.size = 8, .by_value = true},
	[HOOK_A_FILE] = {.size = 8, .by_value = true},
	[HOOK_A_HANDLE] = {.size = 8, .by_value = true},
	[HOOK_A_COUNTS] = {.size = 8},
	[HOOK_A_TYPES] = {.size = 8},
};
