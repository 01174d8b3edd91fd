"""HTTP+SSE, the transport of 2024-11-05: one stream for all that the server says, one address for what the client says.

Owns the pairs of the two. A pair is one connection towards the server and lives as long as its stream: who loses it begins
anew. Its id is unguessable, and whoever posts to it must be who opened it.
"""

from __future__ import annotations

import re
import secrets
from typing import Final
from urllib.parse import parse_qs

from stanchion.machines.streams import Stream
from stanchion.registry.authorizer import Principal
from stanchion.server.effects import Fail, Reply, Return
from stanchion.server.server import BaseServer
from stanchion.transports.http_io import Http, Refusal
from stanchion.transports.http_stream import Reader, lone_stream, put, write_events
from stanchion.wire.codec import Codec
from stanchion.wire.errors import InternalError
from stanchion.wire.jsonrpc import Inbound, Outbound, Ref
from stanchion.wire.sse import encode_event

SSE: Final = "/sse"
MESSAGES: Final = "/messages"

_ID: Final = re.compile(r"[0-9a-f]{32}")
_MESSAGES_WAITING: Final = 4096


class _Pair:
    """One client: its connection id towards the server, and its stream."""

    __slots__ = ("_codec", "principal", "stream")

    def __init__(self, stream: Stream[Reader], principal: Principal | None, codec: Codec) -> None:
        self.stream = stream
        self.principal = principal
        self._codec = codec

    def outlet(self, message: Outbound, _: Ref | None) -> None:
        """Send a message."""
        put(self.stream, self._codec.encode(message))

    def answer(self, end: Reply | Return | Fail) -> None:
        """Send an answer."""
        if isinstance(end, Reply) and end.answer is not None:
            self.outlet(end.answer, None)

    def end(self) -> None:
        """Let the stream end."""
        self.stream.ended = True
        if self.stream.reader is not None:
            self.stream.reader.wake()


class SsePair:
    """The two addresses."""

    def __init__(self, server: BaseServer, codec: Codec) -> None:
        self._server = server
        self._codec = codec
        self._table: dict[str, _Pair] = {}

    def __len__(self) -> int:
        """Open streams."""
        return len(self._table)

    async def get(self, http: Http) -> None:
        """Open a stream and say where to post to.

        Raises:
            Refusal: There are too many.
            Gone: The client has left.
        """
        if len(self._table) >= http.config.max_sessions:
            raise Refusal(
                503, InternalError("There are too many open streams"), headers=[(b"retry-after", b"5")]
            )
        ident = secrets.token_hex(16)
        reader = Reader(http)
        pair = _Pair(
            lone_stream(_MESSAGES_WAITING, http.config.max_outbox_bytes), http.principal, self._codec
        )
        pair.stream.take(reader)
        self._server.attach(pair, pair.outlet, transport="sse", principal=http.principal, handshake=True)
        self._table[ident] = pair
        try:
            # The mount's or proxy's prefix, once; without a host, so that it is the one that the client came by.
            address = f"{http.scope.get('root_path', '')}{MESSAGES}/?session_id={ident}"
            await write_events(
                http,
                pair.stream,
                reader,
                event="message",
                first=encode_event(address.encode(), event="endpoint"),
            )
        finally:
            del self._table[ident]
            reader.close()
            self._server.disconnect(pair)

    def find(self, http: Http) -> _Pair:
        """The pair that a post is for.

        Raises:
            Refusal: It names none that is open.
        """
        query = parse_qs(http.scope.get("query_string", b"").decode("latin-1"))
        ident = query.get("session_id", [""])[0]
        if not _ID.fullmatch(ident):
            raise Refusal(400, "The address lacks a session_id as the endpoint event gave it")
        pair = self._table.get(ident)
        if pair is None or pair.principal != http.principal:
            raise Refusal(404, "The event stream of this address is not open any more")
        return pair

    async def post(self, http: Http, pair: _Pair, message: Inbound) -> None:
        """Take a message; what comes of it goes onto the stream."""
        self._server.submit(message, pair, pair.answer)
        await http.reply(202, b"")

    def close(self) -> None:
        """End every stream."""
        for pair in self._table.values():
            pair.end()
