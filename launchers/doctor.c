#include "launchers/doctor.h"

#include "launchers/program.h"
#include "version.h"
#include "writer/put.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const state_names[DOCTOR_COUNT] = {"ok", "degraded", "refused"};

struct doctor_row *doctor_add(struct doctor *doctor, const char *what, enum doctor_state state,
			      const char *found, ...)
{
	size_t last = sizeof(doctor->rows) / sizeof(*doctor->rows) - 1;
	struct doctor_row *row = &doctor->rows[doctor->nrows < last ? doctor->nrows++ : last];
	va_list args;
	char text[512];

	va_start(args, found);
	vsnprintf(text, sizeof(text), found, args);
	va_end(args);
	buf_free(&row->found);
	*row = (struct doctor_row){.what = what, .state = state};
	buf_add_str(&row->found, text);
	return row;
}

/* What the host and the program's file are called may hold anything. */
static void print_plain(FILE *out, const char *text)
{
	for (; *text; text++)
		fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, out);
}

static void print_row(FILE *out, struct doctor_row *row)
{
	fprintf(out, "%-24s %-9s ", row->what, state_names[row->state]);
	print_plain(out, buf_str(&row->found) ? buf_str(&row->found) : "out of memory");
	fputc('\n', out);
	if (!row->why.cause[0])
		return;
	fprintf(out, "%-24s %-9s -> ", "", "");
	print_plain(out, row->why.cause);
	if (row->why.remedy[0]) {
		fputs("; ", out);
		print_plain(out, row->why.remedy);
	}
	fputc('\n', out);
}

static enum doctor_state worst(const struct doctor *doctor)
{
	enum doctor_state state = DOCTOR_OK;

	for (size_t i = 0; i < doctor->nrows; i++) {
		if (doctor->rows[i].state > state)
			state = doctor->rows[i].state;
	}
	return state;
}

static void print_table(struct doctor *doctor, FILE *out)
{
	static const char *const verdicts[DOCTOR_COUNT] = {
		"A run works here.",
		"A run works here, with less than there could be:",
		"A run would be refused with exit status 125:",
	};
	enum doctor_state state = worst(doctor);
	const char *separator = " ";

	for (size_t i = 0; i < doctor->nrows; i++)
		print_row(out, &doctor->rows[i]);
	fprintf(out, "\n%s", verdicts[state]);
	for (size_t i = 0; state != DOCTOR_OK && i < doctor->nrows; i++) {
		if (doctor->rows[i].state != state)
			continue;
		fprintf(out, "%s%s", separator, doctor->rows[i].what);
		separator = ", ";
	}
	fputs(state == DOCTOR_OK ? "\n" : ".\n", out);
}

static void print_field(FILE *out, const char *name, const char *text)
{
	struct buf value = {0};

	put_json(&value, text ? text : "");
	fprintf(out, ",\"%s\":%s", name, buf_str(&value) ? buf_str(&value) : "\"\"");
	buf_free(&value);
}

static void print_json(struct doctor *doctor, FILE *out)
{
	enum doctor_state state = worst(doctor);

	fprintf(out, "{\"version\":\"%s\",\"state\":\"%s\",\"checks\":[", DFTRACE_VERSION,
		state_names[state]);
	for (size_t i = 0; i < doctor->nrows; i++) {
		struct doctor_row *row = &doctor->rows[i];
		fprintf(out, "%s\n{\"what\":\"%s\"", i ? "," : "", row->what);
		print_field(out, "state", state_names[row->state]);
		print_field(out, "found", buf_str(&row->found));
		if (row->why.cause[0])
			print_field(out, "cause", row->why.cause);
		if (row->why.remedy[0])
			print_field(out, "remedy", row->why.remedy);
		for (size_t n = 0; n < DOCTOR_NUMBERS && row->numbers[n].name; n++)
			fprintf(out, ",\"%s\":%llu", row->numbers[n].name,
				(unsigned long long)row->numbers[n].value);
		fputc('}', out);
	}
	fputs("\n]}\n", out);
}

int doctor(const struct options *options)
{
	struct doctor doctor = {.options = options};

	/* Whoever started us may ignore it, and then no child's end would be told. */
	signal(SIGCHLD, SIG_DFL);
	doctor_host(&doctor);
	doctor_tracing(&doctor);
	if (options->argc > 0)
		doctor_program(&doctor);
	if (options->json)
		print_json(&doctor, stdout);
	else
		print_table(&doctor, stdout);
	int status = worst(&doctor) == DOCTOR_REFUSED ? 1 : 0;
	for (size_t i = 0; i < doctor.nrows; i++)
		buf_free(&doctor.rows[i].found);
	return fflush(stdout) == 0 && !ferror(stdout) ? status : EXIT_OURS;
}
