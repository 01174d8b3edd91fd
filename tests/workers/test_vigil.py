from __future__ import annotations

import threading

from stanchion.workers.vigil import Vigil
from tests.workers.letterbox import PATIENCE, await_no_thread, our_threads


def test_it_looks_when_woken_and_sleeps_when_there_is_nothing() -> None:
    looks = threading.Semaphore(0)

    def look() -> None:
        looks.release()

    vigil = Vigil("stanchion-test", look)
    assert not our_threads()
    for _ in range(3):
        vigil.wake()
        assert looks.acquire(timeout=PATIENCE)
    assert not looks.acquire(blocking=False)
    vigil.stop(PATIENCE)
    vigil.stop(PATIENCE)
    vigil.wake()
    await_no_thread()
    assert not looks.acquire(blocking=False)


def test_it_looks_again_when_it_said() -> None:
    pauses = iter([0.001, 0.001, None])
    done = threading.Event()

    def look() -> float | None:
        pause = next(pauses)
        if pause is None:
            done.set()
        return pause

    vigil = Vigil("stanchion-test", look)
    vigil.wake()
    assert done.wait(PATIENCE)
    vigil.stop(PATIENCE)


def test_one_look_that_raises_is_not_the_last(caplog) -> None:
    looks = threading.Semaphore(0)
    fails = [True, False]

    def look() -> None:
        looks.release()
        if fails.pop(0):
            raise ValueError

    vigil = Vigil("stanchion-test", look)
    for _ in range(2):
        vigil.wake()
        assert looks.acquire(timeout=PATIENCE)
    vigil.stop(PATIENCE)
    assert "could not look" in caplog.text


def test_it_can_be_stopped_from_its_own_look() -> None:
    stopped = threading.Event()
    vigil = Vigil("stanchion-test", lambda: (vigil.stop(PATIENCE), stopped.set())[1])
    vigil.wake()
    assert stopped.wait(PATIENCE)
    await_no_thread()
