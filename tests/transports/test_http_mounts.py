"""The app inside others: Starlette and FastAPI, mounted, under prefixes, with and without their lifespan."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from stanchion import Stanchion
from stanchion.server.errors import CannotStart
from tests.transports.http_app import make_app
from tests.transports.http_calls import JSON, META, MODERN, Call, Client

DISCOVER = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": META}}
HEADERS = JSON | {"mcp-protocol-version": MODERN, "mcp-method": "server/discover"}


@pytest.fixture
def stanchion() -> Stanchion:
    return make_app()


def discover(host: Any, path: str) -> int:
    response = host.post(path, json=DISCOVER, headers=HEADERS)
    assert response.status_code != 200 or response.json()["result"]["supportedVersions"] == [MODERN]
    return int(response.status_code)


def test_starlette_with_its_lifespan_composed(stanchion: Stanchion) -> None:
    mcp = stanchion.asgi()
    host = Starlette(routes=[Mount("/tools", app=mcp)], lifespan=mcp.lifespan)
    with TestClient(host) as client:
        assert mcp.endpoint is not None
        assert discover(client, "/tools/mcp") == 200
        assert discover(client, "/tools/other") == 404
    assert mcp.endpoint is None
    with TestClient(host) as client:
        assert discover(client, "/tools/mcp") == 200, "a second life has a server of its own"


def test_mounted_without_a_lifespan_it_starts_with_the_first_request(stanchion: Stanchion) -> None:
    mcp = stanchion.asgi()
    ended: list[Any] = []

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        yield
        ended.append(mcp.endpoint)
        await mcp.aclose()

    for host in (
        Starlette(routes=[Mount("/a/b", app=mcp)], lifespan=lifespan),
        Starlette(routes=[Mount("/", app=Starlette(routes=[Mount("/a/b", app=mcp)]))], lifespan=lifespan),
    ):
        with TestClient(host) as client:
            assert mcp.endpoint is None
            assert discover(client, "/a/b/mcp") == 200
            assert mcp.endpoint is not None
        assert ended.pop() is not None


def test_as_a_route(stanchion: Stanchion) -> None:
    mcp = stanchion.asgi(path="/api/mcp")
    with TestClient(Starlette(routes=[Route("/api/mcp", endpoint=mcp)], lifespan=mcp.lifespan)) as client:
        assert discover(client, "/api/mcp") == 200
        assert client.put("/api/mcp").status_code == 405


def test_fastapi(stanchion: Stanchion) -> None:
    mcp = stanchion.asgi(path="/")
    host = FastAPI(lifespan=mcp.lifespan)

    @host.get("/own")
    def own() -> str:
        return "mine"

    host.mount("/mcp", mcp)
    with TestClient(host) as client:
        assert client.get("/own").json() == "mine"
        assert discover(client, "/mcp/") == 200


def test_alone_it_has_a_lifespan_of_its_own(stanchion: Stanchion) -> None:
    mcp = stanchion.asgi()
    with TestClient(mcp) as client:
        assert mcp.endpoint is not None
        assert discover(client, "/mcp") == 200
    assert mcp.endpoint is None


def test_a_lifespan_that_can_t_start_fails_the_host(stanchion: Stanchion) -> None:
    stanchion.tool(name="wipe", destructive=True)(lambda: "x")
    with pytest.raises(CannotStart), TestClient(stanchion.asgi()):
        pass


def test_each_request_on_a_loop_of_its_own_is_served(stanchion: Stanchion, caplog: Any) -> None:
    client = TestClient(stanchion.asgi())
    assert [discover(client, "/mcp") for _ in range(2)] == [200, 200]
    assert "lifespan" in caplog.text


async def test_two_loops_at_once_are_refused(stanchion: Stanchion) -> None:
    mcp = stanchion.asgi()
    async with mcp.lifespan():
        statuses: list[int] = []
        thread = threading.Thread(target=lambda: statuses.append(discover(TestClient(mcp), "/mcp")))
        thread.start()
        while thread.is_alive():
            await asyncio.sleep(0.01)
        assert statuses == [503]


async def test_two_apps_share_nothing() -> None:
    one, two = make_app().asgi(), make_app().asgi()
    async with one.lifespan(), two.lifespan():
        session = await Client(one).open()
        stranger = Client(two).call("DELETE", mcp_session_id=session.id)
        assert (await stranger.whole()).status == 404
        assert (await session.delete().whole()).status == 204


@pytest.mark.parametrize(
    ("root", "path"),
    [("/proxy", "/proxy/sse"), ("/app/tools", "/app/tools/sse"), ("", "/sse"), ("/proxy", "/sse")],
)
async def test_the_pair_s_address_has_the_prefix_once(stanchion: Stanchion, root: str, path: str) -> None:
    mcp = stanchion.asgi(sse=True)

    async def mounted(scope: Any, receive: Any, send: Any) -> None:
        await mcp(scope | {"root_path": root}, receive, send)

    async with mcp.lifespan():
        stream = await Call(mounted, "GET", path, {"host": "localhost"}, b"").until(lambda c: c.events)
        address = stream.events[0].data
        assert address.startswith(f"{root}/messages/?session_id=")
        headers = JSON | {"host": "localhost"}
        posted = await Call(
            mounted, "POST", address, headers, b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        ).whole()
        assert posted.status == 202
        await stream.until(lambda c: c.messages)
        await stream.leave()


async def test_web_sockets_are_refused(stanchion: Stanchion) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await stanchion.asgi()({"type": "websocket"}, None, send)  # type: ignore[arg-type]
    assert [one["type"] for one in sent] == ["websocket.close"]
