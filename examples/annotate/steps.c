/* A few steps of a computation with DFTracer's annotations, each followed by a checkpoint. Says what it did. */
#include <dftracer/dftracer.h>
#include <stdio.h>
#include <stdlib.h>

static double compute(int step)
{
	DFTRACER_C_FUNCTION_START();
	DFTRACER_C_FUNCTION_UPDATE_INT("step", step);
	double sum = 0;
	for (int i = 1; i < 100000; i++)
		sum += 1.0 / (i + step);
	DFTRACER_C_FUNCTION_END();
	return sum;
}

static size_t checkpoint(const char *path, double value)
{
	DFTRACER_C_FUNCTION_START();
	DFTRACER_C_FUNCTION_UPDATE_STR("file", path);
	FILE *file = fopen(path, "a");
	/* The region ends here, too. */
	if (!file)
		return 0;
	size_t bytes = (size_t)fprintf(file, "%f\n", value);
	fclose(file);
	DFTRACER_C_FUNCTION_UPDATE_INT("bytes", (int)bytes);
	DFTRACER_C_FUNCTION_END();
	return bytes;
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "steps.out";
	int steps = argc > 2 ? atoi(argv[2]) : 3;
	size_t bytes = 0;

	DFTRACER_C_INIT(NULL, NULL, NULL);
	DFTRACER_C_APP_METADATA_INT("steps", steps);
	DFTRACER_C_METADATA(meta, "solver", "harmonic");
	DFTRACER_C_REGION_START(all_steps);
	for (int step = 0; step < steps; step++)
		bytes += checkpoint(path, compute(step));
	DFTRACER_C_REGION_END(all_steps);
	DFTRACER_C_FINI();
	printf("all_steps 1 compute %d checkpoint %d bytes %zu\n", steps, steps, bytes);
	return 0;
}
