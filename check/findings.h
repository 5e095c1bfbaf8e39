/* What was found in one file: each kind once, with its first place and how often. */
#ifndef CHECK_FINDINGS_H
#define CHECK_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum finding_class {
	FINDING_NOTE,
	FINDING_CONTRACT,
	FINDING_ERROR,
	FINDING_UNUSABLE,
};

enum finding_kind {
#define FINDING(id, class, repairable, words) FINDING_##id,
#include "check/findings.def"
	FINDING_KINDS,
};

struct finding_row {
	const char *id; /* for scripts */
	enum finding_class class;
	bool repairable;
	const char *words;
};

extern const struct finding_row finding_rows[FINDING_KINDS];

enum { FINDING_DETAIL = 160 };

struct finding {
	uint64_t count;
	uint64_t line; /* 0: of the file as a whole */
	char detail[FINDING_DETAIL];
};

struct findings {
	struct finding items[FINDING_KINDS];
	bool foreign; /* not written by dftrace */
};

/* Counts one; the first of a kind keeps its details, which may be NULL. What is not printable ASCII in
 * them is replaced. */
__attribute__((format(printf, 4, 5))) void finding_add(struct findings *findings,
						       enum finding_kind kind, uint64_t line,
						       const char *format, ...);

/* What a kind amounts to in this file. */
enum finding_class finding_class(const struct findings *findings, enum finding_kind kind);

/* The worst class found, FINDING_NOTE when nothing was. */
enum finding_class findings_worst(const struct findings *findings);

/* Kinds found that are worse than a note; with `notes` these as well. */
unsigned findings_count(const struct findings *findings, bool notes);

/* Whether there is something that --repair mends. */
bool findings_repairable(const struct findings *findings);

#endif
