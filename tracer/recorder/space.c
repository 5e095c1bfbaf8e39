/* The agent and the rings of an address space. */
#include "base/proc.h"
#include "tracer/memory.h"
#include "tracer/recorder/internal.h"
#include "tracer/remote.h"
#include "tracer/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/prctl.h>

/* A stop is worth so many records at least. */
#define LIMIT_LEAST 32
/* How much of the rings there is before the first. */
#define RINGS_FIRST 4096UL
#define RING_SIZE   ((RING_RECORDS + (RECORDS + RECORD_MORE_MAX) * RECORD_SIZE + 4095UL) & ~4095UL)

static const char rings_name[] = RINGS_NAME;

/* @return the call's result, or -errno of not being made. */
static int64_t remote(struct tracer *tracer, struct task *task, uint64_t nr, uint64_t a, uint64_t b,
		      uint64_t c, uint64_t d, uint64_t e)
{
	const uint64_t args[6] = {a, b, c, d, e, 0};
	int64_t result;

	return remote_syscall(tracer, task, nr, args, &result) < 0 ? -errno : result;
}

static int map_at(struct tracer *tracer, struct task *task, uint64_t address, uint64_t size,
		  int prot)
{
	const uint64_t args[6] = {address,        size,
				  (uint64_t)prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
				  (uint64_t)-1,   0};
	int64_t result;

	if (remote_syscall(tracer, task, __NR_mmap, args, &result) < 0)
		return -1;
	if (result == (int64_t)address)
		return 0;
	/* Kernels before 4.17 take the address as a hint. */
	if (result > 0)
		remote(tracer, task, __NR_munmap, (uint64_t)result, size, 0, 0, 0);
	errno = result < 0 ? (int)-result : EEXIST;
	return -1;
}

static enum off why_not_mapped(void)
{
	return errno == EEXIST ? OFF_ADDRESS : OFF_MEMORY;
}

/* The program's own filter could kill it for what the tracer has to do, and may look at addresses. */
static bool has_own_filter(const struct task *task)
{
	const char *const key = "Seccomp_filters:";
	uint64_t ours = 0;
	uint64_t theirs = 1;

	if (task->process->lost[LOST_OWN_FILTER])
		return true;
	proc_status(getpid(), 10, &key, &ours, 1);
	proc_status(task->tid, 10, &key, &theirs, 1);
	return theirs > ours + 1;
}

enum sharing {
	SHARING_ALIKE,   /* everybody with this memory, and nobody else, has these descriptors */
	SHARING_FOR_NOW, /* somebody with this memory has others: a child by vfork */
	SHARING_OTHERS,  /* somebody with other memory has them, or the cwd */
};

static enum sharing sharing_of(struct tracer *tracer, const struct task *task)
{
	enum sharing sharing = SHARING_ALIKE;
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(&tracer->tasks, &at))) {
		const struct task *other = slot->value;
		if ((other->files == task->files || other->fs == task->fs) && other->mm != task->mm)
			return SHARING_OTHERS;
		if (other->files != task->files && other->mm == task->mm)
			sharing = SHARING_FOR_NOW;
	}
	return sharing;
}

/* @return whether the task may read the time stamp counter; asked for where the descriptors' table will be. */
static bool has_clock(struct tracer *tracer, struct task *task)
{
	const uint64_t at = AGENT_BASE + AGENT_FDS;
	int32_t mode = PR_TSC_ENABLE;

	return remote(tracer, task, __NR_prctl, PR_GET_TSC, at, 0, 0, 0) < 0 ||
	       memory_read(tracer, task, at, &mode, sizeof(mode)) != sizeof(mode) ||
	       mode == PR_TSC_ENABLE;
}

/* The table of descriptors is the agent's as well: who writes words of it takes back what a thread has written
 * meanwhile. */
static bool may_write_beside(const struct tracer *tracer, struct task *task)
{
	static const unsigned char none;

	return (task->mm->mem_fd >= 0 || tracer->options->use_vm_readv) &&
	       memory_write_beside(task, AGENT_BASE + AGENT_FDS, &none, 1) == 0;
}

static int put_agent(struct tracer *tracer, struct task *task, enum off *why)
{
	const size_t size = agent_offset(agent_end);
	unsigned char text[AGENT_TEXT_SIZE] = {0};
	struct recorder_space *space = task->mm->recorder;

	memcpy(text, agent_begin, size);
	memcpy(text + agent_offset(agent_shapes), tracer->recorder->shapes,
	       sizeof(tracer->recorder->shapes));
	memcpy(text + size, rings_name, sizeof(rings_name));
	hooked_put_agent(text);
	if (map_at(tracer, task, AGENT_BASE, AGENT_TEXT_SIZE, PROT_READ | PROT_EXEC) < 0) {
		*why = why_not_mapped();
		return -1;
	}
	if (map_at(tracer, task, AGENT_BASE + AGENT_FDS, AGENT_FDS_COUNT, PROT_READ | PROT_WRITE) <
	    0) {
		*why = why_not_mapped();
		remote(tracer, task, __NR_munmap, AGENT_BASE, AGENT_TEXT_SIZE, 0, 0, 0);
		return -1;
	}
	*why = has_clock(tracer, task) ? OFF_WRITES : OFF_FAULT;
	if (*why == OFF_FAULT || !may_write_beside(tracer, task)) {
		remote(tracer, task, __NR_munmap, AGENT_BASE, AGENT_FDS + AGENT_FDS_COUNT, 0, 0, 0);
		return -1;
	}
	*why = OFF_MEMORY;
	cost_measure(tracer, task);
	if (memory_write(task, AGENT_BASE, text, sizeof(text)) < 0)
		return -1;
	space->agent = true;
	space->no_sync =
		remote(tracer, task, __NR_membarrier,
		       MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0, 0, 0) < 0;
	return 0;
}

/* The tracer's own descriptor of what the program has made. */
static int open_memfd(struct task *task, int64_t fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", task->tid, (int)fd);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* The file of all rings, without one yet. The program has a descriptor of it only meanwhile: nobody else runs who could
 * find it. */
static int make_rings(struct tracer *tracer, struct task *task)
{
	const uint64_t rings = AGENT_BASE + AGENT_RINGS;
	struct recorder_space *space = task->mm->recorder;
	uint64_t name = AGENT_BASE + agent_offset(agent_end);

	int64_t fd = remote(tracer, task, __NR_memfd_create, name, MFD_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		return -1;
	space->memfd = open_memfd(task, fd);
	bool made = space->memfd >= 0 && ftruncate(space->memfd, RINGS_FIRST) == 0;
	if (made) {
		const uint64_t args[6] = {rings,
					  RINGS_FIRST,
					  PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_FIXED_NOREPLACE,
					  (uint64_t)fd,
					  0};
		int64_t result = 0;
		made = remote_syscall(tracer, task, __NR_mmap, args, &result) == 0 &&
		       result == (int64_t)rings;
	}
	remote(tracer, task, __NR_close, (uint64_t)fd, 0, 0, 0, 0);
	/* A child that had the rings would write into its parent's. */
	made = made &&
	       remote(tracer, task, __NR_madvise, rings, RINGS_FIRST, MADV_DONTFORK, 0, 0) == 0;
	if (made)
		remote(tracer, task, __NR_madvise, rings, RINGS_FIRST, MADV_DONTDUMP, 0, 0);
	if (!made && space->memfd >= 0) {
		remote(tracer, task, __NR_munmap, rings, RINGS_FIRST, 0, 0, 0);
		close(space->memfd);
		space->memfd = -1;
	}
	return made ? 0 : -1;
}

/* Makes the mapping of the rings longer by one, for which no descriptor is needed. */
static int more_rings(struct tracer *tracer, struct task *task)
{
	const uint64_t rings = AGENT_BASE + AGENT_RINGS;
	struct recorder_space *space = task->mm->recorder;
	uint64_t size = space->nrings ? space->nrings * RING_SIZE : RINGS_FIRST;
	uint64_t more = (space->nrings + 1) * RING_SIZE;

	if (ftruncate(space->memfd, (off_t)more) < 0)
		return -1;
	return remote(tracer, task, __NR_mremap, rings, size, more, 0, 0) == (int64_t)rings ? 0
											    : -1;
}

/* @return whether nobody else has the task's descriptors. */
static bool is_alone(struct tracer *tracer, const struct task *task)
{
	return task->mm->refs == 1 && sharing_of(tracer, task) == SHARING_ALIKE;
}

/* @return a ring that nobody has, NULL with `*why`. */
static struct ring *new_ring(struct tracer *tracer, struct task *task, enum off *why)
{
	struct recorder_space *space = task->mm->recorder;

	*why = OFF_THREADS;
	if (space->nrings == AGENT_RINGS_MAX)
		return NULL;
	*why = OFF_EARLIER;
	if (space->memfd < 0 && !is_alone(tracer, task))
		return NULL;
	*why = OFF_MEMORY;
	struct ring **rings = reallocarray(space->rings, space->nrings + 1, sizeof(struct ring *));
	if (!rings)
		return NULL;
	space->rings = rings;
	if ((space->memfd < 0 && make_rings(tracer, task) < 0) || more_rings(tracer, task) < 0)
		return NULL;
	struct ring *ring = malloc(sizeof(*ring));
	struct agent_ring *shared = mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
					 space->memfd, (off_t)(space->nrings * RING_SIZE));
	if (!ring || shared == MAP_FAILED) {
		if (shared != MAP_FAILED)
			munmap(shared, RING_SIZE);
		free(ring);
		return NULL;
	}
	*ring = (struct ring){.shared = shared, .number = space->nrings};
	rings[space->nrings++] = ring;
	return ring;
}

/* All rings together hold about as much as one: whoever stops waits until it has been taken. */
static void set_limits(struct recorder_space *space)
{
	uint64_t limit = RECORDS / (space->nused ? space->nused : 1);

	if (limit < LIMIT_LEAST)
		limit = LIMIT_LEAST;
	for (size_t i = 0; i < space->nused; i++) {
		const struct ring *ring = space->rings[i];
		uint64_t room = ring->mask + 1 - RECORD_MORE_MAX - 2;
		uint64_t own = space->off ? 0 : limit < room ? limit : room;
		__atomic_store_n(&ring->shared->limit, own, __ATOMIC_RELEASE);
	}
}

void space_free_ring(struct recorder_space *space, struct ring *ring)
{
	size_t at = 0;

	while (space->rings[at] != ring)
		at++;
	space->rings[at] = space->rings[--space->nused];
	space->rings[space->nused] = ring;
	ring->task->ring = NULL;
	ring->task = NULL;
	/* Its pages are nobody's any more, here as in the program. */
	ring->shared->limit = 0;
	fallocate(space->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  (off_t)(ring->number * RING_SIZE), (off_t)RING_SIZE);
	set_limits(space);
	/* From now on calls are decoded as they come. */
	if (!space->nused)
		space->files->horizon = UINT64_MAX;
}

static struct ring *take_ring(struct tracer *tracer, struct task *task, enum off *why)
{
	const struct recorder_space *space = task->mm->recorder;

	if (space->nused < space->nrings)
		return space->rings[space->nused];
	return new_ring(tracer, task, why);
}

struct ring *space_ring_of(const struct task *task)
{
	return task->ring;
}

static bool is_excluded(const struct tracer *tracer, const struct task *task)
{
	const struct recorder_options *options = &tracer->recorder->options;
	char path[64];
	char comm[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", task->tid);
	return options->excludes && proc_read_line(path, comm, sizeof(comm)) &&
	       options->excludes(options->excludes_data, comm);
}

bool space_takes_hooks(const struct tracer *tracer, struct task *task)
{
	struct recorder_space *space = task->mm->recorder;

	if (!space->asked && is_excluded(tracer, task))
		space_switch_off(task, OFF_EXCLUDED);
	space->asked = true;
	return !space->off;
}

/* Puts the agent where it may be. @return whether it is there. */
static bool start_agent(struct tracer *tracer, struct task *task)
{
	struct recorder_space *space = task->mm->recorder;
	enum off why = OFF_MEMORY;

	if (space->off)
		return false;
	if (is_excluded(tracer, task))
		why = OFF_EXCLUDED;
	else if (has_own_filter(task))
		why = OFF_FILTER;
	else if (sharing_of(tracer, task) == SHARING_OTHERS)
		why = OFF_FILES;
	else if (space->agent || put_agent(tracer, task, &why) == 0)
		return true;
	space_switch_off(task, why);
	return false;
}

bool space_prepare(struct tracer *tracer, struct task *task)
{
	struct recorder_space *space = task->mm->recorder;

	if (space->prepared || space->memfd >= 0 || !is_alone(tracer, task))
		return false;
	space->prepared = true;
	if (space->off)
		return false;
	if (start_agent(tracer, task))
		make_rings(tracer, task);
	return true;
}

/* @return whether the process may have a recorder, and the agent is there. */
static bool start(struct tracer *tracer, struct task *task)
{
	struct recorder_space *space = task->mm->recorder;

	if (space->off || sharing_of(tracer, task) == SHARING_FOR_NOW)
		return false;
	if (space->files)
		return space->files == task->files;
	/* A child being made would be taken to have the agent as well. */
	if (!space->agent && patch_is_copied(tracer, task))
		return false;
	if (!start_agent(tracer, task))
		return false;
	space->files = files_ref(task->files);
	/* In a forked process the table is the parent's. */
	space_forget_all(task);
	resolve_cwd(task, CALL_FROM_STOPS);
	return true;
}

struct ring *space_give(struct tracer *tracer, struct task *task)
{
	struct recorder_space *space = task->mm->recorder;
	struct ring *ring = space_ring_of(task);
	struct arch_regs regs;
	enum off why = OFF_MEMORY;

	if (ring || !start(tracer, task))
		return ring;
	if (arch_regs_get(task->tid, &regs) < 0)
		return NULL;
	if (arch_regs_gs(&regs)) {
		space_switch_off(task, OFF_GS);
		return NULL;
	}
	ring = space->no_more ? NULL : take_ring(tracer, task, &why);
	if (!ring) {
		/* Those that are there stay. */
		task->process->recorded.off[why] += !space->no_more;
		space->no_more = true;
		return NULL;
	}
	const uint64_t address = AGENT_BASE + AGENT_RINGS + ring->number * RING_SIZE;
	*ring = (struct ring){.shared = ring->shared,
			      .number = ring->number,
			      .mask = (space->nused < USERS_FEW ? RECORDS : RECORDS_SMALL) - 1};
	memset(ring->shared, 0, offsetof(struct agent_ring, unused));
	ring->shared->records[0] = (struct agent_record){0};
	ring->shared->mask = ring->mask;
	hooked_prepare(ring->shared, address);
	arch_regs_set_gs(&regs, address);
	if (arch_regs_set(task->tid, &regs) < 0)
		return NULL;
	ring->task = task;
	task->ring = ring;
	space->nused++;
	set_limits(space);
	return ring;
}

void space_switch_off(struct task *task, enum off why)
{
	struct recorder_space *space = task->mm->recorder;

	if (space->off)
		return;
	space->off = true;
	task->process->recorded.off[why]++;
	set_limits(space);
}

void space_set_known(struct task *task, int fd, bool known)
{
	const struct recorder_space *space = task->mm->recorder;
	const unsigned char byte = known;

	if (space && space->files && space->files == task->files && fd >= 0 && fd < AGENT_FDS_COUNT)
		memory_write_beside(task, AGENT_BASE + AGENT_FDS + (uint64_t)fd, &byte, 1);
}

void space_forget_all(struct task *task)
{
	static const unsigned char none[AGENT_FDS_COUNT];
	const struct recorder_space *space = task->mm->recorder;

	if (space && space->files && space->files == task->files)
		memory_write_beside(task, AGENT_BASE + AGENT_FDS, none, sizeof(none));
}

static int copy_patches(struct recorder_space *to, const struct recorder_space *from)
{
	struct map_slot *slot;
	size_t at = 0;

	while ((slot = map_next(&from->patches, &at))) {
		struct patch *copy = malloc(sizeof(*copy));
		if (!copy)
			return -1;
		*copy = *(const struct patch *)slot->value;
		if (map_put(&to->patches, slot->key, copy) < 0) {
			free(copy);
			return -1;
		}
	}
	return 0;
}

struct recorder_space *recorder_space_copy(const struct recorder_space *space)
{
	if (!space)
		return NULL;
	struct recorder_space *copy = calloc(1, sizeof(*copy));
	if (!copy)
		return NULL;
	*copy = (struct recorder_space){
		.agent = space->agent,
		.off = space->off,
		.asked = space->asked,
		.no_sync = space->no_sync,
		.memfd = -1,
	};
	copy->areas = reallocarray(NULL, space->nareas + 1, sizeof(*copy->areas));
	if (!copy->areas || modules_copy(&copy->modules, &space->modules) < 0 ||
	    copy_patches(copy, space) < 0) {
		recorder_space_free(copy);
		return NULL;
	}
	if (space->nareas)
		memcpy(copy->areas, space->areas, space->nareas * sizeof(*copy->areas));
	copy->nareas = space->nareas;
	return copy;
}

void recorder_space_free(struct recorder_space *space)
{
	if (!space)
		return;
	for (size_t i = 0; i < space->nrings; i++) {
		munmap(space->rings[i]->shared, RING_SIZE);
		free(space->rings[i]);
	}
	if (space->memfd >= 0)
		close(space->memfd);
	if (space->files)
		space->files->horizon = UINT64_MAX;
	files_unref(space->files);
	map_free_values(&space->patches);
	modules_free(&space->modules);
	free(space->rings);
	free(space->areas);
	free(space);
}
