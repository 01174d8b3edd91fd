"""A client and a server in one process: the same bytes as on a pipe."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stanchion import Context, Stanchion
from stanchion.runtime import Server
from stanchion.server.errors import ConnectionTaken
from stanchion.transports.memory import MemoryTransport

PATIENCE = 10.0


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    app = Stanchion("memory")

    @app.tool
    async def echo(text: str) -> str:
        return text

    @app.tool
    async def who(context: Context) -> str:
        return f"{context.transport} {context.revision}"

    @app.tool
    async def wait() -> None:
        await asyncio.Event().wait()

    server = app.server()
    yield server
    await server.aclose(0.0)


def line(ident: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}).encode()


async def answer(client: MemoryTransport) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(await asyncio.wait_for(client.receive(), PATIENCE))
    return told


async def test_a_handshake_is_demanded_as_by_a_real_transport(server: Server) -> None:
    client = MemoryTransport(server)
    client.send(line(1, "tools/list"))
    assert (await answer(client))["error"]["code"] == -32600
    client.send(line(2, "initialize", protocolVersion="2025-03-26", capabilities={}, clientInfo={}))
    assert (await answer(client))["result"]["protocolVersion"] == "2025-03-26"
    client.send(line(3, "tools/call", name="who"))
    assert (await answer(client))["result"]["content"][0]["text"] == "memory 2025-03-26"


async def test_a_revision_can_be_given_instead(server: Server) -> None:
    client = MemoryTransport(server, handshake=False, revision="2024-11-05")
    client.send(line(1, "tools/call", name="who"))
    assert (await answer(client))["result"]["content"][0]["text"] == "memory 2024-11-05"


async def test_two_clients_hear_only_their_own(server: Server) -> None:
    one, two = MemoryTransport(server, handshake=False), MemoryTransport(server, handshake=False)
    one.send(line(1, "tools/call", name="echo", arguments={"text": "one"}))
    two.send(line(1, "tools/call", name="echo", arguments={"text": "two"}))
    assert (await answer(one))["result"]["content"][0]["text"] == "one"
    assert (await answer(two))["result"]["content"][0]["text"] == "two"


async def test_a_name_is_taken_until_its_connection_closes(server: Server) -> None:
    client = MemoryTransport(server, "me")
    with pytest.raises(ConnectionTaken):
        MemoryTransport(server, "me")
    client.close()
    MemoryTransport(server, "me")


async def test_whoever_goes_takes_its_calls_along(server: Server) -> None:
    client = MemoryTransport(server, handshake=False)
    client.send(line(1, "tools/call", name="wait"))
    client.send(line(2, "ping"))
    await answer(client)
    client.close()
    with pytest.raises(EOFError):
        await client.receive()
    other = MemoryTransport(server, handshake=False)
    other.send(line(1, "ping"))
    assert (await answer(other))["result"] == {}
    while server.statistics().calls or server.statistics().ending:
        await asyncio.wait_for(server.handle({"id": "poll"}), PATIENCE)
    assert server.statistics().running == 0
