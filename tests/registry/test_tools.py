"""A tool is derived from a function or taken raw; it describes itself, checks arguments and calls."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion import content
from stanchion.registry.errors import UnderivableSignature
from stanchion.registry.features import Tool
from stanchion.registry.signature import ContextParameter
from stanchion.registry.validation import Compiled
from stanchion.wire.model import Icon
from stanchion.wire.revisions import MODERN, PROFILES


def pair(a: int, b: int) -> None: ...


class Ctx(ContextParameter):
    pass


@dataclasses.dataclass
class Order:
    number: int


async def lookup(order_id: str, limit: int = 3, note: str | None = None) -> Order:
    """Look it up.

    Args:
        order_id: Which.
    """
    return Order(limit)


def listed(tool: Tool, revision: str = "2026-07-28") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(tool.describe(PROFILES[revision])))
    return found


def test_a_function_says_nearly_everything() -> None:
    tool = Tool.of(lookup, title="Look", read_only=True, icons=[{"src": "x.png"}], meta={"a/b": 1})
    assert listed(tool) == {
        "name": "lookup",
        "title": "Look",
        "description": "Look it up.",
        "icons": [{"src": "x.png"}],
        "inputSchema": {
            "type": "object",
            "properties": {
                "order_id": {"type": "string", "description": "Which."},
                "limit": {"type": "integer", "default": 3},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "required": ["order_id"],
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {"number": {"type": "integer"}},
            "required": ["number"],
        },
        "annotations": {"readOnlyHint": True},
        "_meta": {"a/b": 1},
    }
    assert (tool.isolation, tool.is_async, tool.wants_context, tool.key) == ("task", True, False, "lookup")
    assert (tool.read_only, tool.destructive, tool.sensitive, tool.derived, tool.owner) == (
        True,
        False,
        False,
        False,
        None,
    )


def test_older_revisions_see_less() -> None:
    tool = Tool.of(lookup, title="Look", read_only=True, icons=[Icon(src="x.png")], meta={"a/b": 1})
    assert listed(tool, "2024-11-05").keys() == {"name", "description", "inputSchema"}
    assert "annotations" in listed(tool, "2025-03-26")
    assert "outputSchema" not in listed(tool, "2025-03-26")
    assert tool.describe(MODERN) is tool.describe(MODERN)


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ({"order_id": "x"}, {"order_id": "x"}),
        ({"order_id": "x", "limit": None}, {"order_id": "x"}),
        ({"order_id": "x", "note": None}, {"order_id": "x", "note": None}),
        ({"order_id": "x", "limit": 1.0}, {"order_id": "x", "limit": 1.0}),
    ],
)
def test_null_for_an_optional_argument_means_the_default(
    arguments: dict[str, object], kept: dict[str, object]
) -> None:
    before = dict(arguments)
    assert Tool.of(lookup).prepare(arguments) == (kept, ())
    assert arguments == before


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        (None, ["order_id"]),
        ({}, ["order_id"]),
        ({"order_id": None}, ["order_id"]),
        ({"order_id": "x", "oder": 1}, ["oder"]),
        ({"order_id": 1, "limit": True}, ["limit", "order_id"]),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object] | None, paths: list[str]) -> None:
    faults = Tool.of(lookup).prepare(arguments)[1]
    assert sorted(fault.path for fault in faults) == paths


def test_the_call_gives_a_value_or_a_coroutine() -> None:
    assert asyncio.run(Tool.of(lookup).call({"order_id": "x"}, None)) == Order(3)  # type: ignore[arg-type]

    def sync(ctx: Ctx, a: int) -> tuple[object, int]:
        return ctx, a

    sync.__annotations__ = {"ctx": Ctx, "a": int}
    tool = Tool.of(sync)
    assert tool.wants_context
    assert "ctx" not in tool.input_schema["properties"]  # type: ignore[operator]
    assert tool.call({"a": 1}, "the context") == ("the context", 1)
    assert tool.isolation == "thread"


def test_a_raw_tool_takes_one_dict_and_is_published_as_it_is() -> None:
    schema = {
        "type": "object",
        "$defs": {"x": {"type": "integer"}},
        "properties": {"a": {"$ref": "#/$defs/x"}, "b": {"type": "string"}},
    }
    tool = Tool.raw(
        name="raw",
        callback=lambda arguments: arguments,
        input_schema=schema,
        annotations={"destructiveHint": True},
    )
    assert listed(tool)["inputSchema"] == schema
    assert tool.sensitive
    assert tool.call({"a": 1}, None) == {"a": 1}
    assert tool.prepare({"a": "x"})[1]
    assert tool.prepare({"b": None}) == ({}, ())
    schema["properties"]["c"] = {}  # type: ignore[index]
    assert "c" not in listed(tool)["inputSchema"]["properties"]


def test_a_raw_callback_may_take_a_context() -> None:
    def callback(arguments: dict[str, object], ctx: Ctx) -> object:
        return arguments, ctx

    callback.__annotations__ = {"arguments": dict, "ctx": Ctx}
    tool = Tool.raw(name="raw", callback=callback, input_schema={"type": "object"})
    assert tool.wants_context
    assert tool.call({"a": 1}, 7) == ({"a": 1}, 7)


def test_a_raw_callback_may_take_nothing() -> None:
    tool = Tool.raw(name="raw", callback=lambda: 5, input_schema={"type": "object"})
    assert tool.call({}, None) == 5


def test_sensitive_is_said_or_follows_from_destructive() -> None:
    assert Tool.of(lookup, destructive=True).sensitive
    assert Tool.of(lookup, sensitive=True).sensitive
    assert not Tool.of(lookup, destructive=False).sensitive
    assert listed(Tool.of(lookup, destructive=False))["annotations"] == {"destructiveHint": False}


def test_own_schemas_replace_the_derived_ones() -> None:
    tool = Tool.of(
        lookup, input_schema={"type": "object"}, output_schema={"type": "object", "properties": {}}
    )
    assert listed(tool)["inputSchema"] == {"type": "object"}
    assert tool.given
    assert not Tool.of(lookup).given


@pytest.mark.parametrize(
    "options",
    [
        {"isolation": "magic"},
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": True},
        {"timeout": float("nan")},
        {"timeout": float("inf")},
    ],
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="lookup"):
        Tool.of(lookup, **options)


@pytest.mark.parametrize(
    "members",
    [
        {"callback": 3},
        {"callback": pair},
        {"input_schema": 3},
        {"input_schema": {"a": object()}},
        {"annotations": {"readOnlyHint": "yes"}},
        {"icons": [{"sizes": ["1x1"]}]},
        {"meta": {"a": object()}},
    ],
)
def test_bad_shapes_are_type_errors(members: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Tool.raw(**{"name": "raw", "callback": print, "input_schema": {"type": "object"}} | members)


def test_what_cannot_be_a_tool_is_refused() -> None:
    def stars(*values: int) -> None: ...

    with pytest.raises(UnderivableSignature):
        Tool.of(stars)


@given(
    st.dictionaries(
        st.sampled_from(["order_id", "limit", "note", "x"]),
        st.none() | st.integers() | st.text(max_size=3),
        max_size=4,
    )
)
def test_prepare_agrees_with_the_schema(arguments: dict[str, Any]) -> None:
    tool = Tool.of(lookup)
    kept, faults = tool.prepare(arguments)
    assert (faults == ()) == Compiled(tool.input_schema).is_valid(kept)
    assert all(kept[key] == arguments[key] for key in kept)
    assert all(arguments[key] is None and key == "limit" for key in arguments.keys() - kept.keys())


@pytest.mark.parametrize(
    "kind", [content.Text, content.Image, content.Audio, content.ToolResult, content.EmbeddedResource]
)
def test_a_function_that_returns_content_promises_no_data(kind: type) -> None:
    def show() -> object: ...

    show.__annotations__["return"] = kind
    assert Tool.of(show).output_schema is None
