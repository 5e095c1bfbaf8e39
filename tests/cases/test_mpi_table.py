"""MPI's table of functions against the headers of the libraries that are here: names, and each argument's size."""

import os
import re
import subprocess

import pytest

from lib.run import ROOT, TRACER

TABLE = os.path.join(ROOT, "symbols", "hooks", "mpi.def")
# Bytes of a unit: more than 4 GB are not written right.
ALLOWED = {f"MPI_Win_{what}_c": ((4, 8),) for what in ("allocate", "allocate_shared", "create")}
# By value in C, and how many bytes of a register count; what is no scalar is an address.
SIZES = {"INT": 4, "RANK": 4, "LONG": 8, "OFFSET": 8, "TYPE": 8, "COMM": 8, "FILE": 8, "HANDLE": 8, "TEXT": 8, "PATH": 8,
	 "POINTER": 8, "BUFFER": 8, "C_ONLY": 8, "COUNTS": 8, "TYPES": 8}
GROUPS = {"init", "file", "p2p", "collective", "neighbour", "rma", "comm", "group", "topo", "datatype", "info", "tool"}
# Given to other functions, not called.
CALLBACKS = re.compile(r"MPI_(DUP_FN|\w+_(DUP|NULL_COPY|NULL_DELETE|NULL)_FN|CONVERSION_FN_NULL\w*)\Z")


def rows():
	with open(TABLE, encoding="utf-8") as file:
		text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
	found = {}
	for match in re.finditer(r"^(CALL|CALL_C)\((\w+), (\w+), (\w+), (\w+), (\w+), ARGS\((.*)\)\)$", text, re.MULTILINE):
		large, name, group, _, _, _, args = match.groups()
		assert group in GROUPS, match[0]
		kinds = re.findall(r"(\w+)\(\w+\)", args)
		assert kinds or args == "NONE", match[0]
		assert name not in found, f"{name} twice"
		found[name] = [4 if kind == "COUNT" else SIZES[kind] for kind in kinds]
		if large == "CALL_C":
			found[name + "_c"] = [8 if kind == "COUNT" else SIZES[kind] for kind in kinds]
	assert len(found) == len(re.findall(r"^CALL", text, re.MULTILINE)) + len(re.findall(r"^CALL_C", text, re.MULTILINE))
	return found


def size(text):
	"""The bytes of a parameter: integers are 4, everything else an address, a handle or a long one."""
	if "*" in text or "[" in text:
		return 8
	words = text.replace("const", "").split()
	return 4 if words[0] in ("int", "MPI_Fint", "enum") or re.match(r"MPI_T_(?!\w*(?:handle|session|instance))\w+", words[0]) else 8


def prototypes(mpi):
	source = subprocess.run([f"mpicc.{mpi}", "-E", "-P", "-include", "mpi.h", "-x", "c", "/dev/null"], check=True,
				capture_output=True, text=True).stdout
	source = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", source)
	found = {}
	for name, args in re.findall(r"\b(MPI_\w+)\s*\(([^;{}]*?)\)\s*;", source):
		if name.endswith(("_function", "_fn", "_function_c", "_Aint")) or CALLBACKS.match(name):
			continue
		args = [arg.strip() for arg in args.split(",")]
		found[name] = [size(arg) for arg in args if arg not in ("void", "", "...")]
	assert len(found) > 350
	return found


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_table_has_every_function(mpi):
	table, header = rows(), prototypes(mpi)
	assert not sorted(set(header) - set(table))
	# In MPICH handles are ints; in a register nobody can tell.
	wrong = {name: (table[name], args) for name, args in header.items() if len(args) != len(table[name])}
	assert not wrong
	for name, args in header.items():
		for ours, theirs in zip(table[name], args):
			# The upper half of an int's register is nothing that one may read, that of a long one is.
			assert ours == theirs or (ours, theirs) in ALLOWED.get(name, ()), (name, table[name], args)




def listed(*options):
	"""What --list-hooks says of each function: recorded, needed or off."""
	out = subprocess.run([TRACER, *options, "--list-hooks"], check=True, capture_output=True, text=True).stdout
	return {line.split()[2]: line.split()[0] for line in out.splitlines()}


def recorded(*options):
	return {name for name, state in listed(*options).items() if state == "recorded" and name.startswith("MPI_")}


def test_items_choose_groups():
	default = recorded()
	assert {"MPI_Init", "MPI_Finalize", "MPI_File_iwrite_at_all_c"} <= default
	assert not default & {"MPI_Send", "MPI_Bcast", "MPI_Comm_rank", "MPI_Wtime"}
	assert recorded("-e", "mpi") == default and not recorded("-e", "posix")
	assert not recorded("-e", "!mpi") and recorded("-e", "!mpi:file") < default
	both = recorded("-e", "+mpi:p2p,+mpi:collective")
	assert both > default and {"MPI_Isend", "MPI_Wait", "MPI_Ibcast"} <= both
	assert not both & {"MPI_Iprobe", "MPI_Test", "MPI_Put"}
	assert recorded("-e", "+MPI_Iprobe") == default | {"MPI_Iprobe"}
	everything = recorded("-e", "mpi:all")
	assert len(everything) == len(rows()) and recorded("-e", "mpi:all,!mpi:tool") < everything


def test_only_what_is_needed_is_hooked():
	needed = {name for name, state in listed("-e", "mpi").items() if state == "needed"}
	assert {"MPI_Type_vector", "MPI_Type_free"} <= needed
	# Communicators are for messages only, but for the rank of the process, which is for all.
	assert "MPI_Comm_split" not in needed and listed("-e", "mpi:p2p")["MPI_Comm_remote_size"] == "needed"
	assert {name for name, state in listed("-e", "MPI_Init").items() if state == "needed"} == \
		{"MPI_Comm_rank", "MPI_Comm_size"}
	assert set(listed("-e", "posix").values()) == {"off"}


def test_unknown_group_is_refused():
	done = subprocess.run([TRACER, "-e", "mpi:nothing", "--list-hooks"], check=False, capture_output=True, text=True)
	assert done.returncode == 125 and "'mpi:nothing'" in done.stderr and "--list-hooks" in done.stderr
