"""Who may come in and with what: each refusal has its status and a JSON-RPC error that names the fault."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stanchion import Stanchion
from tests.transports.http_app import make_app
from tests.transports.http_calls import JSON, PATIENCE, Call, Client, served

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@pytest.fixture
def stanchion() -> Stanchion:
    return make_app(max_body_bytes=10_000, max_header_bytes=2000, max_headers=20, body_timeout=0.2)


@pytest.fixture
async def client(stanchion: Stanchion) -> AsyncIterator[Client]:
    async with served(stanchion.asgi(sse=True)) as client:
        yield client
        assert client.app.endpoint.held() == type(client.app.endpoint.held())(0, 0, 0)
        assert client.app.endpoint.server.statistics().connections == 0


async def refused(call: Call) -> tuple[int | None, str]:
    """The status, and what is said, of a refusal."""
    await call.whole()
    assert call.headers["content-type"] == "application/json"
    assert call.json["jsonrpc"] == "2.0"
    assert isinstance(call.json["error"]["code"], int)
    return call.status, call.json["error"]["message"]


@pytest.mark.parametrize("path", ["/mcp", "/health", "/sse", "/messages/", "/nothing"])
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE", "OPTIONS"])
async def test_hosts_and_origins_are_looked_at_on_every_path(client: Client, path: str, verb: str) -> None:
    for wrong in (
        {"host": "evil.example"},
        {"host": ""},
        {"origin": "http://evil.example"},
        {"origin": "null"},
    ):
        status, text = await refused(client.call(verb, path, **wrong))
        assert (status, "allowed_" in text) == (403, True)


async def test_local_pages_may_ask_and_read(client: Client) -> None:
    call = await client.post(PING, origin="http://localhost:6274").whole()
    assert call.status == 400
    assert call.headers["access-control-allow-origin"] == "http://localhost:6274"
    assert "Mcp-Session-Id" in call.headers["access-control-expose-headers"]
    assert call.headers["vary"] == "Origin"
    assert "access-control-allow-origin" not in (await client.post(PING).whole()).headers


async def test_a_preflight_names_what_clients_send(client: Client) -> None:
    wanted = "content-type, mcp-session-id,Mcp-Param-Region,x-other"
    asked = {"access_control_request_method": "POST", "access_control_request_headers": wanted}
    call = await client.call("OPTIONS", origin="http://localhost:6274", **asked).whole()
    assert (call.status, call.body) == (204, b"")
    allowed = call.headers["access-control-allow-headers"].split(", ")
    for name in (
        "mcp-session-id",
        "mcp-protocol-version",
        "last-event-id",
        "authorization",
        "mcp-param-region",
    ):
        assert name in allowed
    assert "x-other" not in allowed
    assert "DELETE" in call.headers["access-control-allow-methods"]
    bare = await client.call("OPTIONS").whole()
    assert (bare.status, "access-control-allow-methods" in bare.headers) == (204, False)


async def test_names_that_are_allowed_come_in() -> None:
    app = make_app(allowed_hosts=("mcp.example",), allowed_origins=("https://app.example",))
    async with served(app.asgi()) as client:
        for host, origin, status in (
            ("mcp.example", "", 200),
            ("MCP.example:8443", "", 200),
            ("mcp.example", "https://app.example", 200),
            ("mcp.example", "https://mcp.example", 200),
            ("mcp.example", "https://other.example", 403),
            ("127.0.0.1", "", 403),
        ):
            assert (await client.call("GET", "/health", host=host, origin=origin).whole()).status == status


@pytest.mark.parametrize("verb", ["PUT", "PATCH", "HEAD", "TRACE", "FOO"])
async def test_other_verbs_are_told_which_there_are(client: Client, verb: str) -> None:
    call = client.call(verb, body=b"{}")
    status, text = await refused(call)
    assert (status, call.headers["allow"]) == (405, "POST, GET, DELETE, OPTIONS")
    assert "POST" in text
    for path, allow in (
        ("/sse", "GET, OPTIONS"),
        ("/messages/", "POST, OPTIONS"),
        ("/health", "GET, HEAD, OPTIONS"),
    ):
        call = client.call("PUT", path)
        assert (await refused(call))[0] == 405
        assert call.headers["allow"] == allow


async def test_nothing_is_anywhere_else(client: Client) -> None:
    for path in ("/", "/mcpx", "/mcp/x", "/.well-known/oauth-protected-resource"):
        assert (await refused(client.call("GET", path)))[0] == 404
    assert (await client.call("GET", "/health").whole()).json == {"status": "ok"}
    assert (await client.post(PING).whole()).status == (
        await client.call("POST", "/mcp/", PING, **JSON_).whole()
    ).status


JSON_ = {name.replace("-", "_"): value for name, value in JSON.items()}


@pytest.mark.parametrize("kind", ["text/plain", "", "application/x-www-form-urlencoded", "application/jsonx"])
async def test_a_body_must_say_that_it_is_json(client: Client, kind: str) -> None:
    assert (await refused(client.post(PING, content_type=kind)))[0] == 415


async def test_json_with_a_charset_is_json_and_a_compressed_body_is_not(client: Client) -> None:
    assert (await refused(client.post(PING, content_type="Application/JSON; charset=utf-8")))[0] == 400
    assert (await refused(client.post(PING, content_encoding="gzip")))[0] == 415


@pytest.mark.parametrize("accept", ["text/plain", "text/html, image/*", "application/json;q=0"])
async def test_something_of_ours_must_be_acceptable(client: Client, accept: str) -> None:
    assert (await refused(client.post(PING, accept=accept)))[0] == 406


@pytest.mark.parametrize("accept", ["", "*/*", "application/*", "TEXT/Event-Stream", "text/html, */*;q=0.1"])
async def test_accept_is_read_leniently(client: Client, accept: str) -> None:
    assert (await refused(client.post(PING, accept=accept)))[0] == 400


@pytest.mark.parametrize(
    ("body", "code", "ident"),
    [
        (b"{bad", -32700, None),
        (b"", -32700, None),
        (b"\xff", -32700, None),
        (b"5", -32600, None),
        (b"null", -32600, None),
        (b"[]", -32600, None),
        (b'{"id":1,"method":"ping"}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","result":1}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602, 1),
        (b'{"jsonrpc":"1.0","method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"result":1,"error":2}', -32600, None),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 200 + b"1" + b"}" * 200 + b"}",
            -32600,
            1,
        ),
    ],
)
async def test_what_is_no_message_is_a_bad_request(
    client: Client, body: bytes, code: int, ident: Any
) -> None:
    call = await client.post(body).whole()
    assert (call.status, call.json["error"]["code"], call.json.get("id")) == (400, code, ident)
    assert ident is not None or "id" not in call.json


async def test_heads_are_bounded(client: Client) -> None:
    assert (await refused(client.call("GET", "/health", x="y" * 2000)))[0] == 431
    assert (await refused(client.call("GET", "/health", **{f"x{n}": "y" for n in range(20)})))[0] == 431


class Slow(Call):
    """A request whose body is given piece by piece."""

    def __init__(self, app: Any, pieces: list[bytes], headers: dict[str, str], *, last: bool) -> None:
        super().__init__(app, "POST", "/mcp", {"host": "127.0.0.1"} | JSON | headers, b"")
        self._incoming.get_nowait()
        for place, piece in enumerate(pieces):
            more = not (last and place == len(pieces) - 1)
            self._incoming.put_nowait({"type": "http.request", "body": piece, "more_body": more})


async def test_a_body_is_measured_while_it_comes(client: Client) -> None:
    for headers, pieces in (({}, [b"x" * 3000] * 4), ({"content-length": "10001"}, [b"x" * 10001])):
        status, text = await refused(Slow(client.app, pieces, headers, last=True))
        assert (status, "10000 bytes" in text) == (413, True)
    slow = Slow(client.app, [b" " * 4000, b" " * 4000, b"{bad"], {}, last=True)
    assert (await refused(slow))[0] == 400


async def test_who_asks_first_is_refused_without_the_body(client: Client) -> None:
    slow = Slow(client.app, [], {"content-length": "10001", "expect": "100-continue"}, last=True)
    assert (await refused(slow))[0] == 413


async def test_a_body_must_come_in_time(client: Client) -> None:
    assert (await refused(Slow(client.app, [b"{"], {}, last=False)))[0] == 408


async def test_who_leaves_in_the_middle_of_a_body_is_forgotten(client: Client) -> None:
    slow = Slow(client.app, [b"{"], {}, last=False)
    await asyncio.sleep(0)
    await slow.leave()
    assert slow.status is None


async def test_a_header_twice_is_no_header(client: Client) -> None:
    call = client.modern("server/discover")
    await call.whole()
    assert call.status == 200
    twice = client.modern("server/discover", mcp_method="server/discover, server/discover")
    assert (await refused(twice))[0] == 400


async def test_a_reader_that_does_not_read_json_is_cut_off() -> None:
    app = make_app(reader_timeout=0.1)
    async with served(app.asgi()) as client:
        call = client.tool("big", {"size": 1_000_000})
        call.reading.clear()
        await asyncio.wait_for(asyncio.shield(call.task), PATIENCE)
        call.reading.set()
        assert not call.ended
        assert client.app.endpoint.held().requests == 0


async def test_a_server_that_refuses_to_start_says_so(caplog: pytest.LogCaptureFixture) -> None:
    app = make_app()
    app.tool(name="wipe", destructive=True)(lambda: "x")
    client = Client(app.asgi())
    call = await client.post(PING).whole()
    assert (call.status, call.json["error"]["code"]) == (503, -32603)
    assert "wipe" in caplog.text
    assert "wipe" not in call.json["error"]["message"]
