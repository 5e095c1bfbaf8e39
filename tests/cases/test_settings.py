"""Settings: each row of launchers/environment.def does what it says, as a variable and in a file."""

import collections
import json
import os
import re
import shlex
import subprocess

import pytest

from lib.run import EXTRA, ROOT, TRACER, program
from lib.trace import read_traces

Row = collections.namedtuple("Row", "macro variable keys rest")
TABLE = os.path.join(ROOT, "launchers", "environment.def")
CAT = ["cat", "/etc/hostname"]


def rows():
	with open(TABLE, encoding="utf-8") as file:
		text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
	names = [None if name == "NULL" else name.strip('"') for name in re.findall(r'^(?:SETTING|IGNORED|REFUSED)\(([^,]+),', text, re.MULTILINE)]
	found = []
	for macro, variable, keys, rest in re.findall(
			r'^(SETTING|IGNORED|REFUSED)\((NULL|"[^"]*"), (NULL|"[^"]*"), (.*)', text, re.MULTILINE):
		found.append(Row(macro, None if variable == "NULL" else variable.strip('"'),
				 [] if keys == "NULL" else keys.strip('"').split(), rest))
	assert len(found) == len(names) > 25
	return found


ROWS = rows()
SETTINGS = {row.variable: row for row in ROWS if row.macro == "SETTING"}
REFUSED = [row for row in ROWS if row.macro == "REFUSED"]
IGNORED = [row for row in ROWS if row.macro == "IGNORED"]


def legal(row):
	"""Values that are right, and one that is not (None: all are)."""
	kind = row.rest.split(",")[0].strip()
	if kind == "BOOLEAN":
		return ["0", "1", "TRUE", "off"], "2"
	if kind == "NUMBER":
		return ["0", "1000"], "-1"
	if kind == "ANYTHING":
		return ["whatever, it is"], None
	words = kind.strip('"').split("|")
	return [*words, words[0].lower()], words[0] + "x"


def yaml(settings, section="tracer"):
	"""The file that says what the variables say."""
	lines = []
	for variable, value in settings.items():
		key = next(row for row in ROWS if row.variable == variable).keys[0]
		if key.startswith("!"):
			value = {"1": "False", "0": "True"}[value]
		elif variable in ("DFTRACER_ENABLE", "DFTRACER_INC_METADATA", "DFTRACER_SET_CORE_AFFINITY",
				  "DFTRACER_TRACE_COMPRESSION"):
			value = {"1": "True", "0": "False"}[value]
		lines.append((key.lstrip("!").replace("tracer.", section + "."), value))
	# Sections within sections, as people write them.
	tree = {}
	for key, value in lines:
		place = tree
		*sections, last = key.split(".")
		for name in sections:
			place = place.setdefault(name, {})
		place[last] = value

	def write(place, indent):
		text = ""
		for name, value in place.items():
			if isinstance(value, dict):
				text += "  " * indent + f"{name}:\n" + write(value, indent + 1)
			else:
				text += "  " * indent + f"{name}: {value}\n"
		return text

	return write(tree, 0)


class Given:
	"""Runs programs with settings that are given in one way."""

	def __init__(self, runner, way):
		self.runner, self.way = runner, way

	def __call__(self, settings, args, options=(), output=True, env=None, **more):
		env = dict(env or {})
		if self.way == "environment":
			env.update(settings)
		else:
			path = os.path.join(self.runner.fresh("config"), "settings.yaml")
			with open(path, "w", encoding="utf-8") as file:
				file.write(yaml(settings, self.way))
			env["DFTRACER_CONFIGURATION"] = path
		if output:
			return self.runner.traced(args, options, env=env, **more)
		run = self.runner.native([TRACER, *EXTRA, *options, "--", *args], env=env, **more)
		self.runner.settle(run.token)
		return run


def categories(run):
	return {event.cat for event in run.events}


def check_enable(given):
	run = given({"DFTRACER_ENABLE": "0"}, ["cat", "/proc/self/status"])
	assert run.status == 0 and not run.files and run.stderr == b"" and b"TracerPid:\t0\n" in run.stdout
	assert given({"DFTRACER_ENABLE": "1"}, CAT).files


def check_init(given):
	for word in ("FUNCTION", "function"):
		run = given({"DFTRACER_INIT": word}, CAT)
		assert run.status == 0 and len(run.traces) == 1 and not run.events
		run = given({"DFTRACER_INIT": word}, [program("hooks_shapes"), "4"], ["-x", "shape_*"])
		assert run.events and categories(run) == {"FUNC"}
	for word in ("PRELOAD", "HYBRID", "Hybrid"):
		assert {"POSIX", "STDIO"} <= categories(given({"DFTRACER_INIT": word}, CAT))


def check_log_file(given):
	out = given.runner.fresh("out")
	run = given({"DFTRACER_LOG_FILE": f"{out}/sub/t.pfw"}, CAT, output=False)
	run.prefix = f"{out}/sub/t"
	assert run.of("open", "/etc/hostname")


def check_data_dir(given):
	run = given({"DFTRACER_DATA_DIR": "/etc:/no/such"}, ["cat", "/etc/hostname", "/proc/version"])
	assert run.of("open", "/etc/hostname") and not run.of("open", "/proc/version")
	assert given({"DFTRACER_DATA_DIR": "all"}, ["cat", "/proc/version"]).of("open", "/proc/version")


def check_metadata(given):
	run = given({"DFTRACER_INC_METADATA": "0"}, CAT)
	traces = read_traces(run.prefix, metadata=False)
	assert len(traces) == 1 and len(traces[0].events) > 10 and "/etc/hostname" in traces[0].names.values()
	assert given({"DFTRACER_INC_METADATA": "1"}, CAT).of("open", "/etc/hostname")


def check_affinity(given):
	cpus = sorted(os.sched_getaffinity(0))
	for chosen in {cpus[0], cpus[-1]}:
		run = given({"DFTRACER_SET_CORE_AFFINITY": "1"}, ["taskset", "-c", str(chosen), *CAT])
		trace = next(t for t in run.traces if t.exec_name == "cat")
		assert trace.properties["core_affinity"] == str(chosen)
	assert "core_affinity" not in given({"DFTRACER_SET_CORE_AFFINITY": "0"}, CAT).trace.properties


def check_io(given):
	run = given({"DFTRACER_DISABLE_IO": "1"}, CAT)
	assert run.status == 0 and len(run.traces) == 1 and not run.events
	assert categories(given({"DFTRACER_DISABLE_IO": "0"}, CAT)) >= {"POSIX", "STDIO"}


def check_posix(given):
	run = given({"DFTRACER_DISABLE_POSIX": "1"}, CAT)
	assert categories(run) == {"STDIO"}
	assert categories(given({"DFTRACER_DISABLE_POSIX": "0"}, CAT)) >= {"POSIX", "STDIO"}


def check_stdio(given):
	run = given({"DFTRACER_DISABLE_STDIO": "1"}, CAT)
	assert categories(run) == {"POSIX"} and b"hooks" not in run.stderr
	assert categories(given({"DFTRACER_DISABLE_STDIO": "0"}, CAT)) >= {"POSIX", "STDIO"}


def check_tids(given):
	run = given({"DFTRACER_DISABLE_TIDS": "1"}, CAT)
	assert run.events and {line["tid"] for line in run.trace.meta} == {event.tid for event in run.events} == {0}
	assert 0 not in {event.tid for event in given({"DFTRACER_DISABLE_TIDS": "0"}, CAT).events}


def check_compression(given):
	assert given({"DFTRACER_TRACE_COMPRESSION": "0"}, CAT).trace.file.endswith(".pfw")
	assert given({"DFTRACER_TRACE_COMPRESSION": "1"}, CAT).trace.file.endswith(".pfw.gz")


KILLS = """
import os, re, signal, time
tracer = int(re.search(r"TracerPid:.([0-9]+)", open("/proc/self/status").read())[1])
time.sleep(0.4)
open("mark", "w").close()
time.sleep(0.12)
os.kill(tracer, signal.SIGKILL)
time.sleep(10)
"""


def check_buffer(given):
	"""With small ones a line is on disk long before the quarter of a second after which it is in any case."""
	for _ in range(3):
		run = given({"DFTRACER_WRITE_BUFFER_SIZE": "10"}, ["python3", "-c", KILLS])
		found = [event for trace in read_traces(run.prefix, whole=False) for event in trace.events
			 if event.path == run.path("mark")]
		if found:
			break
	assert found
	for value in ("0", "16777216"):
		assert given({"DFTRACER_WRITE_BUFFER_SIZE": value}, CAT).of("open", "/etc/hostname")


def check_log_level(given):
	assert b"; settings: " in given({"DFTRACER_LOG_LEVEL": "INFO"}, CAT).stderr
	for word in ("ERROR", "warn"):
		assert len(given({"DFTRACER_LOG_LEVEL": word}, CAT).stderr.splitlines()) == 1
	run = given({"DFTRACER_LOG_LEVEL": "DEBUG"}, CAT)
	assert len(run.stderr.splitlines()) > 50 and run.exit_line


def check_configuration(given):
	"""The file is what the other ways are; here that it is read, and that --config wins over the variable."""
	one, two = (os.path.join(given.runner.fresh("config"), "c.yaml") for _ in range(2))
	for path, word in ((one, "False"), (two, "True")):
		with open(path, "w", encoding="ascii") as file:
			file.write(f"tracer:\n  compression: {word}\n")
	run = given.runner.traced(CAT, env={"DFTRACER_CONFIGURATION": one})
	assert run.trace.file.endswith(".pfw")
	run = given.runner.traced(CAT, ["--config", two], env={"DFTRACER_CONFIGURATION": one})
	assert run.trace.file.endswith(".pfw.gz")


CHECKS = {
	"DFTRACER_CONFIGURATION": check_configuration,
	"DFTRACER_ENABLE": check_enable,
	"DFTRACER_INIT": check_init,
	"DFTRACER_LOG_FILE": check_log_file,
	"DFTRACER_DATA_DIR": check_data_dir,
	"DFTRACER_INC_METADATA": check_metadata,
	"DFTRACER_SET_CORE_AFFINITY": check_affinity,
	"DFTRACER_DISABLE_IO": check_io,
	"DFTRACER_DISABLE_POSIX": check_posix,
	"DFTRACER_DISABLE_STDIO": check_stdio,
	"DFTRACER_DISABLE_TIDS": check_tids,
	"DFTRACER_TRACE_COMPRESSION": check_compression,
	"DFTRACER_WRITE_BUFFER_SIZE": check_buffer,
	"DFTRACER_LOG_LEVEL": check_log_level,
}

# What DFTracer 2.2.0's library and its headers name.
LIBRARY = """AGGREGATION_FILE AGGREGATION_TYPE BIND_SIGNALS CONFIGURATION DATA_DIR DEBUG_REGION_TRACK DISABLE_IO DISABLE_POSIX
DISABLE_STDIO DISABLE_TIDS DISABLE_VARIORUM_POWER ENABLE ENABLE_AGGREGATION ENABLE_PAPI_TRACING ERROR GOTCHA_PRIORITY
INC_METADATA INIT INIT_COUNT LIBUV_THREADS LOG_FILE LOG_LEVEL PAPI_EVENTS PAPI_MULTIPLEX PAPI_SAMPLE_INTERVAL_MS
SET_CORE_AFFINITY TIME_METRIC TRACE_COMPRESSION TRACE_INTERVAL_MS WRITE_BUFFER_SIZE""".split()
KEYS = """enable tracer.init tracer.log_file tracer.data_dirs tracer.log_level tracer.time_metric tracer.compression
tracer.interval tracer.libuv_threads gotcha.priority features.metadata features.core_affinity features.interval
features.io.enable features.io.posix features.io.stdio features.tid features.papi.enable features.papi.events
features.papi.interval features.papi.multiplex features.variorum.enable features.aggregation.enable
features.aggregation.type features.aggregation.file features.aggregation.inclusion features.aggregation.exclusion
internal.bind_signals internal.throw_error internal.write_buffer_size""".split()


def test_every_setting_has_a_check():
	assert set(CHECKS) == set(SETTINGS)


def test_everything_of_the_library_is_known():
	assert {f"DFTRACER_{name}" for name in LIBRARY} <= {row.variable for row in ROWS}
	assert set(KEYS) == {key.lstrip("!") for row in ROWS for key in row.keys}


def ways(row):
	sections = ["tracer", "profiler"] if row.keys and row.keys[0].startswith("tracer.") else ["tracer"]
	return ["environment", *(sections if row.keys else [])]


@pytest.mark.parametrize("variable,way", [(variable, way) for variable in CHECKS for way in ways(SETTINGS[variable])])
def test_setting(runner, variable, way):
	CHECKS[variable](Given(runner, way))


def refused(run, *words):
	lines = run.stderr.decode().splitlines()
	assert run.status == 125 and len(lines) == 1 and lines[0].startswith("dftrace-run: "), run.stderr
	for word in words:
		assert word in lines[0], lines


@pytest.mark.parametrize("row", IGNORED, ids=lambda row: row.variable or row.keys[0])
def test_what_changes_nothing(runner, row):
	right, wrong = legal(row)
	name = row.variable and row.variable.replace("*", "X")
	path = os.path.join(runner.fresh("config"), "c.yaml")
	with open(path, "w", encoding="ascii") as file:
		file.write("\n".join(nested(key.lstrip("!"), f"'{right[-1]}'") for key in row.keys[:1]))
	run = runner.traced(CAT, ["--config", path], env={name: right[-1]} if name else None)
	assert run.status == 0 and not run.notes, run.stderr
	assert run.of("open", "/etc/hostname") and categories(run) >= {"POSIX", "STDIO"}
	for value in right:
		for key in [None, *row.keys] if name else row.keys:
			with open(path, "w", encoding="ascii") as file:
				file.write(nested(key.lstrip("!"), f"'{value}'") if key else "")
			found = dump(runner, ["--config", path], {name: value} if not key else None)
			expected = [] if "*" in (row.variable or "") else [(row.variable or row.keys[0], value)]
			assert [(item["name"], item["value"]) for item in found["ignored"]] == expected
	if wrong is None:
		return
	refused(runner.traced(CAT, env={name: wrong}), f"{name}='{wrong}'", ": give ")
	for key in row.keys:
		key = key.lstrip("!")
		with open(path, "w", encoding="ascii") as file:
			file.write("# first\n" + nested(key, wrong))
		refused(runner.traced(CAT, ["--config", path]), f"c.yaml:2: {key}: '{wrong}'", ": give ")


def nested(key, value):
	"""A key in one line: a: {b: value}."""
	*sections, last = key.split(".")
	return "".join(f"{name}: {{" for name in sections[1:]).join([f"{sections[0]}: {{", ""]) + f"{last}: {value}" + \
		"}" * len(sections) + "\n" if sections else f"{last}: {value}\n"


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.variable)
def test_what_is_refused(runner, row):
	right, wrong = legal(row)
	accepted = re.search(r'^[^,]+, "(\w+)"', row.rest)[1]
	same = {"0": ["0", "off"]}.get(accepted, [accepted, accepted.lower()])
	for value in right:
		run = runner.traced(CAT, env={row.variable: value})
		if value in same:
			assert run.status == 0 and not run.notes, run.stderr
		else:
			refused(run, f"{row.variable}='{value}'", "is refused: ", f"unset it, or give {accepted}")
	refused(runner.traced(CAT, env={row.variable: wrong}), f"{row.variable}='{wrong}'", ": give ")
	path = os.path.join(runner.fresh("config"), "c.yaml")
	with open(path, "w", encoding="ascii") as file:
		file.write(nested(row.keys[0], right[1]))
	refused(runner.traced(CAT, ["--config", path]), "c.yaml:1: " + row.keys[0], "is refused: ")


@pytest.mark.parametrize("variable,value,words", [
	("DFTRACER_INIT", "PRELOADED", ["DFTRACER_INIT='PRELOADED'", "give preload, hybrid or function"]),
	("DFTRACER_LOG_LEVEL", "TRACE", ["DFTRACER_LOG_LEVEL='TRACE'", "give error, warn, info or debug"]),
	("DFTRACER_WRITE_BUFFER_SIZE", "10k", ["DFTRACER_WRITE_BUFFER_SIZE='10k'", "not a number of bytes"]),
	("DFTRACER_LOG_FILE", "out/%x", ["DFTRACER_LOG_FILE='out/%x'", "%r (rank)"]),
	("DFTRACER_LOG_FILE", "-", ["DFTRACER_LOG_FILE='-'", "give a prefix"]),
	("DFTRACER_DISABLE_IO", "maybe", ["DFTRACER_DISABLE_IO='maybe'", "give 1 (true, yes, on) or 0 (false, no, off)"]),
	("DFTRACER_CONFIGURATION", "/no/such.yaml", ["DFTRACER_CONFIGURATION: /no/such.yaml: No such file"]),
	("DFTRACER_CONFIGURATION", "/etc", ["DFTRACER_CONFIGURATION: /etc: Is a directory"]),
	("DFTRACER_CONFIGURATION", "/bin/true", ["DFTRACER_CONFIGURATION: /bin/true: no YAML"]),
])
def test_wrong_value(runner, variable, value, words):
	run = runner.native([TRACER, *EXTRA, "--", "true"], env={variable: value})
	refused(run, *words)
	assert run.stdout == b"" and not os.listdir(run.cwd)


def test_no_cost_when_not_enabled(runner):
	"""DFTRACER_ENABLE=0: whatever else is wrong."""
	run = runner.native([TRACER, "--", "echo", "ran"], env={
		"DFTRACER_ENABLE": "0", "DFTRACER_INIT": "x", "DFTRACER_CONFIGURATION": "/no/such", "DFTRACER_FOO": "1"})
	assert run.status == 0 and run.stdout == b"ran\n" and run.stderr == b"" and not os.listdir(run.cwd)


def test_option_variable_key_default(runner):
	"""An option beats a variable, which beats a key, which beats the default."""
	path = os.path.join(runner.fresh("config"), "c.yaml")
	with open(path, "w", encoding="ascii") as file:
		file.write("tracer: {data_dirs: [/etc, /usr], log_level: info, compression: no}\n")
	env = {"DFTRACER_CONFIGURATION": path, "DFTRACER_TRACE_COMPRESSION": "1"}
	command = ["cat", "/etc/hostname", "/proc/version"]
	run = runner.traced(command, ["-d", "/proc"], env=env)
	assert run.of("open", "/proc/version") and not run.of("open", "/etc/hostname")
	assert run.trace.file.endswith(".gz") and b"data-dir: command line" in run.stderr
	assert f"log-level: {path}:1".encode() in run.stderr
	run = runner.traced(command, env={**env, "DFTRACER_DATA_DIR": "/proc"})
	assert run.of("open", "/proc/version") and not run.of("open", "/etc/hostname")
	run = runner.traced(command, env=env)
	assert run.of("open", "/etc/hostname") and not run.of("open", "/proc/version")


UPSTREAM = """\
# contents of conf.yaml

enable: True        # Enable DFTracer (default False).
profiler:
  init: PRELOAD
  log_file: {out}/trace
  data_dirs: all
  log_level: ERROR
  compression: True
  libuv_threads: 1
  time_metric: US
gotcha:
  priority: 1
features:
  metadata: True
  core_affinity: True
  io:
    enable: True
    posix: True
    stdio: True
  tid: True
  papi: {{enable: False, events: [PAPI_TOT_CYC, PAPI_TOT_INS], interval: 10, multiplex: no}}
  aggregation:
    enable: False
    type: FULL
    inclusion:
      - "cat == 'posix'"
    exclusion: []
internal:
  bind_signals: False
  throw_error: False
  write_buffer_size: 16777216
"""


def test_a_file_for_the_library(runner):
	"""A file with all of the library's keys is taken without a word."""
	out = runner.fresh("out")
	path = os.path.join(runner.fresh("config"), "conf.yaml")
	with open(path, "w", encoding="ascii") as file:
		file.write(UPSTREAM.format(out=out))
	run = runner.native([TRACER, *EXTRA, "--", *CAT], env={"DFTRACER_CONFIGURATION": path})
	runner.settle(run.token)
	run.prefix = f"{out}/trace"
	assert run.status == 0 and not run.notes, run.stderr
	assert categories(run) >= {"POSIX", "STDIO"} and "core_affinity" in run.trace.properties


def test_unknown_names_are_said_by_one_rank(runner):
	path = os.path.join(runner.fresh("config"), "c.yaml")
	with open(path, "w", encoding="ascii") as file:
		file.write("features: {metadta: 1}\n")
	env = {"DFTRACER_LOGFILE": "x", "DFTRACER_CONFIGURATION": path, "DFTRACER_UTILS_THREADS": "4"}
	run = runner.traced(CAT, env={**env, "PMI_RANK": "0", "PMI_SIZE": "4"})
	assert sorted(run.notes) == [
		"dftrace-run: 'DFTRACER_LOGFILE' in the environment is no setting of DFTracer; did you mean DFTRACER_LOG_FILE?",
		f"dftrace-run: {path}:1: 'features.metadta' is no setting of DFTracer; did you mean features.metadata?"]
	assert not runner.traced(CAT, env={**env, "PMI_RANK": "3", "PMI_SIZE": "4"}).notes


def dump(runner, options=(), env=None, cwd=None):
	run = runner.native([TRACER, "--dump-config", "--json", *options], env=env, cwd=cwd)
	assert run.status == 0, run.stderr
	return json.loads(run.stdout)


def test_dump_config(runner):
	cwd = runner.fresh("cwd")
	with open(os.path.join(cwd, "c.yaml"), "w", encoding="ascii") as file:
		file.write("tracer:\n  log_file: y\n  init: FUNCTION\ngotcha: {priority: 3}\nfeatures:\n  metadata: False\n")
	env = {"DFTRACER_CONFIGURATION": "c.yaml", "DFTRACER_INIT": "PRELOAD", "DFTRACER_DATA_DIR": "/etc:rel",
	       "DFTRACER_LIBUV_THREADS": "4", "PMI_RANK": "7"}
	found = dump(runner, ["-e", "!open", "-e", "+%ipc", "--format", "v2"], env, cwd)
	default = {"value": False, "source": "default"}
	assert found["output"] == {"value": f"{cwd}/y", "source": "c.yaml:2"}
	assert found["init"] == {"value": "PRELOAD", "source": "DFTRACER_INIT"}
	assert found["data-dir"] == {"value": ["/etc", f"{cwd}/rel"], "source": "DFTRACER_DATA_DIR"}
	assert found["trace"] == {"value": ["!open", "+%ipc"], "source": "command line, command line"}
	assert found["no-metadata"] == {"value": True, "source": "c.yaml:6"}
	assert found["format"] == {"value": "v2", "source": "command line"}
	assert found["rank"]["value"] == "7" and found["rank"]["source"].startswith("launcher: ")
	assert found["config"] == {"value": "c.yaml", "source": "DFTRACER_CONFIGURATION"}
	assert found["no-stdio"] == found["summary"] == found["quiet"] == default
	assert found["paths"] == {"value": "absolute", "source": "default"}
	assert found["max-hooks"]["value"] == "4096" and found["buffer-size"]["value"] == "0"
	assert found["exclude"] == {"value": [], "source": "default"} and found["stage"]["value"] is None
	assert re.match(r"%data %desc\(\d+ of \d+\) %meta %process %ipc stdio mpi hdf5 app$", found["recorded"])
	assert {(item["name"], item["value"], item["source"]) for item in found["ignored"]} == {
		("DFTRACER_LIBUV_THREADS", "4", "DFTRACER_LIBUV_THREADS"), ("DFTRACER_GOTCHA_PRIORITY", "3", "c.yaml:4")}
	text = runner.native([TRACER, "--dump-config"], env=env, cwd=cwd).stdout.decode()
	assert re.search(rf"^output +{cwd}/y +c\.yaml:2$", text, re.MULTILINE)
	assert re.search(r"^DFTRACER_GOTCHA_PRIORITY=3 \(c\.yaml:4\) changes nothing: ", text, re.MULTILINE)


def test_dump_config_names_every_option(runner):
	help_text = runner.native([TRACER, "--help"]).stdout.decode()
	options = set(re.findall(r"--([a-z][a-z-]+)(?:[ [=]|$)", "\n".join(
		line[:30] for line in help_text.splitlines() if re.match(r"  (-\w,|   ) --", line)), re.MULTILINE))
	found = set(dump(runner)) - {"recorded", "ignored"}
	assert len(found) > 30
	assert options - found == {"doctor", "print-command", "dump-config", "list-hooks", "help", "version"}
	assert found <= options


def test_help_tells_the_defaults_that_are(runner):
	"""A default as an option says the same as none: the help, which --dump-config repeats, is right."""
	plain = dump(runner)
	for name, setting in plain.items():
		if name in ("recorded", "ignored", "output") or not isinstance(setting["value"], (str, list)) or not setting["value"]:
			continue
		values = setting["value"] if isinstance(setting["value"], list) else [setting["value"]]
		again = dump(runner, [word for value in values for word in (f"--{name}", value)])
		assert again["recorded"] == plain["recorded"] and again[name]["source"] == "command line", name
		assert again[name]["value"] == setting["value"], name


def test_print_command_has_what_the_file_says(runner):
	cwd, out = runner.fresh("cwd"), runner.fresh("out")
	path = os.path.join(runner.fresh("config"), "c.yaml")
	with open(path, "w", encoding="ascii") as file:
		file.write(f"tracer: {{log_file: {out}/t, init: function}}\nfeatures: {{metadata: no, tid: false}}\n")
	run = runner.native([TRACER, "--print-command", "--config", path, "-e", "+posix", "--summary-file", "s.txt", "--", *CAT],
			    cwd=cwd, env={"DFTRACER_TRACE_COMPRESSION": "0"})
	line = run.stdout.decode()
	words = shlex.split(line)
	assert "--config" not in words and f"{cwd}/s.txt" in words
	for word in ("--init", "--no-metadata", "--no-tids", "--no-compress"):
		assert word in words
	again = runner.native(["sh", "-c", line])
	runner.settle(again.token)
	traces = read_traces(f"{out}/t", metadata=False)
	assert {event.cat for event in traces[0].events} == {"POSIX"} and traces[0].file.endswith(".pfw")
	assert os.path.exists(os.path.join(cwd, "s.txt"))


def test_settings_reach_a_static_build(runner):
	"""The file is read there as well: the library for it is in the one file."""
	static = os.path.join(ROOT, "build", "static", "dftrace-run")
	if not os.path.exists(static):
		pytest.skip("make static")
	path = os.path.join(runner.fresh("config"), "c.yaml")
	with open(path, "w", encoding="ascii") as file:
		file.write("tracer: {compression: no}\n")
	done = subprocess.run([static, "--config", path, "--dump-config", "--json"], check=True, capture_output=True)
	assert json.loads(done.stdout)["no-compress"] == {"value": True, "source": f"{path}:1"}
