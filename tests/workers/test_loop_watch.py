from __future__ import annotations

import asyncio
import threading
import time

from stanchion.server.ports import Broke, Killed, LoopStalled, Value
from stanchion.workers.loop import LoopCrew
from tests.workers.crews import GRACE, LONG, Gate, Lifespan, loop_crew, quick, which_thread
from tests.workers.letterbox import PATIENCE, await_no_thread, make_job

# -- a loop that stands still


def test_a_blocked_loop_is_replaced_and_its_unbegun_jobs_run_once(box) -> None:
    crew = loop_crew(box, stall_limit=0.05)
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
    crew = loop_crew(box, stall_limit=0.05)
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
    crew = loop_crew(box, stall_limit=0.05)
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
    crew = loop_crew(box, stall_limit=0.05)
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
    crew = loop_crew(box, stall_limit=0.02)
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
    crew = loop_crew(box, stall_limit=0.01)
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
    crew = loop_crew(box)
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
    crew = loop_crew(box, stall_limit=0.05)
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
    crew = loop_crew(box, close_seconds=0.1)
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
    crew = loop_crew(box)

    async def tool() -> str:
        crew.close()
        return "closed"

    job = make_job(tool, raw=True)
    crew.start([job])
    assert box.outcome(job.ref) == Value("closed")
    await_no_thread()


def test_many_crews_leave_no_thread(box) -> None:
    for round_ in range(50):
        crew = loop_crew(box, lifespan=Lifespan().open if round_ % 2 else None)
        jobs = [make_job(quick) for _ in range(4)]
        crew.start(jobs)
        crew.close()
        for job in jobs:
            assert len(box.outcomes(job.ref)) == 1
    await_no_thread()


def test_a_crew_that_did_nothing_has_nothing_to_close(box) -> None:
    crew = loop_crew(box)
    crew.close()
    await_no_thread()


def test_a_system_without_threads_breaks_the_job_and_no_more(box, monkeypatch) -> None:
    def refuse(self):
        raise RuntimeError("can't start new thread")

    crew = loop_crew(box)
    job = make_job(quick)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        crew.start([job])
    assert isinstance(box.outcome(job.ref), Broke)
    job = make_job(quick, raw=True)
    crew.start([job])
    assert box.outcome(job.ref) == Value("x")
    crew.close()
