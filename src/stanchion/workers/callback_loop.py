"""One event loop on a thread of its own, for coroutines that users wrote, with the app's lifespan around them.

Owns the thread, the tasks and the lifespan of one loop. Which loop gets a job, and when one is given up, is ``loop``'s.

The loop's *inbox* holds jobs that nobody has begun. It and everything else that other threads touch changes only under the
lock that all loops of a crew share; a job leaves the inbox once, to be run, to be killed or to move to another loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from msgspec import Struct

from stanchion.server.context import CallContext
from stanchion.server.ports import Broke, Clock, Job, Mailbox, Outcome
from stanchion.wire.jsonrpc import Ref
from stanchion.workers.execution import (
    KILLED,
    LifespanFailed,
    carry_out_async,
    deliver,
    log_failure,
    make_context,
)

KILL_ATTEMPTS: Final = 100
"""How often a killed task is cancelled that goes on; then it is left alone."""

_LOG: Final = logging.getLogger("stanchion.workers")


class Terms(Struct, frozen=True, kw_only=True):
    """What all loops of a crew have in common."""

    mailbox: Mailbox
    clock: Clock
    kill_grace: float
    """Seconds between one cancel of a killed task and the next."""
    close_seconds: float
    """Seconds that killed tasks, and then the lifespan, may take at the end."""
    max_result_bytes: int | None
    notices_per_second: float
    lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None
    use_uvloop: bool


class _Running:
    """A job that has begun. Touched by the loop's thread alone, but for ``context``."""

    __slots__ = ("context", "task")

    def __init__(self, context: CallContext, task: asyncio.Task[Outcome]) -> None:
        self.context = context
        self.task = task


class CallbackLoop:
    """One loop, from its thread's start to its end.

    The methods above the line are called by the crew, with the lock held where they say so; what is below runs on the
    loop's thread.
    """

    def __init__(
        self,
        terms: Terms,
        lock: threading.Lock,
        forget: Callable[[Ref], None],
        on_end: Callable[[CallbackLoop], None],
    ) -> None:
        """Make a loop and start its thread.

        Args:
            terms: What it has in common with the other loops.
            lock: Shared by all loops of the crew.
            forget: Is told of a job that has ended, just before its report. On the loop's thread.
            on_end: Is told when the thread is about to end. On that thread, without the lock.

        Raises:
            OSError: The system has no more files.
            RuntimeError: It has no more threads.
        """
        self._terms = terms
        self._lock = lock
        self._forget = forget
        self._on_end = on_end
        self._context = contextvars.Context()
        """In which the loop's own callbacks run: not in a copy of whoever posted."""
        self._loop = _new_loop(use_uvloop=terms.use_uvloop)
        self.inbox: dict[Ref, Job] = {}
        self.posted_at: float | None = None
        """When the wake-up was sent that has not been answered; None if there is none."""
        self.calm_at = 0.0
        """Until when the loop had leave to stand still."""
        self.opening = False
        """Whether the lifespan is being entered. That may take its time, also a loop that stands still."""
        self.ready = terms.lifespan is None
        self.value: Any = None
        """What the lifespan yielded."""
        self.opened: Future[Any] = Future()
        """The lifespan's value, or ``LifespanFailed``; a new one after each failure."""
        self.abandoned = False
        self.acknowledged = threading.Event()
        """Set when the loop has heard that it is to close."""
        self._closing = False
        self._kills: list[Ref] = []
        self._running: dict[Ref, _Running] = {}
        self._life: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self._ending: asyncio.Task[None] | None = None
        self._done = False
        self.thread = threading.Thread(target=self._run, name="stanchion-loop", daemon=True)
        try:
            self.thread.start()
        except RuntimeError:
            self._loop.close()
            raise

    def ring(self) -> bool:
        """Note that the loop has something to see to. True if it has to be woken for it. Call with the lock held."""
        if self.posted_at is not None:
            return False
        self.posted_at = self._terms.clock()
        return True

    def order_kill(self, ref: Ref) -> None:
        """Kill a job that is not in the inbox any more. Call with the lock held, and ring."""
        self._kills.append(ref)
        if (running := self._running.get(ref)) is not None:
            # At once, so that a callback which blocks the loop can see it.
            running.context.mark_cancelled()

    def order_close(self) -> list[Ref]:
        """Kill everything and end. Returns the jobs never begun. Call with the lock held, and ring."""
        self._closing = True
        never = list(self.inbox)
        self.inbox.clear()
        return never

    def wake(self) -> None:
        """Have the loop see to what it was rung for."""
        try:
            self._loop.call_soon_threadsafe(self._on_wake, context=self._context)
        except RuntimeError:
            # It has ended in the meantime, and with it all it had.
            return

    # ------------------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not (self._done or self._loop.is_closed()):
            try:
                self._loop.run_forever()
            except BaseException as error:  # noqa: BLE001 - a task that a callback left behind raised SystemExit
                log_failure(error, "a task that a callback started")
        self._sweep()
        self._on_end(self)

    def _on_wake(self) -> None:
        with self._lock:
            self.posted_at = None
            kills, self._kills = self._kills, []
            jobs = self._claim()
            closing, end = self._closing, self._closing or self.abandoned
            # Set before any code of the user's can run, so that the watchdog is not let loose on it.
            enter = not (self.ready or self._life or end)
            self.opening = self.opening or enter
        for job in jobs:
            self._begin(job)
        for ref in kills:
            self._kill(ref)
        if enter and self._terms.lifespan is not None:
            self._life = self._loop.create_task(
                self._live(self._terms.lifespan), context=contextvars.Context()
            )
        if self._done:
            return
        if closing:
            self.acknowledged.set()
            for ref in list(self._running):
                self._kill(ref)
        if end:
            self._begin_end(hurry=closing)

    def _claim(self) -> Iterable[Job]:
        """Take what the inbox holds, if it can be run. Call with the lock held."""
        if not self.ready or not self.inbox:
            return ()
        jobs = list(self.inbox.values())
        self.inbox.clear()
        return jobs

    # -- jobs

    def _begin(self, job: Job) -> None:
        terms = self._terms
        context = make_context(
            job, terms.mailbox, terms.clock, rate=terms.notices_per_second, lifespan=self.value
        )
        # An empty context for each: nothing is seen of other jobs, nor of whoever posted this one.
        task = self._loop.create_task(
            carry_out_async(job, context, terms.max_result_bytes), context=contextvars.Context()
        )
        self._running[job.ref] = _Running(context, task)
        task.add_done_callback(lambda _: self._ended(job.ref), context=self._context)

    def _ended(self, ref: Ref) -> None:
        running = self._running.pop(ref)
        try:
            # A task cancelled before its first step never came to catching that.
            outcome = KILLED if running.task.cancelled() else running.task.result()
        except BaseException as error:  # noqa: BLE001 - a fault of ours; the job must be reported all the same
            outcome = Broke(log_failure(error, f"the worker of call {ref}"))
        self._forget(ref)
        deliver(self._terms.mailbox, ref, outcome, running.context)

    def _kill(self, ref: Ref) -> None:
        running = self._running.get(ref)
        if running is not None:
            running.context.mark_cancelled()
            self._cancel(running.task, KILL_ATTEMPTS)

    def _cancel(self, task: asyncio.Task[Outcome], attempts: int) -> None:
        if task.done():
            return
        task.cancel()
        if attempts > 1:
            self._loop.call_later(
                self._terms.kill_grace, self._cancel, task, attempts - 1, context=self._context
            )

    # -- the lifespan

    async def _live(self, lifespan: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        """Be in the lifespan from its beginning to its end: one task for both, as cancel scopes demand."""
        reference, cause = "", None
        try:
            async with lifespan() as value:
                self._open(value)
                await self._leave.wait()
        except BaseException as error:  # noqa: BLE001 - code of the user's
            if not (self._ending is not None and isinstance(error, asyncio.CancelledError)):
                reference, cause = log_failure(error, "the lifespan"), error
        with self._lock:
            entered, self.ready = self.ready, False
            self.opening = False
            self._life = None
            unheard, self.opened = self.opened, Future()
            # One that came to its end later has let its jobs begin; those posted since ring for a new one.
            stranded = [] if entered else list(self.inbox)
            if not entered:
                self.inbox.clear()
        if not entered:
            unheard.set_exception(LifespanFailed(reference, cause))
        for ref in stranded:
            self._forget(ref)
            deliver(self._terms.mailbox, ref, Broke(reference))

    def _open(self, value: Any) -> None:
        with self._lock:
            self.value = value
            self.ready = True
            self.opening = False
            self.calm_at = self._terms.clock()
            jobs = self._claim()
        self.opened.set_result(value)
        for job in jobs:
            self._begin(job)

    # -- the end

    def _begin_end(self, *, hurry: bool) -> None:
        if self._ending is not None:
            if not hurry:
                return
            self._ending.cancel()
        self._ending = self._loop.create_task(
            self._end(self._terms.close_seconds / 2 if hurry else None), context=contextvars.Context()
        )

    async def _end(self, seconds: float | None) -> None:
        """Let the tasks end, at most *seconds*, then the lifespan, and stop."""
        if self._running:
            await asyncio.wait([running.task for running in self._running.values()], timeout=seconds)
        self._leave.set()
        if (life := self._life) is not None:
            if not self.ready:
                life.cancel()
            await asyncio.wait([life], timeout=self._terms.close_seconds / 2)
            if not life.done():
                _LOG.error("the lifespan did not end in time and is cancelled")
                life.cancel()
                await asyncio.wait([life], timeout=self._terms.kill_grace)
        self._done = True
        self._loop.stop()

    def _sweep(self) -> None:
        """Let go of what callbacks left on the loop, and close it. Afterwards nothing runs on it any more."""
        loop = self._loop
        # It hears no more: whoever closes the crew now need not wait for an answer.
        self.acknowledged.set()
        if not loop.is_closed():
            left = asyncio.all_tasks(loop)
            for task in left:
                task.cancel()
            try:
                loop.run_until_complete(self._await_left(left))
            except BaseException as error:  # noqa: BLE001 - as in _run
                log_failure(error, "a task that a callback started")
            loop.close()
        for ref, running in list(self._running.items()):
            self._forget(ref)
            deliver(self._terms.mailbox, ref, KILLED, running.context)

    async def _await_left(self, left: set[asyncio.Task[Any]]) -> None:
        if left:
            await asyncio.wait(left, timeout=self._terms.kill_grace)
        await asyncio.wait_for(self._loop.shutdown_asyncgens(), self._terms.kill_grace)


def _new_loop(*, use_uvloop: bool) -> asyncio.AbstractEventLoop:
    if use_uvloop:
        try:
            import uvloop
        except ImportError:
            _LOG.info("uvloop is not installed; asyncio's own loop is used")
        else:
            return uvloop.new_event_loop()
    return asyncio.new_event_loop()
