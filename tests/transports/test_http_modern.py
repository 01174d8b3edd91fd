"""2026-07-28 over HTTP: one request, one connection; headers that agree with the body; statuses that mean something."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stanchion import Stanchion
from tests.transports.http_app import make_app
from tests.transports.http_calls import META, MODERN, Client, served, settled, text_of


@pytest.fixture
def stanchion() -> Stanchion:
    return make_app(keep_alive=0.1)


@pytest.fixture
async def client(stanchion: Stanchion) -> AsyncIterator[Client]:
    async with served(stanchion.asgi()) as client:
        yield client
        held = client.app.endpoint.held()
        await settled(lambda: client.app.endpoint.held().requests == 0)
        assert held.sessions == 0
        statistics = client.app.endpoint.server.statistics()
        assert (statistics.connections, statistics.calls, statistics.listeners) == (0, 0, 0)


async def test_an_answer_is_json_where_nothing_streams(client: Client) -> None:
    call = await client.tool("echo", {"text": "héllo"}).whole()
    assert (call.status, call.headers["content-type"]) == (200, "application/json")
    assert text_of(call.json) == "héllo"
    assert "mcp-session-id" not in call.headers


async def test_the_first_push_opens_a_stream_of_events_without_ids(client: Client) -> None:
    call = await client.tool("steps", {"count": 2}, meta={"progressToken": "p"}).whole()
    assert (call.status, call.headers["content-type"]) == (200, "text/event-stream")
    assert call.headers["x-accel-buffering"] == "no"
    assert "no-cache" in call.headers["cache-control"]
    *progress, answer = call.messages
    assert [one["params"]["progress"] for one in progress] == [1, 2]
    assert text_of(answer) == "2 steps"
    assert all(event.ident is None for event in call.events)


async def test_who_takes_json_alone_gets_the_answer_alone(client: Client) -> None:
    call = await client.tool(
        "steps", {"count": 2}, meta={"progressToken": "p"}, accept="application/json"
    ).whole()
    assert call.headers["content-type"] == "application/json"
    assert text_of(call.json) == "2 steps"


async def test_who_takes_events_alone_gets_events(client: Client) -> None:
    call = await client.tool("echo", {"text": "x"}, accept="text/event-stream").whole()
    assert [text_of(one) for one in call.messages] == ["x"]
    refused = await client.modern("no/such", accept="text/event-stream").whole()
    assert (refused.status, refused.json["error"]["code"]) == (404, -32601)


async def test_the_transport_and_the_revision_are_told_to_callbacks(client: Client) -> None:
    assert text_of((await client.tool("who").whole()).json) == f"http {MODERN} None"


async def test_same_ids_of_two_clients_are_two_requests(client: Client) -> None:
    one, two = client.tool("echo", {"text": "one"}), client.tool("echo", {"text": "two"})
    assert [text_of((await call.whole()).json) for call in (one, two)] == ["one", "two"]


async def test_leaving_cancels(client: Client, stanchion: Any) -> None:
    call = await client.tool("wait", {"name": "a"}, meta={"progressToken": 1}).until(lambda c: c.messages)
    await call.leave()
    await settled(lambda: stanchion.cancelled == ["a"])


async def test_leaving_before_anything_was_sent_cancels(client: Client, stanchion: Any) -> None:
    call = client.tool("wait", {"name": "a"})
    await settled(lambda: "a" in stanchion.gates)
    await call.leave()
    await settled(lambda: stanchion.cancelled == ["a"])


async def test_a_quiet_stream_gets_comments(client: Client, stanchion: Any) -> None:
    call = await client.tool("wait", {"name": "a"}).until(lambda c: c.comments >= 2)
    assert call.messages == []
    stanchion.gates["a"].set()
    await call.whole()
    assert text_of(call.messages[-1]) == "waited a"


# -- subscriptions/listen


async def test_a_listener_hears_of_changes_until_it_leaves(client: Client, stanchion: Any) -> None:
    params = {"notifications": {"toolsListChanged": True}}
    call = await client.modern("subscriptions/listen", params, ident=7).until(lambda c: c.messages)
    assert call.messages[0]["method"] == "notifications/subscriptions/acknowledged"
    stanchion.tool(name="later")(lambda: "x")
    await call.until(lambda c: len(c.messages) == 2)
    assert call.messages[1]["method"] == "notifications/tools/list_changed"
    assert call.messages[1]["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 7
    await call.until(lambda c: c.comments)
    await call.leave()


async def test_at_the_end_a_listener_gets_its_result(stanchion: Stanchion) -> None:
    async with served(stanchion.asgi()) as client:
        params = {"notifications": {"toolsListChanged": True}}
        call = await client.modern("subscriptions/listen", params).until(lambda c: c.messages)
    await call.whole()
    assert call.ended
    assert call.messages[-1]["result"]["resultType"] == "complete"
    assert not [one for one in call.messages if one.get("method") == "notifications/cancelled"]


async def test_a_listener_must_take_events(client: Client) -> None:
    params = {"notifications": {"toolsListChanged": True}}
    call = await client.modern("subscriptions/listen", params, accept="application/json").whole()
    assert (call.status, call.json["error"]["code"]) == (406, -32600)


async def test_what_goes_to_everybody_stays_off_a_request_s_stream(client: Client, stanchion: Any) -> None:
    call = await client.tool("wait", {"name": "a"}, meta={"progressToken": 1}).until(lambda c: c.messages)
    client.app.endpoint.server.notify("notifications/x")
    await asyncio.sleep(0.02)
    stanchion.gates["a"].set()
    await call.whole()
    assert {one.get("method") for one in call.messages} == {"notifications/progress", None}


# -- the ladder, in its order


def lacking(key: str) -> dict[str, Any]:
    return {name: value for name, value in META.items() if not name.endswith(key)}


async def raw(client: Client, meta: Any, method: str = "server/discover", **headers: str) -> tuple[Any, ...]:
    params = {} if meta is None else {"_meta": meta}
    request = {"jsonrpc": "2.0", "id": "x", "method": method, "params": params}
    call = await client.post(
        request, **({"mcp_protocol_version": MODERN, "mcp_method": method} | headers)
    ).whole()
    assert call.json["id"] == "x"
    return call.status, call.json["error"]["code"], call.json["error"].get("data")


UNKNOWN = {**META, "io.modelcontextprotocol/protocolVersion": "v999.0.0"}


async def test_a_request_must_describe_itself_whole(client: Client) -> None:
    assert (await raw(client, None))[:2] == (400, -32602)
    assert (await raw(client, {}))[:2] == (400, -32602)
    assert (await raw(client, lacking("protocolVersion")))[:2] == (400, -32602)
    assert (await raw(client, lacking("clientCapabilities")))[:2] == (400, -32602)
    bad = {**META, "io.modelcontextprotocol/protocolVersion": 5}
    assert (await raw(client, bad))[:2] == (400, -32602)
    assert (await raw(client, {**META, "io.modelcontextprotocol/clientCapabilities": 5}))[:2] == (400, -32602)


async def test_the_version_header_is_needed_and_must_agree(client: Client) -> None:
    assert (await raw(client, META, mcp_protocol_version=""))[:2] == (400, -32020)
    assert (await raw(client, META, mcp_protocol_version="2025-11-25"))[:2] == (400, -32020)
    assert (await raw(client, UNKNOWN))[:2] == (400, -32020)


async def test_an_unknown_revision_is_told_what_there_is(client: Client) -> None:
    status, code, data = await raw(client, UNKNOWN, mcp_protocol_version="v999.0.0")
    assert (status, code) == (400, -32022)
    assert data == {"supported": [MODERN], "requested": "v999.0.0"}


async def test_the_method_header_is_needed_and_must_agree(client: Client) -> None:
    assert (await raw(client, META, mcp_method=""))[:2] == (400, -32020)
    assert (await raw(client, META, mcp_method="Server/Discover"))[:2] == (400, -32020)
    assert (await raw(client, META, "no/such", mcp_method="other"))[:2] == (400, -32020)
    call = await client.modern("server/discover", mcp_method="  server/discover\t").whole()
    assert call.status == 200


@pytest.mark.parametrize(
    "method",
    [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "unknown/method",
    ],
)
async def test_what_this_revision_lacks_is_not_found(client: Client, method: str) -> None:
    assert (await raw(client, META, method))[:2] == (404, -32601)


async def test_the_name_header_is_needed_and_must_agree(client: Client) -> None:
    for wrong in ("", "ECHO", "other", "echo, echo"):
        call = await client.tool("echo", {"text": "x"}, mcp_name=wrong).whole()
        assert (call.status, call.json["error"]["code"]) == (400, -32020)
    for right in ("  echo ", "=?base64?ZWNobw==?="):
        assert (await client.tool("echo", {"text": "x"}, mcp_name=right).whole()).status == 200
    assert (await client.modern("resources/read", {"uri": "note://one"}).whole()).status == 200
    assert (
        await client.modern("prompts/get", {"name": "greet", "arguments": {"name": "A"}}).whole()
    ).status == 200
    assert (await client.modern("prompts/get", {"name": "greet"}, mcp_name="x").whole()).status == 400


async def test_an_unknown_tool_is_no_unknown_method(client: Client) -> None:
    call = await client.tool("nothing").whole()
    assert (call.status, call.json["error"]["code"]) == (200, -32602)
    call = await client.modern("resources/read", {"uri": "note://none"}).whole()
    assert (call.status, call.json["error"]["code"]) == (200, -32602)


async def test_malformed_params_are_a_bad_request(client: Client) -> None:
    call = await client.modern("tools/list", {"cursor": 5}).whole()
    assert (call.status, call.json["error"]["code"]) == (400, -32602)


async def test_headers_repeat_arguments(client: Client) -> None:
    arguments = {"region": "Zürich", "deep": {"count": 42}, "dry": True}
    right = {
        "mcp_param_region": f"=?base64?{base64.b64encode('Zürich'.encode()).decode()}?=",
        "mcp_param_count": "42.0",
        "mcp_param_dry_run": "true",
        "mcp_param_unknown": "ignored",
    }
    call = await client.tool("mirrored", arguments, **right).whole()
    assert (call.status, text_of(call.json)) == (200, "mirrored")
    for wrong in (
        {"mcp_param_region": ""},
        {"mcp_param_region": "Zurich"},
        {"mcp_param_count": "43"},
        {"mcp_param_count": "forty"},
        {"mcp_param_dry_run": "True"},
    ):
        call = await client.tool("mirrored", arguments, **(right | wrong)).whole()
        assert (call.status, call.json["error"]["code"]) == (400, -32020), wrong
    assert (await client.tool("mirrored", {"region": None}).whole()).status == 200
    call = await client.tool("mirrored", {}, mcp_param_region="x").whole()
    assert (call.status, call.json["error"]["code"]) == (400, -32020)


# -- what is no request


async def test_a_notification_is_taken_without_headers_but_not_with_wrong_ones(client: Client) -> None:
    notice = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": META}}
    call = await client.post(notice).whole()
    assert (call.status, call.body) == (202, b"")
    call = await client.post(notice, mcp_method="notifications/y").whole()
    assert (call.status, call.json["error"]["code"]) == (400, -32020)
    call = await client.post(notice, mcp_protocol_version="2025-11-25").whole()
    assert (call.status, call.json["error"]["code"]) == (400, -32020)
    bare = {"jsonrpc": "2.0", "method": "notifications/x"}
    assert (await client.post(bare, mcp_protocol_version=MODERN).whole()).status == 202


@pytest.mark.parametrize(
    "body", [[{"jsonrpc": "2.0", "id": 1, "method": "ping"}], {"jsonrpc": "2.0", "id": 1, "result": {}}]
)
async def test_batches_and_responses_are_none_of_this_revision_s(client: Client, body: Any) -> None:
    call = await client.post(body, mcp_protocol_version=MODERN).whole()
    assert (call.status, call.json["error"]["code"]) == (400, -32600)


async def test_sessions_are_ignored(client: Client) -> None:
    call = await client.tool("echo", {"text": "x"}, mcp_session_id="dead", last_event_id="1").whole()
    assert call.status == 200
    assert "mcp-session-id" not in call.headers


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_there_is_only_post(client: Client, verb: str) -> None:
    call = await client.call(verb, mcp_protocol_version=MODERN, accept="text/event-stream").whole()
    assert (call.status, call.headers["allow"]) == (405, "POST, OPTIONS")
    assert "method" in call.json["error"]["message"]
