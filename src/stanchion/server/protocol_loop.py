"""The life of a server's protocol loop: begun once, ended once, on a thread of its own or on a host's loop.

Owns the states (new, running, closed) and who may move between them from where. What runs on the loop is given by whoever
makes it: ``attach`` when it begins, ``drain`` and ``finish`` when it ends.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Literal

from stanchion.server.errors import ServerClosed


class ProtocolLoop:
    """Begins and ends from any thread; each at most once."""

    def __init__(
        self,
        check: Callable[[], None],
        attach: Callable[[], None],
        drain: Callable[[float], Coroutine[Any, Any, None]],
        finish: Callable[[], None],
    ) -> None:
        """Set up; nothing runs yet.

        Args:
            check: Raises if the start is to be refused.
            attach: Called on the loop at its beginning.
            drain: Awaited on the loop at its end, with the seconds there are.
            finish: Called last; on the loop, or by whoever closes what never began.
        """
        self._check = check
        self._attach = attach
        self._drain = drain
        self._finish = finish
        self._lock = threading.Lock()
        self._state: Literal["new", "running", "closed"] = "new"
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._ended = threading.Event()

    @property
    def is_running(self) -> bool:
        """Whether it has begun and nobody has ended it."""
        return self._state == "running"

    @property
    def is_closed(self) -> bool:
        """Whether somebody has ended it."""
        return self._state == "closed"

    def require(self) -> None:
        """Begin, on a thread of its own, if nothing has yet.

        Raises:
            ServerClosed: It was closed.
        """
        if self._state == "new":
            self.start()
        if self._state == "closed":
            raise ServerClosed("the server has been closed")

    def start(self) -> None:
        """Begin on a thread of its own; while running it does nothing.

        Raises:
            ServerClosed: It was closed.
        """
        with self._lock:
            if self._state == "running":
                return
            self._admit()
            ready = threading.Event()
            self._thread = threading.Thread(
                target=lambda: asyncio.run(self._own(ready)), name="stanchion-protocol", daemon=True
            )
            self._state = "running"
            self._thread.start()
        ready.wait()

    def host(self) -> None:
        """Begin on the loop that runs in this thread.

        Raises:
            ServerClosed: It was closed.
            RuntimeError: It runs already, or there is no loop here.
        """
        with self._lock:
            if self._state == "running":
                raise RuntimeError("the server is running already")
            self._loop = asyncio.get_running_loop()
            self._admit()
            self._state = "running"
        self._attach()

    async def aclose(self, seconds: float) -> None:
        """End from any loop: what runs has *seconds*. Again: wait for the end that is under way."""
        if not self._claim_end():
            if not self._ended.is_set():
                await asyncio.to_thread(self._ended.wait)
        elif self._loop is not None:
            if self._loop is asyncio.get_running_loop():
                await self._end(seconds)
            else:
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._end(seconds), self._loop))
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def close(self, seconds: float) -> None:
        """End from any thread but that of the loop; see ``aclose``.

        Raises:
            RuntimeError: Called on the loop itself, where nobody may wait.
        """
        if self._loop is not None and _running_loop() is self._loop:
            raise RuntimeError("on the server's own loop, await aclose() instead of close()")
        if not self._claim_end():
            self._ended.wait()
        elif self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._end(seconds), self._loop).result()
        if self._thread is not None:
            self._thread.join()

    def _admit(self) -> None:
        if self._state == "closed":
            raise ServerClosed("the server has been closed")
        self._check()

    def _claim_end(self) -> bool:
        """Make this caller the one who ends it. What never began ends here."""
        with self._lock:
            was, self._state = self._state, "closed"
        if was == "new":
            self._finish()
            self._ended.set()
        return was != "closed"

    async def _own(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._attach()
        ready.set()
        await self._over.wait()

    async def _end(self, seconds: float) -> None:
        try:
            await self._drain(seconds)
        finally:
            self._finish()
            self._ended.set()
            if self._over is not None:
                self._over.set()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
