"""How functions are called."""

from __future__ import annotations

from typing import Any

import pytest

from stanchion.registry import callbacks
from stanchion.registry.callbacks import Callback, isolation_of, raw, timeout_of
from stanchion.registry.signature import ContextParameter


class Ctx(ContextParameter):
    pass


async def later(arguments: dict[str, object]) -> None: ...
def with_context(arguments: dict[str, object], ctx: Ctx) -> object:
    return arguments, ctx


def keyword_context(arguments, *, ctx: Ctx) -> object:
    return arguments, ctx


def anything(*args: Any, ctx: Ctx | None = None, **kwargs: Any) -> object:
    return args, ctx


def two(a: int, b: int) -> None: ...


def anything_else(*args: Any) -> None: ...


def nothing() -> int:
    return 5


def only_context(ctx: Ctx) -> object:
    return ctx


@pytest.mark.parametrize(
    ("function", "takes", "found"),
    [
        (lambda arguments: arguments, True, {"a": 1}),
        (with_context, True, ({"a": 1}, "me")),
        (keyword_context, True, ({"a": 1}, "me")),
        (nothing, True, 5),
        (nothing, False, 5),
        (only_context, False, "me"),
        (only_context, True, "me"),
        ({"a": 1}.update, True, None),
    ],
)
def test_raw_callbacks(function: Any, takes: bool, found: Any) -> None:
    assert raw(function, takes_arguments=takes).call({"a": 1}, "me") == found


def test_raw_callbacks_with_other_shapes_are_refused() -> None:
    for function in (two, 3):
        with pytest.raises(TypeError):
            raw(function, takes_arguments=True)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no arguments"):
        raw(later, takes_arguments=False)


def test_a_context_is_found_where_a_signature_is_refused() -> None:
    assert callbacks.context_of(keyword_context) == "ctx"
    assert callbacks.context_of(anything_else) is None
    assert raw(anything, takes_arguments=True).call({"a": 1}, "me")[0] == ({"a": 1},)  # type: ignore[index]


def test_isolation_follows_from_the_function() -> None:
    assert isolation_of(None, raw(later, takes_arguments=True), "x") == "task"
    assert isolation_of(None, Callback(nothing, is_async=False), "x") == "thread"
    assert isolation_of("process", Callback(nothing, is_async=False), "x") == "process"
    with pytest.raises(ValueError, match="x: isolation"):
        isolation_of("magic", Callback(nothing, is_async=False), "x")  # type: ignore[arg-type]


def test_timeouts_are_positive_seconds() -> None:
    assert timeout_of(None, "x") is None
    assert timeout_of(3, "x") == 3.0
    for bad in (0, -1, True, "3", float("nan"), float("inf")):
        with pytest.raises(ValueError, match="x: timeout"):
            timeout_of(bad, "x")
