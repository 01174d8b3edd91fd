"""Lost streams of the handshake revisions: what was sent is kept and comes exactly once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from stanchion import Stanchion
from tests.transports.http_app import make_app
from tests.transports.http_calls import Client, served, settled, text_of


@pytest.fixture
def stanchion() -> Stanchion:
    return make_app(event_store_messages=8, event_store_streams=2, reconnect_after=0.5, keep_alive=0.2)


@pytest.fixture
async def client(stanchion: Stanchion) -> AsyncIterator[Client]:
    async with served(stanchion.asgi()) as client:
        yield client


async def test_a_stream_begins_with_a_priming_event_in_the_revision_that_has_it(client: Client) -> None:
    for revision, primed in (("2025-03-26", False), ("2025-06-18", False), ("2025-11-25", True)):
        session = await client.open(revision)
        call = await session.tool("steps", {"count": 1}, token=1).whole()
        first = call.events[0]
        assert (first.data == "", first.retry == 500) == (primed, primed)
        assert all(event.ident for event in call.events)


async def test_a_slow_call_is_primed_before_anything_is_sent(client: Client, stanchion: Any) -> None:
    session = await client.open()
    call = await session.tool("wait", {"name": "a"}).until(lambda c: c.events)
    assert (call.events[0].data, call.events[0].retry) == ("", 500)
    await call.leave()
    stanchion.gates["a"].set()
    await settled(lambda: client.app.endpoint.server.statistics().calls == 0)
    again = await session.get(last=str(call.events[0].ident)).whole()
    assert [text_of(one) for one in again.messages] == ["waited a"]
    assert again.ended


async def test_a_lost_stream_goes_on_where_it_stopped(client: Client, stanchion: Any) -> None:
    session = await client.open()
    call = await session.tool("wait", {"name": "a"}, token=1).until(lambda c: c.messages)
    await call.leave()
    assert stanchion.cancelled == []
    again = await session.get(last=str(call.events[-1].ident)).until(lambda c: c.comments)
    assert again.messages == []
    stanchion.gates["a"].set()
    await again.whole()
    assert [one.get("method") for one in again.messages] == ["notifications/progress", None]
    ids = [event.ident for event in (*call.events, *again.events) if event.data]
    assert len(ids) == len(set(ids)) == 3


async def test_the_same_stream_can_be_asked_for_again(client: Client) -> None:
    session = await client.open()
    call = await session.tool("steps", {"count": 3}, token=1).whole()
    ids = [str(event.ident) for event in call.events]
    for place, ident in enumerate(ids):
        again = await session.get(last=ident).whole()
        assert [event.ident for event in again.events] == ids[place + 1 :]


async def test_an_old_reader_that_nobody_knows_is_dead_gives_way(client: Client, stanchion: Any) -> None:
    session = await client.open()
    call = await session.tool("wait", {"name": "a"}, token=1).until(lambda c: c.messages)
    again = await session.get(last=str(call.events[-1].ident)).until(lambda c: c.status)
    assert (await call.whole()).ended
    stanchion.gates["a"].set()
    await again.whole()
    assert text_of(again.messages[-1]) == "waited a"
    assert len(call.messages) == 1


async def test_ids_never_meet(client: Client) -> None:
    session = await client.open()
    calls = [await session.tool("steps", {"count": 2}, token=n, ident=n).whole() for n in range(2)]
    ids = [event.ident for call in calls for event in call.events]
    assert len(ids) == len(set(ids))
    again = await session.get(last=str(calls[0].events[1].ident)).whole()
    assert {one["params"]["progressToken"] for one in again.messages if "params" in one} == {0}


async def test_unknown_and_foreign_ids_are_refused(client: Client) -> None:
    session, other = await client.open(), await client.open()
    theirs = await other.tool("steps", {"count": 1}, token=1).whole()
    mine = await session.tool("steps", {"count": 1}, token=1).whole()
    tag = str(mine.events[0].ident).rpartition("-")[0].rpartition("-")[0]
    for wrong in (
        "x",
        "1",
        "-1-1",
        f"{tag}-1-99",
        f"{tag}-9-1",
        f"{tag}-1-x",
        f"{tag}-²-1",
        str(theirs.events[0].ident),
    ):
        call = await session.get(last=wrong).whole()
        assert (call.status, call.json["error"]["code"]) == (400, -32600), wrong
        assert "Last-Event-ID" in call.json["error"]["message"]


async def test_what_was_dropped_is_said_to_be_gone(client: Client, stanchion: Any) -> None:
    session = await client.open()
    call = await session.tool("flood", {"count": 20, "size": 10}).whole()
    assert len(call.messages) == 21, "a reader that reads misses nothing, however much comes at once"
    too_old = await session.get(last=str(call.events[0].ident)).whole()
    assert (too_old.status, "gone" in too_old.json["error"]["message"]) == (400, True)
    near = await session.get(last=str(call.events[-3].ident)).whole()
    assert len(near.messages) == 2


async def test_few_ended_streams_are_kept(client: Client) -> None:
    session = await client.open()
    calls = [await session.tool("steps", {"count": 1}, token=1).whole() for _ in range(4)]
    statuses = [(await session.get(last=str(call.events[0].ident)).whole()).status for call in calls]
    assert statuses == [400, 400, 200, 200]


async def test_a_standing_stream_is_resumed_too(client: Client, stanchion: Any) -> None:
    session = await client.open()
    standing = await session.get().until(lambda c: c.status)
    client.app.endpoint.server.notify("notifications/one")
    await standing.until(lambda c: c.messages)
    await standing.leave()
    client.app.endpoint.server.notify("notifications/two")
    again = await session.get(last=str(standing.events[0].ident)).until(lambda c: c.messages)
    assert [one["method"] for one in again.messages] == ["notifications/two"]
    await again.leave()
    once_more = await session.get().until(lambda c: c.comments)
    assert once_more.messages == []
    await once_more.leave()


async def test_a_reader_that_stalls_is_cut_off_and_may_come_back(client: Client, stanchion: Any) -> None:
    session = await client.open()
    call = session.tool("flood", {"count": 40, "size": 1000}, token=1)
    call.reading.clear()
    await settled(lambda: stanchion.flooded and client.app.endpoint.server.statistics().calls == 0)
    live = next(iter(client.app.endpoint._legacy.sessions._table.values()))
    assert all(len(stream.window) <= 8 for stream in live.streams._open.values())
    call.reading.set()
    await call.whole()
    assert not call.ended, "the response is broken off, not ended"
    again = await session.get(last=str(call.events[-1].ident)).whole()
    assert "gone" in again.json["error"]["message"]
    assert (await session.request("ping").whole()).status == 200


async def test_a_client_that_vanished_before_anything_was_sent_leaves_nothing(
    client: Client, stanchion: Any
) -> None:
    session = await client.open("2025-06-18")
    call = session.tool("wait", {"name": "a"})
    await settled(lambda: "a" in stanchion.gates)
    await call.leave()
    stanchion.gates["a"].set()
    await settled(lambda: client.app.endpoint.server.statistics().calls == 0)
    assert stanchion.cancelled == []
    live = next(iter(client.app.endpoint._legacy.sessions._table.values()))
    assert (len(live.streams), len(live.calls), len(live.readers)) == (0, 0, 0)
