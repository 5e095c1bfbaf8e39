/* The same in C++, where a region ends with its scope, also by an exception. */
#include <dftracer/dftracer.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

static double compute(int step)
{
	DFTRACER_CPP_FUNCTION();
	DFTRACER_CPP_FUNCTION_UPDATE("step", step);
	double sum = 0;
	for (int i = 1; i < 100000; i++)
		sum += 1.0 / (i + step);
	return sum;
}

static int checkpoint(const std::string &path, double value)
{
	DFTRACER_CPP_FUNCTION();
	DFTRACER_CPP_FUNCTION_UPDATE("file", path.c_str());
	std::ofstream file(path, std::ios::app);
	if (!file)
		throw std::runtime_error(path);
	std::string text = std::to_string(value) + "\n";
	file << text;
	DFTRACER_CPP_FUNCTION_UPDATE("bytes", (int)text.size());
	return (int)text.size();
}

int main(int argc, char **argv)
{
	const std::string path = argc > 1 ? argv[1] : "steps.out";
	const int steps = argc > 2 ? atoi(argv[2]) : 3;
	int bytes = 0;
	int failed = 0;

	DFTRACER_CPP_INIT(nullptr, nullptr, nullptr);
	DFTRACER_CPP_APP_METADATA_INT("steps", steps);
	DFTRACER_CPP_METADATA(meta, "solver", "harmonic");
	{
		DFTRACER_CPP_REGION(all_steps);
		for (int step = 0; step < steps; step++)
			bytes += checkpoint(path, compute(step));
		try {
			checkpoint("/nowhere/steps.out", 0);
		} catch (const std::runtime_error &) {
			failed++;
		}
		DFTRACER_CPP_REGION_UPDATE(all_steps, "failed", failed);
	}
	DFTRACER_CPP_FINI();
	printf("all_steps 1 compute %d checkpoint %d bytes %d\n", steps, steps + failed, bytes);
	return 0;
}
