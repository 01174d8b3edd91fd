"""Sessions of the handshake revisions: which there are, what belongs to each, when one ends.

Owns the table and its bounds. A session is one connection of the server's that outlives the streams on which its messages
travel. It ends by DELETE, at shutdown, when nothing happened on it for ``Config.session_idle`` seconds (a running call or an
open stream is something), or to make room for a new one. Its id is a secret, but no credential: whoever uses it must be the
principal that opened it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from typing import Final

from stanchion.machines.streams import Streams
from stanchion.registry.authorizer import Principal
from stanchion.server.config import Config
from stanchion.server.server import BaseServer
from stanchion.transports.http_stream import Exchange, Reader, put
from stanchion.wire.codec import Codec
from stanchion.wire.jsonrpc import Outbound, Ref, Request
from stanchion.wire.revisions import NEWEST_HANDSHAKE, Profile

_LOG: Final = logging.getLogger("stanchion")

UNHEARD: Final = 16
"""Messages kept for a client that has never opened its GET stream; it may be about to."""

Clock = Callable[[], float]


class Session:
    """One client. It is its own connection id towards the server."""

    __slots__ = ("_codec", "calls", "ended", "id", "principal", "profile", "readers", "streams", "touched")

    def __init__(self, principal: Principal | None, config: Config, codec: Codec, now: float) -> None:
        """Set up; it is in no table yet.

        Args:
            principal: Whose it is.
            config: Options.
            codec: Writes messages.
            now: Seconds on the loop's clock.
        """
        self.id = secrets.token_urlsafe(32)
        self.principal = principal
        self.profile: Profile = NEWEST_HANDSHAKE
        """The revision agreed on."""
        self.streams: Streams[Reader] = Streams(
            secrets.token_hex(4),
            messages=config.event_store_messages,
            size=config.event_store_bytes,
            kept=config.event_store_streams,
            unheard=UNHEARD,
        )
        self.calls: dict[Ref, Exchange] = {}
        """What is being worked on."""
        self.readers: set[Reader] = set()
        """Open responses."""
        self.touched = now
        """When something last happened."""
        self.ended = False
        self._codec = codec

    @property
    def busy(self) -> bool:
        """Whether something is going on."""
        return bool(self.calls or self.readers)

    def outlet(self, message: Outbound, related: Ref | None) -> None:
        """Send a message on the one stream that it belongs to (HL8, HL9)."""
        exchange = None if related is None else self._exchange(related)
        if exchange is None or (isinstance(message, Request) and exchange.deaf):
            put(self.streams.standing, self._codec.encode(message))
        else:
            exchange.push(message)

    def _exchange(self, related: Ref) -> Exchange | None:
        exchange = self.calls.get(related)
        if exchange is None and related < 0:
            # A part of a batch, under a name of the server's own: the newest batch is the likeliest.
            exchange = next((self.calls[ref] for ref in reversed(self.calls) if self.calls[ref].batch), None)
        return exchange

    def end(self) -> None:
        """Stop all its streams."""
        self.ended = True
        self.streams.standing.ended = True
        for reader in list(self.readers):
            reader.wake()


class Sessions:
    """The table: by id, in the order of last use."""

    def __init__(self, server: BaseServer, codec: Codec) -> None:
        self._server = server
        self._codec = codec
        self._config = server.config
        self._loop = asyncio.get_running_loop()
        self._table: dict[str, Session] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Sessions alive."""
        return len(self._table)

    def make(self, principal: Principal | None) -> Session:
        """A session that is not in the table: it gets there once its handshake has been answered."""
        return Session(principal, self._config, self._codec, self._loop.time())

    def add(self, session: Session) -> bool:
        """Take a session in.

        Returns:
            False if there is no room, and everybody who is there has something going on.
        """
        if len(self._table) >= self._config.max_sessions and not self._make_room():
            return False
        self._table[session.id] = session
        self._arm()
        return True

    def get(self, ident: str, principal: Principal | None) -> Session | None:
        """The live session of that id, if it is that principal's. Finding it counts as use."""
        session = self._table.get(ident)
        if session is None or session.principal != principal:
            return None
        self.touch(session)
        return session

    def touch(self, session: Session) -> None:
        """Note that something happened."""
        session.touched = self._loop.time()
        if self._table.pop(session.id, None) is not None:
            self._table[session.id] = session

    def end(self, session: Session) -> None:
        """End a session: its calls are cancelled, its streams stop, its id is unknown from now on."""
        if self._table.pop(session.id, None) is not None:
            session.end()
            self._server.disconnect(session)

    def close(self) -> None:
        """End all of them."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for session in list(self._table.values()):
            self._table.pop(session.id)
            session.end()

    def _make_room(self) -> bool:
        idle = next((session for session in self._table.values() if not session.busy), None)
        if idle is None:
            return False
        _LOG.info("a session that was idle has ended to make room: there are %d", len(self._table))
        self.end(idle)
        return True

    def _arm(self) -> None:
        if self._timer is None and self._table:
            pause = min(self._config.session_idle, self._config.event_store_seconds) / 4
            self._timer = self._loop.call_later(max(pause, 0.01), self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time()
        for session in list(self._table.values()):
            if session.busy:
                self.touch(session)
            elif session.touched <= now - self._config.session_idle:
                self.end(session)
            if len(session.streams):
                session.streams.expire(now - self._config.event_store_seconds)
        self._arm()
