"""Callbacks on the protocol loop itself, for those declared trusted and quick.

Owns nothing but the running. It gives up behaviour E1: while a plain function runs nobody is served, a coroutine that does
not await holds everybody up, and neither can be killed while it does. What they raise is contained as everywhere.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Sequence
from typing import Any

from stanchion.server.context import CallContext
from stanchion.server.ports import Clock, Job, Mailbox, Outcome
from stanchion.wire.jsonrpc import Ref
from stanchion.workers.execution import (
    KILLED,
    carry_out_async,
    carry_out_sync,
    deliver,
    is_async,
    make_context,
)


class InlineCrew:
    """Runs jobs of isolation ``inline``; see ``ports.Crew`` for its obligations, of which "no method blocks" is given up.

    A plain function runs, and is reported, before ``start`` returns; a coroutine becomes a task of the running loop.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        clock: Clock,
        *,
        max_result_bytes: int | None,
        notices_per_second: float,
        lifespan_value: Callable[[], Any] | None = None,
    ) -> None:
        """Make a crew for the loop that will call ``start``.

        Args:
            mailbox: Takes the reports.
            clock: Seconds, for the limit on messages.
            max_result_bytes: Longest text of one result; None for no limit.
            notices_per_second: Progress and log messages let through per job.
            lifespan_value: What contexts show as ``lifespan``. Called on the protocol loop: if it waits, everybody does.
        """
        self._mailbox = mailbox
        self._clock = clock
        self._max_result_bytes = max_result_bytes
        self._rate = notices_per_second
        self._lifespan_value = lifespan_value
        self._tasks: dict[Ref, tuple[asyncio.Task[Outcome], CallContext]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def start(self, jobs: Sequence[Job]) -> None:
        """Run the jobs. After ``close`` they are reported killed at once."""
        for job in jobs:
            if self._closed:
                deliver(self._mailbox, job.ref, KILLED)
                continue
            value = None if self._lifespan_value is None else self._lifespan_value()
            context = make_context(job, self._mailbox, self._clock, rate=self._rate, lifespan=value)
            if is_async(job.work):
                self._begin(job, context)
            else:
                outcome = contextvars.Context().run(carry_out_sync, job, context, self._max_result_bytes)
                deliver(self._mailbox, job.ref, outcome, context)

    def kill(self, refs: Sequence[Ref]) -> None:
        """Cancel these jobs. Called from the protocol loop."""
        for ref in refs:
            if (entry := self._tasks.get(ref)) is not None:
                task, context = entry
                context.mark_cancelled()
                task.cancel()

    def close(self) -> None:
        """Cancel what runs. Does not wait: from the protocol loop that could not end."""
        self._closed = True
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        try:
            loop.call_soon_threadsafe(lambda: self.kill(tuple(self._tasks)))
        except RuntimeError:
            # Closed since the look: nothing runs on it any more.
            return

    def _begin(self, job: Job, context: CallContext) -> None:
        self._loop = asyncio.get_running_loop()
        task = self._loop.create_task(
            carry_out_async(job, context, self._max_result_bytes), context=contextvars.Context()
        )
        self._tasks[job.ref] = (task, context)
        task.add_done_callback(lambda _: self._ended(job.ref))

    def _ended(self, ref: Ref) -> None:
        task, context = self._tasks.pop(ref)
        deliver(self._mailbox, ref, KILLED if task.cancelled() else task.result(), context)
