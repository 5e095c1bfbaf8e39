/* The command line of dftrace-check. What options there are stands in options.def. */
#ifndef CHECK_OPTIONS_H
#define CHECK_OPTIONS_H

#include "base/buf.h"
#include "base/option.h"
#include "check/trace.h"

#include <stdbool.h>

#define CHECK_USAGE "dftrace-check [options] FILES|DIRS..."

enum { CHECK_REQUIRED = 16 };

struct check_options {
	const char *required[CHECK_REQUIRED]; /* point into the command line */
	unsigned nrequired;
	bool strict;
	bool repair;
	enum trace_format to; /* TRACE_UNKNOWN: as it is */
	bool anonymize;
	const char *merge;  /* NULL: no */
	const char *output; /* NULL: beside the original */
	bool in_place;
	bool json;
	bool quiet;
	bool help;
	bool version;
	char **paths;
	int npaths;
};

extern const struct option_table check_option_table;

/* Reads the command line, whose words are changed. @return 0, or -1 with a sentence in `error`. */
int check_options_parse(struct check_options *options, int argc, char **argv, struct buf *error);

void check_options_help(FILE *out);

/* Whether files are written. */
bool check_options_write(const struct check_options *options);

#endif
