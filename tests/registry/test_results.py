"""What callbacks return, as each revision has it."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion.content import Audio, EmbeddedResource, Image, Message, ResourceLink, Text, ToolResult
from stanchion.registry.errors import Unrenderable
from stanchion.registry.features import Tool
from stanchion.registry.results import (
    MAX_COMPLETIONS,
    ToolOutcome,
    render_completion,
    render_prompt,
    render_resource,
    render_tool,
)
from stanchion.wire import model
from stanchion.wire.revisions import MODERN, PROFILES

OLD, MIDDLE, LEGACY = PROFILES["2024-11-05"], PROFILES["2025-06-18"], PROFILES["2025-11-25"]


@dataclasses.dataclass
class Report:
    name: str
    total: int


class Markup(str):
    __slots__ = ()


def free() -> object: ...
def typed() -> Report: ...


FREE, TYPED = Tool.of(free), Tool.of(typed)
UNTYPED = Tool.of(free, output_schema={"required": ["a"]})
LISTED = Tool.of(free, output_schema={"type": "array", "items": {"type": "integer"}})


def blocks(outcome: ToolOutcome) -> Any:
    return json.loads(bytes(outcome.content))


def structured(outcome: ToolOutcome) -> Any:
    return None if outcome.structured is None else json.loads(bytes(outcome.structured))


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("plain", [{"type": "text", "text": "plain"}]),
        (None, []),
        (Markup("x"), [{"type": "text", "text": "x"}]),
        (Text(Markup("x")), [{"type": "text", "text": "x"}]),
        (7, [{"type": "text", "text": "7"}]),
        ([1, "two"], [{"type": "text", "text": '[1,"two"]'}]),
        ([], [{"type": "text", "text": "[]"}]),
        (Text("x"), [{"type": "text", "text": "x"}]),
        (model.TextContent(text="x"), [{"type": "text", "text": "x"}]),
        (Image(b"\x00", "image/png"), [{"type": "image", "data": "AA==", "mimeType": "image/png"}]),
        (
            ["a", Text("b"), {"c": 1}],
            [
                {"type": "text", "text": "a"},
                {"type": "text", "text": "b"},
                {"type": "text", "text": '{"c":1}'},
            ],
        ),
        (ToolResult(content=["x"]), [{"type": "text", "text": "x"}]),
        (ToolResult(content=Text("x")), [{"type": "text", "text": "x"}]),  # type: ignore[arg-type]
        (ToolResult(structured={"a": 1}), [{"type": "text", "text": '{"a":1}'}]),
        (Text("a\ud800"), [{"type": "text", "text": "a\ufffd"}]),
        (ResourceLink("a://\ud800", "n"), [{"type": "resource_link", "uri": "a://\ufffd", "name": "n"}]),
        (
            EmbeddedResource("a://b", text="t\udfff", mime_type="x/y"),
            [{"type": "resource", "resource": {"uri": "a://b", "mimeType": "x/y", "text": "t\ufffd"}}],
        ),
        (
            EmbeddedResource("a://\ud800", blob=b"\x00"),
            [{"type": "resource", "resource": {"uri": "a://\ufffd", "blob": "AA=="}}],
        ),
    ],
)
def test_values_become_blocks(value: Any, found: Any) -> None:
    outcome = render_tool(value, FREE, MODERN)
    assert blocks(outcome) == found
    assert not outcome.is_error


def test_a_tool_result_is_taken_as_it_is() -> None:
    outcome = render_tool(
        ToolResult(content=[Text("no")], structured={"a": 1}, is_error=True, meta={"k/\ud800": 1}),
        FREE,
        MODERN,
    )
    assert blocks(outcome) == [{"type": "text", "text": "no"}]
    assert structured(outcome) == {"a": 1}
    assert outcome.is_error
    assert outcome.meta == {"k/\ufffd": 1}


@pytest.mark.parametrize(
    "value",
    [
        Image("text", "image/png"),  # type: ignore[arg-type]
        Text(3),  # type: ignore[arg-type]
        EmbeddedResource("a://b"),
        EmbeddedResource("a://b", text="x", blob=b"y"),
        ResourceLink("a://b", "n", title=3),  # type: ignore[arg-type]
        ToolResult(content=3),  # type: ignore[arg-type]
        [Text("x"), object()],
        float("nan"),
    ],
)
def test_bad_content_is_refused(value: Any) -> None:
    with pytest.raises(Unrenderable):
        render_tool(value, FREE, MODERN)


@pytest.mark.parametrize(
    ("tool", "value", "revisions"),
    [
        (TYPED, Report("a", 1), {"2025-06-18", "2025-11-25", "2026-07-28"}),
        (TYPED, {"name": "a", "total": 1}, {"2025-06-18", "2025-11-25", "2026-07-28"}),
        (TYPED, ToolResult(structured=Report("a", 1)), {"2025-06-18", "2025-11-25", "2026-07-28"}),
        (LISTED, [1, 2], {"2026-07-28"}),
        (FREE, ToolResult(structured={"a": 1}), {"2025-06-18", "2025-11-25", "2026-07-28"}),
        (FREE, ToolResult(structured=[1]), {"2026-07-28"}),
        (UNTYPED, {"a": 1}, {"2026-07-28"}),
        (FREE, {"a": 1}, set()),
    ],
)
def test_structured_goes_where_the_revision_has_it_and_is_mirrored_as_text(
    tool: Tool, value: Any, revisions: set[str]
) -> None:
    for name, profile in PROFILES.items():
        outcome = render_tool(value, tool, profile)
        assert (structured(outcome) is not None) == (name in revisions)
        (block,) = blocks(outcome)
        if outcome.structured is not None:
            assert json.loads(block["text"]) == structured(outcome)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        Report("a", "hunter2"),
        {"name": "a"},
        Text("x"),
        ToolResult(content=["x"]),
        ToolResult(structured={"name": 1}),
    ],
)  # type: ignore[arg-type]
def test_a_result_that_breaks_its_promise_is_refused_without_quoting_it(value: Any) -> None:
    for profile in (OLD, MODERN):
        with pytest.raises(Unrenderable) as caught:
            render_tool(value, TYPED, profile)
        assert "hunter2" not in str(caught.value)


def test_an_error_is_exempt_and_shows_no_structure_that_does_not_fit() -> None:
    assert structured(render_tool(ToolResult(content=["x"], is_error=True), TYPED, MODERN)) is None
    assert (
        structured(
            render_tool(ToolResult(content=["x"], structured={"code": 1}, is_error=True), TYPED, MODERN)
        )
        is None
    )


def test_older_revisions_get_notes_for_what_they_lack() -> None:
    sound = render_tool([Audio(b"x", "audio/wav"), ResourceLink("a://b", "n")], FREE, OLD)
    assert [block["type"] for block in blocks(sound)] == ["text", "text"]
    assert [block["type"] for block in blocks(render_tool([Audio(b"x", "audio/wav")], FREE, LEGACY))] == [
        "audio"
    ]


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1, max_size=5),
    st.integers(0, 60),
)
def test_text_over_the_limit_is_cut_and_says_how_much(texts: list[str], limit: int) -> None:
    found = [
        block["text"] for block in blocks(render_tool([Text(text) for text in texts], FREE, MODERN, limit))
    ]
    kept = 0
    for text, shown in zip(texts, found, strict=True):
        if shown == text and kept + len(text.encode()) <= limit:
            kept += len(text.encode())
            continue
        start, _, note = shown.rpartition("\n[cut: ")
        assert text.startswith(start)
        left_out, _, total = note.partition(" bytes")[0].partition(" of ")
        assert int(left_out) == int(total) - len(start.encode())
        assert int(total) == len(text.encode())
        kept += len(start.encode())
    assert kept <= limit


def test_other_blocks_over_the_limit_are_left_out() -> None:
    (block,) = blocks(render_tool(Image(b"x" * 100, "image/png"), FREE, MODERN, 50))
    assert block["type"] == "text"
    assert "50" in block["text"]
    with pytest.raises(Unrenderable, match="may have 5"):
        render_tool(Report("a", 1), TYPED, MODERN, 5)


@pytest.mark.parametrize(
    ("value", "mime_type", "found"),
    [
        ("a", None, [{"uri": "u://x", "text": "a"}]),
        ("a", "text/html", [{"uri": "u://x", "mimeType": "text/html", "text": "a"}]),
        ("a\ud800", None, [{"uri": "u://x", "text": "a\ufffd"}]),
        (b"\x00", None, [{"uri": "u://x", "mimeType": "application/octet-stream", "blob": "AA=="}]),
        ({"a": 1}, None, [{"uri": "u://x", "mimeType": "application/json", "text": '{"a":1}'}]),
        ([], None, [{"uri": "u://x", "mimeType": "application/json", "text": "[]"}]),
        (
            Report("a", 1),
            "text/x",
            [{"uri": "u://x", "mimeType": "text/x", "text": '{"name":"a","total":1}'}],
        ),
        (Text("t"), None, [{"uri": "u://x", "text": "t"}]),
        (Image(b"\x00", "image/png"), None, [{"uri": "u://x", "mimeType": "image/png", "blob": "AA=="}]),
        (
            [EmbeddedResource("a://1", text="x"), EmbeddedResource("a://2", blob=b"\x00")],
            None,
            [{"uri": "a://1", "text": "x"}, {"uri": "a://2", "blob": "AA=="}],
        ),
        (model.TextContents(uri="a://1", text="x"), None, [{"uri": "a://1", "text": "x"}]),
    ],
)
def test_resources_have_contents(value: Any, mime_type: str | None, found: Any) -> None:
    assert json.loads(bytes(render_resource(value, "u://x", mime_type, MODERN))) == found


def test_resource_meta_goes_where_the_revision_has_it() -> None:
    contents = model.TextContents(uri="a://1", text="x", meta={"a": 1})
    assert "_meta" in json.loads(bytes(render_resource(contents, "u://x", None, MODERN)))[0]
    assert "_meta" not in json.loads(bytes(render_resource(contents, "u://x", None, OLD)))[0]


@pytest.mark.parametrize("value", [None, object(), [float("nan")]])
def test_a_resource_that_cannot_be_sent_is_refused(value: Any) -> None:
    with pytest.raises(Unrenderable):
        render_resource(value, "u://x", None, MODERN)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("a", [("user", "text")]),
        (Message("assistant", "a"), [("assistant", "text")]),
        ([Message("user", Image(b"", "image/png")), "b"], [("user", "image"), ("user", "text")]),
        ({"role": "assistant", "content": {"type": "text", "text": "x"}}, [("assistant", "text")]),
        (
            {
                "role": "user",
                "content": {
                    "type": "resource",
                    "resource": {"uri": "a://b", "text": "x"},
                    "annotations": {"priority": 1},
                },
            },
            [("user", "resource")],
        ),
        (
            {"role": "user", "content": {"type": "resource", "resource": {"uri": "a://b", "blob": "AA=="}}},
            [("user", "resource")],
        ),
        (model.PromptMessage(role="user", content=model.TextContent(text="x")), [("user", "text")]),
        ([], []),
    ],
)
def test_prompts_have_messages(value: Any, found: Any) -> None:
    messages = json.loads(bytes(render_prompt(value, MODERN)))
    assert [(one["role"], one["content"]["type"]) for one in messages] == found


@pytest.mark.parametrize(
    "value",
    [
        3,
        None,
        Message("system", "x"),
        {"role": "user", "content": {"type": "video"}},
        {"role": "user", "content": {"type": "image"}},
        {"role": "user", "content": {"type": "resource"}},
        Message("user", 3),
    ],  # type: ignore[arg-type]
)
def test_what_is_no_message_is_refused(value: Any) -> None:
    with pytest.raises(Unrenderable):
        render_prompt(value, MODERN)


def test_completions_are_bounded_and_say_what_is_left() -> None:
    assert render_completion(["a", "b\ud800"]) == {"values": ["a", "b\ufffd"], "total": 2}
    assert render_completion(None) == {"values": [], "total": 0}
    many = render_completion([str(i) for i in range(250)])
    assert (len(many["values"]), many["total"], many["hasMore"]) == (MAX_COMPLETIONS, 250, True)
    endless = render_completion(str(i) for i in itertools.count())
    assert len(endless["values"]) == MAX_COMPLETIONS
    assert endless["hasMore"]
    assert "total" not in endless
    assert render_completion({"values": ["a"], "total": 7, "hasMore": True}) == {
        "values": ["a"],
        "total": 7,
        "hasMore": True,
    }

    @dataclasses.dataclass
    class Found:
        values: list[str]
        total: int = 3
        has_more: bool = False

    assert render_completion(Found(["a"])) == {"values": ["a"], "total": 3, "hasMore": False}


@pytest.mark.parametrize("value", ["text", 3, [1], {"values": "text"}])
def test_what_is_no_completion_is_refused(value: Any) -> None:
    with pytest.raises(Unrenderable):
        render_completion(value)
