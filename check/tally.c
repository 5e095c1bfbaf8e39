#include "check/tally.h"

#include <string.h>
#include <strings.h>

void tally_init(struct tally *tally)
{
	*tally = (struct tally){.first = UINT64_MAX};
}

/* Copies a name that came from a file: what is not printable ASCII is replaced. */
static void copy_name(char *to, struct text name)
{
	size_t len = name.len < TALLY_NAME - 1 ? name.len : TALLY_NAME - 1;
	for (size_t i = 0; i < len; i++)
		to[i] = name.at[i] >= ' ' && name.at[i] <= '~' ? name.at[i] : '?';
	to[len] = '\0';
}

struct tally_category *tally_category(struct tally *tally, struct text name)
{
	static const struct text other = {"others", 6};
	char copy[TALLY_NAME];

	if (tally->ncategories > 0 && text_is(name, tally->categories[tally->last].name))
		return &tally->categories[tally->last];
	if (tally->ncategories >= TALLY_CATEGORIES - 1 && name.at != other.at) {
		for (unsigned i = 0; i < tally->ncategories; i++) {
			if (text_is(name, tally->categories[i].name))
				return &tally->categories[i];
		}
		name = other;
	}
	copy_name(copy, name);
	for (unsigned i = 0; i < tally->ncategories; i++) {
		if (strcmp(copy, tally->categories[i].name) == 0) {
			tally->last = i;
			return &tally->categories[i];
		}
	}
	tally->last = tally->ncategories++;
	struct tally_category *category = &tally->categories[tally->last];
	memcpy(category->name, copy, sizeof(copy));
	return category;
}

const struct tally_category *tally_find(const struct tally *tally, const char *name)
{
	for (unsigned i = 0; i < tally->ncategories; i++) {
		if (strcasecmp(tally->categories[i].name, name) == 0)
			return &tally->categories[i];
	}
	return NULL;
}

void tally_add_count(struct tally *tally, struct text name, uint64_t count)
{
	char copy[TALLY_NAME];

	copy_name(copy, name);
	for (unsigned i = 0; i < tally->ncounts; i++) {
		if (strcmp(tally->counts[i].name, copy) == 0) {
			tally->counts[i].count += count;
			return;
		}
	}
	if (tally->ncounts < TALLY_COUNTS) {
		memcpy(tally->counts[tally->ncounts].name, copy, sizeof(copy));
		tally->counts[tally->ncounts++].count = count;
	}
}

uint64_t tally_counted(const struct tally *tally, const char *prefix)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < tally->ncounts; i++) {
		if (strncmp(tally->counts[i].name, prefix, strlen(prefix)) == 0)
			sum += tally->counts[i].count;
	}
	return sum;
}

void tally_add(struct tally *sum, const struct tally *tally)
{
	for (unsigned i = 0; i < tally->ncategories; i++) {
		const struct tally_category *from = &tally->categories[i];
		struct tally_category *to =
			tally_category(sum, (struct text){from->name, strlen(from->name)});
		to->events += from->events;
		to->errors += from->errors;
		to->read += from->read;
		to->written += from->written;
	}
	for (unsigned i = 0; i < tally->ncounts; i++) {
		const char *name = tally->counts[i].name;
		tally_add_count(sum, (struct text){name, strlen(name)}, tally->counts[i].count);
	}
	sum->events += tally->events;
	sum->counters += tally->counters;
	sum->metadata += tally->metadata;
	if (tally->first < sum->first)
		sum->first = tally->first;
	if (tally->end > sum->end)
		sum->end = tally->end;
}

void tally_bytes(const struct tally *tally, uint64_t *read, uint64_t *written)
{
	*read = *written = 0;
	for (unsigned i = 0; i < tally->ncategories; i++) {
		const struct tally_category *category = &tally->categories[i];
		if (strcasecmp(category->name, "POSIX") == 0 ||
		    strcasecmp(category->name, "STDIO") == 0) {
			*read += category->read;
			*written += category->written;
		}
	}
}
