"""What was sent on a session's streams, so that a client can go on where it lost one (basic/transports, Resumability).

Owns the bounded window of each stream, the ids of events and what an id that comes back means. A session has one standing
stream (the GET stream) and one more for each request that streams. Numbers of events begin at 1 on each stream and never
repeat; an event's id names its stream, so an id of one stream never replays another (HL11, HL12).

A stream has one reader at a time, and the newest wins: it takes over where the last one stopped, or where it says that it
stopped, so each event reaches each reader once. The window is also what waits for a reader: what falls out of it before it
was read is a ``Gap``, and the reader has to begin anew. So nobody who does not read makes us hold more than the window.

    open -> (append)* -> ended -> forgotten
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Generic, TypeVar

from msgspec import Struct

Reader = TypeVar("Reader")

STANDING = 0
"""The number of a session's standing stream."""


class Gap(Struct, frozen=True):
    """What comes next was dropped: it was too much, or too long ago."""


class Window:
    """The newest events of one stream, by number.

    Within *messages* and *size*, but for the newest event, which is held however large it is.
    """

    __slots__ = ("_events", "_held", "_messages", "_size", "end")

    def __init__(self, messages: int, size: int) -> None:
        """Set up.

        Args:
            messages: Most events held.
            size: Most bytes held.
        """
        self.end = 1
        """The number that the next event gets."""
        self._events: deque[bytes] = deque()
        self._held = 0
        self._messages = messages
        self._size = size

    def __len__(self) -> int:
        """Events held."""
        return len(self._events)

    @property
    def held(self) -> int:
        """Bytes held."""
        return self._held

    @property
    def start(self) -> int:
        """The number of the oldest event held, or the next one's."""
        return self.end - len(self._events)

    def append(self, data: bytes, *, spare: int | None = None) -> int:
        """Take an event; older ones make way.

        Args:
            data: The event.
            spare: Events numbered this and higher do not make way.

        Returns:
            Its number.
        """
        self._events.append(data)
        self._held += len(data)
        self.end += 1
        self.trim(spare)
        return self.end - 1

    def trim(self, spare: int | None = None) -> None:
        """Let the oldest go until the rest is within bounds; none numbered *spare* or higher."""
        while len(self._events) > self._messages or (self._held > self._size and len(self._events) > 1):
            if spare is not None and self.start >= spare:
                return
            self._held -= len(self._events.popleft())

    def widen(self, messages: int) -> None:
        """Hold up to *messages* from now on."""
        self._messages = messages

    def since(self, position: int) -> list[bytes] | Gap:
        """The events numbered *position* and higher; a gap if any of them was dropped."""
        skip = position - self.start
        if skip < 0:
            return Gap()
        return list(islice(self._events, skip, None))

    def forget(self, position: int) -> None:
        """Drop the events numbered below *position*."""
        while self._events and self.start < position:
            self._held -= len(self._events.popleft())


class Stream(Generic[Reader]):
    """One stream: its window, who reads it, and how far it was read."""

    __slots__ = ("ended", "number", "position", "reader", "window")

    def __init__(self, number: int, window: Window) -> None:
        self.number = number
        self.window = window
        self.position = 1
        """The number of the next event to read."""
        self.ended = False
        self.reader: Reader | None = None

    @property
    def is_read(self) -> bool:
        """Whether nothing more will come of it."""
        return self.ended and self.position == self.window.end

    def take(self, reader: Reader, position: int | None = None) -> Reader | None:
        """Let *reader* read it from now on.

        Args:
            reader: The new one.
            position: Where it wants to begin; None: where the last one stopped, or as near as is still held.

        Returns:
            The reader that it takes over from, who must stop.
        """
        former, self.reader = self.reader, reader
        self.position = max(self.position, self.window.start) if position is None else position
        return former

    def leave(self, reader: Reader) -> None:
        """Let *reader* go, if it still is the reader."""
        if self.reader is reader:
            self.reader = None

    def append(self, data: bytes, *, ready: bool) -> int:
        """Take an event.

        Args:
            data: The event.
            ready: The reader only waits for its turn: what it has not read is spared, so that a burst that comes between
                two turns does not look like a reader who does not read.

        Returns:
            Its number.
        """
        return self.window.append(data, spare=self.position if ready else None)

    def read(self) -> list[bytes] | Gap:
        """What the reader has not had yet. It counts as read once ``advance`` says so."""
        return self.window.since(self.position)

    def advance(self, count: int) -> None:
        """Note that the reader has had *count* more events."""
        self.position += count
        self.window.trim(self.position)


class Resumption(Struct, Generic[Reader], frozen=True):
    """Where a client goes on."""

    stream: Stream[Reader]
    position: int


class Streams(Generic[Reader]):
    """The streams of one session.

    Args:
        tag: Begins each id. Its own for each session, so that ids of others are known as such.
        messages: Most events held for one stream.
        size: Most bytes held for one stream.
        kept: Most ended streams that can still be resumed.
        unheard: Most events held for the standing stream before anybody has read it.
    """

    __slots__ = ("_count", "_ended", "_kept", "_messages", "_open", "_size", "standing", "tag")

    def __init__(self, tag: str, *, messages: int, size: int, kept: int, unheard: int) -> None:
        self.tag = tag
        self.standing: Stream[Reader] = Stream(STANDING, Window(min(unheard, messages), size))
        self._messages = messages
        self._size = size
        self._kept = kept
        self._count = 0
        self._open: dict[int, Stream[Reader]] = {}
        self._ended: dict[int, float] = {}

    def __len__(self) -> int:
        """Streams held beside the standing one."""
        return len(self._open)

    def open(self) -> Stream[Reader]:
        """Begin the stream of one request."""
        self._count += 1
        stream: Stream[Reader] = Stream(self._count, Window(self._messages, self._size))
        self._open[stream.number] = stream
        return stream

    def hear(self, reader: Reader, position: int | None = None) -> Reader | None:
        """Let *reader* read the standing stream; returns who must stop."""
        self.standing.window.widen(self._messages)
        return self.standing.take(reader, position)

    def ident(self, stream: Stream[Reader], number: int) -> str:
        """The id of an event. Number 0 stands for the beginning: a priming event has it."""
        return f"{self.tag}-{stream.number}-{number}"

    def end(self, stream: Stream[Reader], now: float) -> None:
        """Note that nothing more will be sent on a request's stream; it is kept for a while for who lost it."""
        stream.ended = True
        self._ended[stream.number] = now
        while len(self._ended) > self._kept:
            self.drop(self._open[next(iter(self._ended))])

    def drop(self, stream: Stream[Reader]) -> None:
        """Forget a request's stream. Of one that is gone: no effect."""
        self._open.pop(stream.number, None)
        self._ended.pop(stream.number, None)

    def expire(self, before: float) -> None:
        """Forget the streams that ended before that time."""
        while self._ended:
            number, ended = next(iter(self._ended.items()))
            if ended > before:
                break
            self.drop(self._open[number])

    def resume(self, ident: str) -> Resumption[Reader] | Gap | None:
        """Where a client goes on whose last event had that id.

        Returns:
            None if no event of this session ever had that id; a gap if what followed it was dropped.
        """
        tag, _, rest = ident.rpartition("-")[0].rpartition("-")
        number = ident.rpartition("-")[2]
        if tag != self.tag or not (_is_number(rest) and _is_number(number)):
            return None
        which, position = int(rest), int(number) + 1
        if which > self._count:
            return None
        stream = self.standing if which == STANDING else self._open.get(which)
        if stream is None:
            return Gap()
        if position > stream.window.end:
            return None
        return Resumption(stream, position) if position >= stream.window.start else Gap()


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 12  # noqa: PLR2004 - more than ever will be sent
