"""Plain functions, each on a thread; a thread that has to stop gets an exception put into it.

Owns the threads, the handing out of jobs and the killing. How a job is carried out is ``execution``'s.

The exception (``WorkerKilled``) can come up at any bytecode of the thread, also of ours. Three rules make that safe. It is
put in only under the lock and only while the job is *open*; the thread closes the job under the same lock and then takes
back what has not come up yet, so outside an open job its code is undisturbed. What has to be whole, reports and log lines
above all, is done after the closing. A thread that was hit reports, ends itself, and is replaced on demand.
"""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct, field

from stanchion.server.context import CallContext
from stanchion.server.ports import Broke, Clock, Job, Mailbox, Outcome
from stanchion.wire.jsonrpc import Ref
from stanchion.workers.execution import (
    KILLED,
    LifespanFailed,
    broken,
    carry_out_sync,
    deliver,
    make_context,
)
from stanchion.workers.failures import write_log
from stanchion.workers.injection import Footing, WorkerKilled, footing, inject, mend, take_back
from stanchion.workers.vigil import Vigil

IDLE_SECONDS: Final = 30.0
"""How long a thread waits for another job before it ends."""

CLOSE_SECONDS: Final = 1.0
"""How long ``close`` waits, all in all, for threads to end."""

KILL_ATTEMPTS: Final = 100
"""How often a killed thread that goes on is seen to, once per grace; then it is left alone."""

DELAY: Final = 0.005
"""Seconds until a thread that had better not be hit where it stands (``injection.Footing``) is looked at again."""

PATIENCE: Final = 20
"""How often that is done before it is hit all the same; where it must not be, it is looked at less often then."""

_LOG: Final = logging.getLogger("stanchion.workers")


class _Entry(Struct, eq=False):
    """One job, from ``start`` to its report. Its fields change under the crew's lock."""

    job: Job
    worker: _Worker | None = None
    """The thread on which the job is open; None before."""
    context: CallContext | None = None
    outcome: Outcome = KILLED
    troubles: list[str] = field(default_factory=list)
    """Log lines, held back until nothing can disturb the writing."""
    tried: bool = False
    killed: bool = False
    ended: bool = False
    """No longer open and never again; whoever sets it makes the report."""
    injections: int = 0
    """How often the exception was put in."""
    deferrals: int = 0
    """How often, since then, that was put off."""
    attempts: int = 0
    due: float = 0.0
    """When to see again to a killed job that has not ended."""


class _Worker(threading.Thread):
    """One thread of the crew."""

    def __init__(self, live: Callable[[_Worker], None]) -> None:
        super().__init__(name="stanchion-thread", daemon=True)
        self._live = live
        self.wake = threading.Lock()
        """Held while the thread has nothing to do; released to call it."""
        self.wake.acquire()

    def run(self) -> None:
        self._live(self)


class ThreadCrew:
    """Runs jobs of isolation ``thread``; see ``ports.Crew`` for its obligations.

    Its threads are daemons of its own and not those of ``concurrent.futures``, whose exit hook would wait for a function
    that never returns.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        clock: Clock,
        *,
        max_result_bytes: int | None,
        notices_per_second: float,
        kill_grace: float,
        lifespan_value: Callable[[], Any] | None = None,
        idle_seconds: float = IDLE_SECONDS,
        close_seconds: float = CLOSE_SECONDS,
    ) -> None:
        """Make a crew; its threads come with the jobs.

        Args:
            mailbox: Takes the reports.
            clock: Seconds, for kills and the limit on messages.
            max_result_bytes: Longest text of one result; None for no limit.
            notices_per_second: Progress and log messages let through per job.
            kill_grace: Seconds between one attempt to end a killed job and the next.
            lifespan_value: What contexts show as ``lifespan``. Called on the job's thread, where it may wait.
            idle_seconds: How long a thread without work stays.
            close_seconds: How long ``close`` waits for threads.
        """
        self._mailbox = mailbox
        self._clock = clock
        self._max_result_bytes = max_result_bytes
        self._rate = notices_per_second
        self._kill_grace = kill_grace
        self._lifespan_value = lifespan_value
        self._idle_seconds = idle_seconds
        self._close_seconds = close_seconds
        self._lock = threading.Lock()
        self._entries: dict[Ref, _Entry] = {}
        self._backlog: deque[_Entry] = deque()
        self._dying: list[_Entry] = []
        self._workers: dict[_Worker, None] = {}
        self._idle: list[_Worker] = []
        self._coming = 0
        """Threads started or woken that have not looked into the backlog yet."""
        self._busy = 0
        self._closed = False
        self._vigil = Vigil("stanchion-thread-kills", self._look)

    def start(self, jobs: Sequence[Job]) -> None:
        """Begin the jobs. After ``close`` they are reported killed at once."""
        with self._lock:
            refused = self._closed
            if not refused:
                entries = [_Entry(job) for job in jobs]
                self._entries.update((entry.job.ref, entry) for entry in entries)
                self._backlog.extend(entries)
                while self._idle and self._coming < len(self._backlog):
                    # The last to fall idle goes first, so that those not needed can end.
                    self._coming += 1
                    self._idle.pop().wake.release()
                hire = self._short_of_hands()
        if refused:
            for job in jobs:
                deliver(self._mailbox, job.ref, KILLED)
        elif hire:
            self._hire()

    def kill(self, refs: Sequence[Ref]) -> None:
        """Make these jobs end: one not begun never will, a running one gets an exception at its next bytecode."""
        with self._lock:
            gone = self._condemn([self._entries[ref] for ref in refs if ref in self._entries])
        self._bury(gone)
        if self._dying:
            self._vigil.wake()

    def close(self) -> None:
        """Kill what runs and let the threads go. Waits for those that end in time; a second call returns at once."""
        me = threading.current_thread()
        with self._lock:
            if self._closed:
                return
            self._closed = True
            # A callback may close its own server; an exception in the middle of that would help nobody.
            gone = self._condemn(list(self._entries.values()), spared=me)
            self._backlog.clear()
            for worker in self._idle:
                worker.wake.release()
            self._idle.clear()
            workers = list(self._workers)
        self._bury(gone)
        self._vigil.wake()
        until = self._clock() + self._close_seconds
        # In the order of hiring: when one has ended, those it hired have begun and can be waited for.
        for worker in workers:
            while worker is not me and worker.ident is None and self._clock() < until:
                time.sleep(0.001)
            if worker is not me and worker.ident is not None:
                worker.join(max(0.0, until - self._clock()))
        self._vigil.stop(max(0.1, until - self._clock()))

    # -- the life of a thread

    def _live(self, worker: _Worker) -> None:
        called = True
        while True:
            entry, hire = self._take(worker, called=called)
            called = False
            if hire:
                self._hire()
            if entry is not None:
                self._carry_out(entry, worker)
                if entry.injections:
                    break
                del entry  # an idle thread must not keep a job's arguments and result alive
            elif self._await_call(worker):
                called = True
            else:
                break
        with self._lock:
            self._workers.pop(worker, None)
            hire = self._short_of_hands()
        if hire:
            self._hire()

    def _take(self, worker: _Worker, *, called: bool) -> tuple[_Entry | None, bool]:
        """The next job, if there is one, and whether another thread is wanted.

        There is always one idle thread or one on its way while jobs run: then ``start`` need not make a thread itself and
        wait, on the protocol loop, for it to come up behind callbacks that spin.
        """
        with self._lock:
            if called:
                self._coming -= 1
            while self._backlog:
                entry = self._backlog.popleft()
                if not entry.ended:
                    hire = not self._idle and not self._coming and not self._closed
                    self._coming += hire
                    return entry, hire
            if not self._closed:
                self._idle.append(worker)
            return None, False

    def _await_call(self, worker: _Worker) -> bool:
        """Wait for work; False when the thread should end."""
        while not self._closed and not worker.wake.acquire(timeout=self._idle_seconds):
            with self._lock:
                if worker not in self._idle:
                    worker.wake.acquire()  # called in the last moment
                    break
                if len(self._idle) > 1 or not self._busy:
                    self._idle.remove(worker)
                    return False
        return not self._closed

    def _short_of_hands(self) -> bool:
        """Whether a thread has to be made. Counts it as coming. Call with the lock held."""
        short = bool(self._backlog) and not self._idle and not self._coming and not self._closed
        self._coming += short
        return short

    def _hire(self) -> None:
        """Start the thread that has been counted as coming."""
        worker = _Worker(self._live)
        with self._lock:
            if self._closed:
                return
            self._workers[worker] = None
        try:
            # Now, so that a kill never has to wait for its helper to come up behind functions that spin.
            self._vigil.wake()
            worker.start()
        except RuntimeError as error:  # the system has no more threads
            stranded = []
            with self._lock:
                self._coming -= 1
                del self._workers[worker]
                if not self._workers:
                    stranded = [entry for entry in self._backlog if not entry.ended]
                    self._backlog.clear()
                    for entry in stranded:
                        self._strike(entry)
            _LOG.error("no thread could be started for a callback: %s", error)
            for entry in stranded:
                entry.outcome = broken(error, entry.job.work, write_log)
            self._bury(stranded)

    # -- one job

    def _carry_out(self, entry: _Entry, worker: _Worker) -> None:
        try:
            if not self._open(entry, worker):
                return
            self._attempt(entry)
        except WorkerKilled:
            # Came up just before the job began, or was the second one and came up while the first was being put away.
            # Now the job is only closed. If another one comes up here the thread dies, and the vigil reports the job.
            self._attempt(entry)
        self._bury([entry])

    def _open(self, entry: _Entry, worker: _Worker) -> bool:
        """Open the job, so that from here on the exception may come up; False if it was killed before."""
        with self._lock:
            if entry.ended:
                return False
            entry.worker = worker
            self._busy += 1
            return True

    def _attempt(self, entry: _Entry) -> None:
        """Run the job unless that was tried already, and close it."""
        while not entry.ended:
            try:
                if not (entry.tried or entry.killed):
                    entry.tried = True
                    # An empty context: nothing of the thread's last job is seen, nor of whoever made the thread.
                    entry.outcome = contextvars.Context().run(self._perform, entry)
                self._shut(entry)
            except WorkerKilled:
                continue
            except BaseException as error:  # noqa: BLE001 - a fault of ours; the job must be reported all the same
                entry.outcome = broken(error, entry.job.work, entry.troubles.append)

    def _perform(self, entry: _Entry) -> Outcome:
        try:
            value = None if self._lifespan_value is None else self._lifespan_value()
        except LifespanFailed as failure:
            return Broke(failure.reference)
        context = make_context(entry.job, self._mailbox, self._clock, rate=self._rate, lifespan=value)
        entry.context = context
        if entry.killed:
            context.mark_cancelled()
        return carry_out_sync(entry.job, context, self._max_result_bytes, entry.troubles.append)

    def _shut(self, entry: _Entry) -> None:
        """Close the job. Afterwards no exception comes up in the thread any more."""
        with self._lock:
            self._strike(entry)
            if entry.injections:
                take_back()
                mend()

    def _strike(self, entry: _Entry) -> None:
        """End a job. Call with the lock held, and report it afterwards."""
        if entry.worker is not None:
            self._busy -= 1
        entry.ended = True
        self._entries.pop(entry.job.ref, None)

    def _bury(self, entries: Sequence[_Entry]) -> None:
        """Report jobs that have ended."""
        for entry in entries:
            for trouble in entry.troubles:
                write_log(trouble)
            deliver(self._mailbox, entry.job.ref, entry.outcome, entry.context)

    # -- killing

    def _condemn(self, entries: Sequence[_Entry], *, spared: threading.Thread | None = None) -> list[_Entry]:
        """Kill jobs and return those that had not begun, to be reported. Call with the lock held."""
        gone = []
        for entry in entries:
            if entry.killed:
                continue
            entry.killed = True
            if entry.worker is None:
                self._strike(entry)
                gone.append(entry)
                continue
            if entry.context is not None:
                entry.context.mark_cancelled()
            if entry.worker is not spared:
                self._dying.append(entry)
                self._hit(entry)
        return gone

    def _hit(self, entry: _Entry) -> None:
        """Put the exception into the thread, or plan to do it a little later. Call with the lock held."""
        worker = entry.worker
        if worker is None or worker.ident is None or not worker.is_alive():
            return
        hit = False
        stands = footing(worker.ident)
        if stands is Footing.FREE or (stands is Footing.FRAGILE and entry.deferrals >= PATIENCE):
            entry.injections += 1
            hit = inject(worker.ident)
        entry.deferrals = 0 if hit else entry.deferrals + 1
        late = hit or entry.deferrals > PATIENCE
        entry.attempts += late
        entry.due = self._clock() + (self._kill_grace if late else DELAY)

    def _look(self) -> float | None:
        """See to the killed jobs that have not ended; the vigil's work. Returns seconds until the next time."""
        with self._lock:
            lost = [e for e in self._dying if not e.ended and e.worker and not e.worker.is_alive()]
            for entry in lost:
                self._strike(entry)
            self._dying = [e for e in self._dying if not e.ended and e.attempts < KILL_ATTEMPTS]
            now = self._clock()
            for entry in self._dying:
                if entry.due <= now:
                    self._hit(entry)
            pause = min((entry.due for entry in self._dying), default=None)
        self._bury(lost)
        return None if pause is None else max(0.0, pause - now)
