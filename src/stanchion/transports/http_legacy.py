"""Streamable HTTP of the handshake revisions (2025-03-26 to 2025-11-25, basic/transports).

Owns sessions as HTTP shows them: the header that names one, what POST, GET and DELETE do on it, and what a lost connection
means: nothing. Work goes on, its messages are kept, and a client that was told an event's id can have the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from stanchion.machines.streams import Gap
from stanchion.server.effects import Fail, Reply, Return
from stanchion.server.server import BaseServer
from stanchion.transports.http_io import Gone, Http, Refusal, accepts
from stanchion.transports.http_sessions import Session, Sessions
from stanchion.transports.http_stream import (
    EVENTS,
    Exchange,
    Manner,
    Reader,
    lone_stream,
    respond,
    write_events,
)
from stanchion.wire.codec import Codec
from stanchion.wire.errors import HeaderMismatch, InternalError
from stanchion.wire.jsonrpc import (
    Answer,
    Batch,
    Failure,
    Id,
    Notification,
    Request,
    Response,
)
from stanchion.wire.revisions import HANDSHAKE, NEWEST_HANDSHAKE
from stanchion.wire.sse import COMMENT
from stanchion.wire.status import OK, status_of

SESSION: Final = "mcp-session-id"
LAST_EVENT: Final = "last-event-id"
VERSION: Final = "mcp-protocol-version"

PRIME_AFTER: Final = 0.25
"""Seconds without an answer after which a client that can resume is told from where (2025-11-25)."""

_ENDED: Final = "The session is unknown or has ended; send initialize to begin a new one"

Legacy = Request | Notification | Response | Failure | Batch


class LegacyHttp:
    """What handshake clients get. Belongs to the loop it was made on."""

    def __init__(self, server: BaseServer, codec: Codec) -> None:
        self.sessions = Sessions(server, codec)
        self._server = server
        self._codec = codec
        self._loop = asyncio.get_running_loop()

    # -- POST

    async def post(self, http: Http, message: Legacy) -> None:
        """Take a message that does not describe itself.

        Raises:
            Refusal: It is not of a live session, or does not fit it.
            Gone: The client has left.
        """
        ident = http.headers.get(SESSION)
        opening = message if isinstance(message, Request) and message.method == "initialize" else None
        session = self.sessions.get(ident, http.principal) if ident else None
        if session is None:
            if opening is not None:
                await self._open(http, opening)
                return
            raise _no_session(http, message, ident)
        if opening is None:
            _check_version(http, session, message)
        if isinstance(message, Batch) and not session.profile.batching:
            raise Refusal(400, "Batches belong to revision 2025-03-26 alone")
        if isinstance(message, Request):
            await self._call(http, session, message, batch=False)
        elif isinstance(message, Batch) and any(_wants_answer(item) for item in message.items):
            await self._call(http, session, message, batch=True)
        else:
            self._server.submit(message, session, _ignore)
            await http.reply(202, b"")

    async def _open(self, http: Http, message: Request) -> None:
        """Answer ``initialize``. Only one that is answered well makes a session."""
        session = self.sessions.make(http.principal)
        exchange = Exchange(lone_stream(1, 1), self._codec)
        reader = Reader(http)
        exchange.stream.take(reader)
        self._server.attach(
            session, session.outlet, transport="http", principal=http.principal, handshake=True
        )
        kept = False
        try:
            self._server.submit(message, session, exchange.finish)
            while not exchange.done and not reader.gone:
                await reader.wait(http.config.reader_timeout)
            if reader.gone:
                raise Gone
            answer = exchange.answer
            headers: tuple[tuple[bytes, bytes], ...] = ()
            if isinstance(answer, Response):
                if not self.sessions.add(session):
                    text = f"There are {len(self.sessions)} sessions, all of them in use; try again later"
                    raise Refusal(
                        503, InternalError(text), ident=message.id, headers=[(b"retry-after", b"5")]
                    )
                kept = True
                result = answer.result
                revision = result.get("protocolVersion") if isinstance(result, dict) else None
                session.profile = HANDSHAKE.get(str(revision), NEWEST_HANDSHAKE)
                headers = ((SESSION.encode(), session.id.encode()),)
            await respond(http, exchange, reader, _manner(http, session, message.id, headers=headers))
        except Gone:
            if kept:
                # Nobody knows its id.
                self.sessions.end(session)
            raise
        finally:
            reader.close()
            if not kept:
                self._server.disconnect(session)

    async def _call(self, http: Http, session: Session, message: Request | Batch, *, batch: bool) -> None:
        stream = session.streams.open()
        deaf = not accepts(http.headers.get("accept"), EVENTS)
        exchange = Exchange(stream, self._codec, batch=batch, deaf=deaf)
        reader = Reader(http)
        stream.take(reader)
        session.readers.add(reader)
        ref = self._server.submit(message, session, exchange.finish)
        session.calls[ref] = exchange

        def ended() -> None:
            del session.calls[ref]
            self.sessions.touch(session)
            if exchange.streaming or (len(stream.window) and not deaf):
                # Kept for a while: its client has, or will have, an id to resume it by.
                session.streams.end(stream, self._loop.time())
            else:
                session.streams.drop(stream)

        exchange.on_done = ended
        ident = message.id if isinstance(message, Request) else None
        manner = _manner(http, session, ident, ident_of=lambda number: session.streams.ident(stream, number))
        try:
            await respond(http, exchange, reader, manner)
        finally:
            self._leave(session, reader)
            stream.leave(reader)

    def _leave(self, session: Session, reader: Reader) -> None:
        reader.close()
        session.readers.discard(reader)
        self.sessions.touch(session)

    # -- GET and DELETE

    async def get(self, http: Http) -> None:
        """Open the standing stream, or go on with one that was lost.

        Raises:
            Refusal: There is no such session, or no such event.
            Gone: The client has left.
        """
        if not accepts(http.headers.get("accept"), EVENTS):
            raise Refusal(406, "GET gives text/event-stream, which the Accept header does not take")
        session = self._session(http)
        last = http.headers.get(LAST_EVENT)
        reader = Reader(http)
        stream, position = session.streams.standing, None
        if last:
            found = session.streams.resume(last)
            if found is None or isinstance(found, Gap):
                reader.close()
                why = "is none of this session's" if found is None else "is too old: what followed is gone"
                raise Refusal(400, f"Last-Event-ID {why}")
            stream, position = found.stream, found.position
        if stream is session.streams.standing:
            former = session.streams.hear(reader, position)
        else:
            former = stream.take(reader, position)
        if former is not None:
            former.replace()
        session.readers.add(reader)
        try:
            await write_events(
                http,
                stream,
                reader,
                ident=lambda number: session.streams.ident(stream, number),
                first=COMMENT,
            )
        finally:
            stream.leave(reader)
            self._leave(session, reader)

    async def delete(self, http: Http) -> None:
        """End the session.

        Raises:
            Refusal: There is no such session.
        """
        self.sessions.end(self._session(http))
        await http.reply(204, b"")

    def _session(self, http: Http) -> Session:
        ident = http.headers.get(SESSION)
        if not ident:
            raise Refusal(400, "The Mcp-Session-Id header is missing", headers=[(b"allow", b"POST")])
        session = self.sessions.get(ident, http.principal)
        if session is None:
            raise Refusal(404, _ENDED)
        _check_version(http, session, None)
        return session

    def close(self) -> None:
        """End every session and stream."""
        self.sessions.close()


def _manner(
    http: Http,
    session: Session,
    ident: Id | None,
    *,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    ident_of: Callable[[int], str] | None = None,
) -> Manner:
    accept = http.headers.get("accept")
    events = accepts(accept, EVENTS)
    prime = session.profile.primes and ident_of is not None

    def status(answer: Answer | tuple[Answer, ...]) -> int:
        return OK if session.ended else status_of(answer, session.profile)

    def unanswered() -> Refusal | None:
        if session.ended:
            return Refusal(404, _ENDED, ident=ident)
        # Nothing is sent for a request that was cancelled, but HTTP wants an end: a stream without events, if it may be.
        return None if events else Refusal(200, InternalError("The request was cancelled"), ident=ident)

    return Manner(
        status=status,
        json=accepts(accept, "application/json"),
        events=events,
        open_after=PRIME_AFTER if prime else http.config.keep_alive,
        ident=ident_of,
        prime=prime,
        headers=headers,
        unanswered=unanswered,
    )


def _check_version(http: Http, session: Session, message: Legacy | None) -> None:
    """The version header may be missing; one that is there names the revision agreed on (HL17)."""
    given = http.headers.get(VERSION)
    if given is not None and given != session.profile.revision:
        ident = message.id if isinstance(message, Request) else None
        raise Refusal(
            400,
            f"The MCP-Protocol-Version header does not name the session's revision, {session.profile.revision}",
            ident=ident,
        )


def _no_session(http: Http, message: Legacy, ident: str | None) -> Refusal:
    """What is said to a message of no session. Clients take a 404 as the word to initialize again."""
    request = message.id if isinstance(message, Request) else None
    if ident:
        return Refusal(404, _ENDED, ident=request)
    text = "The Mcp-Session-Id header is missing; send initialize first"
    if isinstance(message, Request) and http.headers.get(VERSION) is None:
        # Nothing says which revision this is. A modern client must not take the answer for a legacy server's.
        text = f"The MCP-Protocol-Version header is missing, and so is Mcp-Session-Id: {text}"
        return Refusal(400, HeaderMismatch(text), ident=request)
    return Refusal(400, text, ident=request)


def _wants_answer(item: object) -> bool:
    return not isinstance(item, Notification | Response | Failure)


def _ignore(_: Reply | Return | Fail) -> None:
    """Nobody waits for the end of what is not answered."""
