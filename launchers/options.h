/* The command line of dftrace-run. What options there are stands in options.def. */
#ifndef LAUNCHERS_OPTIONS_H
#define LAUNCHERS_OPTIONS_H

#include "base/buf.h"
#include "launchers/config-file.h"
#include "launchers/rank-list.h"
#include "launchers/ranks.h"
#include "launchers/strings.h"
#include "tracer/select.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define OPTIONS_USAGE "dftrace-run [options] [--] program [args]"

enum tracer_form {
	TRACER_FORM_AUTO, /* detached where it works, else parent */
	TRACER_FORM_DETACHED,
	TRACER_FORM_PARENT,
};

/* What was set, and where. */
struct setting {
	int id;             /* an enum option_id */
	const char *value;  /* NULL: the option takes none */
	const char *source; /* "DFTRACER_INIT", "conf.yaml:7"; NULL: the command line */
};

enum init_mode {
	INIT_HYBRID,
	INIT_PRELOAD,
	INIT_FUNCTION, /* the program's own functions only */
};

struct options {
	char *output; /* prefix of the traces as given, without .pfw or .pfw.gz; for messages */
	char *output_absolute; /* the same, absolute; symbolic links and `..` are left as they are */
	char file_system[64];  /* on which that lies, set by main; empty: not known */
	char *stage;           /* where files are written before they are moved; NULL: none */
	struct strings data_dirs; /* absolute and normalised; none: everything is recorded */
	struct strings exclude;   /* see options_excludes */
	enum init_mode init;
	struct selection selection; /* of --init, --no-posix and the like, and -e */

	struct strings hooks;       /* patterns of -x and --hook-file */
	struct strings symbol_dirs; /* absolute */
	unsigned long max_hooks;
	unsigned long hook_limit; /* 0: none */

	bool v2;           /* --format v2 */
	bool paths_given;  /* --paths given */
	bool names_kernel; /* --names kernel */
	bool no_compress;
	bool no_metadata;
	bool no_tids;
	bool core_affinity;
	unsigned long buffer_size; /* 0: as many bytes as is good */
	unsigned long max_files;   /* 0: no limit */
	bool summary;              /* print one */
	bool summary_only;         /* and write no traces */
	char *summary_file;        /* absolute, with expansions as of the prefix; NULL: stderr */
	enum tracer_form tracer;
	bool no_placement;
	bool recorder;              /* --capture recorder */
	struct strings no_recorder; /* see options_excludes_recorder */
	unsigned long recorder_hits;

	char *rank;             /* by --rank; NULL: as the environment tells */
	struct rank_list ranks; /* to be recorded */
	struct rank_own own;    /* what our environment, or --rank, tells */
	bool trace_launcher;
	bool drop_preload;
	bool print_command;
	bool disabled; /* the program is to run without a tracer */

	struct setting *settings; /* in the order of being applied */
	size_t nsettings;
	struct config_file file; /* by --config */
	struct setting
		*ignored; /* what was set and changes nothing; `id` is a row of environment.def */
	size_t nignored;

	bool quiet;
	unsigned verbose; /* how many -v */
	bool debug;
	bool doctor; /* look at the host, and at the program if there is one, instead of running it */
	bool list_hooks;
	bool dump_config;
	bool json;

	/* Steps of the fallback ladder, forced for tests. */
	bool no_seccomp;
	bool no_syscall_info;
	bool no_proc_mem;
	bool no_vm_readv;
	bool no_setptracer;
	bool no_emulation;

	bool stderr_closed; /* set by main: there was no stderr to begin with */

	struct strings warnings; /* sentences for stderr that do not stop us */

	int argc;    /* of the program */
	char **argv; /* of the program: the end of options_parse's argv, NULL behind it; not owned */
};

enum options_action {
	OPTIONS_RUN,
	OPTIONS_HELP,
	OPTIONS_VERSION,
};

/* Reads the command line. Options end at the first word that is not one, or at `--`.
 * Not for several threads at a time: getopt_long keeps its state in globals.
 * @return an enum options_action, or -1 with one sentence in `error` that says what is wrong and what
 *         to do (no newline, no program name in front). Either way options_free has to be called. */
int options_parse(struct options *options, int argc, char **argv, struct buf *error);

/* @return whether programs of this name are not to be recorded. `comm` is the kernel's name of the
 * process, which has 15 bytes at most. */
bool options_excludes(const struct options *options, const char *comm);

/* Same for programs inside which nothing is to be recorded. */
bool options_excludes_recorder(const struct options *options, const char *comm);

/* @return 1 for a word that says yes, 0 for one that says no (or nothing), -1 for any other. */
int options_yes_or_no(const char *value);

/* @return whether messages that are the same for all ranks are ours to print: rank 0, or no rank. */
bool options_speaks(const struct options *options);

/* Prints what --help prints. */
void options_help(FILE *out);

/* Frees what options_parse allocated and clears the struct. */
void options_free(struct options *options);

#endif
