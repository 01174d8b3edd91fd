"""A server process on pipes, driven as rough clients do: slow to read, cut off, signalled, measured."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Final, Self

import psutil

from tests.cases.transcript import Line, Transcript, parse

ROOT: Final = Path(__file__).parents[2]
WRITE_LIMIT: Final = 60.0
"""Seconds that a write may wait for a server that has stopped reading."""


class ServerProcess:
    """One server, started in a process group of its own and killed with it on leaving."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self.transcript = Transcript()
        self.peak_rss = 0.0
        """The most memory seen, in MB."""

        self.cpu = 0.0
        """Seconds of processor time seen so far."""

        self._files = ExitStack()
        self._stderr = self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - closed with the rest
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**os.environ, **env},
            cwd=ROOT,
            bufsize=0,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        self._wake_reader, self._wake = os.pipe()
        self._files.callback(os.close, self._wake)
        self._files.callback(os.close, self._wake_reader)
        self._paused_until = 0.0
        self._hang_up = False
        self._stopping = Event()
        self._threads = [Thread(target=self._read, daemon=True), Thread(target=self._measure, daemon=True)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._stopping.set()
        self.close_stdout()
        for thread in self._threads:
            thread.join()
        self.close_stdin()
        self._files.close()

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def stderr(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode("utf-8", "replace")

    def write(self, data: bytes) -> None:
        """Write all of *data*; a server that is gone takes nothing, as with a client that does not look.

        Raises:
            TimeoutError: The server has read nothing for ``WRITE_LIMIT`` seconds.
        """
        if self._stdin.closed:
            return
        view = memoryview(data)
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdin, selectors.EVENT_WRITE)
            while view:
                if not selector.select(WRITE_LIMIT):
                    msg = "the server stopped reading its stdin"
                    raise TimeoutError(msg)
                try:
                    view = view[os.write(self._stdin.fileno(), view) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError:
                    return

    def close_stdin(self) -> None:
        self._stdin.close()

    def close_stdout(self) -> None:
        """Stop reading for good and close the pipe, as a client that has died."""
        if not self._hang_up:
            self._hang_up = True
            os.write(self._wake, b"x")
            self._threads[0].join()

    def pause_reading(self, seconds: float) -> None:
        self._paused_until = time.monotonic() + seconds
        os.write(self._wake, b"x")

    def signal(self, name: str) -> None:
        self._process.send_signal(signal.Signals[name])

    def wait_exit(self, seconds: float) -> bool:
        """Wait for the process to end; return whether it did."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0.0, seconds))
            return True
        return False

    def _read(self) -> None:
        """Cut stdout into lines until it ends or we hang up. The pipe is closed here, where nobody else reads it."""
        pending = bytearray()
        with self._stdout, selectors.DefaultSelector() as selector:
            selector.register(self._wake_reader, selectors.EVENT_READ)
            selector.register(self._stdout, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select()}
                if self._wake_reader in ready:
                    os.read(self._wake_reader, 64)
                if self._hang_up:
                    break
                while not self._stopping.is_set() and (rest := self._paused_until - time.monotonic()) > 0:
                    self._stopping.wait(rest)
                if self._stdout.fileno() not in ready:
                    continue
                data = os.read(self._stdout.fileno(), 1 << 16)
                if not data:
                    break
                self._add_lines(pending, data)
        self.transcript.end()

    def _add_lines(self, pending: bytearray, data: bytes) -> None:
        now = time.monotonic()
        head, newline, tail = data.rpartition(b"\n")
        if not newline:
            pending += data
            return
        for raw in (bytes(pending) + head).split(b"\n"):
            self.transcript.add(Line(now, raw, parse(raw)))
        pending[:] = tail

    def _measure(self) -> None:
        """Sample memory and processor time until the process ends; what it used in the last 50 ms is not seen."""
        with suppress(psutil.Error):
            process = psutil.Process(self._process.pid)
            while not self._stopping.wait(0.05):
                with process.oneshot():
                    self.peak_rss = max(self.peak_rss, process.memory_info().rss / 1e6)
                    times = process.cpu_times()
                self.cpu = max(self.cpu, times.user + times.system)
