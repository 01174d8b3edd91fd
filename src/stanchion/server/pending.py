"""A request that is under way, as whoever made it holds it.

Owns the waiting, from any thread and any loop, and nothing else: to end the request is the server's.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Generator
from typing import Generic, TypeVar, cast

from stanchion.server.effects import Fail, Reply, Return
from stanchion.server.errors import CallFailed
from stanchion.wire.jsonrpc import Ref

T = TypeVar("T")


class Pending(Generic[T]):
    """Await it, or call ``result`` where there is no loop."""

    ref: Ref
    """What ``Server.cancel`` takes."""

    def __init__(self) -> None:
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()

    @property
    def done(self) -> bool:
        """Whether the end is known."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> T:
        """Wait in this thread.

        Args:
            timeout: Seconds; None waits for ever. The request goes on when it is over.

        Raises:
            TimeoutError: It took longer.
        """
        return self._future.result(timeout)

    def __await__(self) -> Generator[object, None, T]:
        """Wait in this loop. A waiter that is cancelled leaves the request, and other waiters, alone."""
        return asyncio.shield(asyncio.wrap_future(self._future)).__await__()

    # -- for the server, on the protocol loop

    def answered(self, end: Reply | Return | Fail) -> None:
        """A client's request has ended; its answer is what was waited for."""
        if isinstance(end, Reply):
            self._settle(cast("T", end.answer))

    def returned(self, end: Reply | Return | Fail) -> None:
        """A direct call has ended; its value is what was waited for."""
        if isinstance(end, Return):
            self._settle(cast("T", end.value))
        elif not self._future.done():
            kind, text = (end.kind, end.text) if isinstance(end, Fail) else ("cancelled", "cancelled")
            self._future.set_exception(CallFailed(kind, text))

    def _settle(self, value: T) -> None:
        if not self._future.done():
            self._future.set_result(value)
