"""Jobs carried out without a crew."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec

from stanchion.server.ports import (
    Completed,
    Job,
    Outcome,
)
from stanchion.workers.execution import carry_out_async, carry_out_sync, make_context
from tests.workers.letterbox import Letterbox, make_job


def context_for(job: Job) -> Any:
    return make_context(job, Letterbox(), time.monotonic, rate=50.0, lifespan=None)


def sync(job: Job, limit: int | None = None) -> Outcome:
    return carry_out_sync(job, context_for(job), limit)


def task(job: Job, limit: int | None = None) -> Outcome:
    return asyncio.run(carry_out_async(job, context_for(job), limit))


def as_coroutine(function):
    async def tool():
        return function()

    return tool


def both(function) -> list[Outcome]:
    """The function's outcome in a thread and, as a coroutine, on a loop."""
    return [sync(make_job(function)), task(make_job(as_coroutine(function)))]


def fields_of(outcome: Outcome) -> dict[str, Any]:
    """A result as a client reads it."""
    assert isinstance(outcome, Completed)
    return msgspec.json.decode(msgspec.json.encode(outcome.fields))


def raising(error: BaseException):
    def tool():
        raise error

    return tool


def raising_with_argument(error: BaseException):
    def function(argument):
        raise error

    return function
