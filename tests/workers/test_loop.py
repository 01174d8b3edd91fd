from __future__ import annotations

import asyncio
import contextvars
import threading
import time

import pytest

from stanchion.registry.authorizer import Allow, ToolCall, allow
from stanchion.registry.features import Tool
from stanchion.server.context import Context
from stanchion.server.ports import Authorize, Finished, Judged, Killed, Progressed, Value
from tests.workers.crews import LONG, Gate, loop_crew, quick, which_thread
from tests.workers.letterbox import PATIENCE, make_job


@pytest.fixture(params=["asyncio", "uvloop"])
def crew(box, request):
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    return loop_crew(box, use_uvloop=request.param == "uvloop")


# -- running


def test_a_job_is_run_on_another_thread(box, crew) -> None:
    job = make_job(which_thread, raw=True)
    crew.start([job])
    outcome = box.outcome(job.ref)
    assert isinstance(outcome, Value)
    assert outcome.value != threading.get_ident()


def test_uvloop_is_used_when_asked_for(box) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def tool():
        return isinstance(asyncio.get_running_loop(), uvloop.Loop)

    for asked in (True, False):
        crew = loop_crew(box, use_uvloop=asked)
        job = make_job(tool, raw=True)
        crew.start([job])
        assert box.outcome(job.ref) == Value(asked)
        crew.close()


def test_an_authorizer_is_judged_there_too(box, crew) -> None:
    async def authorizer(call):
        await asyncio.sleep(0)
        return allow()

    job = make_job(Authorize(authorizer, ToolCall(tool=Tool.of(quick))), "task")
    crew.start([job])
    assert box.outcome(job.ref) == Judged(Allow())


def test_a_batch_is_one_wake_up(box, monkeypatch) -> None:
    crew = loop_crew(box)
    gate = Gate()
    first = make_job(gate.block)
    crew.start([first])
    assert gate.entered.wait(PATIENCE)
    loop = crew._current
    assert loop is not None
    wakes = []
    monkeypatch.setattr(loop, "wake", lambda: wakes.append(1))
    jobs = [make_job(quick) for _ in range(6)]
    crew.start(jobs[:3])
    crew.start(jobs[3:])
    crew.kill([first.ref])
    assert wakes == [1]
    monkeypatch.undo()
    loop.wake()
    gate.leave.set()
    box.await_finished([first.ref, *(job.ref for job in jobs)])
    crew.close()


def test_a_hundred_jobs_keep_their_contexts_apart(box, crew) -> None:
    variable: contextvars.ContextVar[object] = contextvars.ContextVar("variable", default="none")
    variable.set("the server's")

    async def child() -> object:
        await asyncio.sleep(0)
        return variable.get()

    async def tool(context: Context) -> list[object]:
        seen = [variable.get()]
        variable.set(context.request_id)
        for turn in range(int(str(context.request_id)) % 7):
            await asyncio.sleep(0.0001 * turn)
        async with asyncio.TaskGroup() as group:
            spawned = group.create_task(child())
        return [*seen, variable.get(), spawned.result(), context.request_id]

    jobs = [make_job(tool, raw=True, request_id=n) for n in range(100)]
    for at in range(0, 100, 5):
        crew.start(jobs[at : at + 5])
    for n, job in enumerate(jobs):
        assert box.outcome(job.ref) == Value(["none", n, n, n])


def test_progress_comes_in_order_and_before_the_end(box) -> None:
    crew = loop_crew(box, notices_per_second=2.0)

    async def tool(context: Context) -> str:
        for step in range(1, 101):
            await context.progress(step, 100)
        return "x"

    job = make_job(tool, wants_progress=True)
    crew.start([job])
    box.outcome(job.ref)
    crew.close()
    assert isinstance(box.reports[-1], Finished)
    steps = [report.progress for report in box.of(Progressed)]
    assert steps == sorted(set(steps))
    assert steps[-1] == 100


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_task_left_behind_does_not_take_the_loop_with_it(box, crew, error, caplog) -> None:
    async def stray() -> None:
        raise error

    async def tool() -> str:
        tool.child = asyncio.get_running_loop().create_task(stray())
        return "x"

    job = make_job(tool)
    crew.start([job])
    box.outcome(job.ref)
    after = make_job(which_thread, raw=True)
    crew.start([after])
    assert isinstance(box.outcome(after.ref), Value)
    assert "a task that a callback started failed" in caplog.text
    assert isinstance(tool.child.exception(), error)


def test_a_callback_that_stops_the_loop_does_not(box, crew) -> None:
    async def tool() -> str:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        return "x"

    job = make_job(tool, raw=True)
    crew.start([job])
    assert box.outcome(job.ref) == Value("x")


# -- killing


def test_a_waiting_task_is_cancelled(box, crew) -> None:
    gate = Gate()
    job = make_job(gate.wait)
    crew.start([job])
    assert gate.entered.wait(PATIENCE)
    crew.kill([job.ref, job.ref])
    crew.kill([job.ref])
    box.await_finished([job.ref])
    assert box.outcomes(job.ref) == [Killed()]


def test_a_job_killed_before_it_begins_never_does(box, crew) -> None:
    gate = Gate()
    blocker, job = make_job(gate.block), make_job(gate.wait)
    crew.start([blocker])
    assert gate.entered.wait(PATIENCE)
    crew.start([job])
    crew.kill([job.ref])
    assert box.outcomes(job.ref) == [Killed()]
    gate.leave.set()
    box.await_finished([blocker.ref, job.ref])
    assert gate.runs == 1


def test_one_claimed_but_not_begun_is_killed_too(box, crew) -> None:
    """A task that is cancelled before its first step never gets to run its own handling of that."""
    gate = Gate()
    jobs = [make_job(gate.wait) for _ in range(5)]
    for job in jobs:
        crew.start([job])
        crew.kill([job.ref])
    box.await_finished(job.ref for job in jobs)
    assert {report.outcome for report in box.of(Finished)} == {Killed()}


def test_a_kill_that_races_the_end_makes_one_report(box, crew) -> None:
    async def tool() -> str:
        await asyncio.sleep(0)
        return "x"

    refs = []
    for round_ in range(300):
        jobs = [make_job(tool) for _ in range(3)]
        crew.start(jobs)
        refs += [job.ref for job in jobs]
        for _ in range(round_ * 20):
            pass
        crew.kill([job.ref for job in jobs])
    box.await_finished(refs)
    assert {type(report.outcome).__name__ for report in box.of(Finished)} <= {"Killed", "Completed"}


def test_a_task_that_swallows_cancellation_is_cancelled_again(box, crew) -> None:
    entered = threading.Event()

    async def stubborn(context: Context) -> int:
        swallowed = 0
        while swallowed < 3:
            try:
                entered.set()
                await asyncio.sleep(LONG)
            except asyncio.CancelledError:
                assert context.cancelled
                swallowed += 1
        return swallowed

    job = make_job(stubborn, raw=True)
    crew.start([job])
    assert entered.wait(PATIENCE)
    crew.kill([job.ref])
    assert box.outcome(job.ref) == Value(3)


def test_a_callback_that_blocks_can_see_that_it_is_cancelled(box, crew) -> None:
    entered = threading.Event()

    async def tool(context: Context) -> str:
        entered.set()
        while not context.cancelled:
            time.sleep(0.001)
        return "noticed"

    job = make_job(tool, raw=True)
    crew.start([job])
    assert entered.wait(PATIENCE)
    crew.kill([job.ref])
    assert box.outcome(job.ref) == Value("noticed")


def test_unknown_refs_are_ignored(box, crew) -> None:
    crew.kill([12345])
    assert not box.reports
