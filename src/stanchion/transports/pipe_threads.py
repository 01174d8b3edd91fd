"""The ends of a pipe for descriptors that no loop can watch: a thread blocks, the loop does not.

Owns one thread for each end, and how it stops. On POSIX a thread waits for its descriptor and for a wake-up together,
so that ``close`` leaves none behind; elsewhere one may stay in a read until that ends, and is a daemon for this.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_READ_BYTES: Final = 256 * 1024
_WRITE_BYTES: Final = 256 * 1024
_JOIN_SECONDS: Final = 0.2
"""Longest wait for a thread at close; one that is stuck in the system ends when that lets go of it."""


class _Bell:
    """Wakes a thread that waits for a descriptor."""

    def __init__(self) -> None:
        self._ends = os.pipe() if sys.platform != "win32" else None

    def wait(self, fd: int) -> None:
        """Return when *fd* can be read or the bell rings; at once where that can't be waited for."""
        if self._ends is not None:
            with suppress(OSError, ValueError):  # more descriptors than select() knows
                select.select([fd, self._ends[0]], [], [])

    def ring(self) -> None:
        if self._ends is not None:
            os.write(self._ends[1], b"!")

    def close(self) -> None:
        if self._ends is not None:
            for end in self._ends:
                os.close(end)


def _hop(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *arguments: object) -> bool:
    """Have the loop make a call; False if it is closed."""
    try:
        loop.call_soon_threadsafe(call, *arguments)
    except RuntimeError:
        return False
    return True


class ThreadReader:
    """Reads in a thread, one piece ahead of what was handed over."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        on_data: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._on_data = on_data
        self._on_end = on_end
        self._held: bytes | None = None
        self._paused = self._closed = False
        self._wanted = threading.Event()
        self._wanted.set()
        self._bell = _Bell()
        self._fd = os.dup(fd)
        self._thread = threading.Thread(target=self._run, name="stanchion-read", daemon=True)
        self._thread.start()

    def pause(self) -> None:
        """Hand over nothing more until ``resume``."""
        self._paused = True

    def resume(self) -> None:
        """Go on handing over."""
        self._paused = False
        if self._held is not None:
            self._loop.call_soon(self._hand_over)

    def close(self) -> None:
        """Stop for good. May be called twice."""
        if not self._closed:
            self._closed = True
            self._wanted.set()
            self._bell.ring()
            self._thread.join(_JOIN_SECONDS)
            if not self._thread.is_alive():
                self._bell.close()

    def _take(self, data: bytes) -> None:
        self._held = data
        self._hand_over()

    def _hand_over(self) -> None:
        data = self._held
        if data is None or self._paused or self._closed:
            return
        self._held = None
        if not data:
            self._on_end()
            return
        try:
            self._on_data(data)
        finally:
            self._wanted.set()

    def _run(self) -> None:
        data = b"?"
        while data:
            self._wanted.wait()
            self._wanted.clear()
            if not self._closed:
                self._bell.wait(self._fd)
            if self._closed:
                break
            try:
                data = os.read(self._fd, _READ_BYTES)
            except OSError:
                data = b""
            if not _hop(self._loop, self._take, data):
                break
        os.close(self._fd)


class ThreadWriter:
    """Writes in a thread what was left for it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        on_broken: Callable[[], None],
        on_drained: Callable[[], None] | None,
    ) -> None:
        self._loop = loop
        self._on_broken = on_broken
        self._on_drained = on_drained
        self._pending = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._broken = self._closed = False
        self._queue: list[bytes] = []
        self._changed = threading.Condition()
        self._fd = os.dup(fd)
        self._thread = threading.Thread(target=self._run, name="stanchion-write", daemon=True)
        self._thread.start()

    @property
    def pending(self) -> int:
        """Bytes taken but not written yet."""
        return self._pending

    def write(self, data: bytes) -> None:
        """Write *data* after all that was written before. Never blocks."""
        if self._broken or self._closed or not data:
            return
        self._pending += len(data)
        with self._changed:
            self._queue.append(data)
            self._changed.notify()

    async def drain(self) -> None:
        """Wait until nothing is pending, or nothing can be written any more."""
        if self._pending:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def close(self) -> None:
        """Stop for good and drop what is pending. May be called twice."""
        if not self._closed:
            with self._changed:
                self._closed = True
                self._changed.notify()
            self._settle()
            self._thread.join(_JOIN_SECONDS)

    def _run(self) -> None:
        try:
            while pieces := self._next():
                view = memoryview(b"".join(pieces))
                size = len(view)
                while view and not self._closed:
                    view = view[os.write(self._fd, view[:_WRITE_BYTES]) :]
                if not _hop(self._loop, self._wrote, size):
                    break
        except OSError:
            _hop(self._loop, self._break)
        finally:
            os.close(self._fd)

    def _next(self) -> list[bytes]:
        """Wait for something to write; nothing when it is time to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            pieces, self._queue = self._queue, []
            return [] if self._closed else pieces

    def _wrote(self, size: int) -> None:
        if self._closed:
            return
        self._pending -= size
        if not self._pending:
            self._settle()
            if self._on_drained is not None:
                self._on_drained()

    def _break(self) -> None:
        if not self._closed:
            self._broken = True
            self._settle()
            self._on_broken()

    def _settle(self) -> None:
        self._pending = 0
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
