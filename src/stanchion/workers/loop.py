"""Coroutines, all on one callback loop, and a fresh loop when that one stands still.

Owns which loop gets a job, the watch over the loop, and its replacement. How one loop works is ``callback_loop``'s.
"""

from __future__ import annotations

import concurrent.futures
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from stanchion.server.ports import Clock, Job, LoopStalled, Mailbox
from stanchion.wire.jsonrpc import Ref
from stanchion.workers.callback_loop import CallbackLoop, Terms
from stanchion.workers.execution import KILLED, LifespanFailed, broken, deliver
from stanchion.workers.failures import write_log
from stanchion.workers.vigil import Vigil

CLOSE_SECONDS: Final = 4.0
"""How long ``close`` waits, all in all, for loops to end: half of it for killed tasks, half for the lifespan."""

_GLANCE: Final = 0.1
"""Seconds between two looks at whether the lifespan is open: so long may a kill of who waits for it take."""

_LOG: Final = logging.getLogger("stanchion.workers")


class LoopCrew:
    """Runs jobs of isolation ``task``; see ``ports.Crew`` for its obligations.

    A batch of jobs costs one wake-up of the loop, and none while one is under way. When a wake-up has not been answered for
    *stall_limit* seconds, a callback blocks the loop: it is given up, what it had not begun moves to a fresh loop, and what
    runs on it is reported if it ever ends. A loop that was given up and comes round finishes its tasks and ends.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        clock: Clock,
        *,
        stall_limit: float,
        kill_grace: float,
        max_result_bytes: int | None,
        notices_per_second: float,
        lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None = None,
        use_uvloop: bool = False,
        close_seconds: float = CLOSE_SECONDS,
    ) -> None:
        """Make a crew without a loop; that comes with the first job.

        Args:
            mailbox: Takes the reports.
            clock: Seconds, for the watch and the limit on messages.
            stall_limit: Seconds the loop may stand still before later jobs get a fresh one.
            kill_grace: Seconds between one attempt to end a killed job and the next.
            max_result_bytes: Longest text of one result; None for no limit.
            notices_per_second: Progress and log messages let through per job.
            lifespan: Is entered on each loop before its first job and left at its end. Jobs wait for it, however long it
                takes; if it raises they are reported broken, and it is tried again with the next.
            use_uvloop: Use uvloop if it is installed.
            close_seconds: How long ``close`` waits for loops.
        """
        self._mailbox = mailbox
        self._clock = clock
        self._stall_limit = stall_limit
        self._close_seconds = close_seconds
        self._terms = Terms(
            mailbox=mailbox,
            clock=clock,
            kill_grace=kill_grace,
            close_seconds=close_seconds,
            max_result_bytes=max_result_bytes,
            notices_per_second=notices_per_second,
            lifespan=lifespan,
            use_uvloop=use_uvloop,
        )
        self._lock = threading.Lock()
        self._current: CallbackLoop | None = None
        self._loops: set[CallbackLoop] = set()
        self._homes: dict[Ref, CallbackLoop] = {}
        """The loop of each job that has not ended."""
        self._closed = False
        self._watchdog = Vigil("stanchion-loop-watch", self._look)
        self._watching = False
        self._posts = 0
        self._posts_seen = 0
        self._next_look: float | None = None

    def start(self, jobs: Sequence[Job]) -> None:
        """Begin the jobs. After ``close`` they are reported killed at once."""
        trouble: Exception | None = None
        ring = watch = False
        home: CallbackLoop | None = None
        with self._lock:
            if not self._closed:
                try:
                    home = self._current or self._open_home()
                except (OSError, RuntimeError) as error:
                    trouble = error
            if home is not None:
                for job in jobs:
                    home.inbox[job.ref] = job
                    self._homes[job.ref] = home
                ring, watch = home.ring(), self._note_post()
        if home is None:
            for job in jobs:
                deliver(self._mailbox, job.ref, broken(trouble, job.work, write_log) if trouble else KILLED)
        self._wake([home] if home and ring else [], watch=watch)

    def kill(self, refs: Sequence[Ref]) -> None:
        """Make these jobs end: one not begun never will, a running one is cancelled, again and again while it goes on."""
        never = []
        rung = []
        watch = False
        with self._lock:
            for ref in refs:
                home = self._homes.get(ref)
                if home is None:
                    continue
                if home.inbox.pop(ref, None) is not None:
                    self._forget(ref)
                    never.append(ref)
                    continue
                home.order_kill(ref)
                if home.ring():
                    rung.append(home)
                watch = self._note_post() or watch
        for ref in never:
            deliver(self._mailbox, ref, KILLED)
        self._wake(rung, watch=watch)

    def close(self) -> None:
        """Kill what runs, leave the lifespan, and let the threads go. Waits for loops that don't stand still.

        A second call returns at once. From a callback on a loop it doesn't wait for that loop.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            loops = list(self._loops)
            never = [ref for home in loops for ref in home.order_close()]
            for ref in never:
                self._forget(ref)
            rung = [home for home in loops if home.ring()]
        for ref in never:
            deliver(self._mailbox, ref, KILLED)
        self._wake(rung, watch=False)
        until = self._clock() + self._close_seconds
        for home in loops:
            if home.thread is not threading.current_thread():
                patience = self._terms.kill_grace if home.abandoned else self._stall_limit
                if home.acknowledged.wait(max(0.0, min(patience, until - self._clock()))):
                    home.thread.join(max(0.0, until - self._clock()))
        self._watchdog.stop(self._stall_limit)

    def lifespan_value(self) -> Any:
        """What the lifespan yielded on the current loop. Enters it if nobody has, and waits.

        For other crews' jobs; call it from a thread that may wait, never from a loop.

        Raises:
            LifespanFailed: It raised, or the crew is closed.
        """
        if self._terms.lifespan is None:
            return None
        while True:
            with self._lock:
                if self._closed:
                    raise LifespanFailed("closed")
                home = self._current or self._open_home()
                if home.ready:
                    return home.value
                opened = home.opened
                ring = not home.opening and home.ring()
            self._wake([home] if ring else [], watch=False)
            try:
                return opened.result(_GLANCE)
            except concurrent.futures.TimeoutError:
                continue

    # -- inside

    def _open_home(self) -> CallbackLoop:
        """A fresh loop, made the current one. Call with the lock held."""
        home = CallbackLoop(self._terms, self._lock, self._forget, self._loop_ended)
        self._loops.add(home)
        self._current = home
        return home

    def _forget(self, ref: Ref) -> None:
        self._homes.pop(ref, None)

    def _wake(self, homes: Sequence[CallbackLoop], *, watch: bool) -> None:
        for home in homes:
            home.wake()
        if watch:
            self._watchdog.wake()

    def _loop_ended(self, home: CallbackLoop) -> None:
        """A loop's thread is about to end: the crew is closed, the loop was given up, or a callback stopped it for good."""
        stranded: dict[Ref, Job] = {}
        trouble: BaseException | None = None
        fresh = None
        with self._lock:
            self._loops.discard(home)
            if self._current is home:
                self._current = None
                if home.inbox and not self._closed:
                    try:
                        fresh = self._move(home)
                    except (OSError, RuntimeError) as error:
                        stranded, trouble = dict(home.inbox), error
        self._wake([fresh] if fresh else [], watch=False)
        for ref, job in stranded.items():
            self._forget(ref)
            deliver(self._mailbox, ref, broken(trouble, job.work, write_log) if trouble else KILLED)

    def _move(self, home: CallbackLoop) -> CallbackLoop | None:
        """Make a fresh loop and give it what *home* has not begun. Returns it if it has to be woken. Lock held."""
        fresh = self._open_home()
        fresh.inbox.update(home.inbox)
        home.inbox.clear()
        self._homes.update(dict.fromkeys(fresh.inbox, fresh))
        return fresh if fresh.inbox and fresh.ring() else None

    # -- the watch

    def _note_post(self) -> bool:
        """Count a post. True if the watchdog sleeps and has to be woken. Call with the lock held."""
        self._posts += 1
        asleep, self._watching = not self._watching, True
        return asleep

    def _look(self) -> float | None:
        """Give up a loop that stands still; the watchdog's work. Returns seconds until the next look.

        While posts keep coming it looks once in a while without being woken, which would cost each post a switch of
        threads; when none came since the last look it goes to sleep.
        """
        now = self._clock()
        overslept = self._next_look is not None and now - self._next_look > self._stall_limit / 2
        stalled, fresh = 0.0, None
        with self._lock:
            home = self._current
            pause: float | None = self._stall_limit
            if home is None or self._closed or (home.posted_at is None and self._posts == self._posts_seen):
                self._watching = False
                pause = None
            elif home.posted_at is not None and not home.opening:
                waited = now - max(home.posted_at, home.calm_at)
                if waited < self._stall_limit:
                    pause = self._stall_limit - waited
                elif overslept:
                    # The watchdog was late as well: the machine slept, or something held the whole interpreter.
                    home.calm_at = now
                else:
                    stalled = waited
                    fresh = self._give_up(home)
            self._posts_seen = self._posts
        self._next_look = None if pause is None else now + pause
        if stalled:
            self._tell_stall(stalled)
        self._wake([fresh] if fresh else [], watch=False)
        return pause

    def _tell_stall(self, seconds: float) -> None:
        _LOG.warning("a callback has blocked its loop for %.1f s; later calls get a fresh one", seconds)
        try:
            self._mailbox.post(LoopStalled(seconds))
        except Exception:  # noqa: BLE001 - the fresh loop has to be woken all the same
            _LOG.exception("a stall could not be reported")

    def _give_up(self, home: CallbackLoop) -> CallbackLoop | None:
        try:
            fresh = self._move(home)
        except (OSError, RuntimeError) as error:
            _LOG.error("no fresh loop could be made: %s", error)
            home.calm_at = self._clock()
            return None
        home.abandoned = True
        return fresh
