/* Hooked functions of C++. usage: hooks_cxx throw|streams; `func` lines as in hooks_ends.c, names as in the
 * source. */
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

#define HOOKED __attribute__((noinline))

namespace solver
{
long done, cut, sum, callbacks_done, callbacks_cut, callbacks_sum, method_done, method_cut;

struct guard {
	long *count;
	~guard() { ++*count; }
};

HOOKED long step(long n)
{
	__asm__ volatile("" : "+r"(n));
	if (n % 5 == 0) {
		cut++;
		throw std::runtime_error("five");
	}
	done++;
	sum += n;
	return n;
}

HOOKED long with_callback(long (*to)(long), long n)
{
	long ret;

	try {
		ret = to(n);
	} catch (const std::logic_error &) {
		ret = -2;
	}
	__asm__ volatile("" : "+r"(ret));
	callbacks_done++;
	callbacks_sum += ret;
	return ret;
}

struct grid {
	long size;
	HOOKED long advance(long n, guard g = {nullptr});
	HOOKED long advance(const char *text);
};

long grid::advance(long n, guard g)
{
	g.count = &size;
	method_done++;
	return n + 1;
}

long grid::advance(const char *text)
{
	method_cut++;
	throw std::string(text);
}
} // namespace solver

static long catching(long n)
{
	if (n % 2)
		throw std::logic_error("odd");
	return solver::step(n);
}

static int throwing()
{
	long caught = 0, escaped = 0;

	for (long i = 0; i < 100; i++) {
		try {
			solver::step(i);
		} catch (const std::runtime_error &) {
			caught++;
		}
		/* Exceptions go through a hooked function that does not catch them, and are caught in one. */
		try {
			solver::with_callback(catching, i);
		} catch (const std::runtime_error &) {
			escaped++;
		}
		solver::grid g = {0};
		try {
			g.advance(i);
			g.advance("text");
		} catch (const std::string &) {
			caught++;
		}
	}
	if (caught != 120 || escaped != 10)
		return 99;
	std::printf("func\tsolver::step(long)\t%ld\t%ld\t%ld\n", solver::done, solver::cut,
		    solver::sum);
	std::printf("func\tsolver::with_callback(long (*)(long), long)\t%ld\t%ld\t%ld\n",
		    solver::callbacks_done, escaped, solver::callbacks_sum);
	return 0;
}

/* These go through no stream of C, so their calls stay system calls. */
static int streams()
{
	std::string line;
	long bytes = 0;
	{
		std::ofstream out("cxx.txt");
		for (int i = 0; i < 1000; i++)
			out << "line " << i << '\n';
		if (!out)
			return 99;
	}
	std::ifstream in("cxx.txt");
	while (std::getline(in, line))
		bytes += static_cast<long>(line.size()) + 1;
	std::cout << "moved\tcxx.txt\t" << bytes << '\t' << bytes << '\n';
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	return std::string(argv[1]) == "throw" ? throwing() : streams();
}
