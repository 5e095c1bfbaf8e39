/* Prints the manual page dftrace-run(1): the options and the classes of calls come from the tables
 * that the program itself uses, the rest stands below. */
#include "launchers/options-table.h"
#include "launchers/options.h"
#include "launchers/settings.h"
#include "tools/man-text.h"
#include "version.h"

#include <stdbool.h>
#include <stdio.h>

static void print_options(void)
{
	fputs(".SH OPTIONS\n"
	      "Options end at the first word that is not one, or at \\fB\\-\\-\\fR. Long options "
	      "may be "
	      "abbreviated where that is not ambiguous.\n",
	      stdout);
	man_print_options(&options_table);
}

static void print_classes(void)
{
	const char *name;
	const char *what;
	bool on;

	fputs(".SH WHAT IS RECORDED\n"
	      "System calls that concern files, descriptors and processes, with their arguments, "
	      "results, "
	      "errors and times, by every process and thread that the program starts. Option "
	      "\\fB\\-e\\fR "
	      "takes these classes:\n",
	      stdout);
	for (unsigned i = 0; selection_class(i, &name, &what, &on); i++) {
		fputs(".TP\n\\fB", stdout);
		man_print_text(name);
		fputs("\\fR\n", stdout);
		man_print_text(what);
		puts(on ? "; recorded by default" : "; not recorded by default");
	}
	fputs(".PP\n"
	      "Calls on terminals, pipes, sockets and other anonymous files are left out by "
	      "default and "
	      "counted: the trace has a line \\fBskipped:\\fIwhat\\fR for each kind. "
	      "\\fB\\-e +%ipc,+%network\\fR records them.\n"
	      ".PP\n"
	      "Calls of the C library's streams are recorded with category STDIO (item "
	      "\\fBstdio\\fR, or a function's name), unless the program has no symbols; system "
	      "calls inside them have category SYSCALL. \\fB\\-\\-no\\-stdio\\fR or \\fB\\-e "
	      "!stdio\\fR leave them out, with their cost. Functions named by \\fB\\-x\\fR have "
	      "category FUNC.\n"
	      ".PP\n"
	      "Calls of MPI (item \\fBmpi\\fR) and HDF5 (item \\fBhdf5\\fR) are found by their "
	      "symbols "
	      "in C and "
	      "Fortran, in static programs and shared libraries. Of MPI the default is "
	      "initialisation and "
	      "files; \\fBmpi:p2p\\fR, \\fBmpi:collective\\fR and other groups are on request, "
	      "\\fBmpi:all\\fR is everything. Of HDF5 it is what moves data, opens, closes, "
	      "creates or "
	      "flushes; \\fBhdf5:all\\fR adds property lists and queries. "
	      "\\fB\\-\\-list\\-hooks\\fR lists the functions, their "
	      "groups and what "
	      "is on. What is off is not hooked and costs nothing.\n"
	      ".PP\n"
	      "What could not be seen, such as requests on io_uring rings, is counted as well: the "
	      "line "
	      "at the end names it, and the trace has a line \\fBlost:\\fIwhat\\fR.\n",
	      stdout);
}

static const char head[] =
	".SH NAME\n"
	"dftrace\\-run \\- run a program and write what it did as DFTracer traces\n"
	".SH SYNOPSIS\n"
	".B dftrace\\-run\n"
	"[\\fIoptions\\fR] [\\fB\\-\\-\\fR] \\fIprogram\\fR [\\fIargs\\fR]\n"
	".SH DESCRIPTION\n"
	".B dftrace\\-run\n"
	"starts \\fIprogram\\fR, watches it from outside with\n"
	".BR ptrace (2)\n"
	"and\n"
	".BR seccomp (2),\n"
	"and writes its file I/O, with the calls around it, in the format of DFTracer: a "
	"compressed file "
	"of one JSON object per line for each process. It needs no root, and nothing is loaded "
	"into the "
	"program or linked to it, so static programs work as well as others.\n"
	".PP\n"
	"The program keeps its process: it has the process id, the parent, the process group, the "
	"session, the descriptors and the environment that it would have without "
	"\\fBdftrace\\-run\\fR. "
	"Its children and threads are traced from their first instruction on. Processes that "
	"outlive "
	"it stay traced in the background.\n"
	".PP\n"
	"At the end one line on standard error says how many events are in how many files, how "
	"many "
	"were lost, and where the files are.\n";

static const char exit_status[] =
	".SH EXIT STATUS\n"
	"That of the program; where a signal ends the program, the same signal is what its parent "
	"sees.\n"
	".TP\n.B 125\n\\fBdftrace\\-run\\fR itself failed, wrong usage included\n"
	".TP\n.B 126\nthe program was found and cannot be executed\n"
	".TP\n.B 127\nthe program was not found\n";

static void print_variable(const struct settings_row *row)
{
	fputs(".TP\n\\fB", stdout);
	man_print_text(row->variable ? row->variable : row->keys);
	fputs("\\fR", stdout);
	if (row->variable && row->keys) {
		fputs(" (", stdout);
		man_print_text(row->keys);
		putchar(')');
	}
	putchar('\n');
	man_print_text(row->help);
	if (row->kind == SETTINGS_REFUSED) {
		fputs("; accepted is ", stdout);
		man_print_text(row->accepted);
	}
	putchar('\n');
}

static bool is_kind(const struct settings_row *row, enum settings_kind kind)
{
	return kind == SETTINGS_IGNORED || kind == SETTINGS_REFUSED
		       ? row->kind == kind
		       : row->kind != SETTINGS_IGNORED && row->kind != SETTINGS_REFUSED;
}

static void print_settings(enum settings_kind kind)
{
	for (size_t i = 0; i < settings_row_count; i++) {
		if (is_kind(&settings_rows[i], kind))
			print_variable(&settings_rows[i]);
	}
}

static void print_environment(void)
{
	fputs(".SH ENVIRONMENT AND SETTINGS FILE\n"
	      "The program gets the environment unchanged. These variables, and the keys of the "
	      "YAML "
	      "file that \\fB\\-\\-config\\fR or \\fBDFTRACER_CONFIGURATION\\fR names, stand for "
	      "options: an option wins over a variable, and a variable over a key. Yes is 1, "
	      "true, yes "
	      "or on, no is 0, false, no or off, in any case; set to nothing they are not set. A "
	      "wrong "
	      "value is an error, and an unknown name that begins with DFTRACER_, or an unknown "
	      "key, a "
	      "warning. Keys are written with a dot between a section and what is in it; a key "
	      "with ! "
	      "says yes where the variable says no. The section \\fBprofiler\\fR is the same as "
	      "\\fBtracer\\fR. \\fB\\-\\-dump\\-config\\fR prints what is in force, and why.\n",
	      stdout);
	print_settings(SETTINGS_VALUE);
	fputs(".PP\nThese are refused, since they ask for what dftrace does not do:\n", stdout);
	print_settings(SETTINGS_REFUSED);
	fputs(".PP\nThese are accepted, if their value is a legal one, and change nothing:\n",
	      stdout);
	print_settings(SETTINGS_IGNORED);
}

static const char tail[] =
	".SH FILES\n"
	".TP\n.IB PREFIX \\- HASH \\-preload.pfw.gz\n"
	"The trace of one process and program image. \\fIHASH\\fR is made of the program's name, "
	"the "
	"host's name and the process id. The file is readable by its owner only. It is a valid "
	"gzip file "
	"at any moment, at most a second behind the program, and stays so when the program or the "
	"tracer is "
	"killed; then only its last event, named \\fBend\\fR, is missing. A process that did "
	"nothing but "
	"load itself leaves no file.\n"
	".SH PARALLEL JOBS\n"
	"\\fBdftrace\\-run\\fR stands behind the launcher, once per rank:\n"
	".PP\n"
	".nf\n"
	"mpirun \\-np 4 dftrace\\-run \\-o out/%r \\-\\- ./sim input.nml\n"
	"srun \\-n 4 dftrace\\-run \\-o out/%r \\-\\- ./sim input.nml\n"
	"flux run \\-n 4 dftrace\\-run \\-o out/%r \\-\\- ./sim input.nml\n"
	".fi\n"
	".PP\n"
	"Each rank's traces say its rank (lines named PR and rank), the number of ranks, the job "
	"and the launcher, as the environment tells them. Programs that a rank starts carry its "
	"rank. The line at the end comes from rank 0, and from others that have lost something. "
	"With \\fB\\-v\\fR it comes from all, and says which settings come from where.\n"
	".PP\n"
	"In front of mpirun (\\fBdftrace\\-run \\-\\- mpirun \\-np 4 ./sim\\fR) it follows the "
	"ranks of this host. It leaves out the launcher's own processes, and nothing is seen of "
	"ranks that srun, flux or jsrun start, which are not their children.\n"
	".SH NOTES\n"
	"The program can tell that it is traced: /proc/self/status shows TracerPid, Seccomp and, "
	"unless "
	"it has CAP_SYS_ADMIN, NoNewPrivs. With NoNewPrivs, set-user-ID programs run without their "
	"privileges. Under another tracer, such as\n.BR strace (1),\n\\fBdftrace\\-run\\fR refuses "
	"to "
	"start.\n"
	".PP\n"
	"When the tracer is killed, the kernel kills the traced programs, because calls that the "
	"filter hands "
	"to a missing tracer would fail.\n"
	".PP\n"
	"Add up bytes within one category of events only. Layers stand above each other: what a "
	"library's "
	"event moved, the system calls below it moved again.\n"
	".PP\n"
	"A trace holds command lines and paths. Treat it as you would treat the shell's history.\n"
	".SH DIAGNOSIS\n"
	"\\fBdftrace\\-run \\-\\-doctor\\fR tries in child processes what a run needs and prints a "
	"line for each: \\fBok\\fR, \\fBdegraded\\fR (a run works, and is slower or sees less) or "
	"\\fBrefused\\fR (a run would end with 125). Where it is not \\fBok\\fR, a second line "
	"says "
	"why, and who can change what: the seccomp filter of a container or service, Yama's "
	"kernel.yama.ptrace_scope, a security module, how /proc is mounted. A run that is refused "
	"says "
	"the same.\n"
	".PP\n"
	"With \\fB\\-\\-json\\fR it is one object: \\fBversion\\fR, \\fBstate\\fR (the worst of "
	"all) and "
	"\\fBchecks\\fR, a list of objects with \\fBwhat\\fR, \\fBstate\\fR, \\fBfound\\fR, where "
	"it is "
	"not ok \\fBcause\\fR and \\fBremedy\\fR, and numbers: \\fBsame_cpu_ns\\fR and "
	"\\fBother_cpu_ns\\fR are what a stop costs with the tracer on the program's CPU and on "
	"another one.\n"
	".SH EXAMPLES\n"
	".nf\n"
	"dftrace\\-run \\-o out/sim \\-\\- ./sim input.nml\n"
	"dftrace\\-run \\-d /scratch/me \\-e \\(aq!%meta\\(aq \\-\\- ./sim input.nml\n"
	"dftrace\\-run \\-e open,close,read,write \\-\\- make\n"
	"dftrace\\-run \\-\\-doctor \\-\\- ./sim input.nml\n"
	"mpirun \\-np 64 dftrace\\-run \\-\\-ranks 0,%16 \\-\\- ./sim input.nml\n"
	"zcat out/sim\\-*.pfw.gz | grep \\(aq\\(ha{\\(aq | jq \\-r \\(aqselect(.name == \"open\") "
	"| "
	".args.fhash\\(aq\n"
	".fi\n"
	".SH SEE ALSO\n"
	".BR dftrace\\-check (1),\n.BR strace (1),\n.BR zcat (1),\n.BR jq (1),\n.BR ptrace "
	"(2),\n.BR seccomp (2)\n"
	".PP\nDFTracer and its readers: https://dftracer.readthedocs.io\n";

int main(void)
{
	printf(".TH DFTRACE\\-RUN 1 \"\" \"dftrace %s\" \"User Commands\"\n", DFTRACE_VERSION);
	fputs(head, stdout);
	print_options();
	print_classes();
	fputs(exit_status, stdout);
	print_environment();
	fputs(tail, stdout);
	return man_finish();
}
