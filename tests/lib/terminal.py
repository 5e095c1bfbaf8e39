"""A terminal with a program on it, as a person would have it."""

import contextlib
import os
import pty
import select
import signal
import time

from .run import PATIENCE


class Terminal:
	"""Starts `args` as the leader of a session whose terminal is ours to type on."""

	def __init__(self, args, cwd, env):
		self.cwd = cwd
		self.pid, self.fd = pty.fork()
		if self.pid == 0:
			try:
				os.chdir(cwd)
				os.execvpe(args[0], args, env)
			finally:
				os._exit(99)
		self.seen = b""
		self.at = 0
		self.status = None

	def type(self, text):
		os.write(self.fd, text.encode())

	def _more(self, seconds):
		ready, _, _ = select.select([self.fd], [], [], seconds)
		if not ready:
			return True
		try:
			chunk = os.read(self.fd, 65536)
		except OSError:  # EIO: nobody has the other side open any more
			return False
		self.seen += chunk
		return bool(chunk)

	def expect(self, text, seconds=20):
		"""Reads until `text` has come, behind what was expected before."""
		deadline = time.monotonic() + seconds * PATIENCE
		while True:
			found = self.seen.find(text.encode(), self.at)
			if found >= 0:
				self.at = found + len(text)
				return
			if time.monotonic() > deadline or not self._more(0.2):
				rest = self.seen[self.at:].decode("utf-8", "replace")
				raise AssertionError(f"no {text!r} in {rest!r}")

	def finish(self, seconds=20):
		"""Reads to the end and returns the wait status."""
		deadline = time.monotonic() + seconds * PATIENCE
		while self.status is None:
			pid, status = os.waitpid(self.pid, os.WNOHANG)
			if pid:
				self.status = status
			elif time.monotonic() > deadline:
				raise AssertionError(f"it does not end: {self.seen[-500:]!r}")
			else:
				self._more(0.02)
		while self._more(0.05) and time.monotonic() < deadline and self._pending():
			pass
		return os.waitstatus_to_exitcode(self.status)

	def _pending(self):
		return bool(select.select([self.fd], [], [], 0.05)[0])

	def hang_up(self):
		"""Takes the terminal away."""
		os.close(self.fd)
		self.fd = None

	def close(self):
		if self.fd is not None:
			self.hang_up()
		if self.status is None:
			with contextlib.suppress(OSError):
				os.kill(self.pid, signal.SIGKILL)
				os.waitpid(self.pid, 0)
