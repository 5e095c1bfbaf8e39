"""--doctor: what it says is what a run then meets. Hosts that refuse something are made with seccomp
filters, namespaces and mounts; each time a run has to agree with the exit status."""

import errno
import json
import os
import re
import shutil
import subprocess

import pytest

from lib.run import EXTRA, PROGRAMS, ROOT, TRACER, by_capture, program

PTRACE, PRCTL, PROCESS_VM_READV, SECCOMP = 101, 157, 310, 317
CLONE3 = 435
# What Docker's default profile refuses to a container without capabilities (acct, add_key, bpf,
# delete_module, init_module, io_uring_*, kcmp, kexec_load, keyctl, mount, name_to_handle_at,
# open_by_handle_at, perf_event_open, pivot_root, quotactl, reboot, request_key, setns, settimeofday,
# swapon, swapoff, syslog, umount2, unshare, userfaultfd …). ptrace and process_vm_readv are allowed since
# kernel 4.8.
DOCKER = [f"{number}={errno.EPERM}" for number in (
	103, 134, 135, 136, 139, 153, 155, 156, 159, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 174,
	175, 176, 177, 178, 179, 180, 205, 211, 212, 227, 237, 238, 239, 246, 248, 249, 250, 256, 272, 279, 298,
	300, 303, 304, 305, 308, 312, 313, 320, 321, 323, 425, 426, 427, 428, 429, 430, 431, 432, 433, 442)]
DOCKER.append(f"{CLONE3}={errno.ENOSYS}")
ROWS = ["kernel", "container", "launcher", "CPUs", "/proc", "output", "ptrace", "Yama", "seccomp features",
	"seccomp filter", "PTRACE_GET_SYSCALL_INFO", "/proc/PID/mem", "process_vm_readv", "/proc/PID",
	"recorder", "cost of a stop"]
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
	  "--bounding-set=-all"]
# Leaks are looked for with ptrace, which many of these hosts do not have.
NO_LEAKS = {"ASAN_OPTIONS": "detect_leaks=0"}
# Where the recorder was asked for it is missing as well: it needs the filter.
NO_FILTER = {"seccomp filter": "degraded", **by_capture({}, {"recorder": "degraded"})}
SANITIZED = b"sanitized" in subprocess.run([TRACER, "--version"], check=False, capture_output=True).stdout
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make such a host")


def filtered(*rules):
	return [program("restricted"), *rules, "--"]


def in_mounts(script):
	"""A mount namespace of its own, after a few commands."""
	return ["unshare", "-m", "sh", "-ec", f'{script}; exec "$@"', "sh"]


class Doctor:
	"""What it said, as an object; the table has been compared with it."""

	def __init__(self, run):
		self.run, self.status = run, run.status
		assert run.stderr == b"", run.stderr
		said = json.loads(run.stdout)
		assert set(said) == {"version", "state", "checks"}
		self.state, self.checks = said["state"], said["checks"]
		order = ["ok", "degraded", "refused"]
		assert self.state == max((c["state"] for c in self.checks), key=order.index)
		for check in self.checks:
			assert check["found"]
			if check["state"] != "ok":
				for half in (check["cause"], check["remedy"]):
					assert half and "\n" not in half and not half.endswith(".")

	def __getitem__(self, what):
		found = [check for check in self.checks if check["what"] == what]
		assert len(found) == 1, (what, [check["what"] for check in self.checks])
		return found[0]

	def bad(self):
		return {check["what"]: check["state"] for check in self.checks if check["state"] != "ok"}


@pytest.fixture
def host(runner):
	"""Asks the doctor, and then makes a run at the same place: 1 and 125 belong together."""
	def ask(before=(), options=(), args=(), *, runs=True, tool=TRACER, prefix=None, **more):
		more["env"] = {**NO_LEAKS, **(more.get("env") or {})}
		prefix = prefix or os.path.join(runner.fresh("out"), "t")
		directory = os.path.dirname(prefix)
		there = os.path.isdir(directory) and sorted(os.listdir(directory))
		command = [*before, tool, "-o", prefix, *EXTRA, *options]
		tail = ["--", *args] if args else []
		found = Doctor(runner.native([*command, "--doctor", "--json", *tail], **more))
		table = runner.native([*command, "--doctor", *tail], **more)
		assert there == (os.path.isdir(directory) and sorted(os.listdir(directory)))
		assert table.status == found.status and table.stderr == b""
		# A tracer's number is another one the second time.
		lines = re.sub(r"process \d+", "process N", table.stdout.decode()).splitlines()
		for check in found.checks:
			line = next(line for line in lines if line.startswith(check["what"] + " "))
			assert check["state"] in line
			if check["state"] != "ok":
				why = re.sub(r"process \d+", "process N", f"-> {check['cause']}; {check['remedy']}")
				assert why in lines[lines.index(line) + 1]
		assert found.status == (1 if found.state == "refused" else 0)
		if runs:
			run = runner.native([*command, "--", *(args or ["sh", "-c", "echo ran"])], **more)
			runner.settle(run.token)
			found.ran = run
			run.prefix = prefix
			assert (found.status == 1) == (run.status == 125), run.stderr
			if run.status == 125:
				assert len(run.stderr.splitlines()) == 1, run.stderr
				assert len(run.stderr) < 450
		return found
	return ask


def sentence(check):
	return f"{check['cause']}; {check['remedy']}".encode()


def test_here(host):
	found = host()
	assert [check["what"] for check in found.checks] == ROWS
	bad = found.bad()
	assert bad == {} or "--no-seccomp" in EXTRA and bad == {"seccomp filter": "degraded"}
	assert os.uname().release in found["kernel"]["found"]
	cost = found["cost of a stop"]
	assert cost["stops"] == 2000
	assert 100 < cost["same_cpu_ns"] < 1_000_000_000
	assert found["CPUs"]["count"] == len(os.sched_getaffinity(0))
	if found["CPUs"]["count"] > 1:
		assert 100 < cost["other_cpu_ns"] < 1_000_000_000
	assert found.ran.status == 0 and found.ran.stdout == b"ran\n" and found.ran.traces


def test_table_ends_with_what_a_run_would_be(runner):
	run = runner.native([TRACER, *EXTRA, "--doctor"], env=NO_LEAKS)
	assert run.stdout.decode().splitlines()[-1].startswith("A run works here")


def test_one_cpu(host):
	cpu = min(os.sched_getaffinity(0))
	found = host(["taskset", "-c", str(cpu)])
	assert found["CPUs"]["count"] == 1 and f"({cpu})" in found["CPUs"]["found"]
	assert "other_cpu_ns" not in found["cost of a stop"]
	assert found["cost of a stop"]["same_cpu_ns"]


@pytest.mark.parametrize("form", ["detached", "parent"])
@pytest.mark.parametrize("answer", ["1", "38", "13"])
def test_filter_forbids_ptrace(host, form, answer):
	found = host(filtered(f"{PTRACE}={answer}"), ["--tracer", form])
	assert found.bad() == {"ptrace": "refused"}
	assert "seccomp filter" in found["ptrace"]["cause"] and "Seccomp: 2" in found["ptrace"]["cause"]
	assert "SYS_PTRACE" in found["ptrace"]["remedy"]
	assert sentence(found["ptrace"]) in found.ran.stderr
	assert found.ran.stdout == b"" and not found.ran.files


@pytest.mark.parametrize("form", ["detached", "parent"])
def test_filter_kills_for_ptrace(host, form):
	found = host(filtered(f"{PTRACE}=kill"), ["--tracer", form])
	assert found.bad() == {"ptrace": "refused"}
	assert "kills" in found["ptrace"]["cause"] and "ptrace" in found["ptrace"]["cause"]
	assert sentence(found["ptrace"]) in found.ran.stderr


@pytest.mark.parametrize("answer", ["1", "38", "kill"])
def test_filter_forbids_process_vm_readv(host, answer):
	found = host(filtered(f"{PROCESS_VM_READV}={answer}"))
	if "--no-proc-mem" in EXTRA:
		pytest.skip("where it is used, a filter that kills ends the tracer")
	assert found.bad().pop("process_vm_readv") == "degraded"
	assert "process_vm_readv" in found["process_vm_readv"]["cause"]
	assert found["process_vm_readv"]["cause"].startswith("a seccomp filter")
	assert found["/proc/PID/mem"]["state"] == "ok"
	assert found.ran.status == 0 and found.ran.traces


@pytest.mark.skipif("--no-seccomp" in EXTRA, reason="no filter is wanted")
@pytest.mark.parametrize("answer", ["1", "38", "22"])
def test_filter_forbids_filters(host, answer):
	found = host(filtered(f"{SECCOMP}={answer}"))
	assert found.bad() == NO_FILTER
	assert "seccomp filter around this process" in found["seccomp filter"]["cause"]
	assert found["/proc/PID/mem"]["state"] == found["process_vm_readv"]["state"] == "ok"
	assert found["cost of a stop"]["same_cpu_ns"]
	assert found.ran.status == 0 and b"no seccomp filter" in found.ran.stderr and found.ran.traces


@pytest.mark.skipif("--no-seccomp" in EXTRA, reason="no filter is wanted")
@pytest.mark.parametrize("form", ["detached", "parent"])
def test_filter_kills_for_filters(host, form):
	found = host(filtered(f"{SECCOMP}=kill"), ["--tracer", form])
	assert found.bad() == {"ptrace": "refused"}
	assert "kills whoever calls seccomp" in found["ptrace"]["cause"]
	assert sentence(found["ptrace"]) in found.ran.stderr
	# The remedy that a user has alone.
	assert host(filtered(f"{SECCOMP}=kill"), ["--no-seccomp"]).bad() == NO_FILTER


@root_only
@pytest.mark.parametrize("before", [[], NOBODY], ids=["root", "user"])
def test_docker_profile(host, runner, before):
	"""As Docker's default: nothing of ours is in it."""
	tool, prefix = public(runner)
	found = host([*filtered(*DOCKER)[:-1], "--", *before], tool=tool, prefix=prefix)
	assert found.bad() == {} or "--no-seccomp" in EXTRA
	assert found.ran.status == 0 and found.ran.traces


def public(runner):
	"""A copy of the tool and a place for traces that everybody can use, and sees on the way."""
	top = os.path.join("/tmp", f"dftrace-doctor-{os.getpid()}")
	os.makedirs(top, exist_ok=True)
	os.chmod(top, 0o755)
	tool = os.path.join(top, "dftrace-run")
	# One copy for all cases: the last case's tracer may still be executing it.
	if not os.path.exists(tool):
		shutil.copy(TRACER, tool)
	out = os.path.join(top, f"out-{os.path.basename(runner.base)}")
	os.makedirs(out, exist_ok=True)
	os.chmod(out, 0o777)
	return tool, os.path.join(out, "t")


@pytest.fixture(autouse=True, scope="module")
def tidy():
	yield
	shutil.rmtree(f"/tmp/dftrace-doctor-{os.getpid()}", ignore_errors=True)


@root_only
def test_ordinary_user(host, runner):
	tool, prefix = public(runner)
	found = host(NOBODY, tool=tool, prefix=prefix)
	assert found.bad() == {} or "--no-seccomp" in EXTRA
	if "--no-seccomp" not in EXTRA:
		assert "NoNewPrivs" in found["seccomp filter"]["found"]
	assert found.ran.status == 0 and found.ran.traces


@root_only
@pytest.mark.parametrize("hidden", ["hidepid=2", "subset=pid"])
def test_restricted_proc(host, runner, hidden):
	"""A process sees its own, and so does its tracer: nothing is lost."""
	before = in_mounts(f"mount -t proc -o {hidden} proc /proc")
	tool, prefix = public(runner)
	if subprocess.run([*before, "true"], check=False, capture_output=True).returncode:
		pytest.skip("this kernel has no such option for one mount")
	found = host([*before, *NOBODY], tool=tool, prefix=prefix)
	# The kernel has names for the numbers.
	assert hidden.partition("=")[0] in found["/proc"]["found"]
	assert found["/proc/PID"]["state"] == "ok"
	assert found.ran.status == 0 and found.ran.traces


@root_only
@pytest.mark.skipif(SANITIZED, reason="the sanitizer reads its options there")
def test_no_proc(host):
	found = host(in_mounts("mount -t tmpfs none /proc"))
	bad = found.bad()
	assert bad["/proc"] == bad["/proc/PID/mem"] == bad["/proc/PID"] == "degraded"
	assert "mount -t proc" in found["/proc"]["remedy"]
	assert found.ran.status == 0 and found.ran.traces


@root_only
def test_proc_of_another_namespace(host):
	"""There /proc/PID is some other process."""
	found = host(["unshare", "-fp", "sh", "-c", '"$@"', "sh"])
	assert found.bad() == {"ptrace": "refused"}
	assert "pid namespace" in found["ptrace"]["cause"] and "--mount-proc" in found["ptrace"]["remedy"]
	assert sentence(found["ptrace"]) in found.ran.stderr
	assert host(["unshare", "-fp", "--mount-proc", "sh", "-c", '"$@"; exit $?', "sh"]).status == 0


@root_only
def test_pid_namespace_without_fork(host):
	found = host(["unshare", "-p"])
	assert found.bad() == {"ptrace": "refused"} and "--fork" in found["ptrace"]["remedy"]


@root_only
def test_first_process_of_a_namespace(host):
	found = host(["unshare", "-fp", "--mount-proc"])
	assert "as its parent" in found["ptrace"]["found"] and found.ran.status == 0


@root_only
@pytest.mark.parametrize("scope,form,words", [
	(3, "detached", ["ptrace_scope is 3", "reboot"]),
	(2, "detached", ["administrators only", "sysctl kernel.yama.ptrace_scope=1"]),
	(2, "parent", ["administrators only"]),
	(1, "detached", ["descendants", "--tracer parent"]),
])
def test_yama(host, runner, scope, form, words):
	"""A kernel with Yama refuses to seize: made here of a filter that lets requests on nobody pass, and of
	a file where Yama's would be."""
	if os.path.exists("/proc/sys/kernel/yama"):
		pytest.skip("there is a Yama of its own")
	tool, prefix = public(runner)
	fake = in_mounts(f"mount -t tmpfs none /proc/sys/kernel; mkdir /proc/sys/kernel/yama; "
			 f"echo {scope} >/proc/sys/kernel/yama/ptrace_scope")
	found = host([*fake, *NOBODY, *filtered(f"{PTRACE}:1=1")], ["--tracer", form], tool=tool, prefix=prefix)
	assert found.bad() == {"ptrace": "refused"}
	for word in words:
		assert word in sentence(found["ptrace"]).decode()
	assert sentence(found["ptrace"]) in found.ran.stderr
	assert f"scope {scope}" in found["Yama"]["found"]


@root_only
@pytest.mark.skipif(SANITIZED, reason="the sanitizer has no options there")
def test_tool_with_privileges(host, runner):
	tool, prefix = public(runner)
	other = shutil.copy(tool, tool + "-setuid")
	os.chown(other, 5, -1)
	os.chmod(other, 0o4755)
	found = host(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"], tool=other, prefix=prefix)
	if os.statvfs(other).f_flag & os.ST_NOSUID:
		pytest.skip("/tmp is mounted nosuid")
	assert found.bad() == {"ptrace": "refused"}
	assert "setuid" in found["ptrace"]["cause"] and f"chmod u-s,g-s {other}" in found["ptrace"]["remedy"]
	assert sentence(found["ptrace"]) in found.ran.stderr


def test_old_kernel(host):
	found = host(["setarch", "--uname-2.6"])
	assert found.bad()["kernel"] == "refused"
	assert "4.8" in found["kernel"]["remedy"]
	assert sentence(found["kernel"]) in found.ran.stderr


def test_under_another_tracer(host):
	found = host(["strace", "-f", "-o", "/dev/null"])
	assert found.bad() == {"ptrace": "refused"}
	assert "already traced by process" in found["ptrace"]["cause"]


def test_under_another_dftrace_run(host, runner):
	outer = os.path.join(runner.fresh("outer"), "t")
	found = host([TRACER, "-q", "-o", outer, *EXTRA, "--"])
	assert found.bad() == {"ptrace": "degraded"} and found.ran.stdout == b"ran\n"


def test_bubblewrap(host):
	if not shutil.which("bwrap"):
		pytest.skip("no bubblewrap")
	before = ["bwrap", "--dev-bind", "/", "/", "--unshare-user", "--unshare-pid", "--proc", "/proc",
		  "--cap-drop", "ALL"]
	if subprocess.run([*before, "true"], check=False, capture_output=True).returncode:
		pytest.skip("bubblewrap does not work here")
	found = host(before)
	assert "user namespace" in found["container"]["found"]
	assert found.status == 0 and found.ran.traces


def test_output(host, runner):
	top = runner.fresh("place")
	found = host(prefix=f"{top}/new/deep/t", runs=False)
	check = found["output"]
	assert check["found"].startswith(f"{top} on ") and check["state"] == "ok"
	free = os.statvfs(top)
	assert abs(check["free_bytes"] - free.f_bavail * free.f_frsize) < 1 << 30
	assert os.listdir(top) == []


def test_output_below_a_file(host, runner):
	path = os.path.join(runner.fresh("place"), "file")
	with open(path, "w"):
		pass
	found = host(prefix=f"{path}/t")
	assert found.bad()["output"] == "refused" and "-o" in found["output"]["remedy"]


@root_only
def test_output_that_is_not_writable(host, runner):
	tool, prefix = public(runner)
	os.chmod(os.path.dirname(prefix), 0o555)
	found = host(NOBODY, tool=tool, prefix=prefix)
	assert found.bad().pop("output") == "refused"


@root_only
def test_little_space(host, runner):
	place = runner.fresh("small")
	found = host(in_mounts(f"mount -t tmpfs -o size=8m none {place}"), prefix=f"{place}/t")
	assert found["output"]["state"] == "degraded" and " on tmpfs, " in found["output"]["found"]
	assert found["output"]["free_bytes"] <= 8 << 20


@pytest.mark.parametrize("env,words", [
	({}, "none to be seen"),
	({"OMPI_COMM_WORLD_RANK": "3", "PMIX_RANK": "3"}, "Open MPI rank 3"),
	({"PMI_RANK": "2", "PMI_SIZE": "4"}, "PMI rank 2 of 4"),
	({"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1"}, "Slurm job 77 rank 1"),
	({"SLURM_JOB_ID": "77", "SLURM_PROCID": "0"}, "Slurm job 77"),
	({"SLURM_JOB_ID": "77", "OMPI_COMM_WORLD_RANK": "1"}, "Slurm job 77, Open MPI rank 1"),
	({"FLUX_JOB_ID": "f12", "FLUX_TASK_RANK": "0"}, "Flux job f12 rank 0"),
	({"SLURM_JOB_ID": "7\n\x1b[2J\"\\", "container": "x\"\n"}, "Slurm job 7"),
])
def test_launcher(host, env, words):
	assert words in host(env=env, runs=False)["launcher"]["found"]


def elf(machine, is_64=True):
	kind = 2 if is_64 else 1
	return (b"\x7fELF" + bytes([kind, 1, 1]) + bytes(9) + (2).to_bytes(2, "little") +
		machine.to_bytes(2, "little") + b"\x01\x00\x00\x00" + bytes(200))


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
	"""One program in each form that a linker makes."""
	top = tmp_path_factory.mktemp("kinds")
	source = top / "p.c"
	source.write_text("int main(void) { return 0; }\n")
	for name, flags in {"static": ["-static"], "static-pie": ["-static-pie"], "pie": ["-pie", "-fPIE"],
			    "no-pie": ["-no-pie"], "stripped": ["-s"],
			    "lost": ["-Wl,--dynamic-linker=/no/such/loader"]}.items():
		subprocess.run(["gcc", "-o", top / name, source, *flags], check=True)
	for name, content in {"arm": elf(183), "i386": elf(3, False), "script": b"#!/usr/bin/env python3\n",
			      "words": b"echo words\n", "cut": b"\x7fELF\x02"}.items():
		(top / name).write_bytes(content)
		(top / name).chmod(0o755)
	return top


@pytest.mark.parametrize("name,words,bad", [
	("static", ["static, x86-64"], []),
	("static-pie", ["static-PIE, x86-64"], []),
	("pie", ["dynamic, PIE, x86-64", "/ld-linux-x86-64.so.2"], []),
	("no-pie", ["dynamic, not PIE, x86-64", "/ld-linux-x86-64.so.2"], []),
	("stripped", ["stripped"], []),
	("lost", ["/no/such/loader"], ["format"]),
	("arm", ["AArch64"], ["layers"]),
	("i386", ["i386"], ["layers"]),
])
def test_program(host, kinds, name, words, bad):
	found = host(args=[str(kinds / name)], runs=not bad)
	assert found["program"]["found"] == str(kinds / name)
	for word in words:
		assert word in found["format"]["found"]
	assert [what for what in found.bad() if what in ("format", "layers", "program")] == bad
	assert ("stripped" in found["format"]["found"]) == (name in ("stripped", "arm", "i386"))
	if not bad:
		assert found["layers"]["found"].startswith("POSIX")


def test_script(host, kinds):
	found = host(args=[str(kinds / "script")], runs=False)
	formats = [check["found"] for check in found.checks if check["what"] == "format"]
	assert formats[0] == "script for /usr/bin/env" and "x86-64" in formats[1]
	found = host(args=[str(kinds / "words")], runs=False)
	formats = [check["found"] for check in found.checks if check["what"] == "format"]
	assert "/bin/sh" in formats[0] and "x86-64" in formats[-1]


def test_broken_program(host, kinds):
	assert host(args=[str(kinds / "cut")], runs=False).checks


def test_program_that_is_not_there(host):
	found = host(args=["no-such-program"], runs=False)
	assert found.bad().pop("program") == "degraded"
	assert found["program"]["found"] == "a run ends with 127"
	assert "no-such-program: not found" in found["program"]["cause"]


def test_program_is_not_run(runner, host):
	cwd = runner.fresh("cwd")
	host(args=["sh", "-c", "echo > made"], runs=False, cwd=cwd)
	assert os.listdir(cwd) == []


@root_only
def test_program_with_privileges(host, runner, kinds):
	tool, prefix = public(runner)
	path = os.path.join(os.path.dirname(tool), "with-rights")
	shutil.copy(kinds / "static", path)
	os.chown(path, 5, -1)
	os.chmod(path, 0o4755)
	found = host(NOBODY, args=[path], tool=tool, prefix=prefix)
	assert found["privileges"]["state"] == "degraded" and "setuid" in found["privileges"]["found"]
	assert host(args=[path], runs=False)["privileges"]["state"] == "ok"
	os.chmod(path, 0o755)
	assert all(check["what"] != "privileges" for check in
		   host(NOBODY, args=[path], tool=tool, prefix=prefix).checks)
	os.chmod(path, 0o711)
	found = host(NOBODY, args=[path], tool=tool, prefix=prefix, runs=False)
	assert found["format"]["state"] == "degraded" and "lost:unreadable" in found["format"]["cause"]


def test_json_alone_is_refused(runner):
	run = runner.native([TRACER, "--json", "--", "true"])
	assert run.status == 125 and len(run.stderr.splitlines()) == 1 and b"--doctor" in run.stderr


def test_full_output(runner):
	with open("/dev/full", "wb") as full:
		run = runner.native([TRACER, "--doctor"], stdout=full, env=NO_LEAKS)
	assert run.status == 125


def test_nothing_stays_behind(runner):
	run = runner.native([TRACER, *EXTRA, "--doctor"], env=NO_LEAKS)
	runner.settle(run.token, 5)


def test_documented():
	with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
		assert "--doctor" in file.read()
	page = subprocess.run([os.path.join(os.path.dirname(PROGRAMS), "..", "man-page")], check=True,
			      capture_output=True).stdout.decode()
	assert re.search(r"\\-\\-doctor", page) and re.search(r"\\-\\-json", page)
