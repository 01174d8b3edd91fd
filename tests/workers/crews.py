"""Crews to test, closed when their test ends, and functions for them to run."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import asynccontextmanager
from typing import Any

from stanchion.server.context import Context
from stanchion.workers.loop import LoopCrew
from stanchion.workers.threads import ThreadCrew
from tests.workers.letterbox import PATIENCE, Letterbox

GRACE = 0.02
LONG = 60.0

MADE: list[LoopCrew | ThreadCrew] = []
"""What ``conftest`` closes."""


def loop_crew(box: Letterbox, **options: Any) -> LoopCrew:
    settings = {
        "stall_limit": LONG,
        "kill_grace": GRACE,
        "max_result_bytes": None,
        "notices_per_second": 50.0,
    }
    crew = LoopCrew(box, time.monotonic, **{**settings, **options})
    MADE.append(crew)
    return crew


def thread_crew(box: Letterbox, **options: Any) -> ThreadCrew:
    settings = {"max_result_bytes": None, "notices_per_second": 50.0, "kill_grace": GRACE}
    crew = ThreadCrew(box, time.monotonic, **{**settings, **options})
    MADE.append(crew)
    return crew


async def quick() -> str:
    return "x"


async def which_thread() -> int:
    return threading.get_ident()


async def show(context: Context) -> object:
    return context.lifespan


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
