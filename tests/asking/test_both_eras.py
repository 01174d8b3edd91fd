"""A callback asks its client: one that waits in the handshake revisions, one that is run again in 2026-07-28."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from stanchion import Config, Context, Stanchion, SyncContext
from stanchion.asking import AskFailed, Elicit, Roots, Sample
from stanchion.runtime import Server
from stanchion.transports.memory import MemoryTransport
from tests.wire_schema import SchemaChecker

PATIENCE = 10.0
META = "io.modelcontextprotocol/"
EVERYTHING = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


@dataclass
class Name:
    name: str


class Effects:
    """Counts what callbacks did."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def do(self, what: str) -> int:
        self.done.append(what)
        return len(self.done)


@pytest.fixture
def effects() -> Effects:
    return Effects()


@pytest.fixture
async def server(effects: Effects) -> AsyncIterator[Server]:
    app = Stanchion("asking", config=Config(elicitation_timeout=0.5, callback_timeout=5.0))

    @app.tool
    async def greet(context: Context) -> str:
        said = await context.elicit("Your name?", Name)
        return f"Hello {said.content.name}" if said.accepted else said.action

    @app.tool
    def greet_blocking(context: SyncContext) -> str:
        said = context.elicit("Your name?", Name)
        return f"Hello {said.content.name}" if said.accepted else said.action

    @app.tool
    async def two_rounds(context: Context) -> str:
        first = await context.elicit("First?", Name)
        ticket = await context.once("ticket", lambda: effects.do("ticket"))
        second = await context.elicit("Second?", Name)
        effects.do("ran")
        return f"{first.content.name} {second.content.name} {ticket}"

    @app.tool
    async def all_at_once(context: Context) -> str:
        answers = await context.ask(
            {"who": Elicit("Who?", Name), "what": Sample("What?", max_tokens=3), "where": Roots()}
        )
        return f"{answers['who'].content.name} {answers['what'].text} {answers['where'][0].uri}"

    @app.tool
    async def careful(context: Context) -> str:
        try:
            await context.elicit("Your name?", Name)
        except AskFailed:
            return "never mind"
        return "thanks"

    @app.prompt
    async def letter(context: Context) -> str:
        return f"Write to {(await context.elicit('To whom?', Name)).content.name}"

    server = app.server()
    yield server
    await server.aclose(0.0)


class Client:
    """Speaks to the server in memory; holds each message to its revision's schema."""

    def __init__(self, server: Server, revision: str) -> None:
        self.wire = MemoryTransport(server, handshake=True)
        self._checker = SchemaChecker(revision)
        self._ids = 0

    def ask(self, method: str, params: dict[str, Any]) -> int:
        self._ids += 1
        message = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params}
        self.wire.send(json.dumps(message).encode())
        return self._ids

    async def hear(self, method: str | None = None) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(await asyncio.wait_for(self.wire.receive(), PATIENCE))
        assert self._checker.check_sent(message, method) == []
        return message

    def answer(self, question: dict[str, Any], **answer: Any) -> None:
        self.wire.send(json.dumps({"jsonrpc": "2.0", "id": question["id"], **answer}).encode())

    async def call(self, tool: str, caps: dict[str, Any] | None = None, **retry: Any) -> dict[str, Any]:
        """A call that describes itself."""
        meta = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": caps or EVERYTHING}
        self.ask("tools/call", {"name": tool, **retry, "_meta": meta})
        return await self.hear("tools/call")


async def legacy(server: Server, **capabilities: Any) -> Client:
    client = Client(server, "2025-11-25")
    client.ask(
        "initialize",
        {
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities or EVERYTHING,
            "clientInfo": {"name": "c", "version": "1"},
        },
    )
    await client.hear("initialize")
    return client


def text(message: dict[str, Any]) -> str:
    return "".join(block["text"] for block in message["result"]["content"])


YES = {"action": "accept", "content": {"name": "Ada"}}


@pytest.mark.parametrize("tool", ["greet", "greet_blocking"])
@pytest.mark.parametrize(
    ("answer", "told"),
    [(YES, "Hello Ada"), ({"action": "decline"}, "decline"), ({"action": "cancel"}, "cancel")],
)
async def test_a_question_waits_for_its_answer(
    server: Server, tool: str, answer: dict[str, Any], told: str
) -> None:
    client = await legacy(server)
    client.ask("tools/call", {"name": tool})
    question = await client.hear()
    assert question["method"] == "elicitation/create"
    client.answer(question, result=answer)
    assert text(await client.hear("tools/call")) == told


async def test_others_are_served_while_one_waits(server: Server) -> None:
    client = await legacy(server)
    client.ask("tools/call", {"name": "greet"})
    question = await client.hear()
    client.ask("ping", {})
    assert (await client.hear("ping"))["result"] == {}
    client.answer(question, result=YES)
    assert text(await client.hear("tools/call")) == "Hello Ada"


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -1, "message": "secret"}},
        {"result": {"action": "yes"}},
        {"result": {"action": "accept"}},
    ],
)
async def test_an_answer_that_is_none_fails_the_question_not_the_server(
    server: Server, answer: dict[str, Any]
) -> None:
    client = await legacy(server)
    client.ask("tools/call", {"name": "greet"})
    client.answer(await client.hear(), **answer)
    ended = await client.hear("tools/call")
    assert ended["result"]["isError"]
    assert "secret" not in text(ended)
    client.ask("tools/call", {"name": "careful"})
    client.answer(await client.hear(), **answer)
    assert text(await client.hear("tools/call")) == "never mind"


async def test_nobody_answers_and_the_question_is_withdrawn(server: Server) -> None:
    client = await legacy(server)
    client.ask("tools/call", {"name": "greet"})
    question = await client.hear()
    withdrawn = await client.hear()
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"]["requestId"] == question["id"]
    assert "nobody answered within 0.5 s" in text(await client.hear("tools/call"))
    client.answer(question, result=YES)
    client.ask("ping", {})
    assert (await client.hear("ping"))["result"] == {}


async def test_a_cancelled_call_withdraws_its_question_and_has_no_answer(server: Server) -> None:
    client = await legacy(server)
    for tool in ("greet", "greet_blocking"):
        ident = client.ask("tools/call", {"name": tool})
        question = await client.hear()
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ident}}
        client.wire.send(json.dumps(cancel).encode())
        assert (await client.hear())["params"]["requestId"] == question["id"]
    client.ask("ping", {})
    assert (await client.hear("ping"))["result"] == {}


async def test_only_the_client_that_was_asked_can_answer(server: Server) -> None:
    mine, other = await legacy(server), await legacy(server)
    mine.ask("tools/call", {"name": "greet"})
    question = await mine.hear()
    other.answer(question, result={"action": "accept", "content": {"name": "Eve"}})
    other.ask("ping", {})
    await other.hear("ping")
    mine.answer(question, result=YES)
    mine.answer(question, result={"action": "decline"})
    assert text(await mine.hear("tools/call")) == "Hello Ada"


async def test_a_client_that_cannot_be_asked_is_not(server: Server) -> None:
    client = await legacy(server, sampling={})
    client.ask("tools/call", {"name": "greet"})
    assert "can't be asked" in text(await client.hear("tools/call"))
    refused = await Client(server, "2026-07-28").call("greet", {"sampling": {}})
    assert refused["error"]["code"] == -32021
    assert refused["error"]["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}


async def test_in_the_modern_revision_the_question_is_the_answer(server: Server) -> None:
    client = Client(server, "2026-07-28")
    for tool in ("greet", "greet_blocking"):
        asked = (await client.call(tool))["result"]
        assert asked["resultType"] == "input_required"
        assert "ttlMs" not in asked
        (key,) = asked["inputRequests"]
        assert asked["inputRequests"][key]["method"] == "elicitation/create"
        ended = await client.call(tool, requestState=asked["requestState"], inputResponses={key: YES})
        assert (text(ended), ended["result"]["resultType"]) == ("Hello Ada", "complete")


async def test_effects_are_done_once_over_the_rounds(server: Server, effects: Effects) -> None:
    client = Client(server, "2026-07-28")
    first = (await client.call("two_rounds"))["result"]
    assert effects.done == []
    second = (
        await client.call(
            "two_rounds", requestState=first["requestState"], inputResponses={"question-1": YES}
        )
    )["result"]
    assert list(second["inputRequests"]) == ["question-2"]
    assert second["requestState"] != first["requestState"]
    last = await client.call(
        "two_rounds",
        requestState=second["requestState"],
        inputResponses={"question-2": {"action": "accept", "content": {"name": "Bob"}}},
    )
    assert text(last) == "Ada Bob 1"
    assert effects.done == ["ticket", "ran"]


async def test_several_questions_at_once_in_both_eras(server: Server) -> None:
    answers = {
        "elicitation/create": YES,
        "sampling/createMessage": {
            "role": "assistant",
            "model": "m",
            "content": {"type": "text", "text": "tea"},
        },
        "roots/list": {"roots": [{"uri": "file:///home"}]},
    }
    client = await legacy(server)
    client.ask("tools/call", {"name": "all_at_once"})
    for question in [await client.hear() for _ in range(3)][::-1]:
        client.answer(question, result=answers[question["method"]])
    assert text(await client.hear("tools/call")) == "Ada tea file:///home"
    modern = Client(server, "2026-07-28")
    asked = (await modern.call("all_at_once"))["result"]
    responses = {key: answers[one["method"]] for key, one in asked["inputRequests"].items()}
    ended = await modern.call("all_at_once", requestState=asked["requestState"], inputResponses=responses)
    assert text(ended) == "Ada tea file:///home"


async def test_a_state_is_good_for_its_own_request_alone(server: Server) -> None:
    client = Client(server, "2026-07-28")
    state = (await client.call("greet"))["result"]["requestState"]
    flipped = ("B" if state[40] != "B" else "C").join([state[:40], state[41:]])
    for tool, bad in (("greet", flipped), ("greet", "nonsense"), ("two_rounds", state)):
        refused = await client.call(tool, requestState=bad, inputResponses={"question-1": YES})
        assert refused["error"]["code"] == -32602


@pytest.mark.parametrize(
    "given", [{}, {"wrong": YES}, {"question-1": 7}, {"question-1": {"action": "accept"}}]
)
async def test_a_missing_or_malformed_answer_is_asked_for_again(
    server: Server, given: dict[str, Any]
) -> None:
    client = Client(server, "2026-07-28")
    state = (await client.call("greet"))["result"]["requestState"]
    again = await client.call("greet", requestState=state, inputResponses=given)
    assert list(again["result"]["inputRequests"]) == ["question-1"]


async def test_an_answer_without_a_first_round_is_taken_on_its_merits(server: Server) -> None:
    client = Client(server, "2026-07-28")
    assert text(await client.call("greet", inputResponses={"question-1": YES})) == "Hello Ada"
    assert (await client.call("greet", inputResponses=None))["result"]["resultType"] == "input_required"


async def test_prompts_ask_too(server: Server) -> None:
    client = await legacy(server)
    client.ask("prompts/get", {"name": "letter"})
    client.answer(await client.hear(), result=YES)
    told = await client.hear("prompts/get")
    assert told["result"]["messages"][0]["content"]["text"] == "Write to Ada"


async def test_nothing_is_left_of_a_client_that_goes_while_it_is_asked(server: Server) -> None:
    client = await legacy(server)
    client.ask("tools/call", {"name": "greet"})
    await client.hear()
    client.wire.close()
    other = await legacy(server)
    for _ in range(100):
        other.ask("ping", {})
        await other.hear("ping")
        statistics = server.statistics()
        if not (statistics.questions or statistics.calls or statistics.ending):
            break
    assert (statistics.questions, statistics.calls, statistics.running) == (0, 0, 0)


async def test_time_spent_waiting_is_not_the_callbacks_own() -> None:
    app = Stanchion("slow", config=Config(elicitation_timeout=PATIENCE, callback_timeout=0.3))

    @app.tool
    async def patient(context: Context) -> str:
        return (await context.elicit("Your name?", Name)).action

    @app.tool
    async def impatient(context: Context) -> str:
        await context.elicit("Your name?", Name)
        await asyncio.Event().wait()
        return "never"

    server = app.server()
    client = await legacy(server)
    client.ask("tools/call", {"name": "patient"})
    question = await client.hear()
    await asyncio.sleep(0.5)  # longer than a callback may take
    client.answer(question, result=YES)
    assert text(await client.hear("tools/call")) == "accept"
    client.ask("tools/call", {"name": "impatient"})
    client.answer(await client.hear(), result=YES)
    ended = await client.hear("tools/call")
    assert ended["result"]["structuredContent"]["code"] == "timed_out"
    assert ended["result"]["structuredContent"]["timeout"] == 0.3
    await server.aclose(0.0)
