"""Prompts take text arguments; completers take what stands there so far."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stanchion.registry.features import Completer, Prompt
from stanchion.registry.signature import ContextParameter
from stanchion.wire.model import PromptArgument
from stanchion.wire.revisions import PROFILES


class Ctx(ContextParameter):
    pass


def greet(name: str, times: int = 1) -> str:
    """Greet somebody.

    Args:
        name: Whom.
    """
    return f"hello {name} " * times


def test_a_prompt_describes_itself() -> None:
    prompt = Prompt.of(greet, title="Greet")
    assert json.loads(bytes(prompt.describe(PROFILES["2025-11-25"]))) == {
        "name": "greet",
        "title": "Greet",
        "description": "Greet somebody.",
        "arguments": [
            {"name": "name", "description": "Whom.", "required": True},
            {"name": "times", "required": False},
        ],
    }
    assert (prompt.key, prompt.is_async, prompt.wants_context, prompt.isolation) == (
        "greet",
        False,
        False,
        "thread",
    )
    assert prompt.call({"name": "x", "times": "2"}, None) == "hello x hello x "


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"name": "x"}, []),
        (None, [("name", "is required")]),
        ({"nam": "x"}, [("name", "is required"), ("nam", "is unknown: did you mean name?")]),
    ],
)
def test_missing_and_unknown_arguments_are_told(
    arguments: dict[str, str] | None, told: list[tuple[str, str]]
) -> None:
    given, faults = Prompt.of(greet).prepare(arguments)
    assert given == (arguments or {})
    assert [(fault.path, fault.message) for fault in faults] == told


def test_a_raw_prompt_takes_one_dict() -> None:
    prompt = Prompt.raw(
        name="p",
        callback=lambda arguments: arguments["a"],
        arguments=[{"name": "a", "required": True}, PromptArgument(name="b")],
    )
    assert prompt.call({"a": "x"}, None) == "x"
    assert prompt.prepare({})[1]
    with pytest.raises(TypeError):
        Prompt.raw(name="p", callback=print, arguments=[{"required": True}])


def one(value: str) -> list[str]:
    return [value]


def two(value: str, context: dict[str, str]) -> list[str]:
    return [value, *context]


async def contextual(value: str, ctx: Ctx) -> list[str]:
    return [value]


def test_a_completer_takes_the_value_and_maybe_what_is_settled() -> None:
    assert Completer.of(one, kind="prompt", name="greet", argument="name").call("a", {"b": "c"}) == ["a"]
    completer = Completer.of(two, kind="template", name="notes://{name}", argument="name")
    assert completer.call("a", {"b": "c"}) == ["a", "b"]
    assert completer.key == ("template", "notes://{name}", "name")
    assert Completer.of(contextual, kind="prompt", name="greet", argument="name").wants_context


def nothing() -> list[str]:
    return []


def three(a: str, b: str, c: str) -> list[str]:
    return [a, b, c]


@pytest.mark.parametrize("function", [nothing, three])
def test_other_shapes_are_refused(function: Any) -> None:
    with pytest.raises(TypeError, match="write one of the two"):
        Completer.of(function, kind="prompt", name="greet", argument="name")
