"""A mailbox that keeps what it is given, and jobs to put into crews."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from stanchion.registry.features import Tool
from stanchion.server.ports import Facts, Finished, Isolation, Job, Outcome, Report, RunTool, Work
from stanchion.wire.jsonrpc import Ref
from stanchion.wire.revisions import NEWEST_HANDSHAKE

PATIENCE = 5.0
"""Seconds after which a test gives up on something that must come."""

_refs = itertools.count(1)


class Letterbox:
    """Keeps reports in order; tests wait for the one they want."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self._came = threading.Condition()

    def post(self, report: Report) -> None:
        with self._came:
            self.reports.append(report)
            self._came.notify_all()

    def wait_until(self, holds: Callable[[list[Report]], Any]) -> None:
        """Wait until *holds* of the reports so far."""
        with self._came:
            assert self._came.wait_for(lambda: holds(self.reports), PATIENCE), f"only {self.reports}"

    def outcome(self, ref: Ref) -> Outcome:
        """The outcome of a job, once it is there."""
        self.wait_until(lambda reports: any(isinstance(r, Finished) and r.ref == ref for r in reports))
        return self.outcomes(ref)[0]

    def outcomes(self, ref: Ref) -> list[Outcome]:
        """The outcomes of a job so far."""
        with self._came:
            return [r.outcome for r in self.reports if isinstance(r, Finished) and r.ref == ref]

    def await_finished(self, refs: Iterable[Ref]) -> None:
        """Wait until each of *refs* has been reported, and see that none was twice."""
        wanted = sorted(refs)
        self.wait_until(lambda reports: sum(isinstance(r, Finished) for r in reports) >= len(wanted))
        assert sorted(r.ref for r in self.reports if isinstance(r, Finished)) == wanted

    def of(self, kind: type[Report]) -> list[Any]:
        """The reports of one kind so far."""
        with self._came:
            return [r for r in self.reports if isinstance(r, kind)]


def make_job(
    work: Work | Callable[..., Any],
    isolation: Isolation | None = None,
    *,
    raw: bool = False,
    arguments: dict[str, object] | None = None,
    **facts: Any,
) -> Job:
    """A job for a piece of work, or for a function that becomes a tool."""
    if not isinstance(work, Work):
        work = RunTool(Tool.of(work), arguments or {})
    if isolation is None:
        isolation = work.tool.isolation if isinstance(work, RunTool) else "thread"
    request = Facts(request_id=1, profile=NEWEST_HANDSHAKE)
    if facts:
        request = Facts(**{"request_id": 1, "profile": NEWEST_HANDSHAKE, **facts})
    return Job(Ref(next(_refs)), work, request, isolation, raw)


def our_threads() -> list[threading.Thread]:
    """The threads that crews have made and that live."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("stanchion-")]


def await_no_thread() -> None:
    """Wait until the crews' threads have ended."""
    end = time.monotonic() + PATIENCE
    for thread in our_threads():
        thread.join(max(0.0, end - time.monotonic()))
    assert not our_threads()
