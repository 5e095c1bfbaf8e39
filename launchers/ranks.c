#include "launchers/ranks.h"

#include "base/buf.h"
#include "base/number.h"
#include "writer/writer.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rank_row {
	const char *name;
	const char *conditions;
	const char *variables[RANK_VALUE_COUNT];
};

struct job_row {
	const char *name;
	const char *jobid;
	const char *step;
};

static const struct rank_row rank_rows[] = {
#define RANK(id, name, conditions, rank, local_rank, world_size, jobid, step, node)                \
	{name, conditions, {rank, local_rank, world_size, jobid, step, node}},
#include "launchers/ranks.def"
};

static const struct job_row job_rows[] = {
#define JOB(id, name, jobid, step) {name, jobid, step},
#include "launchers/ranks.def"
};

static const struct rank_starter starters[] = {
#define STARTER(program, is_above, words, options) {program, is_above, words, options},
#include "launchers/ranks.def"
};

static const char *get(const struct environment *environment, const char *name, size_t len)
{
	const char *end = environment->text + environment->len;

	for (const char *at = environment->text; at < end;) {
		size_t left = strnlen(at, (size_t)(end - at));
		if (left > len && at[len] == '=' && memcmp(at, name, len) == 0)
			return at + len + 1;
		at += left + 1;
	}
	return NULL;
}

const char *environment_get(const struct environment *environment, const char *name)
{
	return get(environment, name, strlen(name));
}

/* @return the length of the first word of a list, whose blanks before it are skipped. */
static size_t word(const char **list)
{
	*list += strspn(*list, " ");
	return strcspn(*list, " ");
}

/* @return the value of the first variable in the list that has one, NULL: none. */
static const char *first_value(const struct environment *environment, const char *list)
{
	size_t len;

	while ((len = word(&list))) {
		const char *value = get(environment, list, len);
		if (value && *value)
			return value;
		list += len;
	}
	return NULL;
}

static bool condition_holds(const struct environment *environment, const char *condition,
			    size_t len)
{
	char pattern[64];
	size_t name = strcspn(condition, "=! ");
	const char *value = get(environment, condition, name < len ? name : len);

	if (!value || name >= len)
		return value;
	size_t rest = len - name - 1;
	if (rest >= sizeof(pattern))
		return false;
	memcpy(pattern, condition + name + 1, rest);
	pattern[rest] = '\0';
	return (fnmatch(pattern, value, 0) == 0) == (condition[name] == '=');
}

static bool is_number(const char *value)
{
	long number;
	return value && number_parse(value, 0, LONG_MAX, &number) == 0;
}

/* @return the rank by this row, NULL: it does not tell one. */
static const char *row_rank(const struct rank_row *row, const struct environment *environment)
{
	const char *conditions = row->conditions;
	size_t len;

	while ((len = word(&conditions))) {
		if (!condition_holds(environment, conditions, len))
			return NULL;
		conditions += len;
	}
	const char *rank = first_value(environment, row->variables[RANK_RANK]);
	return is_number(rank) ? rank : NULL;
}

static void fill(struct rank_info *info, const struct rank_row *row,
		 const struct environment *environment)
{
	for (int i = 0; i < RANK_VALUE_COUNT; i++) {
		const char *value = first_value(environment, row->variables[i]);
		bool is_name = i == RANK_JOBID || i == RANK_STEP;
		if (!info->values[i] && value && (is_name || is_number(value)))
			info->values[i] = value;
	}
}

static void read_job(struct rank_info *info, const struct environment *environment)
{
	for (size_t i = 0; i < sizeof(job_rows) / sizeof(*job_rows); i++) {
		const char *jobid = first_value(environment, job_rows[i].jobid);
		if (!jobid)
			continue;
		info->batch = job_rows[i].name;
		info->values[RANK_JOBID] = jobid;
		info->values[RANK_STEP] = first_value(environment, job_rows[i].step);
		return;
	}
}

void ranks_read(struct rank_info *info, const struct environment *environment)
{
	*info = (struct rank_info){0};
	read_job(info, environment);
	for (size_t i = 0; i < sizeof(rank_rows) / sizeof(*rank_rows); i++) {
		const char *rank = row_rank(&rank_rows[i], environment);
		if (!rank)
			continue;
		if (!info->launcher)
			info->launcher = rank_rows[i].name;
		else if (strcmp(rank, info->values[RANK_RANK]) != 0)
			continue;
		fill(info, &rank_rows[i], environment);
	}
}

int ranks_own(struct rank_own *own)
{
	struct buf text = {0};

	for (char **variable = environ; variable && *variable; variable++)
		buf_add(&text, *variable, strlen(*variable) + 1);
	if (!buf_str(&text)) {
		buf_free(&text);
		return -1;
	}
	own->text = text.data;
	const struct environment environment = {own->text, text.len};
	ranks_read(&own->info, &environment);
	return 0;
}

void ranks_own_free(struct rank_own *own)
{
	free(own->text);
	*own = (struct rank_own){0};
}

const char *ranks_value_name(enum rank_value value)
{
	static const char *const names[RANK_VALUE_COUNT] = {
		"rank", "local_rank", "world_size", "jobid", "step", "node",
	};
	return names[value];
}

static bool has_word(const char *list, const char *wanted)
{
	size_t len;

	while ((len = word(&list))) {
		if (wanted && strlen(wanted) == len && memcmp(list, wanted, len) == 0)
			return true;
		list += len;
	}
	return false;
}

const struct rank_starter *ranks_starter(const char *const *argv, size_t argc)
{
	const struct rank_starter *found = NULL;
	struct buf name = {0};

	trace_exec_name(&name, argv, argc);
	const char *program = buf_str(&name);
	for (size_t i = 0; program && !found && i < sizeof(starters) / sizeof(*starters); i++) {
		const struct rank_starter *starter = &starters[i];
		if (strcmp(starter->program, program) == 0 &&
		    (!*starter->words || has_word(starter->words, argc > 1 ? argv[1] : NULL)))
			found = starter;
	}
	buf_free(&name);
	return found;
}
