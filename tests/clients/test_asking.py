"""Elicitation, with the official Python client: a request of the server's own in the handshake era, rounds since."""

import json
from typing import Any

import mcp_types as types
import pytest
from mcp import MCPError

from tests.clients.peer import connected, text
from tests.clients.serving import Where

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("mode", ["legacy", "auto"])


class Person:
    """Answers what the client is asked, in the order given, and keeps the questions."""

    def __init__(self, *answers: types.ElicitResult) -> None:
        self.answers = list(answers)
        self.questions: list[types.ElicitRequestParams] = []

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.questions.append(params)
        return self.answers.pop(0)


def accept(**content: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content=content)


@both
async def test_a_form_is_asked_and_its_answer_reaches_the_tool(asker: Where, mode: str) -> None:
    person = Person(accept(size="large", sugar=True))
    async with connected(asker, mode, elicitation_callback=person) as peer:
        assert text(await peer.client.call_tool("brew")) == "large, sugar"
    (question,) = person.questions
    assert isinstance(question, types.ElicitRequestFormParams)
    assert question.message == "Which cup?"
    assert question.requested_schema["required"] == ["size"]
    assert question.requested_schema["properties"]["size"]["enum"] == ["small", "large"]


@both
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_refuse(asker: Where, mode: str, action: Any) -> None:
    person = Person(types.ElicitResult(action=action))
    async with connected(asker, mode, elicitation_callback=person) as peer:
        assert text(await peer.client.call_tool("brew")) == action


@both
async def test_questions_follow_one_another_and_what_is_done_between_is_done_once(
    asker: Where, mode: str
) -> None:
    person = Person(accept(size="small"), accept(name="Ada"))
    async with connected(asker, mode, elicitation_callback=person) as peer:
        result = await peer.client.call_tool("serve")
    assert [question.message for question in person.questions] == ["Which cup?", "For whom?"]
    size, name, drawn_since = json.loads(text(result))
    assert (size, name, drawn_since) == ("small", "Ada", 1)


@both
async def test_an_answer_that_does_not_fit_is_not_given_to_the_tool(asker: Where, mode: str) -> None:
    person = Person(accept(size="enormous"), accept(size="small"))
    async with connected(asker, mode, elicitation_callback=person) as peer:
        result = await peer.client.call_tool("brew")
    if mode == "legacy":  # the callback has waited for this answer, and for no other
        assert result.is_error
        assert len(person.questions) == 1
    else:  # the round did not bring what it had to: it is the client's turn again
        assert text(result) == "small, no sugar"
        assert len(person.questions) == 2


@both
async def test_a_client_that_cannot_be_asked_is_told_so(asker: Where, mode: str) -> None:
    async with connected(asker, mode) as peer:
        if mode == "legacy":
            result = await peer.client.call_tool("brew")
            assert result.is_error
            assert "elicitation" in text(result)
        else:
            with pytest.raises(MCPError) as missing:
                await peer.client.call_tool("brew")
            assert missing.value.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
            assert "elicitation" in missing.value.data["requiredCapabilities"]
