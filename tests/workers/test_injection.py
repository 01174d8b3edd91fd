from __future__ import annotations

import logging
import sys
import threading
import time

import pytest

from stanchion.workers import injection
from stanchion.workers.injection import Footing, WorkerKilled, footing, inject, mend, take_back
from tests.workers.letterbox import PATIENCE


def standing(runner: Runner, wanted: Footing) -> None:
    """Wait until the thread has begun and stands where it should."""
    ident = runner.thread.ident
    assert ident is not None
    deadline = time.monotonic() + PATIENCE
    while not runner.begun or footing(ident) is not wanted:
        assert time.monotonic() < deadline, footing(ident)
        time.sleep(0.001)


class Runner:
    """A thread that runs a function and keeps what that raised."""

    def __init__(self, function) -> None:
        self.function = function
        self.raised: BaseException | None = None
        self.begun = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        try:
            self.begun = True
            self.function()
        except BaseException as error:
            self.raised = error

    def join(self) -> None:
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


def test_a_thread_that_spins_raises_the_exception() -> None:
    def spin() -> None:
        while True:
            pass

    runner = Runner(spin)
    standing(runner, Footing.FREE)
    assert inject(runner.thread.ident)
    runner.join()
    assert isinstance(runner.raised, WorkerKilled)


def test_what_has_not_come_up_can_be_taken_back() -> None:
    leave = threading.Lock()
    leave.acquire()
    undisturbed = []

    def tool() -> None:
        try:
            leave.acquire()
            take_back()
        except WorkerKilled:
            take_back()
        for _ in range(1000):
            pass
        undisturbed.append(1)

    runner = Runner(tool)
    standing(runner, Footing.FREE)
    inject(runner.thread.ident)
    leave.release()
    runner.join()
    assert undisturbed
    assert runner.raised is None


def test_waiting_for_an_event_is_free() -> None:
    event = threading.Event()
    runner = Runner(lambda: event.wait(PATIENCE))
    standing(runner, Footing.FREE)
    event.set()
    runner.join()


def test_one_about_to_get_a_handler_s_lock_had_better_not_be_hit() -> None:
    handler = logging.Handler()
    handler.acquire()
    runner = Runner(lambda: handler.handle(logging.makeLogRecord({})))
    standing(runner, Footing.FRAGILE)
    handler.emit = lambda _: None
    handler.release()
    runner.join()


def test_one_about_to_get_a_condition_s_lock_had_better_not_be_hit() -> None:
    condition = threading.Condition()

    def tool() -> None:
        with condition:
            pass

    with condition:
        runner = Runner(tool)
        standing(runner, Footing.FRAGILE)
    runner.join()


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="from 3.13 on handlers take their lock with with")
def test_a_handler_s_lock_left_behind_is_given_back() -> None:
    handler = logging.Handler()
    record = logging.makeLogRecord({})
    came_up, mended = threading.Event(), threading.Event()
    leave = threading.Lock()
    leave.acquire()

    def tool() -> None:
        try:
            handler.handle(record)
        except WorkerKilled:
            came_up.set()
            leave.acquire()
            mend()
            mended.set()

    handler.acquire()
    runner = Runner(tool)
    standing(runner, Footing.FRAGILE)
    inject(runner.thread.ident)
    handler.release()
    # It comes up right after the lock is had: nobody else gets it then.
    assert came_up.wait(PATIENCE)
    other = threading.Thread(target=handler.acquire, daemon=True)
    other.start()
    leave.release()
    assert mended.wait(PATIENCE)
    runner.join()
    other.join(PATIENCE)
    assert not other.is_alive()


def test_a_post_under_way_takes_the_exception_back() -> None:
    leave = threading.Lock()
    leave.acquire()
    scope = {"__name__": "stanchion.server.x", "leave": leave}
    exec("def post():\n    leave.acquire()", scope)
    runner = Runner(scope["post"])
    standing(runner, Footing.POSTING)
    assert not inject(runner.thread.ident)
    leave.release()
    runner.join()
    assert runner.raised is None


def test_code_below_a_log_handler_is_fragile() -> None:
    leave = threading.Lock()
    leave.acquire()

    class Slow(logging.Handler):
        def emit(self, record) -> None:
            leave.acquire()

    handler = Slow()
    runner = Runner(lambda: handler.handle(logging.makeLogRecord({})))
    standing(runner, Footing.FRAGILE)
    leave.release()
    runner.join()


@pytest.mark.parametrize(
    ("module", "name", "wanted"),
    [
        ("stanchion.server.runner", "post", Footing.POSTING),
        ("stanchion.server.runner", "wait", Footing.FRAGILE),
        ("somebody.elses", "post", Footing.FREE),
        (None, "post", Footing.FREE),
        (7, "post", Footing.FREE),
    ],
)
def test_where_a_post_is_under_way_the_thread_must_not_be_hit(module, name, wanted) -> None:
    leave = threading.Lock()
    leave.acquire()
    begun = threading.Event()
    scope = {"__name__": module, "leave": leave, "begun": begun}
    exec(f"def {name}():\n    begun.set()\n    leave.acquire()", scope)
    runner = Runner(scope[name])
    assert begun.wait(PATIENCE)
    standing(runner, wanted)
    leave.release()
    runner.join()


def test_frames_below_the_crew_s_own_do_not_count() -> None:
    leave = threading.Lock()
    leave.acquire()
    begun = threading.Event()
    crew = {"__name__": injection._OWN_CODE, "leave": leave, "begun": begun}
    exec("def perform():\n    begun.set()\n    leave.acquire()", crew)
    server = {"__name__": "stanchion.server.x", "perform": crew["perform"]}
    exec("def post():\n    perform()", server)
    runner = Runner(server["post"])
    assert begun.wait(PATIENCE)
    standing(runner, Footing.FREE)
    leave.release()
    runner.join()


def test_a_thread_that_is_gone_stands_nowhere() -> None:
    runner = Runner(lambda: None)
    runner.join()
    assert footing(runner.thread.ident) is Footing.FREE
