"""What a Python program does: files, directories, a mapping, threads, children. Its files are in the directory that it is
given."""

import mmap
import os
import shutil
import subprocess
import sys
import threading


def at(name):
	return os.path.join(sys.argv[1], name) if len(sys.argv) > 1 else name


def fill(name, count):
	with open(name, "w+b") as file:
		for i in range(count):
			file.write(bytes(1000 + i))
		file.seek(0)
		assert len(file.read()) == sum(range(1000, 1000 + count))


os.mkdir(at("d"))
fill(at("d/one"), 30)
shutil.copy(at("d/one"), at("d/two"))
os.rename(at("d/two"), at("d/three"))
fd = os.open(at("raw"), os.O_RDWR | os.O_CREAT, 0o600)
os.pwrite(fd, b"x" * 100, 50)
os.lseek(fd, 0, os.SEEK_SET)
os.read(fd, 10)
os.fsync(fd)
os.ftruncate(fd, 4096)
with mmap.mmap(fd, 4096) as area:
	area[:3] = b"abc"
os.close(fd)
threads = [threading.Thread(target=fill, args=(at(f"d/thread{i}"), 10 + i)) for i in range(3)]
for thread in threads:
	thread.start()
	thread.join()
print(sorted(os.listdir(at("d"))), [entry.stat().st_size for entry in sorted(os.scandir(at("d")), key=lambda entry: entry.name)])
print(subprocess.run(["cat", at("raw")], capture_output=True, check=True).stdout[:3])
pid = os.fork()
if pid == 0:
	fill(at("child"), 5)
	os._exit(4)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 4
with open(at("text"), "w", encoding="utf-8") as text:
	print("words", file=text)
try:
	os.stat(at("none"))
except FileNotFoundError:
	os.unlink(at("text"))
shutil.rmtree(at("d"))
sys.exit(0)
