"""The documents say what is so: options, variables, counts and links that they name exist, and their commands run."""

import os
import re
import subprocess

import pytest

from lib.run import BUILD, PATIENCE, ROOT, program

DOCUMENTS = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "NEWS.md", "examples/jobs/README.md",
	     *(f"docs/{name}" for name in sorted(os.listdir(os.path.join(ROOT, "docs"))) if name.endswith(".md"))]


def read(name):
	with open(os.path.join(ROOT, name), encoding="utf-8") as file:
		return file.read()


def options(*tables):
	found = set()
	for table in tables:
		for name, letter in re.findall(r'^OPTION\(\w+, (?:"([\w-]+)"|NULL), (?:\'(\w)\'|0)', read(table), re.MULTILINE):
			found |= {f"--{name}"} if name else set()
			found |= {f"-{letter}"} if letter else set()
	return found


TABLES = {"dftrace-run": options("launchers/options.def"), "dftrace-check": options("check/options.def")}


def test_the_tables_are_understood():
	assert {"--data-dir", "-d", "-x", "-f", "--no-stdio"} <= TABLES["dftrace-run"]
	assert {"--repair", "-o", "--json"} <= TABLES["dftrace-check"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_options_exist(name):
	"""Those of our programs' command lines, up to the program that is traced."""
	for tool, known in TABLES.items():
		for words in re.findall(rf"{tool}((?: +[^\n`|#()]*)?)", read(name)):
			words = re.split(r" -- |[;&<>…]| # ", words)[0]
			for option in re.findall(r"(?<=\s)(--?[a-zA-Z][\w-]*)", words):
				assert option in known, (tool, words, option)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_words_of_options_exist(name):
	"""Options that stand alone are one of ours, or in the column of another tool."""
	known = set.union(*TABLES.values())
	text = re.sub(r"^\|[^|]*\|", "|", read(name), flags=re.MULTILINE) if name == "docs/migrating.md" else read(name)
	for option in re.findall(r"`(--[a-z][\w-]+)", text):
		assert option in known | {"--cap-add"} or name == "README.md" and option == "--pid", (name, option)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name):
	for target in re.findall(r"\]\(([^)#]+)[^)]*\)", read(name)):
		if "://" not in target:
			path = os.path.join(ROOT, os.path.dirname(name), target)
			assert os.path.exists(path), (name, target)


def test_losses_are_described():
	"""Each count that the tracer can write has a row in docs/format.md and, where it is loss, in the README."""
	source = read("tracer/lost.c")
	lost, skipped = (re.findall(r'= "([\w:]+)"', source[source.index(start):source.index("};", source.index(start))])
			 for start in ("lost_names[", "skipped_names["))
	assert len(lost) >= 15 and len(skipped) >= 7
	for word in lost:
		for document in ("docs/format.md", "README.md"):
			assert f"`lost:{word}`" in read(document), (document, word)
	for word in skipped:
		assert f"`{word}`" in read("docs/format.md"), word


def test_the_readme_names_each_document():
	for name in DOCUMENTS:
		if name.startswith("docs/"):
			assert f"]({name})" in read("README.md"), name


def blocks():
	for name in DOCUMENTS:
		for number, block in enumerate(re.findall(r"^```sh\n(.*?)^```", read(name), re.MULTILINE | re.DOTALL)):
			yield pytest.param(block, id=f"{os.path.basename(name)}-{number}")


@pytest.mark.parametrize("block", list(blocks()))
def test_commands_run(runner, block):
	"""Blocks of commands are run as they stand, where there is a program ./app."""
	where = runner.fresh("block")
	os.symlink(program("everycall"), os.path.join(where, "app"))
	env = {**runner.environment(runner.token(), None), "PATH": f"{BUILD}:/usr/local/bin:/usr/bin:/bin"}
	done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=where, env=env, capture_output=True, check=False,
			      timeout=60 * PATIENCE)
	assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
	assert done.stdout
