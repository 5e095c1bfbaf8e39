/* What dftrace-run looks for, and the functions of DFTracer's header that lead there. Each call takes a few
 * nanoseconds. */
#include "dftracer_stub.h"

/* A call has to be made, to this very function, with its arguments in their places. */
#if defined(__clang__) || !defined(__GNUC__)
#define SEEN __attribute__((noinline, used))
#else
#define SEEN __attribute__((noinline, noclone, noipa, used, externally_visible))
#endif

/* Different numbers, since linkers may make one of two functions that are the same. */
#define DO_NOTHING(number)                                                                         \
	{                                                                                          \
		__asm__ volatile("" : : : "memory");                                               \
		return number;                                                                     \
	}

#pragma GCC diagnostic ignored "-Wunused-parameter"

SEEN int dftracer_stub_begin(uintptr_t region, const char *name, const char *cat, int event_type,
			     int trace_type) DO_NOTHING(1) SEEN
	int dftracer_stub_end(uintptr_t region) DO_NOTHING(2) SEEN
	int dftracer_stub_update_int(uintptr_t region, const char *key, int value, int type)
		DO_NOTHING(3) SEEN
	int dftracer_stub_update_string(uintptr_t region, const char *key, const char *value,
					int type) DO_NOTHING(4) SEEN
	int dftracer_stub_init(const char *log_file, const char *data_dirs, int *process_id)
		DO_NOTHING(5) SEEN int dftracer_stub_fini(void) DO_NOTHING(6) SEEN
	int dftracer_stub_app_int(const char *key, int value) DO_NOTHING(7) SEEN
	int dftracer_stub_app_string(const char *key, const char *value) DO_NOTHING(8) SEEN
	int dftracer_stub_used(const char *name) DO_NOTHING(9)

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
