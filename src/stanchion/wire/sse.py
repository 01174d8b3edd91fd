"""Server-sent events as bytes (HTML standard, section 9.2): how events are written, and how a stream of them is read.

Owns the framing. What an event's data says is the codec's, what its id means is ``machines.streams``'. Each message is
written as one ``data`` line: some clients read line by line.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

COMMENT: Final = b":\n\n"
"""Says nothing; keeps proxies and clients from taking a quiet stream for a dead one. It is no event with empty data."""

_BOM: Final = "\ufeff"
_NAMES: Final = frozenset({"data", "event", "id", "retry"})


def encode_event(
    data: bytes, *, ident: str | None = None, event: str | None = None, retry: int | None = None
) -> bytes:
    """Write one event.

    Args:
        data: On one line; ``Codec.encode`` sees to that. Empty makes an event that only carries its id.
        ident: What the client names when it resumes. No line breaks.
        event: The event's type; None for ``message``, which needs no saying.
        retry: Milliseconds that the client waits before it connects again.
    """
    parts = []
    if event is not None:
        parts.append(b"event: %b\n" % event.encode())
    if ident is not None:
        parts.append(b"id: %b\n" % ident.encode())
    if retry is not None:
        parts.append(b"retry: %d\n" % retry)
    parts.append(b"data: %b\n\n" % data if data else b"data:\n\n")
    return b"".join(parts)


class Event(Struct, frozen=True):
    """One event as a client reads it."""

    data: str
    event: str = "message"
    ident: str | None = None
    """The newest id seen on the stream; None before the first."""
    retry: int | None = None
    """Milliseconds, if the event said so."""


class Parser:
    """Reads a stream of events, however it arrives in pieces.

    An event with an id and empty data is given out too: a client has to note its id. Holds at most *max_bytes* of one
    event; of a longer one the rest is dropped and nothing is given out.

    Args:
        max_bytes: Longest event.
    """

    __slots__ = (
        "_bytes",
        "_data",
        "_event",
        "_ident",
        "_max_bytes",
        "_rest",
        "_retry",
        "_returned",
        "_started",
        "comments",
    )

    def __init__(self, max_bytes: int = 16 * 1024 * 1024) -> None:
        self.comments = 0
        """Comment lines seen."""
        self._max_bytes = max_bytes
        self._rest = b""
        self._returned = False
        self._started = False
        self._ident: str | None = None
        self._data: list[str] = []
        self._event = ""
        self._retry: int | None = None
        self._bytes = 0

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes and return the events that end in them. An event that is never ended is never given."""
        events: list[Event] = []
        if self._returned and chunk:
            # The second half of a line ending whose first half ended a line already.
            chunk = chunk.removeprefix(b"\n")
            self._returned = False
        self._returned = self._returned or chunk.endswith(b"\r")
        lines = (self._rest + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            text = line.decode("utf-8", "replace")
            if not self._started:
                self._started = True
                text = text.removeprefix(_BOM)
            self._line(text, events)
        if len(self._rest) > self._max_bytes:
            self._rest = self._rest[:64]
            self._bytes = self._max_bytes + 1
        return events

    def _line(self, line: str, events: list[Event]) -> None:
        if not line:
            self._dispatch(events)
            return
        if line.startswith(":"):
            self.comments += 1
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        self._bytes += len(line)
        if name not in _NAMES or self._bytes > self._max_bytes:
            return
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id":
            if "\0" not in value:
                self._ident = value
        elif value.isascii() and value.isdecimal():
            self._retry = int(value)

    def _dispatch(self, events: list[Event]) -> None:
        if self._data and self._bytes <= self._max_bytes:
            events.append(Event("\n".join(self._data), self._event or "message", self._ident, self._retry))
        self._data = []
        self._event = ""
        self._retry = None
        self._bytes = 0
