"""A request that is under way, as whoever made it holds it.

Owns the waiting, from any thread and any loop, and nothing else: to end the request is the server's.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Generator
from typing import Generic, TypeVar

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

    def settle(self, value: T) -> None:
        """For the server: this is the end."""
        if not self._future.done():
            self._future.set_result(value)

    def fail(self, error: Exception) -> None:
        """For the server: this is the end, and no good one."""
        if not self._future.done():
            self._future.set_exception(error)
