"""From what a request brings to the bytes of its response: one JSON body, or a stream of events.

Owns the late commitment: until something has to be streamed, the response is JSON and its status is open; then it is
``text/event-stream`` and 200, whatever comes. Owns the watch over the client too: who leaves is noticed, who does not read
is cut off, who hears nothing for a while gets a comment. It knows no revision: those differences come in as ``Manner``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from stanchion.machines.streams import Gap, Stream, Window
from stanchion.server.effects import Fail, Reply, Return
from stanchion.transports.http_io import Gone, Header, Http, Refusal
from stanchion.wire.codec import Codec
from stanchion.wire.jsonrpc import Answer, Outbound
from stanchion.wire.sse import COMMENT, encode_event

EVENTS: Final = "text/event-stream"
EVENT_HEADERS: Final[tuple[Header, ...]] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)

WATCH_AFTER: Final = 0.02
"""Seconds before anybody looks whether the client is still there: most answers are quicker, and the watch costs a task."""

Ident = Callable[[int], str]
"""From an event's number to its id."""


class Reader:
    """Who reads a stream: one response, as long as its client is there. Belongs to the loop it was made on."""

    __slots__ = ("_armed", "_http", "_waiter", "_watch", "gone", "replaced", "writing")

    def __init__(self, http: Http) -> None:
        self.gone = False
        """The client has left."""
        self.replaced = False
        """Another reader has taken over, or the stream is closed to readers."""
        self.writing = False
        """It waits for the client to take what was written."""
        self._http = http
        self._waiter: asyncio.Future[bool] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._armed: asyncio.TimerHandle | None = asyncio.get_running_loop().call_later(
            WATCH_AFTER, self._begin_watch
        )

    @property
    def over(self) -> bool:
        """Whether it has to stop."""
        return self.gone or self.replaced

    def replace(self) -> None:
        """Make it stop."""
        self.replaced = True
        self.wake()

    def wake(self) -> None:
        """Have it look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(True)

    async def wait(self, seconds: float) -> bool:
        """Wait to be woken, for at most *seconds*; returns whether it was. Look first: a wake-up is not remembered."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiter = waiter
        timer = loop.call_later(seconds, _give_up, waiter)
        try:
            return await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def close(self) -> None:
        """Look no more after the client."""
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _begin_watch(self) -> None:
        self._armed = None
        self._watch = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        while (await self._http.receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        self.wake()


def _give_up(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)


class Exchange:
    """One request, from its coming to its end: what is pushed for it, and its answer.

    Its methods are called on the protocol loop and never block.
    """

    __slots__ = ("_codec", "answer", "batch", "deaf", "done", "on_done", "stream", "streaming")

    def __init__(
        self, stream: Stream[Reader], codec: Codec, *, batch: bool = False, deaf: bool = False
    ) -> None:
        """Set up.

        Args:
            stream: Where its messages go.
            codec: Writes them.
            batch: It is a batch of requests.
            deaf: The client takes nothing but the answer.
        """
        self.stream = stream
        self.batch = batch
        self.deaf = deaf
        self.answer: Answer | tuple[Answer, ...] | None = None
        self.done = False
        self.streaming = False
        """The response is a stream of events, or was."""
        self.on_done: Callable[[], None] | None = None
        self._codec = codec

    def push(self, message: Outbound) -> None:
        """Send a message that belongs to the request."""
        if not self.done:
            self._put(message)

    def finish(self, end: Reply | Return | Fail) -> None:
        """Take the request's end."""
        self.end(end.answer if isinstance(end, Reply) else None)

    def end(self, answer: Answer | tuple[Answer, ...] | None) -> None:
        """End it, with an answer or without."""
        if self.done:
            return
        self.done = True
        self.answer = answer
        if self.streaming and answer is not None:
            self._put(answer)
        self.stream.ended = True
        if self.on_done is not None:
            self.on_done()
        if self.stream.reader is not None:
            self.stream.reader.wake()

    def commit(self) -> None:
        """From here on the answer goes onto the stream."""
        if not self.streaming:
            self.streaming = True
            if self.answer is not None:
                self._put(self.answer)

    def _put(self, message: Outbound) -> None:
        put(self.stream, self._codec.encode(message))


def put(stream: Stream[Reader], data: bytes) -> None:
    """Have an event written by whoever reads the stream, now or later."""
    reader = stream.reader
    stream.append(data, ready=reader is not None and not reader.writing)
    if reader is not None:
        reader.wake()


def lone_stream(messages: int, size: int) -> Stream[Reader]:
    """A stream that belongs to no session: what was read of it is gone."""
    return Stream(0, Window(messages, size))


class Manner(Struct, frozen=True):
    """How a response is given."""

    status: Callable[[Answer | tuple[Answer, ...]], int]
    """The status of an answer in JSON."""
    unanswered: Callable[[], Refusal | None]
    """What is said to a request that ended without an answer; None: an empty stream of events."""
    json: bool = True
    """The client takes JSON."""
    events: bool = True
    """The client takes a stream of events."""
    open_after: float = 15.0
    """Seconds without an answer after which the stream is opened though nothing is to be sent."""
    ident: Ident | None = None
    """What events are called, for streams that can be resumed."""
    prime: bool = False
    """Begin with an event that has only an id, and say when to come back (2025-11-25)."""
    headers: tuple[Header, ...] = ()


async def respond(http: Http, exchange: Exchange, reader: Reader, manner: Manner) -> None:
    """Give a request's response, from the first byte to the last, or as far as the client stays.

    Args:
        http: The request.
        exchange: What comes of it.
        reader: Has taken the exchange's stream already. Closed by whoever made it.
        manner: How.

    Raises:
        Gone: The client has left.
    """
    as_json = await _await_choice(exchange, reader, manner)
    if reader.gone:
        raise Gone
    if exchange.done and exchange.answer is None and not len(exchange.stream.window):
        refusal = manner.unanswered()
        if refusal is not None:
            await http.refuse(refusal)
            return
        as_json = False
    if as_json and exchange.answer is not None:
        data = http.codec.encode(exchange.answer)
        await http.reply(manner.status(exchange.answer), data, manner.headers)
        return
    exchange.commit()
    first = b""
    if manner.prime and manner.ident is not None and (exchange.answer is not None or not exchange.done):
        first = encode_event(b"", ident=manner.ident(0), retry=round(http.config.reconnect_after * 1000))
    await write_events(http, exchange.stream, reader, ident=manner.ident, first=first, headers=manner.headers)


async def _await_choice(exchange: Exchange, reader: Reader, manner: Manner) -> bool:
    """Wait until it is clear how to respond; returns whether in JSON."""
    loop = asyncio.get_running_loop()
    opens_at = loop.time() + manner.open_after
    while not reader.over:
        pushed = len(exchange.stream.window) > 0
        if exchange.done and (manner.json or exchange.answer is None) and not (pushed and manner.events):
            return True
        if manner.events and (pushed or exchange.done or not manner.json):
            return False
        left = opens_at - loop.time()
        if left <= 0 and manner.events:
            return False
        await reader.wait(left if manner.events else 3600.0)
    return False


async def write_events(
    http: Http,
    stream: Stream[Reader],
    reader: Reader,
    *,
    ident: Ident | None = None,
    event: str | None = None,
    first: bytes = b"",
    headers: tuple[Header, ...] = (),
) -> None:
    """Respond with a stream's events as they come, until it ends, the client leaves or another reader takes over.

    Args:
        http: The request; nothing is sent yet.
        stream: What is read.
        reader: Who reads it.
        ident: What events are called; without it, what was written is forgotten.
        event: The events' type.
        first: Written before all else.
        headers: Further headers.

    Raises:
        Gone: The client has left.
    """
    try:
        reader.writing = True
        await http.start(200, (*EVENT_HEADERS, *headers))
        if first:
            await http.write(first, more=True)
        reader.writing = False
        while not reader.over:
            chunk = _next_events(stream, ident, event)
            if chunk is None:
                # It reads too slowly: what it missed is not held any more. It may come back for what is.
                http.abort()
                return
            if chunk:
                reader.writing = True
                await http.write(chunk, more=True)
                reader.writing = False
            elif stream.ended:
                break
            elif not await reader.wait(http.config.keep_alive):
                await http.write(COMMENT, more=True)
        if reader.gone:
            raise Gone
        await http.write(b"", more=False)
    except TimeoutError:
        http.abort()


_MOST: Final = 64 * 1024


def _next_events(stream: Stream[Reader], ident: Ident | None, event: str | None) -> bytes | None:
    """The next events as bytes, which count as read; None if some were dropped."""
    waiting = stream.read()
    if isinstance(waiting, Gap):
        return None
    parts: list[bytes] = []
    size = 0
    for data in waiting:
        # One at a time as soon as they are large, so that no more than one waits outside the window.
        if parts and size + len(data) > _MOST:
            break
        name = None if ident is None else ident(stream.position)
        parts.append(encode_event(data, ident=name, event=event))
        size += len(data)
        stream.advance(1)
    if ident is None:
        stream.window.forget(stream.position)
    return b"".join(parts)
