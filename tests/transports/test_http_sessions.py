"""The handshake revisions over HTTP: sessions, their streams, and what losing one means."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stanchion import Principal, Stanchion
from tests.transports.http_app import make_app
from tests.transports.http_calls import Client, served, settled, text_of

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture
def stanchion() -> Stanchion:
    return make_app(keep_alive=0.1)


@pytest.fixture
async def client(stanchion: Stanchion) -> AsyncIterator[Client]:
    async with served(stanchion.asgi()) as client:
        yield client


def initialize(revision: str = "2025-11-25") -> dict[str, Any]:
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_session_from_its_beginning_to_its_end(client: Client, revision: str) -> None:
    session = await client.open(revision)
    call = await session.tool("who").whole()
    assert text_of(call.json) == f"http {revision} None"
    assert (await session.request("ping").whole()).json["result"] == {}
    assert client.app.endpoint.held().sessions == 1
    assert (await session.delete().whole()).status == 204
    assert client.app.endpoint.held().sessions == 0
    for call in (session.request("ping"), session.get(), session.delete()):
        await call.whole()
        assert (call.status, call.json["error"]["code"]) == (404, -32600)


async def test_ids_are_unguessable_and_printable(client: Client) -> None:
    ids = {(await client.open()).id for _ in range(5)}
    assert len(ids) == 5
    assert all(len(one) >= 32 and all("!" <= char <= "~" for char in one) for one in ids)


async def test_what_is_unknown_here_is_an_error_with_status_200(client: Client) -> None:
    session = await client.open()
    call = await session.request("no/such").whole()
    assert (call.status, call.json["error"]["code"]) == (200, -32601)
    call = await session.tool("nothing").whole()
    assert (call.status, call.json["error"]["code"]) == (200, -32602)


async def test_the_version_header_may_be_missing_but_not_wrong(client: Client) -> None:
    session = await client.open("2025-06-18")
    assert (await session.request("ping", mcp_protocol_version="").whole()).status == 200
    for wrong in ("1900-01-01", "junk", "2025-11-25", "2026-07-28"):
        call = await session.request("ping", mcp_protocol_version=wrong).whole()
        assert (call.status, call.json["error"]["code"], call.json["id"]) == (400, -32600, 1)
        assert (await session.get(mcp_protocol_version=wrong).whole()).status == 400


async def test_a_version_header_does_not_break_initialize(client: Client) -> None:
    for header in ("2025-06-18", "2025-03-26", "2099-01-01"):
        call = await client.post(initialize("2025-06-18"), mcp_protocol_version=header).whole()
        assert call.json["result"]["protocolVersion"] == "2025-06-18"


async def test_a_stale_session_on_initialize_gives_a_new_one(client: Client) -> None:
    call = await client.post(initialize(), mcp_session_id="stale").whole()
    assert call.status == 200
    assert call.headers["mcp-session-id"] != "stale"


async def test_a_second_initialize_keeps_the_session(client: Client) -> None:
    session = await client.open("2025-06-18")
    again = await session.send(initialize("2025-06-18")).whole()
    assert (again.status, client.app.endpoint.held().sessions) == (200, 1)
    other = await session.send(initialize("2025-03-26")).whole()
    assert (other.status, other.json["error"]["code"]) == (400, -32600)


async def test_a_session_is_demanded(client: Client) -> None:
    bare = await client.post(PING).whole()
    assert (bare.status, bare.json["error"]["code"]) == (400, -32020)
    versioned = await client.post(PING, mcp_protocol_version="2025-06-18").whole()
    assert (versioned.status, versioned.json["error"]["code"]) == (400, -32600)
    notice = await client.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).whole()
    assert notice.status == 400
    for verb in ("GET", "DELETE"):
        call = await client.call(verb, accept="text/event-stream").whole()
        assert (call.status, call.json["error"]["code"]) == (400, -32600)


async def test_only_a_good_initialize_makes_a_session(client: Client) -> None:
    bad = initialize()
    del bad["params"]["protocolVersion"]
    call = await client.post(bad).whole()
    assert call.json["error"]["code"] == -32602
    assert "mcp-session-id" not in call.headers
    assert client.app.endpoint.held().sessions == 0
    assert client.app.endpoint.server.statistics().connections == 0


async def test_two_sessions_hear_only_their_own(client: Client) -> None:
    one, two = await client.open(), await client.open()
    calls = [session.tool("echo", {"text": text}) for session, text in ((one, "1"), (two, "2"))]
    assert [text_of((await call.whole()).json) for call in calls] == ["1", "2"]


async def test_an_id_in_use_is_refused_and_the_first_call_untouched(client: Client, stanchion: Any) -> None:
    session = await client.open("2025-06-18")
    first = session.tool("wait", {"name": "a"})
    await settled(lambda: "a" in stanchion.gates)
    second = await session.tool("echo", {"text": "x"}).whole()
    assert (second.status, second.json["error"]["code"]) == (400, -32600)
    stanchion.gates["a"].set()
    await first.whole()
    assert b"waited a" in first.body


async def test_a_cancelled_request_ends_without_an_answer(client: Client, stanchion: Any) -> None:
    session = await client.open("2025-06-18")
    calls = {
        "events": session.tool("wait", {"name": "a"}, ident=1),
        "json": session.tool("wait", {"name": "b"}, ident=2, accept="application/json"),
    }
    await settled(lambda: len(stanchion.gates) == 2)
    for ident in (1, 2):
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ident}}
        assert (await session.send(cancel).whole()).status == 202
    assert (await calls["events"].whole()).messages == []
    assert calls["events"].headers["content-type"] == "text/event-stream"
    assert (await calls["json"].whole()).json["error"]["code"] == -32603
    await settled(lambda: sorted(stanchion.cancelled) == ["a", "b"])


async def test_delete_ends_what_runs(client: Client, stanchion: Any) -> None:
    session = await client.open("2025-06-18")
    quiet = session.tool("wait", {"name": "a"})
    loud = await session.tool("wait", {"name": "b"}, token=1, ident=2).until(lambda c: c.messages)
    standing = await session.get().until(lambda c: c.status)
    assert (await session.delete().whole()).status == 204
    assert (await quiet.whole()).status == 404
    assert (await loud.whole()).ended
    assert (await standing.whole()).ended
    await settled(lambda: sorted(stanchion.cancelled) == ["a", "b"])
    await client.open()


# -- batches


async def test_batches_belong_to_one_revision(client: Client) -> None:
    batch = [PING, {"jsonrpc": "2.0", "method": "notifications/x"}, {**PING, "id": 2}]
    session = await client.open("2025-03-26")
    call = await session.send(batch).whole()
    assert [one["id"] for one in call.json] == [1, 2]  # type: ignore[call-overload]
    notices = await session.send([{"jsonrpc": "2.0", "method": "notifications/x"}]).whole()
    assert (notices.status, notices.body) == (202, b"")
    empty = await session.send([]).whole()
    assert (empty.status, empty.json["error"]["code"]) == (400, -32600)
    for revision in ("2025-06-18", "2025-11-25"):
        call = await (await client.open(revision)).send(batch).whole()
        assert (call.status, call.json["error"]["code"]) == (400, -32600)
        assert "id" not in call.json
    assert (await client.post([initialize()]).whole()).status == 400


async def test_progress_of_a_batch_s_part_is_on_the_batch_s_stream(client: Client) -> None:
    session = await client.open("2025-03-26")
    params = {"name": "steps", "arguments": {"count": 1}, "_meta": {"progressToken": "t"}}
    call = await session.send([{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}]).whole()
    assert call.messages[0]["params"]["progressToken"] == "t"
    assert text_of(call.messages[1][0]) == "1 steps"  # type: ignore[index]


# -- the standing stream


async def test_what_belongs_to_no_request_goes_onto_the_standing_stream(
    client: Client, stanchion: Any
) -> None:
    session = await client.open()
    standing = await session.get().until(lambda c: c.comments)
    stanchion.tool(name="later")(lambda: "x")
    await standing.until(lambda c: c.messages)
    assert standing.messages[0]["method"] == "notifications/tools/list_changed"
    assert standing.events[0].ident
    await standing.until(lambda c: c.comments >= 2)
    await standing.leave()


async def test_a_request_s_messages_are_on_its_own_stream_alone(client: Client) -> None:
    session = await client.open()
    standing = await session.get().until(lambda c: c.status)
    call = await session.tool("steps", {"count": 2}, token=0, ident=0).whole()
    assert [one.get("method") for one in call.messages] == ["notifications/progress"] * 2 + [None]
    assert standing.messages == []
    await standing.leave()


async def test_what_came_before_the_standing_stream_is_not_lost(client: Client, stanchion: Any) -> None:
    session = await client.open()
    stanchion.tool(name="later")(lambda: "x")
    await asyncio.sleep(0.15)
    standing = await session.get().until(lambda c: c.messages)
    assert len(standing.messages) == 1
    await standing.leave()
    again = await session.get().until(lambda c: c.comments)
    assert again.messages == []
    await again.leave()


async def test_a_new_get_takes_over(client: Client, stanchion: Any) -> None:
    session = await client.open()
    one = await session.get().until(lambda c: c.status)
    two = await session.get().until(lambda c: c.status)
    assert (await one.whole()).ended
    stanchion.tool(name="later")(lambda: "x")
    await two.until(lambda c: c.messages)
    assert one.messages == []
    await two.leave()


async def test_a_get_must_take_events(client: Client) -> None:
    session = await client.open()
    assert (await session.get(accept="application/json").whole()).status == 406


# -- whose it is, and how long


async def test_a_session_belongs_to_who_opened_it(stanchion: Stanchion) -> None:
    def identify(scope: Any) -> Principal | None:
        name = dict(scope["headers"]).get(b"x-user")
        return None if name is None else Principal(name.decode(), "token")

    async with served(stanchion.asgi(identify=identify)) as client:
        session = await client.open(x_user="ada")
        mine = session.tool("who", x_user="ada")
        assert text_of((await mine.whole()).json) == "http 2025-11-25 ada"
        for other in ("bob", ""):
            for call in (
                session.request("ping", x_user=other),
                session.get(x_user=other),
                session.delete(x_user=other),
            ):
                assert (await call.whole()).status == 404
        assert (await session.delete(x_user="ada").whole()).status == 204


async def test_idle_sessions_end_and_busy_ones_do_not() -> None:
    stanchion: Any = make_app(session_idle=0.1, event_store_seconds=0.1)
    async with served(stanchion.asgi()) as client:
        idle, listening, working = [await client.open("2025-06-18") for _ in range(3)]
        standing = await listening.get().until(lambda c: c.status)
        call = working.tool("wait", {"name": "a"})
        await asyncio.sleep(0.4)
        assert client.app.endpoint.held().sessions == 2
        assert (await idle.request("ping").whole()).status == 404
        assert (await listening.request("ping").whole()).status == 200
        stanchion.gates["a"].set()
        assert text_of((await call.whole()).json) == "waited a"
        await standing.leave()
        await settled(lambda: client.app.endpoint.held().sessions == 0)
        assert client.app.endpoint.server.statistics().connections == 0


async def test_the_table_is_bounded() -> None:
    stanchion: Any = make_app(max_sessions=2)
    async with served(stanchion.asgi()) as client:
        first, second = await client.open(), await client.open()
        await first.request("ping").whole()
        third = await client.open()
        assert (await second.request("ping").whole()).status == 404, "the one that is idle longest made room"
        streams = [await session.get().until(lambda c: c.status) for session in (first, third)]
        refused = await client.post(initialize()).whole()
        assert (refused.status, refused.json["id"]) == (503, 0)
        assert refused.headers["retry-after"]
        assert "mcp-session-id" not in refused.headers
        for stream in streams:
            await stream.leave()
        await client.open()
        assert client.app.endpoint.server.statistics().connections == 2


async def test_a_thousand_refused_requests_leave_nothing(client: Client) -> None:
    for _ in range(200):
        for call in (
            client.post(initialize(), accept="text/plain"),
            client.post(b"{bad"),
            client.post(initialize(), host="evil.example"),
            client.post(PING),
            client.call("GET", accept="text/event-stream"),
        ):
            assert 400 <= ((await call.whole()).status or 0) < 500
    assert client.app.endpoint.held().sessions == 0
    assert client.app.endpoint.server.statistics().connections == 0


async def test_both_eras_at_once(client: Client) -> None:
    session = await client.open("2025-03-26")
    assert text_of((await client.tool("who").whole()).json).startswith("http 2026-07-28")
    assert text_of((await session.tool("who").whole()).json).startswith("http 2025-03-26")
    described = await client.tool("who", mcp_session_id=session.id).whole()
    assert text_of(described.json).startswith("http 2026-07-28")
