from __future__ import annotations

import asyncio
import threading
import time
from contextlib import asynccontextmanager

import pytest

from stanchion.server.ports import Broke, Killed, LoopStalled, Value
from stanchion.workers.execution import LifespanFailed
from tests.workers.crews import Gate, Lifespan, loop_crew, quick, show, which_thread
from tests.workers.letterbox import PATIENCE, await_no_thread, make_job

# -- the lifespan


def test_the_lifespan_is_entered_once_and_left_on_its_loop(box) -> None:
    lifespan = Lifespan()
    crew = loop_crew(box, lifespan=lifespan.open)
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
    crew = loop_crew(box, lifespan=lifespan.open, stall_limit=0.05)
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
    crew = loop_crew(box, lifespan=lifespan.open)
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

    crew = loop_crew(box, lifespan=lifespan)
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

    crew = loop_crew(box, lifespan=lifespan, stall_limit=0.02)
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

    crew = loop_crew(box, lifespan=lifespan)
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

    crew = loop_crew(box, lifespan=lifespan)
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

    crew = loop_crew(box, lifespan=lifespan, close_seconds=0.2)
    job = make_job(quick)
    crew.start([job])
    box.outcome(job.ref)
    crew.close()
    await_no_thread()
    assert "did not end in time" in caplog.text


def test_others_can_wait_for_the_lifespan(box) -> None:
    lifespan = Lifespan(fail=1)
    crew = loop_crew(box, lifespan=lifespan.open)
    with pytest.raises(LifespanFailed) as failed:
        crew.lifespan_value()
    assert isinstance(failed.value.__cause__, ValueError)
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
    bare = loop_crew(box)
    assert bare.lifespan_value() is None
    bare.close()
