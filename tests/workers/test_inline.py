from __future__ import annotations

import asyncio
import threading
import time

import pytest

from stanchion.server.context import Context, SyncContext
from stanchion.server.ports import Broke, Finished, Killed, Progressed, Value
from stanchion.workers.inline import InlineCrew
from tests.workers.letterbox import Letterbox, make_job

pytestmark = pytest.mark.anyio


@pytest.fixture
def box() -> Letterbox:
    return Letterbox()


@pytest.fixture
def crew(box) -> InlineCrew:
    return InlineCrew(box, time.monotonic, max_result_bytes=None, notices_per_second=50.0)


async def finished(box: Letterbox, count: int) -> None:
    async with asyncio.timeout(10):
        while len(box.of(Finished)) < count:
            await asyncio.sleep(0.001)


async def test_a_function_has_run_when_start_returns(box, crew) -> None:
    def tool(context: SyncContext) -> int:
        context.progress(1)
        return threading.get_ident()

    job = make_job(tool, "inline", raw=True, wants_progress=True)
    crew.start([job])
    assert box.reports == [Progressed(job.ref, 1), Finished(job.ref, Value(threading.get_ident()))]


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, ValueError])
async def test_what_it_raises_stays_inside(box, crew, error) -> None:
    def tool():
        raise error

    async def coroutine():
        raise error

    jobs = [make_job(tool, "inline"), make_job(coroutine, "inline")]
    crew.start(jobs)
    await finished(box, 2)
    assert all(isinstance(box.outcome(job.ref), Broke) for job in jobs)


async def test_a_coroutine_is_a_task_of_the_running_loop(box, crew) -> None:
    async def tool(context: Context) -> int:
        await context.progress(1)
        return threading.get_ident()

    job = make_job(tool, "inline", raw=True)
    crew.start([job])
    assert not box.reports
    await finished(box, 1)
    assert box.outcomes(job.ref) == [Value(threading.get_ident())]


async def test_a_task_is_killed_at_any_stage(box, crew) -> None:
    async def tool() -> None:
        await asyncio.Event().wait()

    unbegun, waiting = make_job(tool, "inline"), make_job(tool, "inline")
    crew.start([unbegun])
    crew.kill([unbegun.ref])
    crew.start([waiting])
    await asyncio.sleep(0)
    crew.kill([waiting.ref, waiting.ref, 12345])
    await finished(box, 2)
    assert [box.outcomes(job.ref) for job in (unbegun, waiting)] == [[Killed()], [Killed()]]


async def test_close_kills_from_any_thread(box, crew) -> None:
    async def tool() -> None:
        await asyncio.Event().wait()

    job = make_job(tool, "inline")
    crew.start([job])
    await asyncio.to_thread(crew.close)
    await finished(box, 1)
    assert box.outcomes(job.ref) == [Killed()]
    crew.close()
    late = make_job(lambda: "x", "inline")
    crew.start([late])
    assert box.outcomes(late.ref) == [Killed()]


async def test_contexts_show_the_lifespan(box) -> None:
    crew = InlineCrew(
        box, time.monotonic, max_result_bytes=None, notices_per_second=50.0, lifespan_value=lambda: "db"
    )

    def tool(context: SyncContext) -> str:
        return context.lifespan

    job = make_job(tool, "inline", raw=True)
    crew.start([job])
    assert box.outcomes(job.ref) == [Value("db")]
