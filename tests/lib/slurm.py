"""A real Slurm on this host, for one session of tests."""

import os
import shutil
import subprocess
import tempfile

import pytest

from .run import ROOT

SCRIPT = os.path.join(ROOT, "tests", "lib", "slurm-one-host")


class Cluster:
	"""munged, slurmctld and slurmd in a directory of their own."""

	def __init__(self):
		self.directory = tempfile.mkdtemp(prefix="slurm-")
		os.chmod(self.directory, 0o755)
		done = subprocess.run([SCRIPT, "start", self.directory], check=False, capture_output=True, timeout=120,
				      env={**os.environ, "SLURM_ONE_HOST_CPUS": "8", "SLURM_ONE_HOST_KILLWAIT": "2"})
		if done.returncode:
			shutil.rmtree(self.directory)
			reason = done.stderr.decode().strip().splitlines()
			# Nothing to test with is no failure; a Slurm that does not start is.
			if done.returncode == 77:
				pytest.skip(reason[0])
			raise AssertionError(done.stderr.decode())
		self.environment = {"SLURM_CONF": os.path.join(self.directory, "slurm.conf")}

	def run(self, *args, **more):
		"""Runs one of Slurm's commands."""
		return subprocess.run(args, check=True, capture_output=True, text=True, timeout=60,
				      env={**os.environ, **self.environment}, **more).stdout

	def jobs(self):
		return self.run("squeue", "-h", "-o", "%A").split()

	def stop(self):
		subprocess.run([SCRIPT, "stop", self.directory], check=False, capture_output=True, timeout=120)
		shutil.rmtree(self.directory, ignore_errors=True)
