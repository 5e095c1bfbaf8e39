/* dftrace-run --doctor: what this host allows, found out by trying, and what to change where it does not. */
#ifndef LAUNCHERS_DOCTOR_H
#define LAUNCHERS_DOCTOR_H

#include "launchers/explain.h"
#include "launchers/options.h"

#include <stddef.h>
#include <stdint.h>

enum doctor_state {
	DOCTOR_OK,
	DOCTOR_DEGRADED, /* a run works, but it is slower or sees less */
	DOCTOR_REFUSED,  /* a run would end with 125 */
	DOCTOR_COUNT,
};

#define DOCTOR_NUMBERS 4

struct doctor_row {
	const char *what;
	enum doctor_state state;
	struct buf found;
	struct explanation why; /* set where the state is not DOCTOR_OK */
	struct {
		const char *name; /* NULL: no more */
		uint64_t value;
	} numbers[DOCTOR_NUMBERS]; /* for --json, where `found` has rounded ones */
};

struct doctor {
	const struct options *options;
	struct doctor_row rows[32];
	size_t nrows;
	bool no_new_privs; /* a traced program cannot gain privileges */
};

/* Looks, prints the table (--json: one object) and says what a run would come to.
 * @return the status to exit with: 0, or 1 where a run would end with 125. */
int doctor(const struct options *options);

/* Adds a row. `found` is what printf would print. @return the row, to be completed. */
__attribute__((format(printf, 4, 5))) struct doctor_row *doctor_add(struct doctor *doctor,
								    const char *what,
								    enum doctor_state state,
								    const char *found, ...);

/* Adds the rows of the host, of its tracing, and of the program of the options. */
void doctor_host(struct doctor *doctor);
void doctor_tracing(struct doctor *doctor);
void doctor_program(struct doctor *doctor);

#endif
