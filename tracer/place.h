/* Where the tracer's threads run. A stop costs two wake-ups; each is cheap when tracer and tracee share
 * a CPU and many times dearer when it has to bring another CPU out of idle. The program's own
 * affinity, class and priority are never touched, so only the tracer's may move:
 *
 *  - While stops are frequent, the thread of the loop is bound to the CPU of the thread that stops.
 *  - Where they do not meet, as the kernel may resume a tracee on an idle CPU rather than on the one that the
 *    tracer keeps busy, the loop may look for the next stop for a bounded time before it blocks, on
 *    another CPU, as long as stops come fast and nobody else wants that CPU.
 *  - When stops are rare it does nothing, and the kernel places the tracer.
 *
 * The thread of the loop calls everything but place_worker. */
#ifndef TRACER_PLACE_H
#define TRACER_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

struct place;

/* Takes the calling thread's affinity as the set of CPUs that the tracer may use, ever.
 *
 * @param enabled false: nothing is ever placed (--no-placement).
 * @return NULL with errno. */
struct place *place_new(bool enabled);

/* A stop of `tid`, seen at `now` (ns, of any clock that does not go back). A few ns, but for one stop in
 * some dozens. */
void place_stop(struct place *place, pid_t tid, uint64_t now);

/* @return for how many ns to look for the next stop (WNOHANG) before blocking; mostly 0. */
uint64_t place_spin_ns(const struct place *place);

/* To be called first by each thread that compresses and writes, on itself: keeps it away from the core
 * where the program stops, or, where there is one CPU only, behind everything else that wants it.
 *
 * @param place a struct place *, as the writer passes on what it does not know. */
void place_worker(void *place);

/* Gives the loop's thread its affinity back and frees; NULL is allowed. No worker may be in place_worker. */
void place_free(struct place *place);

#endif
