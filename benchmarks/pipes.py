"""A driver that costs little: requests are encoded before the clock starts, answers are counted by their newlines.

An answer is looked into only for the bytes ``"isError":true`` or ``"error":``: such a call counts as failed, so that a
server which refuses quickly does not look fast. Writing and reading never block each other: the window bounds what is
under way to far less than a pipe holds.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import psutil

if TYPE_CHECKING:
    from types import TracebackType

    from benchmarks.subjects import Subject

FAILED: Final = re.compile(rb'"isError": ?true|"error": ?\{')
LIMIT: Final = 60.0
"""Seconds without a byte before a server is given up."""

TEXT: Final = "x" * 32


class StalledError(RuntimeError):
    """The server went away or sent nothing for ``LIMIT`` seconds."""


@dataclass(frozen=True, slots=True)
class Burst:
    """What a number of calls took."""

    calls: int
    failed: int
    seconds: float
    cpu: float
    """Seconds of processor time of the server, its children not included."""

    latencies: list[float]
    """Seconds of each call, sorted; only measured one call at a time."""


class Peer:
    """A server on pipes, initialised and ready to be called."""

    def __init__(self, subject: Subject) -> None:
        self._process = subprocess.Popen(
            subject.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._in, self._out = self._stdin.fileno(), self._stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._tool = subject.tool
        self._next_id = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stdout.close()

    def initialize(self) -> None:
        """Shake hands."""
        params = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "0"},
        }
        request = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        os.write(self._in, json.dumps(request).encode() + b"\n")
        self._read_lines(1)
        os.write(self._in, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def one_by_one(self, calls: int) -> Burst:
        """Make *calls* calls, each after the answer to the one before; every one is timed."""
        lines = self._encode(calls)
        latencies = []
        failed = 0
        cpu = self._cpu()
        start = before = time.perf_counter()
        for line in lines:
            os.write(self._in, line)
            data = self._read_lines(1)
            now = time.perf_counter()
            latencies.append(now - before)
            failed += len(FAILED.findall(data))
            before = now
        return Burst(calls, failed, before - start, self._cpu() - cpu, sorted(latencies))

    def windowed(self, calls: int, window: int) -> Burst:
        """Make *calls* calls, *window* of them outstanding at any time."""
        lines = self._encode(calls)
        chunks = []
        cpu = self._cpu()
        start = time.perf_counter()
        os.write(self._in, b"".join(lines[:window]))
        sent, answered = window, 0
        while answered < calls:
            data = self._read()
            chunks.append(data)
            count = data.count(b"\n")
            answered += count
            if count and sent < calls:
                os.write(self._in, b"".join(lines[sent : sent + count]))
                sent += count
        seconds = time.perf_counter() - start
        cpu = self._cpu() - cpu
        return Burst(calls, len(FAILED.findall(b"".join(chunks))), seconds, cpu, [])

    def rss(self) -> float:
        """Memory of the server process, in MB."""
        return float(psutil.Process(self._process.pid).memory_info().rss) / 1e6

    def _encode(self, calls: int) -> list[bytes]:
        """Requests with ids never used before."""
        first, self._next_id = self._next_id, self._next_id + calls
        head = b'{"jsonrpc":"2.0","id":'
        params = json.dumps({"name": self._tool, "arguments": {"text": TEXT}}).encode()
        tail = b',"method":"tools/call","params":' + params + b"}\n"
        return [head + str(id_).encode() + tail for id_ in range(first, first + calls)]

    def _cpu(self) -> float:
        times = psutil.Process(self._process.pid).cpu_times()
        return float(times.user + times.system)

    def _read_lines(self, count: int) -> bytes:
        data = self._read()
        while data.count(b"\n") < count:
            data += self._read()
        return data

    def _read(self) -> bytes:
        if not self._poll.poll(LIMIT * 1000):
            msg = f"nothing came for {LIMIT} s"
            raise StalledError(msg)
        data = os.read(self._out, 1 << 16)
        if not data:
            msg = f"the server ended with exit code {self._process.wait()}"
            raise StalledError(msg)
        return data
