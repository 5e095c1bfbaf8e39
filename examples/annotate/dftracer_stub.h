/* DFTracer's annotations for programs that cannot load its library, such as static ones: the same macros, functions
 * and class, which do nothing by themselves. Run under dftrace-run, their calls become events.
 *
 * Compile with the directory of this file among the include directories (-I), so that <dftracer/dftracer.h> is
 * found, and link dftracer_stub.c. */
#ifndef DFTRACER_DFTRACER_H
#define DFTRACER_DFTRACER_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned long long int TimeResolution;
typedef unsigned long int ThreadID;
typedef int ProcessID;
typedef char *EventNameType;
typedef const char *ConstEventNameType;
typedef char *HashType;

/* What initialize_region begins. */
#define DF_DATA_EVENT     0
#define DF_METADATA_EVENT 1

#ifdef __cplusplus
extern "C" {
#endif

/* Accepted as they are; where traces go and what they hold is said to dftrace-run. */
void initialize_main(const char *log_file, const char *data_dirs, int *process_id);
void initialize_no_bind(const char *log_file, const char *data_dirs, int *process_id);

/* Annotations behind this are not recorded. */
void finalize(void);

/* Of the whole process: in the `end` line of its trace. The last value of a key counts. */
void set_app_metadata_int(const char *key, int value);
void set_app_metadata_string(const char *key, const char *value);
void mark_used(const char *name);

/* Only its address counts. */
struct DFTracerData {
	void *profiler;
};

struct DFTracerData *initialize_region(ConstEventNameType name, ConstEventNameType cat,
				       int event_type);
void finalize_region(struct DFTracerData *data);
void finalize_region_cleanup(struct DFTracerData **data);
void update_metadata_int(struct DFTracerData *data, const char *key, int value);
void update_metadata_string(struct DFTracerData *data, const char *key, const char *value);
void update_metadata_int_type(struct DFTracerData *data, const char *key, int value, int type);
void update_metadata_string_type(struct DFTracerData *data, const char *key, const char *value,
				 int type);

/* What all of the above come to: the places where dftrace-run looks. Never inlined, merged or left out. */
uintptr_t dftracer_stub_region(void);
int dftracer_stub_begin(uintptr_t region, const char *name, const char *cat, int event_type,
			int trace_type);
int dftracer_stub_end(uintptr_t region);
int dftracer_stub_update_int(uintptr_t region, const char *key, int value, int type);
int dftracer_stub_update_string(uintptr_t region, const char *key, const char *value, int type);
int dftracer_stub_init(const char *log_file, const char *data_dirs, int *process_id);
int dftracer_stub_fini(void);
int dftracer_stub_app_int(const char *key, int value);
int dftracer_stub_app_string(const char *key, const char *value);
int dftracer_stub_used(const char *name);

#ifdef __cplusplus
}
#endif

__attribute__((unused)) static ConstEventNameType C_LOG_CATEGORY = "C_APP";

/* --- C ------------------------------------------------------------------------ */

#define DFTRACER_C_INIT(log_file, data_dirs, process_id)                                           \
	initialize_main(log_file, data_dirs, process_id);                                          \
	mark_used("C_APP");
#define DFTRACER_C_INIT_NO_BIND(log_file, data_dirs, process_id)                                   \
	initialize_no_bind(log_file, data_dirs, process_id);                                       \
	mark_used("C_APP");
#define DFTRACER_C_FINI()                     finalize()
#define DFTRACER_C_APP_METADATA_INT(key, val) set_app_metadata_int(key, val);
#define DFTRACER_C_APP_METADATA_STR(key, val) set_app_metadata_string(key, val);
#define DFTRACER_C_MARK_USED(name)            mark_used(name);

/* A region ends with its scope, whichever way that is left. */
#if defined(__GNUC__) || defined(__clang__)
#define DFTRACER_C_REGION_CLEANUP __attribute__((cleanup(finalize_region_cleanup), unused))
#else
#define DFTRACER_C_REGION_CLEANUP
#endif

#define DFTRACER_C_FUNCTION_START()                                                                \
	struct DFTracerData *data_fn DFTRACER_C_REGION_CLEANUP =                                   \
		initialize_region(__func__, C_LOG_CATEGORY, DF_DATA_EVENT);
#define DFTRACER_C_FUNCTION_END()                                                                  \
	finalize_region(data_fn);                                                                  \
	data_fn = NULL;
#define DFTRACER_C_REGION_START(name)                                                              \
	struct DFTracerData *data_##name DFTRACER_C_REGION_CLEANUP =                               \
		initialize_region(#name, C_LOG_CATEGORY, DF_DATA_EVENT);
#define DFTRACER_C_REGION_END(name)                                                                \
	finalize_region(data_##name);                                                              \
	data_##name = NULL;
#define DFTRACER_C_METADATA(name, key, val)                                                        \
	{                                                                                          \
		struct DFTracerData *data_##name = initialize_region(key, val, DF_METADATA_EVENT); \
		finalize_region(data_##name);                                                      \
	}

#define DFTRACER_C_FUNCTION_UPDATE_INT(key, val)     update_metadata_int(data_fn, key, val);
#define DFTRACER_C_FUNCTION_UPDATE_STR(key, val)     update_metadata_string(data_fn, key, val);
#define DFTRACER_C_REGION_UPDATE_INT(name, key, val) update_metadata_int(data_##name, key, val);
#define DFTRACER_C_REGION_UPDATE_STR(name, key, val) update_metadata_string(data_##name, key, val);
#define DFTRACER_C_FUNCTION_UPDATE_INT_TYPE(key, val, type)                                        \
	update_metadata_int_type(data_fn, key, val, type);
#define DFTRACER_C_FUNCTION_UPDATE_STR_TYPE(key, val, type)                                        \
	update_metadata_string_type(data_fn, key, val, type);
#define DFTRACER_C_REGION_UPDATE_INT_TYPE(name, key, val, type)                                    \
	update_metadata_int_type(data_##name, key, val, type);
#define DFTRACER_C_REGION_UPDATE_STR_TYPE(name, key, val, type)                                    \
	update_metadata_string_type(data_##name, key, val, type);

/* --- C++ ---------------------------------------------------------------------- */

#ifdef __cplusplus

__attribute__((unused)) static ConstEventNameType CPP_LOG_CATEGORY = "CPP_APP";

/* What an argument is for aggregation, which there is none of here: all are written alike. */
enum MetadataType : uint8_t { MT_KEY = 0, MT_VALUE = 1, MT_IGNORE = 2 };

/* The number that `type` has in v2 lines. */
enum TraceEventType : uint8_t {
	TRACE_TYPE_UNKNOWN = 0,
	TRACE_TYPE_DFTRACER = 1,
	TRACE_TYPE_C_APP = 2,
	TRACE_TYPE_LIBC_IO = 3,
	TRACE_TYPE_HIP = 4,
	TRACE_TYPE_HDF5 = 5,
	TRACE_TYPE_PYTHON = 6,
	TRACE_TYPE_PSUTIL = 7,
	TRACE_TYPE_FINSTRUMENT = 8,
	TRACE_TYPE_CPP_APP = 9,
	TRACE_TYPE_MPI = 10,
	TRACE_TYPE_PAPI = 11,
	TRACE_TYPE_OMNISTAT = 12,
	TRACE_TYPE_VARIORUM = 13,
	TRACE_TYPE_CUDA = 14,
	TRACE_TYPE_MAX
};

/* By another name for the linker than that of the library, which may be there as well. */
inline namespace dftracer_stub
{

/* A region that ends with the object. */
class DFTracer
{
	uintptr_t region;

      public:
	DFTracer(ConstEventNameType _name, ConstEventNameType _cat, int event_type = DF_DATA_EVENT,
		 TraceEventType _type = TraceEventType::TRACE_TYPE_CPP_APP)
	    : region(dftracer_stub_region())
	{
		dftracer_stub_begin(region, _name, _cat, event_type, _type);
	}

	void update(const char *key, int value, MetadataType type = MetadataType::MT_KEY)
	{
		dftracer_stub_update_int(region, key, value, type);
	}

	void update(const char *key, const char *value, MetadataType type = MetadataType::MT_KEY)
	{
		dftracer_stub_update_string(region, key, value, type);
	}

	void finalize()
	{
		if (region)
			dftracer_stub_end(region);
		region = 0;
	}

	~DFTracer()
	{
		finalize();
	}
};

} /* namespace dftracer_stub */

#define DFTRACER_CPP_INIT(log_file, data_dirs, process_id)                                         \
	initialize_main(log_file, data_dirs, process_id);                                          \
	mark_used("CPP_APP");
#define DFTRACER_CPP_INIT_NO_BIND(log_file, data_dirs, process_id)                                 \
	initialize_no_bind(log_file, data_dirs, process_id);                                       \
	mark_used("CPP_APP");
#define DFTRACER_CPP_FINI()                     finalize()
#define DFTRACER_CPP_APP_METADATA_INT(key, val) set_app_metadata_int(key, val);
#define DFTRACER_CPP_APP_METADATA_STR(key, val) set_app_metadata_string(key, val);
#define DFTRACER_CPP_MARK_USED(name)            mark_used(name);

#define DFTRACER_CPP_FUNCTION()                                                                    \
	DFTracer profiler_dft_fn = DFTracer((char *)__FUNCTION__, CPP_LOG_CATEGORY, DF_DATA_EVENT);
#define DFTRACER_CPP_METADATA(name, key, value)                                                    \
	{                                                                                          \
		DFTracer profiler_##name = DFTracer(key, value, DF_METADATA_EVENT);                \
	}
#define DFTRACER_CPP_REGION(name)                                                                  \
	DFTracer profiler_##name = DFTracer(#name, CPP_LOG_CATEGORY, DF_DATA_EVENT);
#define DFTRACER_CPP_REGION_START(name)                                                            \
	DFTracer *profiler_##name = new DFTracer(#name, CPP_LOG_CATEGORY, DF_DATA_EVENT);
#define DFTRACER_CPP_REGION_END(name) delete profiler_##name

#define DFTRACER_CPP_FUNCTION_UPDATE(key, val)            profiler_dft_fn.update(key, val);
#define DFTRACER_CPP_FUNCTION_UPDATE_TYPE(key, val, type) profiler_dft_fn.update(key, val, type);
#define DFTRACER_CPP_REGION_UPDATE(name, key, val)        profiler_##name.update(key, val);
#define DFTRACER_CPP_REGION_DYN_UPDATE(name, key, val)    profiler_##name->update(key, val);
#define DFTRACER_CPP_REGION_UPDATE_TYPE(name, key, val, type)                                      \
	profiler_##name.update(key, val, type);
#define DFTRACER_CPP_REGION_DYN_UPDATE_TYPE(name, key, val, type)                                  \
	profiler_##name->update(key, val, type);

#endif /* __cplusplus */

#endif
