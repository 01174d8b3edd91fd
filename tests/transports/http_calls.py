"""HTTP without a network: an ASGI app called as a server calls it, by a client that may leave or not read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self

from stanchion.transports.asgi import AsgiApp
from stanchion.wire.sse import Event, Parser

PATIENCE = 10.0
MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}
BOTH = "application/json, text/event-stream"
JSON = {"content-type": "application/json", "accept": BOTH}


class Call:
    """One request and what has come of it so far."""

    def __init__(self, app: Any, method: str, path: str, headers: Mapping[str, str], body: bytes) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.body = b""
        self.ended = False
        self.reading = asyncio.Event()
        """Cleared, the client reads nothing more."""
        self.reading.set()
        self._events: list[Event] = []
        self._parser = Parser()
        self._changed = asyncio.Event()
        self._incoming: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._incoming.put_nowait({"type": "http.request", "body": body, "more_body": False})
        self._left = False
        path, _, query = path.partition("?")
        self._scope = {
            "type": "http",
            "method": method,
            "path": path,
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(k.lower().encode("latin-1"), v.encode("latin-1")) for k, v in headers.items()],
            "server": ("127.0.0.1", 80),
            "client": ("127.0.0.1", 50000),
        }
        self.task = asyncio.create_task(app(self._scope, self._incoming.get, self._send))

    async def _send(self, message: Any) -> None:
        if not self.reading.is_set():
            waits = [asyncio.create_task(self.reading.wait())]
            await asyncio.wait(waits)
        if self._left:
            return
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {k.decode().lower(): v.decode() for k, v in message["headers"]}
        else:
            chunk = message.get("body", b"")
            self.body += chunk
            self._events += self._parser.feed(chunk)
            self.ended = self.ended or not message.get("more_body", False)
        self._changed.set()

    @property
    def comments(self) -> int:
        return self._parser.comments

    @property
    def events(self) -> list[Event]:
        return self._events

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What has come as events; priming events are left out."""
        return [json.loads(event.data) for event in self._events if event.data and event.event == "message"]

    @property
    def json(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.body)
        return told

    async def until(self, what: Any) -> Self:
        """Wait until *what* holds of this call."""
        async with asyncio.timeout(PATIENCE):
            while not what(self):
                self._changed.clear()
                waits = {asyncio.create_task(self._changed.wait()), self.task}
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                if self.task.done():
                    self.task.result()
                    assert what(self), f"it ended: {self.status} {self.body!r:.300}"
        return self

    async def whole(self) -> Self:
        """Wait for the end of the response."""
        await asyncio.wait_for(asyncio.shield(self.task), PATIENCE)
        return self

    async def leave(self) -> None:
        """Close the connection."""
        self._left = True
        self.reading.set()
        self._incoming.put_nowait({"type": "http.disconnect"})
        await asyncio.wait_for(self.task, PATIENCE)


class Client:
    """Calls one app."""

    def __init__(self, app: AsgiApp, headers: Mapping[str, str] | None = None) -> None:
        self.app = app
        self.headers = {"host": "127.0.0.1", **(headers or {})}

    def call(self, method: str, path: str = "/mcp", body: Any = None, **headers: str) -> Call:
        """Begin a request. Header names are written with underscores; an empty one is left out."""
        given = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return Call(self.app, method, path, {k: v for k, v in given.items() if v}, data)

    def post(self, body: Any, **headers: str) -> Call:
        return self.call(
            "POST", body=body, **({"content_type": "application/json", "accept": BOTH} | headers)
        )

    def modern(
        self, method: str, params: dict[str, Any] | None = None, *, ident: Any = 1, **headers: str
    ) -> Call:
        """A self-describing request with all its headers right, but for those given."""
        params = dict(params or {})
        params["_meta"] = META | params.get("_meta", {})
        name = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}.get(method)
        named = {"mcp_name": str(params.get(name))} if name else {}
        request = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
        return self.post(
            request, **({"mcp_protocol_version": MODERN, "mcp_method": method} | named | headers)
        )

    def tool(self, tool: str, arguments: Any = None, *, meta: Any = None, **headers: str) -> Call:
        params = {"name": tool, "arguments": arguments or {}, "_meta": meta or {}}
        return self.modern("tools/call", params, **headers)

    async def open(self, revision: str = "2025-11-25", *, heard: bool = True, **headers: str) -> Session:
        """Begin a session."""
        params = {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "0"},
        }
        request = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        answer = await self.post(request, **headers).whole()
        assert answer.status == 200, answer.body
        session = Session(self, answer.headers["mcp-session-id"], revision, headers)
        if heard:
            ready = await session.send({"jsonrpc": "2.0", "method": "notifications/initialized"}).whole()
            assert (ready.status, ready.body) == (202, b"")
        return session


class Session:
    """One handshake client."""

    def __init__(self, client: Client, ident: str, revision: str, headers: Mapping[str, str]) -> None:
        self.id = ident
        self.revision = revision
        self._client = client
        self._headers = {**headers, "mcp_session_id": ident, "mcp_protocol_version": revision}

    def send(self, body: Any, **headers: str) -> Call:
        return self._client.post(body, **(self._headers | headers))

    def request(self, method: str, params: Any = None, *, ident: Any = 1, **headers: str) -> Call:
        return self.send({"jsonrpc": "2.0", "id": ident, "method": method, "params": params or {}}, **headers)

    def tool(
        self, tool: str, arguments: Any = None, *, token: Any = None, ident: Any = 1, **headers: str
    ) -> Call:
        params: dict[str, Any] = {"name": tool, "arguments": arguments or {}}
        if token is not None:
            params["_meta"] = {"progressToken": token}
        return self.request("tools/call", params, ident=ident, **headers)

    def get(self, last: str = "", **headers: str) -> Call:
        given = self._headers | {"accept": "text/event-stream", "last_event_id": last} | headers
        return self._client.call("GET", **given)

    def delete(self, **headers: str) -> Call:
        return self._client.call("DELETE", **(self._headers | headers))


@asynccontextmanager
async def served(app: AsgiApp, **headers: str) -> AsyncIterator[Client]:
    """A client of an app that lives as long as the block."""
    async with app.lifespan():
        yield Client(app, headers)


def text_of(message: dict[str, Any]) -> str:
    """The text of a tool's result."""
    return str(message["result"]["content"][0]["text"])


async def settled(what: Any) -> None:
    """Wait until *what* holds."""
    async with asyncio.timeout(PATIENCE):
        while not what():
            await asyncio.sleep(0.005)
