// Streams, the file system library, threads and a child, as a C++ program has them.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace fs = std::filesystem;

static void lines(const std::string &name, int count)
{
	std::ofstream out(name);
	for (int i = 0; i < count; i++)
		out << "line " << i << '\n';
	out.close();
	std::ifstream in(name);
	int found = 0;
	for (std::string line; std::getline(in, line);)
		found++;
	if (!in.eof() || found != count)
		std::exit(3);
}

int main()
{
	std::vector<std::thread> threads;

	fs::create_directories("tree/deep");
	lines("tree/main", 3000);
	for (int i = 0; i < 3; i++)
		threads.emplace_back(lines, "tree/thread" + std::to_string(i), 500 + i);
	for (auto &thread : threads)
		thread.join();
	fs::rename("tree/main", "tree/deep/moved");
	fs::copy_file("tree/deep/moved", "copied");
	fs::resize_file("copied", 100);
	std::uintmax_t bytes = 0;
	for (const auto &entry : fs::recursive_directory_iterator("tree"))
		bytes += entry.is_regular_file() ? entry.file_size() : 0;
	std::cout << bytes << std::endl;
	fs::remove_all("tree");
	return std::system("cat copied | wc -c") == 0 ? 0 : 3;
}
