"""Requests end with whoever made them (behaviour A4).

Owns the table of tasks and the requests each has outstanding. A task that ends takes its requests with it; a request that
ends is forgotten here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from stanchion.server.effects import Fail, Reply, Return
from stanchion.server.runner import Sink
from stanchion.wire.jsonrpc import Ref


class RequestOwners:
    """The tasks that have requests outstanding. Safe to use from any thread."""

    def __init__(self, cancel: Callable[[Ref], None]) -> None:
        """Set up.

        Args:
            cancel: Ends one request; called on the loop of the task that ended.
        """
        self._cancel = cancel
        self._owned: dict[asyncio.Task[Any], set[Ref]] = {}

    def bind(self, ref: Ref, owner: asyncio.Task[Any] | None, sink: Sink) -> Sink:
        """Have a request cancelled when *owner* ends; returns the sink to use in place of the one given."""
        if owner is None:
            return sink
        refs = self._owned.get(owner)
        if refs is None:
            refs = self._owned[owner] = set()
            owner.add_done_callback(self._ended)
        refs.add(ref)

        def settled(end: Reply | Return | Fail) -> None:
            refs.discard(ref)
            sink(end)

        return settled

    def _ended(self, owner: asyncio.Task[Any]) -> None:
        for ref in list(self._owned.pop(owner, ())):
            self._cancel(ref)


def current_task() -> asyncio.Task[Any] | None:
    """The task that runs now in this thread, if there is one."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
