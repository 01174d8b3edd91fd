"""What a callback can say, and how much of it (E6): on a clock of the test's and a mailbox that keeps everything."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from stanchion.registry.authorizer import Principal
from stanchion.server.context import Context, SyncContext
from stanchion.server.ports import Facts, Logged, Progressed, Report
from stanchion.wire.jsonrpc import Ref
from stanchion.wire.model import LOG_LEVELS
from stanchion.wire.revisions import NEWEST_HANDSHAKE

NONE_WANTED = len(LOG_LEVELS)


class Desk:
    """A context with what is around it."""

    def __init__(self, face: type[Any] = SyncContext, *, rate: float = 50.0, **facts: Any) -> None:
        self.now = 0.0
        self.posted: list[Report] = []
        known = {"request_id": 7, "profile": NEWEST_HANDSHAKE, "wants_progress": True} | facts
        self.context = face(Ref(1), Facts(**known), self, lambda: self.now, rate=rate, lifespan="pool")

    def post(self, report: Report) -> None:
        self.posted.append(report)

    @property
    def steps(self) -> list[float]:
        return [one.progress for one in self.posted if isinstance(one, Progressed)]

    @property
    def logs(self) -> list[Logged]:
        return [one for one in self.posted if isinstance(one, Logged)]


# -- progress


def test_progress_rises_or_is_dropped() -> None:
    desk = Desk()
    for step in (1, 2, 2, 1.5, -1, 2.5, 2.5):
        desk.context.progress(step)
    assert desk.steps == [1, 2, 2.5]


@pytest.mark.parametrize("step", [math.nan, math.inf, -math.inf, 10**400], ids=["nan", "inf", "-inf", "huge"])
def test_progress_that_has_no_json_is_dropped(step: float) -> None:
    desk = Desk()
    desk.context.progress(1)
    desk.context.progress(step)
    desk.context.progress(2, total=step)
    assert desk.posted == [Progressed(Ref(1), 1, None, None), Progressed(Ref(1), 2, None, None)]


def test_progress_may_be_below_nothing_and_bears_a_message() -> None:
    desk = Desk()
    desk.context.progress(-2, 10, "begun")
    desk.context.progress(0)
    assert desk.posted == [Progressed(Ref(1), -2, 10, "begun"), Progressed(Ref(1), 0)]


@pytest.mark.parametrize("bad", [("x",), (1, "x"), (1, None, object()), (object(),), (True,)])
def test_progress_of_the_wrong_type_is_its_author_s_error(bad: tuple[Any, ...]) -> None:
    """In the worker, not later on the protocol's loop."""
    desk = Desk()
    with pytest.raises(TypeError):
        desk.context.progress(*bad)
    assert not desk.posted


def test_nobody_asked_nobody_is_told() -> None:
    desk = Desk(wants_progress=False)
    desk.context.progress(1)
    desk.context.flush()
    assert not desk.posted


def test_the_limit_holds_back_and_the_last_is_always_sent() -> None:
    desk = Desk(rate=2)
    for step in range(100):
        desk.context.progress(step)
    assert desk.steps == [0, 1]
    desk.context.flush()
    assert desk.steps == [0, 1, 99]
    desk.context.flush()
    assert desk.steps == [0, 1, 99]


def test_what_was_held_back_is_replaced_by_what_passes() -> None:
    desk = Desk(rate=1)
    desk.context.progress(1)
    desk.context.progress(2)
    desk.now = 1.0
    desk.context.progress(3)
    desk.context.flush()
    assert desk.steps == [1, 3]


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(-5, 5) | st.just(math.nan)), max_size=60))
def test_whatever_is_said_rises_and_ends_with_the_highest(said: list[tuple[int, float]]) -> None:
    desk = Desk(rate=2)
    for wait, step in said:
        desk.now += wait / 4
        desk.context.progress(step)
    desk.context.flush()
    assert all(later > earlier for earlier, later in zip(desk.steps, desk.steps[1:], strict=False))
    numbers = [step for _, step in said if not math.isnan(step)]
    assert not numbers or desk.steps[-1] == max(numbers)


# -- logs


@pytest.mark.parametrize("floor", range(NONE_WANTED + 1))
def test_only_what_is_wanted_is_sent(floor: int) -> None:
    desk = Desk(log_floor=floor)
    for level in LOG_LEVELS:
        desk.context.log(level, level)
    assert [one.level for one in desk.logs] == list(LOG_LEVELS[floor:])


def test_each_level_has_its_name() -> None:
    desk = Desk()
    for level in ("debug", "info", "notice", "warning", "error"):
        getattr(desk.context, level)(level, "app")
    assert [(one.level, one.logger) for one in desk.logs] == [
        (level, "app") for level in ("debug", "info", "notice", "warning", "error")
    ]


def test_an_unknown_level_is_its_author_s_error() -> None:
    desk = Desk(log_floor=NONE_WANTED)
    with pytest.raises(ValueError, match="level must be one of debug, info, "):
        desk.context.log("loud", "x")


def encoded(data: object) -> Any:
    assert isinstance(data, Raw)
    return json.loads(bytes(data))


@pytest.mark.parametrize("data", ["x", "", None, 5, {"a": [1, None, {"b": 2.5}]}, [], True])
def test_data_is_any_json(data: Any) -> None:
    desk = Desk()
    desk.context.info(data)
    assert encoded(desk.logs[0].data) == data


class Bad:
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize("data", [object(), {1: object()}, Bad(), {"a": Bad()}, lambda: None])
def test_data_that_is_no_json_becomes_a_text_that_says_so(data: Any) -> None:
    desk = Desk()
    desk.context.info(data)
    assert desk.logs[0].data == f"<{type(data).__name__} that is not JSON>"


def test_data_that_refers_to_itself_hurts_nobody() -> None:
    desk, data = Desk(), []
    data.append(data)
    desk.context.info(data)
    assert desk.logs[0].data == "<list that is not JSON>"


def test_logs_and_progress_share_one_limit() -> None:
    desk = Desk(rate=2)
    desk.context.info("a")
    desk.context.progress(1)
    desk.context.info("b")
    desk.context.progress(2)
    assert len(desk.posted) == 2
    desk.now = 0.5
    desk.context.info("c")
    assert [encoded(one.data) for one in desk.logs] == ["a", "c"]


def test_a_message_that_is_not_wanted_costs_nothing_of_the_limit() -> None:
    desk = Desk(rate=1, log_floor=LOG_LEVELS.index("error"))
    for _ in range(10):
        desk.context.debug("x")
    desk.context.error("y")
    assert len(desk.logs) == 1


# -- the end


def test_a_cancelled_call_says_nothing_more() -> None:
    desk = Desk()
    assert not desk.context.cancelled
    desk.context.mark_cancelled()
    assert desk.context.cancelled
    desk.context.progress(1)
    desk.context.info("x")
    assert not desk.posted


# -- facts


def test_the_facts_of_the_request() -> None:
    context = Desk(
        request_id="r",
        principal=Principal("p"),
        transport="stdio",
        client_info={"name": "t"},
        meta=Raw(b'{"traceparent":"00-1","baggage":5,"progressToken":0,"x":[1]}'),
    ).context
    assert (context.request_id, context.principal, context.transport) == ("r", Principal("p"), "stdio")
    assert (context.revision, context.lifespan) == ("2025-11-25", "pool")
    assert context.client_info == {"name": "t"}
    assert context.meta == {"traceparent": "00-1", "baggage": 5, "progressToken": 0, "x": [1]}
    assert context.trace == {"traceparent": "00-1"}


def test_nothing_known_is_nothing_and_no_error() -> None:
    context = Desk(request_id=None).context
    assert (context.request_id, context.principal, context.meta, context.trace) == (None, None, {}, {})
    assert context.client_info == {}
    assert Desk(meta=Raw(b"null")).context.meta == {}


def test_both_faces_say_the_same() -> None:
    async def speak(context: Context) -> None:
        await context.progress(1, 2, "m")
        await context.log("error", {"a": 1}, "app")
        for level in ("debug", "info", "notice", "warning", "error"):
            await getattr(context, level)("x")

    def names(face: type) -> set[str]:
        return {name for name in dir(face) if not name.startswith("_")}

    desk, other = Desk(Context), Desk(SyncContext)
    asyncio.run(speak(desk.context))
    other.context.progress(1, 2, "m")
    other.context.log("error", {"a": 1}, "app")
    for level in ("debug", "info", "notice", "warning", "error"):
        getattr(other.context, level)("x")
    assert [str(one) for one in desk.posted if isinstance(one, Progressed)] == [
        str(one) for one in other.posted if isinstance(one, Progressed)
    ]
    assert [(one.level, encoded(one.data), one.logger) for one in desk.logs] == [
        (one.level, encoded(one.data), one.logger) for one in other.logs
    ]
    assert names(Context) == names(SyncContext)
    for name in ("progress", "log", "debug", "info", "notice", "warning", "error"):
        ours, theirs = (inspect.signature(getattr(face, name)) for face in (Context, SyncContext))
        assert ours == theirs
