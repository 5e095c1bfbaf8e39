/* What dftrace-run looks for, and the functions of DFTracer's header that lead there. Each call takes a few
 * nanoseconds. */
#include "dftracer_stub.h"

/* A call has to be made, to this very function, with its arguments in their places. */
#if defined(__clang__) || !defined(__GNUC__)
#define SEEN __attribute__((noinline, used))
#else
#define SEEN __attribute__((noinline, noclone, noipa, used, externally_visible))
#endif

/* The numbers differ, since linkers may make one of two functions that are the same; and what is not used need not be
 * passed. */
#define FIRST(a)               __asm__ volatile("" : : "g"(a) : "memory")
#define FIRST_TWO(a, b)        __asm__ volatile("" : : "g"(a), "g"(b) : "memory")
#define FIRST_THREE(a, b, c)   __asm__ volatile("" : : "g"(a), "g"(b), "g"(c) : "memory")
#define FIRST_FOUR(a, b, c, d) __asm__ volatile("" : : "g"(a), "g"(b), "g"(c), "g"(d) : "memory")

SEEN int dftracer_stub_begin(uintptr_t region, const char *name, const char *cat, int event_type,
			     int trace_type)
{
	FIRST_FOUR(region, name, cat, event_type);
	FIRST(trace_type);
	return 1;
}

SEEN int dftracer_stub_end(uintptr_t region)
{
	FIRST(region);
	return 2;
}

SEEN int dftracer_stub_update_int(uintptr_t region, const char *key, int value, int type)
{
	FIRST_FOUR(region, key, value, type);
	return 3;
}

SEEN int dftracer_stub_update_string(uintptr_t region, const char *key, const char *value, int type)
{
	FIRST_FOUR(region, key, value, type);
	return 4;
}

SEEN int dftracer_stub_init(const char *log_file, const char *data_dirs, int *process_id)
{
	FIRST_THREE(log_file, data_dirs, process_id);
	return 5;
}

SEEN int dftracer_stub_fini(void)
{
	FIRST(6);
	return 6;
}

SEEN int dftracer_stub_app_int(const char *key, int value)
{
	FIRST_TWO(key, value);
	return 7;
}

SEEN int dftracer_stub_app_string(const char *key, const char *value)
{
	FIRST_TWO(key, value);
	return 8;
}

SEEN int dftracer_stub_used(const char *name)
{
	FIRST(name);
	return 9;
}

/* A number that no other region of the process has. Threads take many at once, so as not to wait for each other. */
uintptr_t dftracer_stub_region(void)
{
	enum { MANY = 1 << 16 };
	static uintptr_t taken = 1;
	static __thread uintptr_t next;
	static __thread uintptr_t end;

	if (next == end) {
		next = __atomic_fetch_add(&taken, MANY, __ATOMIC_RELAXED);
		end = next + MANY;
	}
	return next++;
}

void initialize_main(const char *log_file, const char *data_dirs, int *process_id)
{
	dftracer_stub_init(log_file, data_dirs, process_id);
}

void initialize_no_bind(const char *log_file, const char *data_dirs, int *process_id)
{
	dftracer_stub_init(log_file, data_dirs, process_id);
}

void finalize(void)
{
	dftracer_stub_fini();
}

void set_app_metadata_int(const char *key, int value)
{
	dftracer_stub_app_int(key, value);
}

void set_app_metadata_string(const char *key, const char *value)
{
	dftracer_stub_app_string(key, value);
}

void mark_used(const char *name)
{
	dftracer_stub_used(name);
}

struct DFTracerData *initialize_region(ConstEventNameType name, ConstEventNameType cat,
				       int event_type)
{
	uintptr_t region = dftracer_stub_region();

	/* 2: C_APP, in v2 lines. */
	dftracer_stub_begin(region, name, cat, event_type, 2);
	return (struct DFTracerData *)region;
}

void finalize_region(struct DFTracerData *data)
{
	if (data)
		dftracer_stub_end((uintptr_t)data);
}

void finalize_region_cleanup(struct DFTracerData **data)
{
	finalize_region(*data);
	*data = NULL;
}

void update_metadata_int(struct DFTracerData *data, const char *key, int value)
{
	update_metadata_int_type(data, key, value, 0);
}

void update_metadata_string(struct DFTracerData *data, const char *key, const char *value)
{
	update_metadata_string_type(data, key, value, 0);
}

void update_metadata_int_type(struct DFTracerData *data, const char *key, int value, int type)
{
	if (data)
		dftracer_stub_update_int((uintptr_t)data, key, value, type);
}

void update_metadata_string_type(struct DFTracerData *data, const char *key, const char *value,
				 int type)
{
	if (data)
		dftracer_stub_update_string((uintptr_t)data, key, value, type);
}
