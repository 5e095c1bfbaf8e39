#!/usr/bin/env python3
"""Runs the unit tests and the cases, and ends with one line: `N passed, N failed`.

usage: tests/run.py BUILD [--full] [--part=NAME]… [--sanitized=BUILD] [pytest arguments]

--full adds the long cases, and the whole suite again for each rung of the fallback ladder, for the static build
and for a build with sanitizers: parts `long`, `rungs`, `static` and `sanitized`. That takes hours; --part chooses.
"""

import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))


class Count:
	"""What has come of the tests so far."""

	def __init__(self):
		self.passed = self.failed = self.skipped = 0
		self.failures = []

	def add(self, passed, failures, skipped):
		self.passed += passed
		self.failed += len(failures)
		self.failures += failures
		self.skipped += skipped

	def line(self):
		skipped = f", {self.skipped} skipped" if self.skipped else ""
		return f"{self.passed} passed, {self.failed} failed{skipped}"


def unit(build, count):
	"""Runs each cmocka program; one that dies or says nothing is a failure."""
	directory = os.path.join(build, "tests", "unit")
	names = sorted(name for name in os.listdir(directory) if re.fullmatch(r"test_\w+", name)) \
		if os.path.isdir(directory) else []
	sources = sorted(name[:-2] for name in os.listdir(os.path.join(HERE, "unit"))
			 if re.fullmatch(r"test_\w+\.c", name))
	for name in sources:
		if name not in names:
			count.add(0, [f"{name}: not built"], 0)
			continue
		begin = time.monotonic()
		try:
			done = subprocess.run([os.path.join(directory, name)], check=False, timeout=600,
					      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
			text, status = done.stdout.decode("utf-8", "replace"), done.returncode
		except subprocess.TimeoutExpired as late:
			text, status = (late.stdout or b"").decode("utf-8", "replace"), "time-out"
		passed = len(re.findall(r"^\[ +OK +\]", text, re.MULTILINE))
		# Its list at the end names the failed ones again.
		failures = [f"{name}: {test}" for test in
			    sorted(set(re.findall(r"^\[ +(?:FAILED|ERROR) +\] (\w+)$", text, re.MULTILINE)))]
		skipped = len(re.findall(r"^\[ +SKIPPED +\] \w+$", text, re.MULTILINE))
		if status != 0 or passed + skipped == 0:
			failures = failures or [f"{name}: status {status}"]
			print(text)
		count.add(passed, failures, skipped)
		print(f"{name}: {passed} passed, {len(failures)} failed ({time.monotonic() - begin:.1f} s)", flush=True)


def cases(build, count, arguments, *, options="", patience=1.0, tracer=None):
	"""Runs pytest, in as many processes as there are CPUs to give. `tracer`: a dftrace-run of another build."""
	env = {**os.environ, **({"DFTRACE_RUN": tracer} if tracer else {}), "DFTRACE_BUILD": build,
	       "DFTRACE_BUILT": "1", "DFTRACE_TEST_OPTIONS": options,
	       "DFTRACE_TEST_PATIENCE": str(float(os.environ.get("DFTRACE_TEST_PATIENCE", "1")) * patience),
	       "PYTHONDONTWRITEBYTECODE": "1"}
	shards = max(1, min(int(os.environ.get("DFTRACE_TEST_JOBS", os.cpu_count() or 1)), 4))
	running = []
	for shard in range(shards):
		report = os.path.join(build, f"tests-{shard}.xml")
		if os.path.exists(report):
			os.unlink(report)
		output = open(os.path.join(build, f"tests-{shard}.log"), "w+b")  # noqa: SIM115
		command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c",
			   os.path.join(HERE, "pytest.ini"), "--rootdir", HERE, f"--junitxml={report}",
			   f"--shard={shard}/{shards}", "-rfEs", "--durations=8", *arguments]
		running.append((subprocess.Popen(command, env=env, cwd=HERE, stdout=output,
						 stderr=subprocess.STDOUT), report, output))
	for process, report, output in running:
		status = process.wait()
		output.seek(0)
		sys.stdout.write(output.read().decode("utf-8", "replace"))
		output.close()
		sys.stdout.flush()
		if not os.path.exists(report):
			count.add(0, [f"pytest ended with {status} and no report"], 0)
			continue
		add_report(report, status, count)


def add_report(report, status, count):
	passed, failures, skipped = 0, [], 0
	for case in ElementTree.parse(report).iter("testcase"):
		kinds = {child.tag for child in case}
		if kinds & {"failure", "error"}:
			failures.append(f"{case.get('classname')}: {case.get('name')}")
		elif "skipped" in kinds:
			skipped += 1
		else:
			passed += 1
	# 5: no case selected, as when one file is asked for and there are two shards.
	if status not in (0, 1, 5) and not failures:
		failures = [f"pytest ended with {status}"]
	count.add(passed, failures, skipped)


STATIC = os.path.join(os.path.dirname(HERE), "build", "static", "dftrace-run")
# Each rung of the fallback ladder carries the whole suite.
RUNGS = ("--no-seccomp", "--no-syscall-info", "--no-proc-mem", "--no-proc-mem --no-vm-readv",
	 "--no-placement", "--no-seccomp --no-syscall-info --no-proc-mem", "--capture recorder",
	 "--capture recorder --recorder-hits 1")


PARTS = ("long", "rungs", "static", "sanitized")


def values(arguments, option):
	"""What stands behind `option` in each of its uses."""
	return [word.partition("=")[2] for word in arguments if word.startswith(f"{option}=")]


def main():
	build, arguments = os.path.abspath(sys.argv[1]), sys.argv[2:]
	full = "--full" in arguments
	parts = values(arguments, "--part") or (PARTS if full else ["long"])
	unknown = set(parts) - set(PARTS)
	if unknown or (not full and tuple(parts) != ("long",)):
		sys.exit(f"tests/run.py: no part {', '.join(unknown)}; the parts of --full are {', '.join(PARTS)}"
			 if unknown else "tests/run.py: --part is for --full")
	plain = [word for word in arguments if word != "--full" and not word.startswith(("--sanitized=", "--part="))]
	count, begin = Count(), time.monotonic()
	if "long" in parts:
		if not plain:
			unit(build, count)
		cases(build, count, plain + ["--full"] * full)
	for rung in RUNGS if "rungs" in parts else ():
		print(f"\nwith {rung}:", flush=True)
		cases(build, count, plain, options=rung, patience=2.0)
	if "static" in parts:
		print("\nwith the static build:", flush=True)
		cases(build, count, plain, tracer=STATIC)
	for other in map(os.path.abspath, values(arguments, "--sanitized") if "sanitized" in parts else ()):
		print(f"\nwith sanitizers, {other}:", flush=True)
		if not plain:
			unit(other, count)
		cases(other, count, plain, patience=4.0)
	print(f"{time.monotonic() - begin:.0f} s")
	# Once more, where a reader of a long log looks first.
	for failure in count.failures:
		print(f"failed: {failure}")
	print(count.line())
	return 1 if count.failed or not count.passed else 0


if __name__ == "__main__":
	sys.exit(main())
