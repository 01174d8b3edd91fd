"""Carries out what the kernel wants: the only place that waits.

Owns the protocol loop's side of everything: the inbox that other threads post to, the one timer, the crews, the channels
and the answers that are waited for. It contains no policy. Events that arrive together are fed together, and their jobs
are handed to the crews together, so that a burst costs one wake-up each way.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Final, assert_never

from stanchion.server.effects import Deliver, Dispatch, Effect, Emit, Fail, Kill, Push, Reply, Return
from stanchion.server.events import Closed, Event, Stopping
from stanchion.server.kernel import Kernel
from stanchion.server.observers import Observers
from stanchion.server.ports import Clock, Crew, Isolation, Job, Outlet
from stanchion.wire.jsonrpc import Ref

_LOG: Final = logging.getLogger("stanchion")

Sink = Callable[[Reply | Return | Fail], None]
"""Takes the end of one request. Called on the protocol loop; must not block."""


class Runner:
    """Drives one kernel on one loop."""

    def __init__(self, kernel: Kernel, clock: Clock, observers: Observers) -> None:
        self.kernel = kernel
        self.channels: dict[Hashable, Outlet] = {}
        self.sinks: dict[Ref, Sink] = {}
        self._clock = clock
        self._observers = observers
        self._crews: Mapping[Isolation, Crew] = {}
        self._inbox: deque[Event] = deque()
        self._woken = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: int | None = None
        self._jobs: dict[Isolation, list[Job]] = {}
        self._kills: list[Ref] = []
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._quiet: asyncio.Event | None = None

    def attach(self, crews: Mapping[Isolation, Crew]) -> None:
        """Begin to work on the running loop, with these crews."""
        self._crews = crews
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        if self._inbox:
            self._wake(self._loop)

    @property
    def on_loop(self) -> bool:
        """Whether this is the protocol loop's thread."""
        return self._thread == threading.get_ident()

    # -- the way in

    def post(self, event: Event) -> None:
        """Take an event from any thread; events of one thread are fed in the order of posting."""
        self._inbox.append(event)
        loop = self._loop
        # Two threads may both see False: the second wake-up then finds an empty inbox, which is harmless. What must not
        # happen is that nobody wakes the loop, and it can't: it clears the flag before it reads the inbox.
        if loop is not None and not self._woken:
            self._wake(loop)

    def feed(self, events: Iterable[Event]) -> None:
        """Take events on the protocol loop itself, after those that were posted before."""
        if self._inbox:
            self._take_posted()
        for event in events:
            self._perform(self.kernel.feed(event, self._clock()))
        self._flush()

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        self._woken = True
        try:
            loop.call_soon_threadsafe(self._drain_inbox)
        except RuntimeError:
            # The loop is closed: whoever still reports to it has missed the end of the server.
            self._inbox.clear()

    def _drain_inbox(self) -> None:
        self._woken = False
        self._take_posted()
        self._flush()

    def _take_posted(self) -> None:
        # Only as many as there are now, so that a chatty worker can't keep the loop from its other duties.
        for _ in range(len(self._inbox)):
            self._perform(self.kernel.feed(self._inbox.popleft(), self._clock()))
        if self._inbox and not self._woken and self._loop is not None:
            self._wake(self._loop)

    def _tick(self) -> None:
        self._timer = None
        self._perform(self.kernel.tick(self._clock()))
        self._flush()

    # -- the way out

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Dispatch(job):
                    jobs = self._jobs.get(job.isolation)
                    if jobs is None:
                        self._jobs[job.isolation] = [job]
                    else:
                        jobs.append(job)
                case Reply(ref) | Return(ref) | Fail(ref):
                    sink = self.sinks.pop(ref, None)
                    if sink is not None:
                        self._deliver(sink, effect)
                case Push():
                    self._push(effect)
                case Deliver(deliver, ident, answer):
                    deliver(ident, answer)
                case Kill(ref):
                    self._kills.append(ref)
                case Emit(name, fields):
                    self._observers.emit(name, fields)
                case _:
                    assert_never(effect)

    def _deliver(self, sink: Sink, effect: Reply | Return | Fail) -> None:
        try:
            sink(effect)
        except Exception:  # noqa: BLE001 - one bad sink must not take the loop from the others
            _LOG.exception("an answer could not be handed over")

    def _push(self, push: Push) -> None:
        channel = self.channels.get(push.connection)
        if channel is None:
            return
        try:
            channel(push.notice, push.related)
        except Exception:  # noqa: BLE001 - whatever it raises, the connection counts as gone (A8)
            _LOG.exception("a channel failed; its connection is closed")
            self.channels.pop(push.connection, None)
            self.post(Closed(push.connection))

    def _flush(self) -> None:
        if self._jobs:
            jobs, self._jobs = self._jobs, {}
            for isolation, batch in jobs.items():
                self._crews[isolation].start(batch)
        if self._kills:
            kills, self._kills = self._kills, []
            for crew in self._crews.values():
                crew.kill(kills)
        due = self.kernel.next_deadline
        # A timer that fires too early costs one idle tick; only one that would fire too late must be replaced.
        if due is not None and (self._timer is None or due < self._timer_due):
            self._arm(due)
        if self._quiet is not None and self.kernel.quiet:
            self._quiet.set()

    def _arm(self, due: float) -> None:
        assert self._loop is not None
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        self._timer = self._loop.call_later(max(0.0, due - self._clock()), self._tick)

    # -- the end

    async def drain(self, seconds: float) -> None:
        """Take no more work, give what runs *seconds* to end in, kill the rest, and wait until all is quiet."""
        self._quiet = asyncio.Event()
        self.feed([Stopping(seconds)])
        await self._quiet.wait()

    def close(self) -> None:
        """Stop the crews and the timer; whoever still waits for an answer gets none. Not for reuse."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for crew in self._crews.values():
            crew.close()
        for ref in list(self.sinks):
            sink = self.sinks.pop(ref, None)
            if sink is not None:
                self._deliver(sink, Reply(ref, None))
