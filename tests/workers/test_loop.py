from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from contextlib import asynccontextmanager

import pytest

from stanchion.registry.authorizer import Allow, ToolCall, allow
from stanchion.registry.features import Tool
from stanchion.server.context import Context
from stanchion.server.ports import (
    Authorize,
    Broke,
    Finished,
    Judged,
    Killed,
    LoopStalled,
    Progressed,
    Value,
)
from stanchion.workers.execution import LifespanFailed
from stanchion.workers.loop import LoopCrew
from tests.workers.letterbox import PATIENCE, Letterbox, await_no_thread, make_job

GRACE = 0.02
LONG = 60.0


MADE: list[LoopCrew] = []


@pytest.fixture(autouse=True)
def _no_crew_outlives_its_test():
    yield
    while MADE:
        MADE.pop().close()


@pytest.fixture
def box() -> Letterbox:
    return Letterbox()


@pytest.fixture(params=["asyncio", "uvloop"])
def crew(box, request):
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    made = new_crew(box, use_uvloop=request.param == "uvloop")
    yield made
    made.close()
    await_no_thread()


def new_crew(box, **options) -> LoopCrew:
    settings = {
        "stall_limit": LONG,
        "kill_grace": GRACE,
        "max_result_bytes": None,
        "notices_per_second": 50.0,
    }
    MADE.append(LoopCrew(box, time.monotonic, **{**settings, **options}))
    return MADE[-1]


class Gate:
    """A coroutine function that waits until it is let go, and one that blocks its loop."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.leave = threading.Event()
        self.runs = 0

    async def block(self) -> str:
        self.runs += 1
        self.entered.set()
        self.leave.wait(PATIENCE)
        return "unblocked"

    async def wait(self) -> str:
        self.runs += 1
        self.entered.set()
        await asyncio.Event().wait()
        return "never"


async def quick() -> str:
    return "x"


async def which_thread() -> int:
    return threading.get_ident()


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
        crew = new_crew(box, use_uvloop=asked)
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
    crew = new_crew(box)
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
    crew = new_crew(box, notices_per_second=2.0)

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


# -- a loop that stands still


def test_a_blocked_loop_is_replaced_and_its_unbegun_jobs_run_once(box) -> None:
    crew = new_crew(box, stall_limit=0.05)
    gate = Gate()
    runs: list[int] = []

    def numbered(n: int):
        async def tool() -> int:
            runs.append(n)
            return threading.get_ident()

        return tool

    blocker = make_job(gate.block, raw=True)
    crew.start([blocker])
    assert gate.entered.wait(PATIENCE)
    stuck = crew._current
    jobs = [make_job(numbered(n), raw=True) for n in range(5)]
    crew.start(jobs[:3])
    crew.start(jobs[3:])
    threads = {box.outcome(job.ref).value for job in jobs}
    assert len(threads) == 1
    assert sorted(runs) == list(range(5))
    assert len(box.of(LoopStalled)) == 1
    assert box.of(LoopStalled)[0].seconds >= 0.05
    assert not box.outcomes(blocker.ref)
    later = make_job(which_thread, raw=True)
    crew.start([later])
    assert {box.outcome(later.ref).value} == threads
    # The loop that was given up comes round: it ends its task, then itself, and runs nothing a second time.
    gate.leave.set()
    assert box.outcome(blocker.ref) == Value("unblocked")
    stuck.thread.join(PATIENCE)
    assert not stuck.thread.is_alive()
    assert sorted(runs) == list(range(5))
    crew.close()
    await_no_thread()


def test_what_waits_on_a_loop_given_up_still_ends(box) -> None:
    """Tasks beside the blocking one go on when the loop comes round, and can be killed."""
    crew = new_crew(box, stall_limit=0.05)
    gate, bystander, doomed = Gate(), Gate(), Gate()

    async def patient() -> str:
        bystander.entered.set()
        while not bystander.leave.is_set():
            await asyncio.sleep(0.001)
        return "patient"

    jobs = [make_job(patient, raw=True), make_job(doomed.wait), make_job(gate.block, raw=True)]
    crew.start(jobs)
    assert gate.entered.wait(PATIENCE)
    crew.start([make_job(quick)])
    box.wait_until(lambda reports: any(isinstance(report, LoopStalled) for report in reports))
    crew.kill([jobs[1].ref])
    bystander.leave.set()
    gate.leave.set()
    assert box.outcome(jobs[0].ref) == Value("patient")
    assert box.outcome(jobs[1].ref) == Killed()
    assert box.outcome(jobs[2].ref) == Value("unblocked")
    crew.close()
    await_no_thread()


def test_a_kill_that_is_not_heard_gives_the_loop_up_as_well(box) -> None:
    crew = new_crew(box, stall_limit=0.05)
    gate = Gate()
    job = make_job(gate.block, raw=True)
    crew.start([job])
    assert gate.entered.wait(PATIENCE)
    crew.kill([job.ref])
    box.wait_until(lambda reports: any(isinstance(report, LoopStalled) for report in reports))
    gate.leave.set()
    assert box.outcome(job.ref) == Value("unblocked")
    crew.close()


def test_blocking_the_fresh_loop_gets_another(box) -> None:
    crew = new_crew(box, stall_limit=0.05)
    gates = [Gate() for _ in range(4)]
    jobs = [make_job(gate.block, raw=True) for gate in gates]
    for gate, job in zip(gates, jobs, strict=True):
        crew.start([job])
        assert gate.entered.wait(PATIENCE)
    for gate in gates:
        gate.leave.set()
    box.await_finished(job.ref for job in jobs)
    assert len(box.of(LoopStalled)) == 3
    assert [gate.runs for gate in gates] == [1] * 4
    crew.close()
    await_no_thread()


def test_jobs_racing_the_replacement_run_once(box) -> None:
    crew = new_crew(box, stall_limit=0.02)
    runs: list[int] = []

    def counted(n: int):
        async def tool() -> None:
            runs.append(n)
            if n % 40 == 0:
                time.sleep(0.03)

        return tool

    jobs = [make_job(counted(n)) for n in range(400)]
    for job in jobs:
        crew.start([job])
        time.sleep(0.0005)
    box.await_finished(job.ref for job in jobs)
    assert sorted(runs) == list(range(400))
    crew.close()
    await_no_thread()


def test_the_watchdog_sleeps_when_nothing_is_posted(box) -> None:
    crew = new_crew(box, stall_limit=0.01)
    for _ in range(3):
        job = make_job(quick)
        crew.start([job])
        box.outcome(job.ref)
        deadline = time.monotonic() + PATIENCE
        while crew._watching:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        assert crew._next_look is None
    assert not box.of(LoopStalled)
    crew.close()


def test_a_watchdog_that_was_late_itself_blames_nobody(box) -> None:
    now = [0.0]
    crew = LoopCrew(
        box, lambda: now[0], stall_limit=1.0, kill_grace=GRACE, max_result_bytes=None, notices_per_second=50.0
    )
    gate = Gate()
    crew.start([make_job(gate.block)])
    assert gate.entered.wait(PATIENCE)
    crew._watchdog.stop(PATIENCE)
    crew.start([make_job(quick)])
    crew._next_look = 0.5
    now[0] = 100.0
    assert crew._look() == 1.0
    assert not box.of(LoopStalled)
    now[0] = 101.0
    assert crew._look() == 1.0
    assert len(box.of(LoopStalled)) == 1
    gate.leave.set()
    crew.close()


# -- closing


def test_close_kills_what_runs_and_what_waits(box) -> None:
    crew = new_crew(box)
    gates = [Gate() for _ in range(3)]
    jobs = [make_job(gate.wait) for gate in gates]
    crew.start(jobs)
    for gate in gates:
        assert gate.entered.wait(PATIENCE)
    crew.close()
    box.await_finished(job.ref for job in jobs)
    await_no_thread()
    crew.close()
    late = make_job(quick)
    crew.start([late])
    assert box.outcomes(late.ref) == [Killed()]


def test_close_does_not_wait_for_a_blocked_loop(box) -> None:
    crew = new_crew(box, stall_limit=0.05)
    gate = Gate()
    blocker, waiting = make_job(gate.block, raw=True), make_job(quick)
    crew.start([blocker])
    assert gate.entered.wait(PATIENCE)
    crew.start([waiting])
    crew.close()
    assert box.outcomes(blocker.ref) == []
    assert len(box.outcomes(waiting.ref)) == 1
    gate.leave.set()
    assert box.outcome(blocker.ref) == Value("unblocked")
    await_no_thread()


def test_close_gives_up_on_a_task_that_swallows_everything(box) -> None:
    crew = new_crew(box, close_seconds=0.1)
    entered = threading.Event()
    never = threading.Event()

    async def stubborn() -> None:
        while not never.is_set():
            try:
                entered.set()
                await asyncio.sleep(LONG)
            except asyncio.CancelledError:
                pass

    job = make_job(stubborn)
    crew.start([job])
    assert entered.wait(PATIENCE)
    crew.close()
    assert box.outcome(job.ref) == Killed()
    await_no_thread()


def test_a_callback_may_close_its_own_crew(box) -> None:
    crew = new_crew(box)

    async def tool() -> str:
        crew.close()
        return "closed"

    job = make_job(tool, raw=True)
    crew.start([job])
    assert box.outcome(job.ref) == Value("closed")
    await_no_thread()


def test_many_crews_leave_no_thread(box) -> None:
    for round_ in range(50):
        crew = new_crew(box, lifespan=Lifespan().open if round_ % 2 else None)
        jobs = [make_job(quick) for _ in range(4)]
        crew.start(jobs)
        crew.close()
        for job in jobs:
            assert len(box.outcomes(job.ref)) == 1
    await_no_thread()


def test_a_crew_that_did_nothing_has_nothing_to_close(box) -> None:
    crew = new_crew(box)
    crew.close()
    await_no_thread()


def test_a_system_without_threads_breaks_the_job_and_no_more(box, monkeypatch) -> None:
    def refuse(self):
        raise RuntimeError("can't start new thread")

    crew = new_crew(box)
    job = make_job(quick)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        crew.start([job])
    assert isinstance(box.outcome(job.ref), Broke)
    job = make_job(quick, raw=True)
    crew.start([job])
    assert box.outcome(job.ref) == Value("x")
    crew.close()


# -- the lifespan


class Lifespan:
    """Counts its entries and exits; each value is new."""

    def __init__(self, fail: int = 0) -> None:
        self.fail = fail
        self.entered: list[int] = []
        self.left: list[int] = []

    @asynccontextmanager
    async def open(self):
        await asyncio.sleep(0)
        if self.fail:
            self.fail -= 1
            raise ValueError("no database")
        value = len(self.entered) + 1
        self.entered.append(threading.get_ident())
        yield value
        self.left.append(threading.get_ident())


async def show(context: Context) -> object:
    return context.lifespan


def test_the_lifespan_is_entered_once_and_left_on_its_loop(box) -> None:
    lifespan = Lifespan()
    crew = new_crew(box, lifespan=lifespan.open)
    for _ in range(2):
        jobs = [make_job(show, raw=True) for _ in range(3)]
        crew.start(jobs)
        assert [box.outcome(job.ref) for job in jobs] == [Value(1)] * 3
    thread = make_job(which_thread, raw=True)
    crew.start([thread])
    assert lifespan.entered == [box.outcome(thread.ref).value]
    assert not lifespan.left
    crew.close()
    assert lifespan.left == lifespan.entered


def test_each_fresh_loop_has_a_lifespan_of_its_own(box) -> None:
    lifespan = Lifespan()
    crew = new_crew(box, lifespan=lifespan.open, stall_limit=0.05)
    gate = Gate()
    blocker, after = make_job(gate.block), make_job(show, raw=True)
    crew.start([blocker])
    assert gate.entered.wait(PATIENCE)
    crew.start([after])
    assert box.outcome(after.ref) == Value(2)
    gate.leave.set()
    box.outcome(blocker.ref)
    crew.close()
    await_no_thread()
    assert len(set(lifespan.entered)) == 2
    assert sorted(lifespan.left) == sorted(lifespan.entered)


def test_a_lifespan_that_raises_breaks_its_jobs_and_is_tried_again(box, caplog) -> None:
    lifespan = Lifespan(fail=2)
    crew = new_crew(box, lifespan=lifespan.open)
    for _ in range(2):
        jobs = [make_job(show, raw=True) for _ in range(2)]
        crew.start(jobs)
        first, second = (box.outcome(job.ref) for job in jobs)
        assert isinstance(first, Broke)
        assert first == second
        assert first.reference in caplog.text
    assert "no database" in caplog.text
    job = make_job(show, raw=True)
    crew.start([job])
    assert box.outcome(job.ref) == Value(1)
    crew.close()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit])
def test_whatever_a_lifespan_raises_the_loop_survives(box, error) -> None:
    def lifespan():
        raise error

    crew = new_crew(box, lifespan=lifespan)
    for _ in range(2):
        job = make_job(quick)
        crew.start([job])
        assert isinstance(box.outcome(job.ref), Broke)
    crew.close()
    await_no_thread()


def test_a_slow_lifespan_is_no_stall_and_its_jobs_can_be_killed(box) -> None:
    gate = Gate()

    @asynccontextmanager
    async def lifespan():
        gate.entered.set()
        gate.leave.wait(PATIENCE)
        yield "slow"

    crew = new_crew(box, lifespan=lifespan, stall_limit=0.02)
    jobs = [make_job(show, raw=True) for _ in range(3)]
    crew.start(jobs[:1])
    assert gate.entered.wait(PATIENCE)
    crew.start(jobs[1:])
    crew.kill([jobs[1].ref])
    assert box.outcomes(jobs[1].ref) == [Killed()]
    crew._look()
    time.sleep(0.1)  # several times the limit: nothing may happen in it
    gate.leave.set()
    assert box.outcome(jobs[0].ref) == box.outcome(jobs[2].ref) == Value("slow")
    assert not box.of(LoopStalled)
    crew.close()


def test_a_lifespan_that_collapses_is_entered_again(box, caplog) -> None:
    collapse = []

    async def watch() -> None:
        while not collapse:
            await asyncio.sleep(0.001)
        collapse.clear()
        raise ValueError("connection lost")

    entries = []

    @asynccontextmanager
    async def lifespan():
        entries.append(1)
        async with asyncio.TaskGroup() as group:
            watcher = group.create_task(watch())
            yield len(entries)
            watcher.cancel()

    crew = new_crew(box, lifespan=lifespan)
    job = make_job(show, raw=True)
    crew.start([job])
    assert box.outcome(job.ref) == Value(1)
    collapse.append(1)
    deadline = time.monotonic() + PATIENCE
    while crew._current.ready:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    job = make_job(show, raw=True)
    crew.start([job])
    assert box.outcome(job.ref) == Value(2)
    assert "connection lost" in caplog.text
    crew.close()
    await_no_thread()


def test_a_lifespan_that_never_opens_does_not_hold_up_close(box) -> None:
    entered = threading.Event()

    @asynccontextmanager
    async def lifespan():
        entered.set()
        await asyncio.Event().wait()
        yield

    crew = new_crew(box, lifespan=lifespan)
    job = make_job(quick)
    crew.start([job])
    assert entered.wait(PATIENCE)
    crew.close()
    assert box.outcomes(job.ref) == [Killed()]
    await_no_thread()


def test_a_lifespan_that_never_closes_is_cancelled(box, caplog) -> None:
    @asynccontextmanager
    async def lifespan():
        yield
        await asyncio.Event().wait()

    crew = new_crew(box, lifespan=lifespan, close_seconds=0.2)
    job = make_job(quick)
    crew.start([job])
    box.outcome(job.ref)
    crew.close()
    await_no_thread()
    assert "did not end in time" in caplog.text


def test_others_can_wait_for_the_lifespan(box) -> None:
    lifespan = Lifespan(fail=1)
    crew = new_crew(box, lifespan=lifespan.open)
    with pytest.raises(LifespanFailed):
        crew.lifespan_value()
    values = []
    threads = [threading.Thread(target=lambda: values.append(crew.lifespan_value())) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert values == [1] * 5
    crew.close()
    with pytest.raises(LifespanFailed):
        crew.lifespan_value()
    bare = new_crew(box)
    assert bare.lifespan_value() is None
    bare.close()
