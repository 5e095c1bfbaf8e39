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

/* `moved` is two initialisers, the kind and the argument. */
/* NOLINTBEGIN(bugprone-macro-parentheses): initialisers, which parentheses would break */
#define HOOK(word, values, returns, moved, names)                                                  \
	{.name = #word, .fields = values, .result = HOOK_##returns, moved, .symbols = names},

/* NOLINTEND(bugprone-macro-parentheses) */

const struct hook_row hooks_stdio[] = {
#include "symbols/hooks/stdio.def"
};

const size_t hooks_stdio_count = sizeof(hooks_stdio) / sizeof(*hooks_stdio);
