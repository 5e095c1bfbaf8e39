/* Annotations in C++: regions are objects. Prints as annotated.c does. */
#include <dftracer/dftracer.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

static void say(const std::string &name, const std::string &cat, const std::string &in, const std::string &args)
{
	printf("{\"name\":\"%s\",\"cat\":\"%s\",\"in\":\"%s\",\"args\":{%s}}\n", name.c_str(), cat.c_str(), in.c_str(),
	       args.c_str());
	fflush(stdout);
}

static void throws(int n, const char *in)
{
	struct after {
		int n;
		const char *in;
		~after()
		{
			say("throws", "CPP_APP", in, "\"n\":" + std::to_string(n));
		}
	} after{n, in};
	DFTRACER_CPP_FUNCTION();
	DFTRACER_CPP_FUNCTION_UPDATE("n", n);
	if (n == 0)
		throw std::runtime_error("at the bottom");
	throws(n - 1, "throws");
}

namespace solver
{
struct Step {
	int operator()(int a)
	{
		DFTRACER_CPP_FUNCTION();
		DFTRACER_CPP_FUNCTION_UPDATE_TYPE("a", a, MT_VALUE);
		return a;
	}
	template <class T> T same(T value)
	{
		DFTRACER_CPP_FUNCTION();
		return value;
	}
};
} /* namespace solver */

static void regions()
{
	DFTRACER_CPP_FUNCTION();
	{
		DFTRACER_CPP_REGION(scope);
		DFTRACER_CPP_REGION_UPDATE(scope, "k", 4);
		DFTRACER_CPP_REGION_UPDATE(scope, "s", "str");
		DFTRACER_CPP_REGION_UPDATE_TYPE(scope, "ignored", "x", MT_IGNORE);
		DFTRACER_CPP_REGION_UPDATE(scope, "half", (int)4.5);
	}
	say("scope", "CPP_APP", "regions", "\"k\":4,\"s\":\"str\",\"ignored\":\"x\",\"half\":4");
	DFTRACER_CPP_REGION_START(dynamic);
	DFTRACER_CPP_REGION_DYN_UPDATE(dynamic, "k", 5);
	DFTRACER_CPP_REGION_DYN_UPDATE_TYPE(dynamic, "s", "t", MT_KEY);
	DFTRACER_CPP_REGION_END(dynamic);
	say("dynamic", "CPP_APP", "regions", "\"k\":5,\"s\":\"t\"");
	{
		DFTRACER_CPP_REGION(early);
		profiler_early.finalize();
		say("early", "CPP_APP", "regions", "");
	}
	{
		DFTracer typed("typed", "TCAT", DF_DATA_EVENT, TraceEventType::TRACE_TYPE_PYTHON);
	}
	say("typed", "TCAT", "regions", "");
	solver::Step step;
	step(3);
	say("operator()", "CPP_APP", "regions", "\"a\":3");
	step.same(2.0);
	say("same", "CPP_APP", "regions", "");
	DFTRACER_C_REGION_START(in_c);
	DFTRACER_C_REGION_END(in_c);
	say("in_c", "C_APP", "regions", "");
}

static void in_threads()
{
	for (int i = 0; i < 3; i++) {
		std::thread other([i] {
			DFTRACER_CPP_REGION(in_thread);
			DFTRACER_CPP_REGION_UPDATE(in_thread, "i", i);
		});
		other.join();
		say("in_thread", "CPP_APP", "", "\"i\":" + std::to_string(i));
	}
}

int main()
{
	DFTRACER_CPP_INIT(nullptr, nullptr, nullptr);
	DFTRACER_CPP_APP_METADATA_INT("answer", 42);
	DFTRACER_CPP_APP_METADATA_STR("case", "c++");
	DFTRACER_CPP_MARK_USED("solver");
	DFTRACER_CPP_METADATA(meta, "key", "value");
	puts("custom key value");
	fflush(stdout);
	try {
		throws(3, "");
	} catch (const std::runtime_error &) {
	}
	regions();
	say("regions", "CPP_APP", "", "");
	in_threads();
	DFTRACER_CPP_FINI();
	puts("app {\"answer\": 42, \"case\": \"c++\"}");
	puts("used {\"CPP_APP\": 1, \"solver\": 1}");
	return 0;
}
