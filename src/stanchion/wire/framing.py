"""A stream of bytes to lines: one message a line (basic/transports, stdio; checklist S1, S13).

Owns where a line ends and how long it may be. What a line says is the codec's.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

_BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = b" \t\r"


class Overlong(Struct, frozen=True):
    """Stands for a line that is longer than allowed. Its bytes are dropped as they come."""


class LineSplitter:
    r"""Cuts a stream into lines, however it arrives in pieces.

    ``\n`` ends a line; one ``\r`` before it belongs to the ending. Lines without anything but blanks are left out, and
    so is a byte order mark at the start of the stream. Holds at most *max_bytes* and what was fed last.

    Args:
        max_bytes: Longest line, without its ending.
    """

    __slots__ = ("_held", "_max_bytes", "_skipping", "_started")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held = bytearray()
        self._skipping = False
        self._started = False

    def feed(self, chunk: bytes) -> list[bytes | Overlong]:
        """Take the next bytes; return the lines that end in them, and a mark for each one that got too long."""
        first, *rest = chunk.split(b"\n")
        if not rest:
            return self._keep(first)
        last = rest.pop()
        found = self._end(first)
        for line in rest:
            found += self._judge(line)
        return found + self._keep(last) if last else found

    def finish(self) -> list[bytes | Overlong]:
        """The stream has ended: return its last line, if that had no ending. Feed no more."""
        return self._end(b"")

    def _keep(self, piece: bytes) -> list[bytes | Overlong]:
        """Hold the beginning or middle of a line until its end comes."""
        if self._skipping:
            return []
        self._held += piece
        if len(self._held) <= self._max_bytes or self._may_fit():
            return []
        self._held = bytearray()
        self._started = self._skipping = True
        return [Overlong()]

    def _may_fit(self) -> bool:
        """Whether the line held, a little too long, is not once the mark before and the ending after it are taken off."""
        if len(self._held) > len(_BOM) + self._max_bytes + 1:
            return False
        line = bytes(self._held)
        return len(self._bare(line)) <= self._max_bytes or (not self._started and _BOM.startswith(line))

    def _end(self, piece: bytes) -> list[bytes | Overlong]:
        """End the line that is held with *piece*."""
        if self._skipping:
            self._skipping = False
            return []
        if not self._held:
            return self._judge(piece)
        self._held += piece
        line = bytes(self._held)
        self._held = bytearray()
        return self._judge(line)

    def _judge(self, line: bytes) -> list[bytes | Overlong]:
        bare = self._bare(line)
        self._started = True
        if len(bare) > self._max_bytes:
            return [Overlong()]
        return [bare] if bare.strip(_BLANK) else []

    def _bare(self, line: bytes) -> bytes:
        return (line if self._started else line.removeprefix(_BOM)).removesuffix(b"\r")
