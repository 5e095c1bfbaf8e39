/* Prints the manual page dftrace-check(1): the options come from the table that the program uses. */
#include "check/options.h"
#include "tools/man-text.h"
#include "version.h"

#include <stdio.h>

static const char head[] =
	".SH NAME\n"
	"dftrace\\-check \\- check DFTracer traces, mend and convert them\n"
	".SH SYNOPSIS\n"
	".B dftrace\\-check\n"
	"[\\fIoptions\\fR] \\fIFILES\\fR|\\fIDIRS\\fR...\n"
	".SH DESCRIPTION\n"
	".B dftrace\\-check\n"
	"reads traces, compressed or not, of\n"
	".BR dftrace\\-run (1)\n"
	"and of DFTracer's own library (v1 of all generations, v2). Of a directory it takes all "
	"\\fB*.pfw\\fR and \\fB*.pfw.gz\\fR below it.\n"
	".PP\n"
	"It looks at the gzip members, the frame, the JSON of each line, types, ids, nesting, "
	"hashes, names before their use, start and end, times, sizes and results of each file; "
	"then at all files together: whether no rank is missing, whether the processes of a host "
	"had one clock, and whether what is required is there.\n"
	".PP\n"
	"For each file it prints who wrote it, the number of events by category, the bytes read "
	"and "
	"written by POSIX and STDIO calls, the time, and what was lost; then a total and, as the "
	"last line, the verdict: \\fBgood\\fR, \\fBfindings\\fR or \\fBunusable\\fR. A "
	"\\fIfinding\\fR "
	"is a fault. A \\fInote\\fR is none: something that could not be seen, or, in a trace that "
	"dftrace did not write, something that DFTracer's readers take and dftrace would not have "
	"written.\n"
	".PP\n"
	"Files are read as a stream: memory does not grow with the number of events.\n";

static const char tail[] =
	".SH WRITING\n"
	"With \\fB\\-\\-repair\\fR, \\fB\\-\\-to\\fR, \\fB\\-\\-anonymize\\fR or "
	"\\fB\\-\\-merge\\fR, which "
	"may be combined, files are written, and the report and the exit status are about these.\n"
	".SH JSON\n"
	"\\fB\\-\\-json\\fR prints one object: \\fBversion\\fR, \\fBverdict\\fR, \\fBstatus\\fR, "
	"\\fBfiles\\fR, \\fBtotal\\fR, and \\fBfindings\\fR about the whole. A file's findings "
	"have an "
	"\\fBid\\fR, a \\fBclass\\fR (note, finding, unusable), the first \\fBline\\fR, how often "
	"(\\fBcount\\fR), and a \\fBtext\\fR.\n"
	".SH EXIT STATUS\n"
	".TP\n.B 0\nall is good\n"
	".TP\n.B 1\nsomething was found\n"
	".TP\n.B 2\na file cannot be used or written; wrong usage\n"
	".SH EXAMPLES\n"
	".nf\n"
	"dftrace\\-check out\n"
	"dftrace\\-check \\-\\-require POSIX,MPI,rank out\n"
	"dftrace\\-check \\-\\-repair \\-o mended out\n"
	"dftrace\\-check \\-\\-merge all.pfw.gz out\n"
	"dftrace\\-check \\-\\-anonymize \\-o public out\n"
	".fi\n"
	".SH SEE ALSO\n"
	".BR dftrace\\-run (1),\n.BR zcat (1),\n.BR jq (1)\n";

int main(void)
{
	printf(".TH DFTRACE\\-CHECK 1 \"\" \"dftrace %s\" \"User Commands\"\n", DFTRACE_VERSION);
	fputs(head, stdout);
	fputs(".SH OPTIONS\nLong options may be abbreviated where that is not ambiguous.\n",
	      stdout);
	man_print_options(&check_option_table);
	fputs(tail, stdout);
	return man_finish();
}
