"""Both ends of pipes, sockets and terminals, loops to run them on, and what was seen and told there."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from stanchion.transports.pipes import Reader, Writer, open_reader, open_writer

MIB = 1024 * 1024
Main = Callable[[], Awaitable[None]]

posix = pytest.mark.skipif(sys.platform == "win32", reason="descriptors as POSIX has them")


def open_fds() -> set[str]:
    return {path.name for path in Path("/dev/fd").iterdir()}


def on_asyncio(main: Main) -> None:
    _run(main, None, debug=True)


def on_uvloop(main: Main) -> None:
    _run(main, pytest.importorskip("uvloop").new_event_loop, debug=False)


def _run(main: Main, factory: Any, *, debug: bool) -> None:
    """Run *main*; nothing may be left of it."""
    with asyncio.Runner(loop_factory=factory) as first:
        first.run(asyncio.sleep(0))  # uvloop's first loop opens what stays open
    before = open_fds(), set(threading.enumerate())
    with asyncio.Runner(loop_factory=factory, debug=debug) as loop:
        loop.run(asyncio.wait_for(main(), 30))
    assert (open_fds(), set(threading.enumerate())) == before


each_loop = pytest.mark.parametrize("run", [on_asyncio, on_uvloop])


class Seen:
    """What a reader handed over."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.pieces = 0
        self.ends = 0
        self.changed = asyncio.Event()

    def on_data(self, data: bytes) -> None:
        self.data += data
        self.pieces += 1
        self.changed.set()

    def on_end(self) -> None:
        self.ends += 1
        self.changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.changed.clear()
            await self.changed.wait()

    def reader(self, fd: int) -> Reader:
        return open_reader(fd, self.on_data, self.on_end)


class Told:
    """What a writer told."""

    def __init__(self) -> None:
        self.broken = 0
        self.drained = 0

    def on_broken(self) -> None:
        self.broken += 1

    def on_drained(self) -> None:
        self.drained += 1

    def writer(self, fd: int) -> Writer:
        return open_writer(fd, self.on_broken, self.on_drained)


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    with closing(*ends):
        yield ends


@contextmanager
def pair() -> Iterator[tuple[int, int]]:
    ends = [end.detach() for end in socket.socketpair()]
    with closing(*ends):
        yield ends[0], ends[1]


@contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    import tty

    master, slave = os.openpty()
    with closing(master, slave):
        tty.setraw(slave)
        yield slave, master


@contextmanager
def closing(*fds: int) -> Iterator[None]:
    try:
        yield
    finally:
        for fd in fds:
            with suppress(OSError):
                os.close(fd)


KINDS = [pipe, pair, terminal]
each_kind = pytest.mark.parametrize("kind", KINDS)


def read_slowly(fd: int, into: bytearray, size: int) -> threading.Thread:
    def body() -> None:
        time.sleep(0.1)
        while len(into) < size and (data := os.read(fd, 65536)):
            into.extend(data)
            if len(into) < MIB:
                time.sleep(0.002)

    thread = threading.Thread(target=body)
    thread.start()
    return thread
