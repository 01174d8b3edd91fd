"""What is served at which path, who may come in, and which era a message belongs to.

Owns the checks that come before any meaning: ``Host`` and ``Origin``, verbs, content types, the body's bounds, that it is a
message at all. What each era does with it is in ``http_modern`` and ``http_legacy``; the transport of 2024-11-05 is in
``sse_pair``. One endpoint per life of a server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from msgspec import UNSET, Struct

from stanchion.machines.http_headers import Gate
from stanchion.registry.authorizer import Principal
from stanchion.server.errors import ServerClosed
from stanchion.server.server import BaseServer
from stanchion.transports.http_cors import VERBS, preflight, response_headers
from stanchion.transports.http_io import Gone, Http, Receive, Refusal, Scope, Send, accepts, is_json
from stanchion.transports.http_legacy import SESSION, LegacyHttp
from stanchion.transports.http_modern import Described, ModernHttp, claims_modern, describe, names_modern
from stanchion.transports.http_stream import EVENTS
from stanchion.transports.sse_pair import MESSAGES, SSE, SsePair
from stanchion.wire.codec import Codec
from stanchion.wire.errors import InternalError, InvalidRequest
from stanchion.wire.jsonrpc import ErrorObject, Failure, Inbound, Malformed, Notification, Request

_LOG: Final = logging.getLogger("stanchion")

Identify = Callable[[Scope], Principal | None]
"""Who the host proved a caller to be, from ASGI's description of the request."""

HEALTH: Final = "/health"


class Held(Struct, frozen=True):
    """How much is held for HTTP clients at one moment."""

    sessions: int
    requests: int
    """Modern requests being answered."""
    pairs: int


class Endpoint:
    """One server on one loop, as HTTP clients see it."""

    def __init__(
        self, server: BaseServer, *, path: str = "/mcp", sse: bool = False, identify: Identify | None = None
    ) -> None:
        """Begin to serve on the running loop.

        Args:
            server: Runs on this loop already.
            path: Where the endpoint is, below where the app is mounted.
            sse: Serve the transport of 2024-11-05 as well.
            identify: Who the host proved a caller to be.
        """
        self.server = server
        config = server.config
        self._codec = Codec(
            max_depth=config.max_depth, max_batch=config.max_batch, max_bytes=config.max_message_bytes
        )
        self._gate = Gate(config.allowed_hosts, config.allowed_origins)
        self._identify = identify
        self._loop = asyncio.get_running_loop()
        self._legacy = LegacyHttp(server, self._codec)
        self._modern = ModernHttp(server, self._codec)
        self._pair = SsePair(server, self._codec)
        self._path = path.rstrip("/") or "/"
        routes = {self._path: self._serve_mcp, HEALTH: self._serve_health}
        if sse:
            routes |= {SSE: self._serve_sse, MESSAGES: self._serve_messages}
        self._routes: Final = routes

    @property
    def is_here(self) -> bool:
        """Whether the running loop is the one it serves on."""
        return self._loop is asyncio.get_running_loop()

    @property
    def is_lost(self) -> bool:
        """Whether its loop is gone."""
        return self._loop.is_closed()

    def held(self) -> Held:
        """How much is held for clients."""
        return Held(len(self._legacy.sessions), self._modern.open, len(self._pair))

    async def close(self) -> None:
        """End: running work first, as long as it may, then the streams that have no end of their own."""
        await self.server.aclose()
        self._legacy.close()
        self._pair.close()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        http = Http(scope, receive, send, self.server.config, self._codec)
        try:
            await self._route(http)
        except Gone:
            return
        except Refusal as refusal:
            await _end(http, refusal)
        except ServerClosed:
            await _end(http, Refusal(503, InternalError("The server is shutting down")))
        except Exception:  # noqa: BLE001 - one bad request must not show the host's own error page
            _LOG.exception("an HTTP request could not be served")
            await _end(http, Refusal(500, InternalError("Something went wrong inside the server")))

    async def _route(self, http: Http) -> None:
        http.read_head()
        headers = http.headers
        if why := self._gate.refuse(headers.get("host"), headers.get("origin"), http.local_address):
            raise Refusal(403, why)
        http.extra += response_headers(http)
        handler = self._routes.get(http.path.rstrip("/") or "/")
        if handler is None:
            raise Refusal(404, f"There is nothing at this path; the endpoint is {self._path}")
        if http.method == "OPTIONS":
            await preflight(http)
            return
        if self._identify is not None:
            http.principal = self._identify(http.scope)
        await handler(http)

    # -- the paths

    async def _serve_mcp(self, http: Http) -> None:
        if http.method == "POST":
            await self._post(http)
        elif http.method not in {"GET", "DELETE"}:
            raise _no_verb(VERBS)
        elif claims_modern(http) and SESSION not in http.headers:
            # 2026-07-28 has neither.
            raise _no_verb("POST, OPTIONS")
        elif http.method == "GET":
            await self._legacy.get(http)
        else:
            await self._legacy.delete(http)

    async def _serve_health(self, http: Http) -> None:
        if http.method not in {"GET", "HEAD"}:
            raise _no_verb("GET, HEAD, OPTIONS")
        await http.reply(200, b'{"status":"ok"}')

    async def _serve_sse(self, http: Http) -> None:
        if http.method != "GET":
            raise _no_verb("GET, OPTIONS")
        if not accepts(http.headers.get("accept"), EVENTS):
            raise Refusal(406, "The answer is text/event-stream, which the Accept header does not take")
        await self._pair.get(http)

    async def _serve_messages(self, http: Http) -> None:
        if http.method != "POST":
            raise _no_verb("POST, OPTIONS")
        pair = self._pair.find(http)
        message = await self._message(http)
        await self._pair.post(http, pair, message)

    # -- messages

    async def _post(self, http: Http) -> None:
        accept = http.headers.get("accept")
        if not (accepts(accept, "application/json") or accepts(accept, EVENTS)):
            raise Refusal(406, "The Accept header takes neither application/json nor text/event-stream")
        message = await self._message(http)
        described: Described = None
        modern = False
        if isinstance(message, Request | Notification):
            described, modern = describe(message)
        if not modern and SESSION not in http.headers:
            # Without metadata, the version header alone can say so; initialize is a handshake unless it says 2026-07-28.
            opening = isinstance(message, Request) and message.method == "initialize"
            modern = names_modern(http) if opening else claims_modern(http)
        if modern:
            await self._modern.post(http, message, described)
        else:
            assert not isinstance(message, Malformed)
            await self._legacy.post(http, message)

    async def _message(self, http: Http) -> Inbound:
        """Read the one message, or batch, that the body is.

        Raises:
            Refusal: It is none.
            Gone: The client has left.
        """
        if not is_json(http.headers.get("content-type")):
            raise Refusal(415, "The Content-Type must be application/json")
        if http.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refusal(415, "The body must not be compressed")
        message = self._codec.decode(await http.body())
        if isinstance(message, Malformed):
            # Of a malformed notification nothing is said on other transports; here the body does say why.
            error = ErrorObject(InvalidRequest.code, message.reason)
            failure = Failure(UNSET, error) if message.answer is None else message.answer
            raise Refusal(400, failure)
        return message


def _no_verb(allow: str) -> Refusal:
    return Refusal(405, f"The method is none of {allow}", headers=[(b"allow", allow.encode())])


async def _end(http: Http, refusal: Refusal) -> None:
    """Say why, or where a response is under way already, cut it off."""
    try:
        if http.started:
            http.abort()
        else:
            await http.refuse(refusal)
    except Gone:
        return
