from __future__ import annotations

import asyncio
import io
import logging
import threading

import pytest

from stanchion.server.context import SyncContext
from stanchion.server.ports import Broke, Finished, Killed, Value
from stanchion.workers import injection, threads
from stanchion.workers.injection import Footing, WorkerKilled
from stanchion.workers.threads import ThreadCrew
from tests.workers.crews import Spinner, thread_crew
from tests.workers.letterbox import PATIENCE, make_job


@pytest.fixture
def crew(box):
    return thread_crew(box)


# -- killing


def test_a_spinning_function_is_killed(box, crew) -> None:
    spinner = Spinner()
    job = make_job(spinner.spin)
    crew.start([job])
    assert spinner.running.wait(PATIENCE)
    crew.kill([job.ref])
    assert box.outcome(job.ref) == Killed()


def test_a_function_that_survives_the_exception_is_hit_again(box, crew) -> None:
    spinner = Spinner()
    job = make_job(spinner.resist)
    crew.start([job])
    assert spinner.running.wait(PATIENCE)
    crew.kill([job.ref])
    assert box.outcome(job.ref) == Killed()
    assert spinner.hits == 2


def test_a_job_killed_twice_is_reported_once(box, crew) -> None:
    spinner = Spinner()
    job = make_job(spinner.spin)
    crew.start([job])
    assert spinner.running.wait(PATIENCE)
    crew.kill([job.ref, job.ref])
    crew.kill([job.ref])
    box.await_finished([job.ref])
    crew.kill([job.ref])


def test_a_job_killed_before_it_begins_never_does(box, crew, monkeypatch) -> None:
    monkeypatch.setattr(ThreadCrew, "_hire", lambda _: None)
    ran = []
    jobs = [make_job(lambda: ran.append(1)) for _ in range(3)]
    crew.start(jobs)
    crew.kill([jobs[0].ref, jobs[2].ref, jobs[0].ref])
    assert box.outcomes(jobs[0].ref) == [Killed()] == box.outcomes(jobs[2].ref)
    monkeypatch.undo()
    crew._hire()
    box.await_finished(job.ref for job in jobs)
    assert ran == [1]


def test_a_killed_thread_takes_no_second_job(box, crew) -> None:
    spinner = Spinner()
    victims = []

    def tool() -> str:
        victims.append(threading.current_thread())
        return spinner.spin()

    job = make_job(tool)
    crew.start([job])
    assert spinner.running.wait(PATIENCE)
    crew.kill([job.ref])
    box.outcome(job.ref)
    victims[0].join(PATIENCE)
    assert not victims[0].is_alive()


def test_one_in_c_is_reported_when_it_comes_back(box, crew) -> None:
    begun, leave = threading.Event(), threading.Lock()
    leave.acquire()

    def tool() -> str:
        begun.set()
        leave.acquire()
        return "x"

    job = make_job(tool)
    crew.start([job])
    assert begun.wait(PATIENCE)
    crew.kill([job.ref])
    other = make_job(lambda: "x", raw=True)
    crew.start([other])
    assert box.outcome(other.ref) == Value("x")
    assert not box.outcomes(job.ref)
    leave.release()
    assert box.outcome(job.ref) == Killed()


def test_a_coroutine_on_a_thread_of_its_own_is_killed_while_it_waits(box, crew) -> None:
    begun = threading.Event()

    async def tool() -> None:
        begun.set()
        await asyncio.Event().wait()

    job = make_job(tool, "thread")
    crew.start([job])
    assert begun.wait(PATIENCE)
    crew.kill([job.ref])
    assert box.outcome(job.ref) == Killed()


def test_a_callback_sees_that_it_is_cancelled(box, crew) -> None:
    begun = threading.Event()
    seen = threading.Event()

    def tool(context: SyncContext) -> str:
        begun.set()
        try:
            while True:
                pass
        except BaseException:
            if context.cancelled:
                seen.set()
            raise

    job = make_job(tool)
    crew.start([job])
    assert begun.wait(PATIENCE)
    crew.kill([job.ref])
    assert box.outcome(job.ref) == Killed()
    assert seen.is_set()


def test_unknown_refs_are_ignored(box, crew) -> None:
    crew.kill([12345])
    assert not box.reports


@pytest.mark.parametrize("length", [0, 30, 300, 3000])
def test_a_kill_that_races_the_end_makes_one_report(box, crew, length) -> None:
    """The kill falls on the last bytecodes of the callback, or on our own."""

    def tool() -> str:
        for _ in range(length):
            pass
        return "x"

    refs = []
    for round_ in range(150):
        jobs = [make_job(tool) for _ in range(3)]
        crew.start(jobs)
        refs += [job.ref for job in jobs]
        for _ in range(round_ % 50):
            pass
        for job in jobs:
            crew.kill([job.ref])
    box.await_finished(refs)
    assert {type(report.outcome).__name__ for report in box.of(Finished)} <= {"Killed", "Completed"}
    after = make_job(lambda: "x", raw=True)
    crew.start([after])
    assert box.outcome(after.ref) == Value("x")


def test_the_exception_may_come_up_anywhere_in_our_own_code(box, monkeypatch) -> None:
    """It is put in again and again, without any grace, at a job whose callback is all but nothing."""
    crew = thread_crew(box, kill_grace=0.0)
    monkeypatch.setattr(threads, "KILL_ATTEMPTS", 10**9)
    monkeypatch.setattr(threads, "footing", lambda _: Footing.FREE)
    monkeypatch.setattr(injection, "footing", lambda _: Footing.FREE)
    refs = []
    for _ in range(300):
        job = make_job(lambda: "x")
        crew.start([job])
        crew.kill([job.ref])
        refs.append(job.ref)
    box.await_finished(refs)
    monkeypatch.undo()
    after = [make_job(lambda: "x", raw=True) for _ in range(20)]
    crew.start(after)
    assert [box.outcome(job.ref) for job in after] == [Value("x")] * 20
    crew.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_died_is_reported_by_the_vigil(box, monkeypatch) -> None:
    """As if a third exception had come up while the second was put away."""
    crew = thread_crew(box)
    spinner = Spinner()

    def die(self, entry):
        spinner.spin()

    monkeypatch.setattr(ThreadCrew, "_attempt", die)
    job = make_job(lambda: "x")
    crew.start([job])
    assert spinner.running.wait(PATIENCE)
    crew.kill([job.ref])
    assert box.outcome(job.ref) == Killed()
    box.await_finished([job.ref])
    crew.close()


def test_the_log_line_of_a_killed_job_is_written_in_peace(box, crew, caplog) -> None:
    begun = threading.Event()

    def tool() -> None:
        begun.set()
        try:
            while True:
                pass
        except BaseException:
            raise ValueError("told to the log") from None

    job = make_job(tool)
    crew.start([job])
    assert begun.wait(PATIENCE)
    crew.kill([job.ref])
    assert isinstance(box.outcome(job.ref), Broke)
    assert "told to the log" in caplog.text


def test_what_others_need_whole_is_not_interrupted(box, crew) -> None:
    """A thread in the middle of a log handler is let finish: a lock left behind there would stop everybody's logging."""
    inside, leave = threading.Event(), threading.Event()
    handled = []

    class Slow(logging.Handler):
        def emit(self, record):
            inside.set()
            while not leave.is_set():
                pass
            handled.append(record.getMessage())

    logger = logging.getLogger("test.slow")
    logger.propagate = False
    handler = Slow()
    logger.addHandler(handler)

    def tool() -> None:
        logger.warning("whole")
        while True:
            pass

    job = make_job(tool)
    crew.start([job])
    assert inside.wait(PATIENCE)
    crew.kill([job.ref])
    assert not box.outcomes(job.ref)
    leave.set()
    assert box.outcome(job.ref) == Killed()
    logger.removeHandler(handler)
    assert handled == ["whole"]


def test_killing_what_logs_leaves_the_log_usable(box, crew) -> None:
    logger = logging.getLogger("test.busy")
    logger.propagate = False
    handler = logging.StreamHandler(io.StringIO())
    logger.addHandler(handler)
    begun = threading.Semaphore(0)

    def tool() -> None:
        begun.release()
        while True:
            logger.error("busy")

    for _ in range(4):
        jobs = [make_job(tool) for _ in range(3)]
        crew.start(jobs)
        for _ in jobs:
            assert begun.acquire(timeout=PATIENCE)
        crew.kill([job.ref for job in jobs])
        for job in jobs:
            assert box.outcome(job.ref) == Killed()
    writer = threading.Thread(target=logger.error, args=("still here",), daemon=True)
    writer.start()
    writer.join(PATIENCE)
    assert not writer.is_alive()
    logger.removeHandler(handler)


def test_patience_with_them_ends(box, monkeypatch) -> None:
    crew = thread_crew(box)
    monkeypatch.setattr(threads, "footing", lambda _: Footing.FRAGILE)
    monkeypatch.setattr(threads, "DELAY", 0.001)
    spinner = Spinner()
    job = make_job(spinner.spin)
    crew.start([job])
    assert spinner.running.wait(PATIENCE)
    crew.kill([job.ref])
    assert box.outcome(job.ref) == Killed()
    crew.close()


def test_the_exception_is_none_that_except_exception_catches() -> None:
    assert not issubclass(WorkerKilled, Exception)
    assert injection.WorkerKilled is WorkerKilled
