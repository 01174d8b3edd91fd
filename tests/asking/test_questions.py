"""What can be asked, what a client must have declared for it, and what counts as an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from stanchion.asking import Elicit, ElicitUrl, Root, Roots, Sample
from stanchion.server.questions import Unfit, lacking


@dataclass
class Order:
    size: Literal["small", "large"]
    count: int = 1
    note: str | None = None


def test_a_class_becomes_a_flat_form() -> None:
    assert Elicit("?", Order).params["requestedSchema"] == {
        "type": "object",
        "properties": {
            "size": {"enum": ["small", "large"], "type": "string"},
            "count": {"type": "integer", "default": 1},
            "note": {"type": "string"},
        },
        "required": ["size"],
    }


@pytest.mark.parametrize(
    "form",
    [
        {"type": "array"},
        {"type": "object", "properties": {"a": {"type": "object"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}},
        {"properties": {}},
    ],
)
def test_what_clients_cannot_show_is_refused_where_it_is_written(form: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="form"):
        Elicit("?", form)


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_no_is_a_no_whatever_comes_with_it(action: str) -> None:
    said = Elicit("?", Order).read({"action": action, "content": None})
    assert (said.action, said.content, said.accepted) == (action, None, False)


def test_a_yes_holds_an_instance() -> None:
    said = Elicit("?", Order).read({"action": "accept", "content": {"size": "small", "count": 2}})
    assert said.accepted
    assert said.content == Order("small", 2)


def test_a_yes_to_a_schema_holds_a_dict_and_may_hold_nothing() -> None:
    form = {"type": "object", "properties": {"ok": {"type": "boolean", "default": False}}}
    assert Elicit("?", form).read({"action": "accept", "content": {"ok": True}}).content == {"ok": True}
    assert Elicit("?", form).read({"action": "accept"}).content == {}


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"action": "yes"},
        {"action": 7},
        {"action": "accept", "content": [1]},
        {"action": "accept", "content": {"size": "huge"}},
        {"action": "accept", "content": {"count": 1}},
        {"action": "accept", "content": {"size": "small", "count": "2"}},
    ],
)
def test_what_does_not_fit_the_form_is_no_answer(answer: dict[str, Any]) -> None:
    with pytest.raises(Unfit):
        Elicit("?", Order).read(answer)


def test_a_page_is_opened_or_not() -> None:
    question = ElicitUrl("Log in", "https://example.org/login")
    assert question.params == {"mode": "url", "message": "Log in", "url": "https://example.org/login"}
    assert question.read({"action": "accept"}).accepted


def test_a_text_to_complete_is_one_message_of_the_user() -> None:
    question = Sample("Hi", max_tokens=5, system_prompt="Be brief")
    assert question.params == {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
        "maxTokens": 5,
        "systemPrompt": "Be brief",
    }
    said = question.read({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hello"}})
    assert (said.text, said.model) == ("Hello", "m")


@pytest.mark.parametrize("answer", [{}, {"role": "assistant", "model": "m", "content": "x"}, {"content": []}])
def test_what_is_no_completion_is_no_answer(answer: dict[str, Any]) -> None:
    with pytest.raises(Unfit):
        Sample("Hi").read(answer)


def test_roots_are_read() -> None:
    assert Roots().read({"roots": [{"uri": "file:///a", "name": "A"}]}) == [Root("file:///a", "A")]
    with pytest.raises(Unfit):
        Roots().read({"roots": [{"name": "A"}]})


FORM, URL = {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}


@pytest.mark.parametrize(
    ("needs", "abilities", "missing"),
    [
        (FORM, {"elicitation": {}}, {}),
        (FORM, {"elicitation": {"form": {}}}, {}),
        (FORM, {"elicitation": {"url": {}}}, FORM),
        (FORM, {}, FORM),
        (FORM, None, FORM),
        (FORM, {"elicitation": True}, FORM),
        (URL, {"elicitation": {}}, URL),
        (URL, {"elicitation": {"url": {}, "form": {}}}, {}),
        ({"sampling": {}}, {"sampling": {}}, {}),
        ({"sampling": {"tools": {}}}, {"sampling": {}}, {"sampling": {"tools": {}}}),
        ({"sampling": {"tools": {}}}, {"sampling": {"tools": {}}}, {}),
        ({"roots": {}}, {"roots": {"listChanged": True}}, {}),
        ({"roots": {}}, {"sampling": {}}, {"roots": {}}),
    ],
)
def test_a_client_is_asked_only_what_it_declared(
    needs: dict[str, Any], abilities: dict[str, Any] | None, missing: dict[str, Any]
) -> None:
    assert lacking(needs, abilities) == missing
