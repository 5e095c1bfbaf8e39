#include "check/options.h"

#include <string.h>

enum group {
#define GROUP(id, title) GROUP_##id,
#include "check/options.def"
	GROUPS,
};

enum id {
#define OPTION(id, name, letter, argument, group, shown, help, more) OPTION_##id,
#include "check/options.def"
	OPTIONS,
};

static const struct option_row rows[OPTIONS] = {
#define OPTION(id, name, letter, argument, group, shown, help, more)                               \
	[OPTION_##id] = {name, letter, argument, GROUP_##group, shown, help, more},
#include "check/options.def"
};

static const char *const groups[GROUPS] = {
#define GROUP(id, title) [GROUP_##id] = (title),
#include "check/options.def"
};

const struct option_table check_option_table = {
	.program = "dftrace-check",
	.rows = rows,
	.count = OPTIONS,
	.groups = groups,
	.group_count = GROUPS,
};

static int take_required(struct check_options *options, char *list, struct buf *error)
{
	char *rest = list;
	char *item;

	while ((item = strsep(&rest, ","))) {
		if (!*item)
			continue;
		if (options->nrequired == CHECK_REQUIRED) {
			buf_addf(error, "--require takes at most %d items", CHECK_REQUIRED);
			return -1;
		}
		options->required[options->nrequired++] = item;
	}
	if (options->nrequired == 0) {
		buf_add_str(error, "--require needs categories, as in --require POSIX,rank");
		return -1;
	}
	return 0;
}

static int take_format(struct check_options *options, const char *format, struct buf *error)
{
	if (strcmp(format, "v1") == 0) {
		options->to = TRACE_V1;
	} else if (strcmp(format, "v2") == 0) {
		options->to = TRACE_V2;
	} else {
		buf_add_str(error, "--to ");
		option_add_quoted(error, format);
		buf_add_str(error, " is neither v1 nor v2");
		return -1;
	}
	return 0;
}

static int take_merge(struct check_options *options, const char *out, struct buf *error)
{
	size_t len = strlen(out);

	options->merge = out;
	if ((len > 4 && strcmp(out + len - 4, ".pfw") == 0) ||
	    (len > 7 && strcmp(out + len - 7, ".pfw.gz") == 0))
		return 0;
	buf_add_str(error, "--merge ");
	option_add_quoted(error, out);
	buf_add_str(error, " must end in .pfw.gz or .pfw, which is how readers know traces");
	return -1;
}

static int apply(struct check_options *options, enum id id, char *argument, struct buf *error)
{
	switch (id) {
	case OPTION_REQUIRE:
		return take_required(options, argument, error);
	case OPTION_TO:
		return take_format(options, argument, error);
	case OPTION_MERGE:
		return take_merge(options, argument, error);
	case OPTION_STRICT:
		options->strict = true;
		break;
	case OPTION_REPAIR:
		options->repair = true;
		break;
	case OPTION_ANONYMIZE:
		options->anonymize = true;
		break;
	case OPTION_OUTPUT:
		options->output = argument;
		break;
	case OPTION_IN_PLACE:
		options->in_place = true;
		break;
	case OPTION_JSON:
		options->json = true;
		break;
	case OPTION_QUIET:
		options->quiet = true;
		break;
	case OPTION_HELP:
		options->help = true;
		break;
	case OPTION_VERSION:
		options->version = true;
		break;
	default:
		break;
	}
	return 0;
}

bool check_options_write(const struct check_options *options)
{
	return options->repair || options->to || options->anonymize || options->merge;
}

static int check_together(const struct check_options *options, struct buf *error)
{
	const char *wrong = NULL;

	if (options->help || options->version)
		return 0;
	if (options->npaths == 0)
		wrong = "no file and no directory to check; usage: " CHECK_USAGE
			", see dftrace-check --help";
	else if ((options->in_place || options->output) && !check_options_write(options))
		wrong = "nothing is to be written: give --repair, --to or --anonymize as well";
	else if (options->in_place && (options->output || options->merge))
		wrong = "--in-place and --output or --merge contradict each other";
	else if (options->output && options->merge)
		wrong = "--merge names its file itself: leave out --output";
	if (!wrong)
		return 0;
	buf_add_str(error, wrong);
	return -1;
}

int check_options_parse(struct check_options *options, int argc, char **argv, struct buf *error)
{
	struct option names[OPTIONS + 1];
	char letters[2 * OPTIONS + 4];

	*options = (struct check_options){0};
	option_getopt(&check_option_table, "", names, letters);
	opterr = 0;
	optind = 0; /* GNU: start anew */
	for (;;) {
		int at = optind > 0 ? optind : 1;
		int value = getopt_long(argc, argv, letters, names, NULL);
		if (value < 0)
			break;
		const struct option_row *row = option_find(&check_option_table, value);
		/* Words that are no options may have been passed over. */
		if (value == '?' || value == ':' || !row)
			return option_refuse_word(&check_option_table, value,
						  argv[optind > at ? optind - 1 : at], error);
		if (apply(options, (enum id)(row - rows), optarg, error) < 0)
			return -1;
	}
	options->paths = argv + optind;
	options->npaths = argc - optind;
	return check_together(options, error);
}

void check_options_help(FILE *out)
{
	fputs("usage: " CHECK_USAGE "\n\n"
	      "Checks DFTracer traces: files, and all *.pfw and *.pfw.gz below directories.\n",
	      out);
	option_print_help(&check_option_table, out);
	fputs("\nExit status: 0 good, 1 something was found, 2 a file cannot be used, or wrong "
	      "usage.\n",
	      out);
}
