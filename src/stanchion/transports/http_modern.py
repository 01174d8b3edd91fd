"""Streamable HTTP of 2026-07-28 (basic/transports): every request stands alone.

Owns the order in which a request is looked at (checklist §1.4) and that a request is a connection of its own towards the
server: opened for it, closed when its response has ended. A client that leaves before that has cancelled it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import UNSET, Raw
from msgspec.json import Decoder

from stanchion.machines import http_headers as ladder
from stanchion.registry.headers import Mirrored, mirrored
from stanchion.registry.tools import Tool
from stanchion.server.methods import HEAD, META, METHODS
from stanchion.server.server import BaseServer
from stanchion.transports.http_io import Http, Refusal, accepts
from stanchion.transports.http_stream import EVENTS, Exchange, Manner, Reader, lone_stream, respond
from stanchion.wire.codec import Codec
from stanchion.wire.errors import InternalError, InvalidParams, McpError
from stanchion.wire.jsonrpc import Answer, Batch, Inbound, Notification, Outbound, Ref, Request
from stanchion.wire.model import PROTOCOL_VERSION, Meta
from stanchion.wire.revisions import HANDSHAKE, MODERN, MODERN_REVISIONS
from stanchion.wire.status import status_of

_MEMBERS: Final = Decoder(dict[str, Raw])
_NAMES: Final = Decoder(dict[str, object])

Described = Meta | InvalidParams | None
"""What ``params._meta`` holds, what is wrong with it, or that it is not there."""


def describe(message: Request | Notification) -> tuple[Described, bool]:
    """Read ``params._meta``.

    Returns:
        What it holds, and whether the message describes itself, however badly.
    """
    try:
        raw = HEAD.decode(message.params).meta
    except InvalidParams:
        return None, False
    if raw is UNSET:
        return None, False
    try:
        meta = META.decode(raw)
    except InvalidParams as error:
        try:
            return error, PROTOCOL_VERSION in _MEMBERS.decode(raw)
        except ValueError:
            return error, False
    return meta, meta is not None and meta.protocol_version is not UNSET


def claims_modern(http: Http) -> bool:
    """Whether the version header names no handshake revision: then a message without metadata is a faulty modern one."""
    given = http.headers.get(ladder.VERSION)
    return given is not None and given not in HANDSHAKE


def names_modern(http: Http) -> bool:
    """Whether the version header names a revision that has no handshake."""
    return http.headers.get(ladder.VERSION) in MODERN_REVISIONS


class ModernHttp:
    """What self-describing messages get."""

    def __init__(self, server: BaseServer, codec: Codec) -> None:
        self._server = server
        self._codec = codec
        self._mirrored: WeakKeyDictionary[Tool, tuple[Mirrored, ...]] = WeakKeyDictionary()
        self.open = 0
        """Requests that are being answered."""

    async def post(self, http: Http, message: Inbound, described: Described) -> None:
        """Take a message.

        Raises:
            Refusal: It is none that may come, or a rung of the ladder failed.
            Gone: The client has left.
        """
        match message:
            case Request():
                self._climb(http, message, described)
                await self._serve(http, message)
            case Notification():
                try:
                    ladder.check_notification(http.headers, message.method, described)
                except McpError as error:
                    raise Refusal(400, error) from None
                # No notification of a client's means anything here: it cancels by leaving.
                await http.reply(202, b"")
            case Batch():
                raise Refusal(
                    400, "The body must be one message: batches belong to revision 2025-03-26 alone"
                )
            case _:
                raise Refusal(400, "Nothing was asked of this client, so it has nothing to respond to")

    def _climb(self, http: Http, request: Request, described: Described) -> None:
        try:
            ladder.check_version(http.headers, described)
            row = METHODS.get(request.method)
            known = (
                row is not None
                and request.method in MODERN.methods
                and (row.feature is None or row.feature in self._server.config.offers)
            )
            ladder.check_method(http.headers, request.method, known=known)
            named = ladder.named_by(request.method)
            if named is not None:
                params = _params(request)
                ladder.check_name(http.headers, params.get(named))
                if request.method == "tools/call":
                    ladder.check_params(http.headers, self._expected(params))
        except McpError as error:
            failure = MODERN.failure(request.id, error)
            raise Refusal(status_of(failure, MODERN), error, ident=request.id) from None
        if request.method == "subscriptions/listen" and not accepts(http.headers.get("accept"), EVENTS):
            text = "The answer is text/event-stream, which the Accept header does not take"
            raise Refusal(406, text, ident=request.id)

    def _expected(self, params: dict[str, object]) -> Iterator[ladder.Expected]:
        name = params.get("name")
        tool = self._server.registry.snapshot().tools.get(name) if isinstance(name, str) else None
        if tool is None:
            return
        known = self._mirrored.get(tool)
        if known is None:
            known = self._mirrored[tool] = mirrored(tool)
        for one in known:
            value: object = params.get("arguments")
            for step in one.path:
                value = value.get(step) if isinstance(value, dict) else None
            yield ladder.Expected(one.header, one.kind, value)

    async def _serve(self, http: Http, request: Request) -> None:
        config = http.config
        stream = lone_stream(config.event_store_messages, config.event_store_bytes)
        exchange = Exchange(stream, self._codec)
        reader = Reader(http)
        stream.take(reader)

        def outlet(message: Outbound, related: Ref | None) -> None:
            # What belongs to no request has no place here, nor has a request of ours (HM17).
            if related is not None and isinstance(message, Notification):
                exchange.push(message)

        def unanswered() -> Refusal:
            return Refusal(503, InternalError("The server is shutting down"), ident=request.id)

        accept = http.headers.get("accept")
        manner = Manner(
            status=_status,
            unanswered=unanswered,
            json=accepts(accept, "application/json"),
            events=accepts(accept, EVENTS),
            open_after=config.keep_alive,
        )
        self._server.attach(
            exchange, outlet, transport="http", principal=http.principal, holder=http.peer, handshake=True
        )
        self.open += 1
        try:
            ref = self._server.submit(request, exchange, exchange.finish)
            await respond(http, exchange, reader, manner)
        finally:
            self.open -= 1
            reader.close()
            if not exchange.done:
                self._server.cancel(ref)
            self._server.disconnect(exchange)


def _status(answer: Answer | tuple[Answer, ...]) -> int:
    return status_of(answer, MODERN)


def _params(request: Request) -> dict[str, object]:
    try:
        return _NAMES.decode(request.params)
    except ValueError:
        raise InvalidParams("params can't be read") from None
