"""One HTTP exchange as ASGI has it: the request's head and body, the response's status, headers and bytes.

Owns the bounds on head and body, in size and in time, and the writing of whole responses. Every refusal is a JSON-RPC error
in the body, so that a client sees why. What a request means is decided elsewhere.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final

from msgspec import UNSET

from stanchion.registry.authorizer import Principal
from stanchion.server.config import Config
from stanchion.wire.codec import Codec
from stanchion.wire.errors import InvalidRequest, McpError
from stanchion.wire.jsonrpc import ErrorObject, Failure, Id

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]

JSON: Final = (b"content-type", b"application/json")
CLOSE: Final = (b"connection", b"close")

_PIECE: Final = 256 * 1024
_FAREWELL_SECONDS: Final = 5.0
_FAREWELL_BYTES: Final = 256 * 1024 * 1024


class Refusal(Exception):
    """The request is refused before there is anything to answer it."""

    def __init__(
        self,
        status: int,
        error: McpError | Failure | str,
        *,
        ident: Id | None = None,
        headers: Iterable[Header] = (),
    ) -> None:
        """Set up.

        Args:
            status: The HTTP status.
            error: What is told in the body; a text is an invalid request.
            ident: The request's id, if it is known.
            headers: Further headers.
        """
        if isinstance(error, Failure):
            self.failure = error
        else:
            told = InvalidRequest(error) if isinstance(error, str) else error
            what = ErrorObject(told.code, str(told), told.data)
            self.failure = Failure(UNSET if ident is None else ident, what)
        super().__init__(self.failure.error.message)
        self.status = status
        self.headers = tuple(headers)


class Gone(Exception):
    """The client has closed the connection."""


class Http:
    """One request and its response."""

    __slots__ = (
        "_send", "codec", "config", "extra", "headers", "method", "path", "principal", "receive", "scope", "started",
    )  # fmt: skip

    def __init__(self, scope: Scope, receive: Receive, send: Send, config: Config, codec: Codec) -> None:
        """Set up.

        Args:
            scope: ASGI's description of the request.
            receive: ASGI's.
            send: ASGI's.
            config: Options.
            codec: Writes messages.
        """
        self.scope = scope
        self.receive = receive
        self.config = config
        self.codec = codec
        self.method: str = scope["method"]
        self.path = _path(scope)
        self.headers: dict[str, str] = {}
        """By name in lower case; blanks around values are gone, repeated headers are joined by commas."""
        self.principal: Principal | None = None
        self.extra: list[Header] = []
        """Headers of whatever response comes."""
        self.started = False
        self._send = send

    @property
    def peer(self) -> tuple[str, str] | None:
        """Where the request comes from, for the shares of those whom nobody has proved to be anybody."""
        client = self.scope.get("client")
        return None if client is None else ("peer", str(client[0]))

    def read_head(self) -> None:
        """Read the headers.

        Raises:
            Refusal: There are too many, or too much in them.
        """
        given = self.scope["headers"]
        size = sum(len(name) + len(value) + 4 for name, value in given)
        if len(given) > self.config.max_headers or size > self.config.max_header_bytes:
            raise Refusal(431, "The request's headers are too large", headers=[CLOSE])
        headers = self.headers
        for name, value in given:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1").strip(" \t")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text

    @property
    def local_address(self) -> str:
        """Our own address that was connected to; empty if the server does not say."""
        server = self.scope.get("server")
        return str(server[0]) if server and server[0] else ""

    # -- the request's body

    async def body(self) -> bytes:
        """Read the whole body.

        Raises:
            Refusal: It is too long, or takes too long.
            Gone: The client has left.
        """
        limit = self.config.max_body_bytes
        length = self.headers.get("content-length", "")
        if length.isdecimal() and (len(length) > 18 or int(length) > limit):  # noqa: PLR2004 - more than any body
            await self._refuse_body(limit, more=True)
        pieces: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.config.body_timeout):
                while True:
                    event = await self.receive()
                    if event["type"] != "http.request":
                        raise Gone
                    piece = event.get("body", b"")
                    size += len(piece)
                    more = event.get("more_body", False)
                    if size > limit:
                        break
                    pieces.append(piece)
                    if not more:
                        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        except TimeoutError:
            raise Refusal(408, "The request's body took too long", headers=[CLOSE]) from None
        pieces.clear()
        await self._refuse_body(limit, more=more)
        raise AssertionError  # pragma: no cover - the line above raises

    async def _refuse_body(self, limit: int, *, more: bool) -> None:
        """Say that the body is too long, then let it pass: a client that only writes would else never read that."""
        data = self.codec.encode(Refusal(413, f"The request's body is longer than {limit} bytes").failure)
        await self.start(413, [JSON, (b"content-length", b"%d" % len(data)), CLOSE])
        await self.write(data, more=True)
        left = _FAREWELL_BYTES
        try:
            async with asyncio.timeout(_FAREWELL_SECONDS):
                while more and left > 0 and "expect" not in self.headers:
                    event = await self.receive()
                    left -= len(event.get("body", b""))
                    more = event["type"] == "http.request" and event.get("more_body", False)
        except TimeoutError:
            pass
        await self.write(b"", more=False)
        raise Gone

    # -- the response

    async def start(self, status: int, headers: Iterable[Header]) -> None:
        """Send status and headers.

        Raises:
            TimeoutError: The client has not read what was sent before.
            Gone: The client has left.
        """
        self.started = True
        await self._put({"type": "http.response.start", "status": status, "headers": [*headers, *self.extra]})

    async def write(self, data: bytes, *, more: bool) -> None:
        """Send a piece of the body.

        Raises:
            TimeoutError: The client has not read what was sent before.
            Gone: The client has left.
        """
        await self._put({"type": "http.response.body", "body": data, "more_body": more})

    async def _put(self, message: MutableMapping[str, Any]) -> None:
        try:
            async with asyncio.timeout(self.config.reader_timeout):
                await self._send(message)
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise
            raise Gone from error

    async def reply(self, status: int, data: bytes, headers: Iterable[Header] = ()) -> None:
        """Send a whole response in JSON; without *data*, one without a body."""
        head: list[Header] = [JSON] if data else []
        if status != 204:  # noqa: PLR2004 - which has no body, so no length either
            head.append((b"content-length", b"%d" % len(data)))
        try:
            await self.start(status, [*head, *headers])
            # In pieces, so that a client that stops reading is noticed before all of it waits in the server's buffer.
            view = memoryview(data)
            while len(view) > _PIECE:
                await self.write(bytes(view[:_PIECE]), more=True)
                view = view[_PIECE:]
            await self.write(bytes(view), more=False)
        except TimeoutError:
            self.abort()

    async def refuse(self, refusal: Refusal) -> None:
        """Send a refusal."""
        await self.reply(refusal.status, self.codec.encode(refusal.failure), refusal.headers)

    def abort(self) -> None:
        """Cut the connection, where the HTTP server lets us; else returning without an end closes it."""
        cut = (self.scope.get("extensions") or {}).get(ABORT)
        if cut is not None:
            cut()


ABORT: Final = "stanchion.abort"
"""The ASGI extension by which our own HTTP server lets a connection be cut."""


def _path(scope: Scope) -> str:
    """The path below where the app is mounted; it has the mount's prefix or not, depending on who mounts."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    if root and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :]
    return path or "/"


_REFUSED: Final = re.compile(r"q=0(\.0*)?")


def accepts(header: str | None, kind: str) -> bool:
    """Whether an ``Accept`` header takes a media type. Without a header, anything goes; weights but zero are ignored."""
    if not header:
        return True
    if kind in header.split(", "):
        return True
    names = {kind, f"{kind.partition('/')[0]}/*", "*/*"}
    for part in header.lower().split(","):
        name, *options = (piece.strip() for piece in part.split(";"))
        if name in names and not any(_REFUSED.fullmatch(option) for option in options):
            return True
    return False


def is_json(header: str | None) -> bool:
    """Whether a ``Content-Type`` header says JSON, whatever its parameters."""
    return header is not None and header.partition(";")[0].strip().lower() == "application/json"
