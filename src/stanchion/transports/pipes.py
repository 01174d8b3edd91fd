"""Bytes over file descriptors on an asyncio loop: what stdio needs of a pipe, a socket, a file or a terminal.

Owns reading without blocking, writing without blocking, and the order of what waits to be written. Pipes and sockets are
watched by the loop itself, which works alike on asyncio's own loops and uvloop. What a loop can't watch (files,
terminals, anything on a Windows loop) gets a thread of its own that hops to the loop.

All calls are made on the loop; so are all callbacks. Each end works on a duplicate of the descriptor given, which stays
the caller's.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from stanchion.transports.pipe_threads import ThreadReader, ThreadWriter

READ_BYTES: Final = 256 * 1024
"""Most bytes handed over at once."""
_JOIN_BYTES: Final = 256 * 1024
"""Pieces that wait are joined up to this much for one write."""


class Reader(Protocol):
    """The reading end. After ``close`` there are no callbacks."""

    def pause(self) -> None:
        """Hand over nothing more until ``resume``."""

    def resume(self) -> None:
        """Go on handing over."""

    def close(self) -> None:
        """Stop for good. May be called twice."""


class Writer(Protocol):
    """The writing end. Once broken or closed it takes what is written and drops it."""

    @property
    def pending(self) -> int:
        """Bytes taken but not written yet."""

    def write(self, data: bytes) -> None:
        """Write *data* after all that was written before. Never blocks."""

    async def drain(self) -> None:
        """Wait until nothing is pending, or nothing can be written any more."""

    def close(self) -> None:
        """Stop for good and drop what is pending. May be called twice."""


def open_reader(fd: int, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> Reader:
    """Hand what can be read from *fd* to *on_data*, and call *on_end* once when there will be no more.

    A descriptor that breaks has ended. Must be called on the running loop.
    """
    loop = asyncio.get_running_loop()
    if _is_watchable(fd):
        with suppress(NotImplementedError):
            return _LoopReader(loop, fd, on_data, on_end)
    return ThreadReader(loop, fd, on_data, on_end)


def open_writer(
    fd: int, on_broken: Callable[[], None], on_drained: Callable[[], None] | None = None
) -> Writer:
    """Open *fd* for writing. Must be called on the running loop.

    Args:
        fd: The descriptor.
        on_broken: Called once, from the loop and not from within ``write``, when nobody reads any more.
        on_drained: Called each time when nothing is pending any more after something was.
    """
    loop = asyncio.get_running_loop()
    if _is_watchable(fd):
        with suppress(NotImplementedError):
            return _LoopWriter(loop, fd, on_broken, on_drained)
    return ThreadWriter(loop, fd, on_broken, on_drained)


def _is_watchable(fd: int) -> bool:
    """Whether a loop can tell when *fd* is ready."""
    mode = os.fstat(fd).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


class _Pipe:
    """A duplicate of a pipe's descriptor that does not block.

    Whether it does is shared with everybody who holds the same end, so ``close`` sets it back.
    """

    def __init__(self, fd: int) -> None:
        self.fd = os.dup(fd)
        self._blocked = os.get_blocking(self.fd)
        os.set_blocking(self.fd, False)

    def note_blocking(self) -> None:
        """Call before a loop is to watch it."""

    def read(self) -> bytes:
        return os.read(self.fd, READ_BYTES)

    def write(self, data: bytes | memoryview) -> int:
        return os.write(self.fd, data)

    def close(self) -> None:
        if self._blocked:
            os.set_blocking(self.fd, True)
        os.close(self.fd)


class _Socket:
    """A duplicate of a socket's descriptor.

    One socket may be both our ends (socat, inetd): when one sets back whether it blocks, the other must still not, so
    each transfer says so itself. uvloop makes whatever it watches non-blocking, so there is something to set back.
    """

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=os.dup(fd))
        self.fd = self._socket.fileno()
        self._blocked = False

    def note_blocking(self) -> None:
        """Call before a loop is to watch it."""
        self._blocked = self._blocked or os.get_blocking(self.fd)

    def read(self) -> bytes:
        return self._socket.recv(READ_BYTES, socket.MSG_DONTWAIT)

    def write(self, data: bytes | memoryview) -> int:
        return self._socket.send(data, socket.MSG_DONTWAIT)

    def close(self) -> None:
        if self._blocked:
            os.set_blocking(self.fd, True)
        self._socket.close()


def _endpoint(fd: int) -> _Pipe | _Socket:
    return _Socket(fd) if stat.S_ISSOCK(os.fstat(fd).st_mode) else _Pipe(fd)


class _LoopReader:
    """Reads when the loop says that there is something to read."""

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
        self._over = self._closed = self._watching = False
        self._end = _endpoint(fd)
        try:
            self.resume()
        except BaseException:
            self._end.close()
            raise

    def pause(self) -> None:
        if self._watching:
            self._watching = False
            self._loop.remove_reader(self._end.fd)

    def resume(self) -> None:
        if not (self._watching or self._over or self._closed):
            self._end.note_blocking()
            self._loop.add_reader(self._end.fd, self._ready)
            self._watching = True

    def close(self) -> None:
        if not self._closed:
            self.pause()
            self._closed = True
            self._end.close()

    def _ready(self) -> None:
        try:
            data = self._end.read()
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._on_data(data)
            return
        self.pause()
        self._over = True
        self._on_end()


class _LoopWriter:
    """Writes at once what the pipe takes, and the rest when the loop says that there is room."""

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
        self._queue: deque[bytes | memoryview] = deque()
        self._pending = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._broken = self._closed = False
        self._end = _endpoint(fd)
        try:
            # Only to learn now, not in the middle of a message, that this loop can't.
            loop.remove_writer(self._end.fd)
        except BaseException:
            self._end.close()
            raise

    @property
    def pending(self) -> int:
        return self._pending

    def write(self, data: bytes) -> None:
        if self._broken or self._closed or not data:
            return
        if self._pending:
            self._queue.append(data)
            self._pending += len(data)
            return
        written = self._try(data)
        if written == len(data) or self._broken:
            return
        self._queue.append(memoryview(data)[written:])
        self._pending = len(data) - written
        self._end.note_blocking()
        self._loop.add_writer(self._end.fd, self._ready)

    async def drain(self) -> None:
        if self._pending:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._settle()
            self._end.close()

    def _try(self, data: bytes | memoryview) -> int:
        """Write what fits right now; return how much that was."""
        try:
            return self._end.write(data)
        except BlockingIOError:
            return 0
        except OSError:
            self._broken = True
            self._settle()
            # Later, since whoever is writing can hardly bear to be told in the middle of it.
            self._loop.call_soon(self._tell_broken)
            return 0

    def _ready(self) -> None:
        piece = self._queue.popleft()
        if self._queue and len(piece) < _JOIN_BYTES:
            pieces, size = [piece], len(piece)
            while self._queue and size + len(self._queue[0]) <= _JOIN_BYTES:
                pieces.append(self._queue.popleft())
                size += len(pieces[-1])
            piece = b"".join(pieces)
        written = self._try(piece)
        if self._broken:
            return
        self._pending -= written
        if written < len(piece):
            self._queue.appendleft(memoryview(piece)[written:])
        if not self._pending:
            self._settle()
            if self._on_drained is not None:
                self._on_drained()

    def _settle(self) -> None:
        """Nothing is pending any more, written or not."""
        if self._pending or self._queue:
            self._queue.clear()
            self._pending = 0
        self._loop.remove_writer(self._end.fd)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _tell_broken(self) -> None:
        if not self._closed:
            self._on_broken()
