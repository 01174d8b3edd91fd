from __future__ import annotations

import contextvars
import threading
import time
import weakref

import pytest

from stanchion.server.context import SyncContext
from stanchion.server.ports import Broke, Finished, Killed, Progressed, Value
from stanchion.workers import threads
from stanchion.workers.execution import LifespanFailed
from tests.workers.crews import Spinner, thread_crew
from tests.workers.letterbox import PATIENCE, Letterbox, await_no_thread, make_job, our_threads


@pytest.fixture
def crew(box):
    return thread_crew(box)


# -- running


def test_a_job_is_run_off_the_caller_s_thread(box, crew) -> None:
    job = make_job(lambda: threading.get_ident(), raw=True)  # noqa: PLW0108 - a builtin has no signature
    crew.start([job])
    outcome = box.outcome(job.ref)
    assert isinstance(outcome, Value)
    assert outcome.value != threading.get_ident()


def test_jobs_run_side_by_side(box, crew) -> None:
    together = threading.Barrier(40)
    jobs = [make_job(lambda: together.wait(PATIENCE), raw=True) for _ in range(40)]
    crew.start(jobs[:8])
    crew.start(jobs[8:])
    box.await_finished(job.ref for job in jobs)
    assert all(isinstance(report.outcome, Value) for report in box.of(Finished))


def test_threads_are_used_again(box, crew) -> None:
    seen = set()
    for _ in range(200):
        job = make_job(lambda: threading.get_ident(), raw=True)  # noqa: PLW0108 - a builtin has no signature
        crew.start([job])
        seen.add(box.outcome(job.ref).value)
    assert len(seen) < 20


def test_idle_threads_end_and_come_back(box) -> None:
    crew = thread_crew(box, idle_seconds=0.01)
    for _ in range(3):
        jobs = [make_job(lambda: "x") for _ in range(5)]
        crew.start(jobs)
        for job in jobs:
            box.outcome(job.ref)
        deadline = time.monotonic() + PATIENCE
        while [t for t in our_threads() if t.name == "stanchion-thread"]:
            assert time.monotonic() < deadline
            time.sleep(0.005)
    crew.close()


def test_jobs_do_not_see_each_other_s_context_variables(box, crew) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    variable.set("the server's")
    together = threading.Barrier(10)

    def tool(context: SyncContext) -> list[str]:
        before = variable.get()
        variable.set(str(context.request_id))
        together.wait(PATIENCE)
        return [before, variable.get()]

    for _ in range(10):
        jobs = [make_job(tool, raw=True, request_id=n) for n in range(10)]
        crew.start(jobs)
        for n, job in enumerate(jobs):
            assert box.outcome(job.ref) == Value(["none", str(n)])


def test_progress_comes_in_order_and_before_the_end(box) -> None:
    crew = thread_crew(box, notices_per_second=2.0)

    def tool(context: SyncContext) -> str:
        for step in range(1, 101):
            context.progress(step, 100)
        return "x"

    job = make_job(tool, wants_progress=True)
    crew.start([job])
    box.outcome(job.ref)
    crew.close()
    assert isinstance(box.reports[-1], Finished)
    steps = [report.progress for report in box.of(Progressed)]
    assert steps == sorted(set(steps))
    assert steps[-1] == 100


def test_what_a_job_held_is_let_go_of_when_it_ends(box, crew) -> None:
    class Thing:
        pass

    gone = threading.Event()

    def tool() -> str:

        thing = Thing()
        weakref.finalize(thing, gone.set)
        raise ValueError(thing)

    job = make_job(tool)
    crew.start([job])
    assert isinstance(box.outcome(job.ref), Broke)
    assert gone.wait(PATIENCE)


# -- the lifespan


def test_contexts_show_the_lifespan(box) -> None:
    crew = thread_crew(box, lifespan_value=lambda: "db")

    def tool(context: SyncContext) -> str:
        return context.lifespan

    job = make_job(tool, raw=True)
    crew.start([job])
    assert box.outcome(job.ref) == Value("db")
    crew.close()


def test_without_its_lifespan_a_job_is_not_run(box) -> None:
    def fail():
        raise LifespanFailed("abcd")

    crew = thread_crew(box, lifespan_value=fail)
    ran = []
    job = make_job(lambda: ran.append(1))
    crew.start([job])
    assert box.outcome(job.ref) == Broke("abcd")
    assert not ran
    crew.close()


# -- closing


def test_close_kills_and_leaves_nothing(box) -> None:
    crew = thread_crew(box)
    spinners = [Spinner() for _ in range(3)]
    jobs = [make_job(spinner.spin) for spinner in spinners]
    crew.start(jobs)
    for spinner in spinners:
        assert spinner.running.wait(PATIENCE)
    crew.close()
    box.await_finished(job.ref for job in jobs)
    await_no_thread()
    crew.close()


def test_jobs_after_close_are_reported_killed(box) -> None:
    crew = thread_crew(box)
    crew.close()
    job = make_job(lambda: "x")
    crew.start([job])
    assert box.outcomes(job.ref) == [Killed()]


def test_a_callback_may_close_its_own_crew(box) -> None:
    crew = thread_crew(box)

    def tool() -> str:
        crew.close()
        return "closed"

    job = make_job(tool, raw=True)
    crew.start([job])
    assert box.outcome(job.ref) == Value("closed")
    await_no_thread()


def test_close_does_not_wait_for_what_does_not_end(box) -> None:
    crew = thread_crew(box, close_seconds=0.05)
    begun, leave = threading.Event(), threading.Lock()
    leave.acquire()
    job = make_job(lambda: (begun.set(), leave.acquire()) and "x")
    crew.start([job])
    assert begun.wait(PATIENCE)
    crew.close()
    assert not box.outcomes(job.ref)
    leave.release()
    assert box.outcome(job.ref) == Killed()
    await_no_thread()


def test_many_crews_leave_no_thread() -> None:
    for _ in range(50):
        box = Letterbox()
        crew = thread_crew(box)
        jobs = [make_job(lambda: "x") for _ in range(4)]
        crew.start(jobs)
        crew.close()
        box.await_finished(job.ref for job in jobs)
    await_no_thread()


def test_a_system_without_threads_breaks_the_job_and_no_more(box, monkeypatch, caplog) -> None:
    def refuse(self):
        raise RuntimeError("can't start new thread")

    crew = thread_crew(box)
    with monkeypatch.context() as patch:
        patch.setattr(threads._Worker, "start", refuse)
        job = make_job(lambda: "x")
        crew.start([job])
        assert isinstance(box.outcome(job.ref), Broke)
    job = make_job(lambda: "x", raw=True)
    crew.start([job])
    assert box.outcome(job.ref) == Value("x")
    crew.close()
