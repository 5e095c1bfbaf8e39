/* What was found, for people and for scripts. */
#ifndef CHECK_REPORT_H
#define CHECK_REPORT_H

#include "check/set.h"
#include "check/trace.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Prints what a file holds, and what is wrong with it. `quiet`: only that. */
void report_file(FILE *out, const struct trace *trace, bool quiet);

/* Prints the total, what is wrong with the whole, and the verdict. */
void report_total(FILE *out, const struct set *set, bool quiet);

/* "good", "findings" or "unusable", for an exit status. */
const char *report_verdict(int status);

/* The words of a finding: its own, and the details. */
void report_words(struct buf *out, const struct finding *finding, enum finding_kind kind);

/* The same as JSON. @return NULL when out of memory. */
json_t *report_json_file(const struct trace *trace);
json_t *report_json(const struct set *set, json_t *files);

#endif
