"""HTTP+SSE, the transport of 2024-11-05."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from stanchion import Principal, Stanchion
from tests.transports.http_app import make_app
from tests.transports.http_calls import Call, Client, served, settled, text_of


@pytest.fixture
def stanchion() -> Stanchion:
    return make_app(keep_alive=0.1)


@pytest.fixture
async def client(stanchion: Stanchion) -> AsyncIterator[Client]:
    async with served(stanchion.asgi(sse=True)) as client:
        yield client


async def opened(client: Client, **headers: str) -> tuple[Call, str]:
    """A stream, and the address that it names."""
    stream = await client.call("GET", "/sse", accept="text/event-stream", **headers).until(lambda c: c.events)
    assert stream.events[0].event == "endpoint"
    return stream, stream.events[0].data


def post(
    client: Client, address: str, method: str, params: Any = None, *, ident: int = 1, **headers: str
) -> Call:
    body = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params or {}}
    return client.call("POST", address, body, content_type="application/json", **headers)


INITIALIZE = {
    "protocolVersion": "2024-11-05",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "0"},
}


async def test_a_conversation(client: Client) -> None:
    stream, address = await opened(client)
    assert address.startswith("/messages/?session_id=")
    early = await post(client, address, "tools/list").whole()
    assert (early.status, early.body) == (202, b"")
    await stream.until(lambda c: len(c.messages) == 1)
    assert stream.messages[0]["error"]["code"] == -32600
    await post(client, address, "initialize", INITIALIZE, ident=2).whole()
    await stream.until(lambda c: len(c.messages) == 2)
    assert stream.messages[1]["result"]["protocolVersion"] == "2024-11-05"
    await post(client, address, "tools/call", {"name": "who"}, ident=3).whole()
    await stream.until(lambda c: len(c.messages) == 3)
    assert text_of(stream.messages[2]) == "sse 2024-11-05 None"
    params = {"name": "steps", "arguments": {"count": 2}, "_meta": {"progressToken": 0}}
    await post(client, address, "tools/call", params, ident=4).whole()
    await stream.until(lambda c: len(c.messages) == 6)
    assert [event.event for event in stream.events] == ["endpoint"] + ["message"] * 6
    assert all(event.ident is None for event in stream.events)
    await stream.until(lambda c: c.comments)
    await stream.leave()


async def test_the_end_of_the_stream_is_the_end(client: Client, stanchion: Any) -> None:
    stream, address = await opened(client)
    await post(client, address, "initialize", INITIALIZE).whole()
    await post(client, address, "tools/call", {"name": "wait", "arguments": {"name": "a"}}, ident=2).whole()
    await settled(lambda: "a" in stanchion.gates)
    await stream.leave()
    assert (await post(client, address, "ping").whole()).status == 404
    await settled(lambda: stanchion.cancelled == ["a"])
    assert client.app.endpoint.held().pairs == 0
    assert client.app.endpoint.server.statistics().connections == 0


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/messages/", 400),
        ("/messages/?session_id=zzz", 400),
        ("/messages/?session_id=" + "0" * 32, 404),
        ("/messages?other=1", 400),
    ],
)
async def test_an_address_that_nobody_was_given(client: Client, address: str, status: int) -> None:
    call = await post(client, address, "ping").whole()
    assert (call.status, call.json["error"]["code"]) == (status, -32600)


async def test_what_is_no_message_is_a_bad_request(client: Client) -> None:
    stream, address = await opened(client)
    call = await client.call("POST", address, b"{bad", content_type="application/json").whole()
    assert (call.status, call.json["error"]["code"]) == (400, -32700)
    assert (await client.call("POST", address, b"{}", content_type="text/plain").whole()).status == 415
    await stream.leave()


async def test_it_is_there_only_on_request(stanchion: Stanchion) -> None:
    async with served(stanchion.asgi()) as client:
        assert (await client.call("GET", "/sse").whole()).status == 404


async def test_an_address_belongs_to_who_was_given_it(stanchion: Stanchion) -> None:
    def identify(scope: Any) -> Principal | None:
        name = dict(scope["headers"]).get(b"x-user")
        return None if name is None else Principal(name.decode(), "token")

    async with served(stanchion.asgi(sse=True, identify=identify)) as client:
        stream, address = await opened(client, x_user="ada")
        assert (await post(client, address, "ping", x_user="bob").whole()).status == 404
        assert (await post(client, address, "ping", x_user="ada").whole()).status == 202
        await stream.leave()


async def test_streams_end_with_the_server(stanchion: Stanchion) -> None:
    async with served(stanchion.asgi(sse=True)) as client:
        stream, _ = await opened(client)
    assert (await stream.whole()).ended
