from __future__ import annotations

import asyncio
import logging
import re
import threading

import pytest

from stanchion.registry.errors import ToolError
from stanchion.server.ports import (
    Broke,
    Killed,
    Outcome,
    Value,
)
from stanchion.workers import failures
from stanchion.workers.execution import carry_out_async
from tests.workers.carrying import both, context_for, raising, raising_with_argument, sync, task
from tests.workers.letterbox import make_job

SECRET = "hunter2"


# -- what goes wrong


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError(SECRET)

    __repr__ = __str__


class Hostile(Exception):
    @property
    def __class__(self):
        raise KeyError(SECRET)

    @property
    def __cause__(self):
        raise KeyError(SECRET)

    def __getattribute__(self, name):
        raise KeyError(SECRET)


EXOTIC = {
    "ValueError": lambda: ValueError(SECRET),
    "SystemExit": lambda: SystemExit(SECRET),
    "KeyboardInterrupt": lambda: KeyboardInterrupt(SECRET),
    "GeneratorExit": lambda: GeneratorExit(SECRET),
    "CancelledError": lambda: asyncio.CancelledError(SECRET),
    "ExceptionGroup": lambda: ExceptionGroup(SECRET, [ValueError(SECRET), ToolError(SECRET)]),
    "BaseExceptionGroup": lambda: BaseExceptionGroup(SECRET, [SystemExit(SECRET)]),
    "StopIteration": lambda: StopIteration(SECRET),
    "StopAsyncIteration": lambda: StopAsyncIteration(SECRET),
    "RecursionError": lambda: RecursionError(SECRET),
    "MemoryError": lambda: MemoryError(SECRET),
    "BaseException": lambda: BaseException(SECRET),
    "mute": lambda: Mute(SECRET),
    "hostile": lambda: Hostile(SECRET),
}


@pytest.mark.parametrize("kind", EXOTIC)
def test_whatever_is_raised_is_logged_and_not_told(kind, caplog) -> None:
    def tool():
        error = EXOTIC[kind]()
        raise error

    for outcome in both(tool):
        assert isinstance(outcome, Broke)
        assert re.fullmatch(r"[0-9a-f]{8}", outcome.reference)
        assert outcome.reference in caplog.text
        assert SECRET not in repr(outcome)
    assert {record.name for record in caplog.records} == {"stanchion.callbacks"}


def test_the_log_has_the_traceback_and_the_name(caplog) -> None:
    def cancel_order():
        raise ValueError("the reason")

    sync(make_job(cancel_order))
    assert "tool 'cancel_order'" in caplog.text
    assert "the reason" in caplog.text
    assert "in cancel_order" in caplog.text


def test_a_runaway_recursion_is_contained() -> None:
    def tool():
        return tool()

    for outcome in both(tool):
        assert isinstance(outcome, Broke)


def test_a_long_traceback_is_cut(caplog) -> None:
    assert isinstance(sync(make_job(raising(ValueError("x" * 10_000_000)))), Broke)
    assert len(caplog.text) < 2 * failures.MAX_TRACE


def test_an_exception_that_can_not_be_shown_is_logged_by_its_class(caplog, monkeypatch) -> None:
    monkeypatch.setattr("traceback.format_exception", raising_with_argument(SystemExit()))
    assert isinstance(sync(make_job(raising(ValueError(SECRET)))), Broke)
    assert "ValueError, which raised SystemExit" in caplog.text


def test_a_log_handler_that_raises_changes_nothing() -> None:
    class Raises(logging.Handler):
        def handle(self, record):
            raise RuntimeError

    handler = Raises()
    logging.getLogger("stanchion.callbacks").addHandler(handler)
    try:
        assert isinstance(sync(make_job(raising(ValueError()))), Broke)
    finally:
        logging.getLogger("stanchion.callbacks").removeHandler(handler)


async def stream():
    yield 1


async def coroutine():
    return 1


UNSENDABLE = {
    "object": object,
    "generator": lambda: (n for n in range(3)),
    "async generator": stream,
    "coroutine": coroutine,
    "lock": threading.Lock,
}


@pytest.mark.parametrize("kind", UNSENDABLE)
def test_what_can_not_be_sent_is_a_fault(kind, caplog) -> None:
    async def tool():
        return UNSENDABLE[kind]()

    assert isinstance(task(make_job(tool)), Broke)
    assert "returned what cannot be sent" in caplog.text


def test_a_value_that_raises_when_it_is_written_tells_nothing() -> None:
    class Settings(dict):
        def items(self):
            raise KeyError(SECRET)

        __iter__ = keys = __len__ = items

    outcome = sync(make_job(lambda: Settings(a=1)))
    assert SECRET not in repr(outcome)


# -- awaiting


def test_a_plain_function_that_returns_an_awaitable_is_at_fault(caplog) -> None:
    ran = []

    async def inner() -> str:
        ran.append(1)
        return "x"

    assert isinstance(sync(make_job(lambda: inner())), Broke)  # noqa: PLW0108
    assert "declare the function with async def" in caplog.text
    assert not ran


def test_on_a_loop_an_awaitable_is_awaited_however_it_came_about() -> None:
    async def inner() -> str:
        return "x"

    assert task(make_job(lambda: inner(), "task", raw=True)) == Value("x")  # noqa: PLW0108


def test_a_coroutine_function_in_a_thread_gets_a_loop() -> None:
    async def tool() -> str:
        await asyncio.sleep(0)
        return "x"

    assert sync(make_job(tool, "thread", raw=True)) == Value("x")


# -- cancellation


@pytest.mark.parametrize("told", [True, False])
def test_a_cancellation_is_a_kill_only_if_it_was_ordered(told) -> None:
    async def main() -> Outcome:
        started = asyncio.Event()

        async def tool():
            started.set()
            await asyncio.Event().wait()

        job = make_job(tool)
        context = context_for(job)
        running = asyncio.create_task(carry_out_async(job, context, None))
        await started.wait()
        if told:
            context.mark_cancelled()
        running.cancel()
        return await running

    assert isinstance(asyncio.run(main()), Killed if told else Broke)


def test_work_that_returns_in_spite_of_its_cancellation_has_returned() -> None:
    async def main() -> Outcome:
        started = asyncio.Event()

        async def tool() -> str:
            try:
                started.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "saved"
            return "never"

        job = make_job(tool, raw=True)
        context = context_for(job)
        running = asyncio.create_task(carry_out_async(job, context, None))
        await started.wait()
        context.mark_cancelled()
        running.cancel()
        return await running

    assert asyncio.run(main()) == Value("saved")
