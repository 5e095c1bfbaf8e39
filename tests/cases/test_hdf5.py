"""HDF5: what programs say of their calls is what the trace has."""

import os

import pytest

from lib.hdf5 import above, build, declared, hdf5, kind_of, lost, same_calls, table
from lib.run import same_outside

FORMS = ("serial.dynamic", "serial.static", "mpich.dynamic", "openmpi.dynamic")
MODULES = ("H5", "H5A", "H5D", "H5E", "H5F", "H5G", "H5I", "H5L", "H5O", "H5P", "H5PL", "H5R", "H5S", "H5T", "H5Z")


def module_of(name):
	return max((one for one in MODULES if name.startswith(one) and name[len(one):len(one) + 1].islower()),
		   key=len, default=None)


@pytest.mark.parametrize("flavour", ["serial", "mpich"])
def test_table_has_what_headers_declare(flavour):
	rows = table()
	functions = {name: what for name, what in declared(flavour).items() if module_of(name)}
	assert len(functions) > 500
	assert not set(functions) - set(rows)
	for name, (result, parameters) in functions.items():
		row = rows[name]
		parameters = [one for one in parameters if one != "..."]
		assert row.group == module_of(name)
		assert len(row.args) == len(parameters), name
		for (kind, word), parameter in zip(row.args, parameters):
			assert kind in kind_of(parameter), (name, word, parameter)
		expected = "R_POINTER" if "*" in result else "R_NONE" if result == "void" else \
			"R_LONG" if result in ("hid_t", "hssize_t", "ssize_t", "size_t", "hsize_t", "haddr_t") else "R_INT"
		assert row.result == expected, name


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("part", ["types", "selections", "chunks", "names", "lives"])
def test_calls(both, form, part):
	program = build("hdf5_calls.c", form)
	native, run = both.native([program, part]), both.traced([program, part])
	assert native.status == 0, native.stderr
	same_outside(native, run, files=False)
	same_calls(run)
	# What the program marks as unknown is counted.
	unknown = sum(event.name.startswith(("H5Dread", "H5Dwrite", "H5Aread", "H5Awrite")) and "size_sum" not in event.args
		      for event in hdf5(run))
	assert lost(run).get("unsized:hdf5", 0) == unknown
	assert "unnamed:hdf5" not in lost(run)
