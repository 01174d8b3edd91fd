from __future__ import annotations

import asyncio
import contextvars
import io
import logging
import threading
import time

import pytest

from stanchion.server.context import SyncContext
from stanchion.server.ports import Broke, Finished, Killed, Progressed, Value
from stanchion.workers import injection, threads
from stanchion.workers.execution import LifespanFailed
from stanchion.workers.injection import Footing, WorkerKilled
from stanchion.workers.threads import ThreadCrew
from tests.workers.letterbox import PATIENCE, Letterbox, await_no_thread, make_job, our_threads

GRACE = 0.02


MADE: list[ThreadCrew] = []


@pytest.fixture(autouse=True)
def _no_crew_outlives_its_test():
    yield
    while MADE:
        MADE.pop().close()


@pytest.fixture
def box() -> Letterbox:
    return Letterbox()


@pytest.fixture
def crew(box):
    made = new_crew(box)
    yield made
    made.close()
    await_no_thread()


def new_crew(box, **options) -> ThreadCrew:
    settings = {"max_result_bytes": None, "notices_per_second": 50.0, "kill_grace": GRACE, **options}
    MADE.append(ThreadCrew(box, time.monotonic, **settings))
    return MADE[-1]


class Spinner:
    """A function that spins until it is told, or made, to end."""

    def __init__(self) -> None:
        self.running = threading.Event()
        self.enough = False
        self.hits = 0

    def spin(self) -> str:
        self.running.set()
        while not self.enough:
            pass
        return "done"

    def resist(self) -> str:
        """Take the exception for an error to be survived, twice."""
        while self.hits < 2:
            try:
                self.spin()
            except BaseException:
                self.hits += 1
        return self.spin()


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
    crew = new_crew(box, idle_seconds=0.01)
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
    crew = new_crew(box, notices_per_second=2.0)

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
        import weakref

        thing = Thing()
        weakref.finalize(thing, gone.set)
        raise ValueError(thing)

    job = make_job(tool)
    crew.start([job])
    assert isinstance(box.outcome(job.ref), Broke)
    assert gone.wait(PATIENCE)


# -- the lifespan


def test_contexts_show_the_lifespan(box) -> None:
    crew = new_crew(box, lifespan_value=lambda: "db")

    def tool(context: SyncContext) -> str:
        return context.lifespan

    job = make_job(tool, raw=True)
    crew.start([job])
    assert box.outcome(job.ref) == Value("db")
    crew.close()


def test_without_its_lifespan_a_job_is_not_run(box) -> None:
    def fail():
        raise LifespanFailed("abcd")

    crew = new_crew(box, lifespan_value=fail)
    ran = []
    job = make_job(lambda: ran.append(1))
    crew.start([job])
    assert box.outcome(job.ref) == Broke("abcd")
    assert not ran
    crew.close()


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
    monkeypatch.setattr(ThreadCrew, "_hire", lambda self: None)
    ran = []
    jobs = [make_job(lambda: ran.append(1)) for _ in range(3)]
    crew.start(jobs)
    crew.kill([jobs[0].ref, jobs[2].ref])
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
    crew = new_crew(box, kill_grace=0.0)
    monkeypatch.setattr(threads, "KILL_ATTEMPTS", 10**9)
    monkeypatch.setattr(threads, "footing", lambda ident: Footing.FREE)
    monkeypatch.setattr(injection, "footing", lambda ident: Footing.FREE)
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
    crew = new_crew(box)
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

    for _ in range(10):
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
    crew = new_crew(box)
    monkeypatch.setattr(threads, "footing", lambda ident: Footing.FRAGILE)
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


# -- closing


def test_close_kills_and_leaves_nothing(box) -> None:
    crew = new_crew(box)
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
    crew = new_crew(box)
    crew.close()
    job = make_job(lambda: "x")
    crew.start([job])
    assert box.outcomes(job.ref) == [Killed()]


def test_a_callback_may_close_its_own_crew(box) -> None:
    crew = new_crew(box)

    def tool() -> str:
        crew.close()
        return "closed"

    job = make_job(tool, raw=True)
    crew.start([job])
    assert box.outcome(job.ref) == Value("closed")
    await_no_thread()


def test_close_does_not_wait_for_what_does_not_end(box) -> None:
    crew = new_crew(box, close_seconds=0.05)
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
        crew = new_crew(box)
        jobs = [make_job(lambda: "x") for _ in range(4)]
        crew.start(jobs)
        crew.close()
        box.await_finished(job.ref for job in jobs)
    await_no_thread()


def test_a_system_without_threads_breaks_the_job_and_no_more(box, monkeypatch, caplog) -> None:
    def refuse(self):
        raise RuntimeError("can't start new thread")

    crew = new_crew(box)
    with monkeypatch.context() as patch:
        patch.setattr(threads._Worker, "start", refuse)
        job = make_job(lambda: "x")
        crew.start([job])
        assert isinstance(box.outcome(job.ref), Broke)
    job = make_job(lambda: "x", raw=True)
    crew.start([job])
    assert box.outcome(job.ref) == Value("x")
    crew.close()
