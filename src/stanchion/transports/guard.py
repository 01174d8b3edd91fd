"""Keeps stdout for the protocol, whoever prints (checklist S2, behaviour E7).

Owns descriptors 0 and 1 of the process for as long as it is in force. The pipes that the client holds are moved to private
descriptors that no child inherits; in their place stand the null device and stderr, so that ``print``, C code and child
processes may do what they like.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

_STDIN: Final = 0
_STDOUT: Final = 1
_STDERR: Final = 2


@dataclass(slots=True)
class _Moved:
    """A standard descriptor, while something else has its number."""

    number: int
    private: int
    was_open: bool
    was_inheritable: bool

    def put_back(self) -> None:
        if self.was_open:
            os.dup2(self.private, self.number, inheritable=self.was_inheritable)
        else:
            os.close(self.number)
        os.close(self.private)


@dataclass(slots=True)
class StdoutGuard:
    """While entered, only who asks for ``stdin`` and ``stdout`` reads from and writes to the client.

    Text printed earlier that still waits in a buffer goes to stderr too. On exit everything is as it was before. Enter
    and leave in the main program, not while another guard inside it is in force.
    """

    stdin: int = -1
    """Where the client's messages are read, once entered."""
    stdout: int = -1
    """Where the client reads, once entered."""
    _moved: list[_Moved] = field(default_factory=list)
    _printers: list[tuple[io.TextIOWrapper, bool]] = field(default_factory=list)

    def __enter__(self) -> Self:
        null = _private(os.open(os.devnull, os.O_RDWR))
        try:
            self.stdin = self._move(_STDIN, null, null)
            self.stdout = self._move(_STDOUT, _STDERR if _is_open(_STDERR) else null, null)
        except BaseException:
            self.restore()
            raise
        finally:
            os.close(null)
        self._tame_printers()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.restore()

    def restore(self) -> None:
        """Put everything back. May be called more than once."""
        while self._printers:
            printer, line_buffering = self._printers.pop()
            # Printed under the guard: for stderr. A closed one has nothing left to say.
            with suppress(OSError, ValueError):
                printer.reconfigure(line_buffering=line_buffering)
        while self._moved:
            self._moved.pop().put_back()
        self.stdin = self.stdout = -1

    def _move(self, number: int, stand_in: int, nobody: int) -> int:
        """Give *number* to what *stand_in* is; return the private descriptor of what it was, or of *nobody*."""
        was_open = _is_open(number)
        moved = _Moved(
            number,
            _private(os.dup(number if was_open else nobody)),
            was_open,
            was_open and os.get_inheritable(number),
        )
        os.dup2(stand_in, number)
        self._moved.append(moved)
        return moved.private

    def _tame_printers(self) -> None:
        """Empty the buffers that print to descriptor 1, and have them print by the line from now on."""
        for printer in {id(stream): stream for stream in (sys.stdout, sys.__stdout__)}.values():
            # Replaced by something without a descriptor, or closed, or None: not ours to care for.
            with suppress(OSError, ValueError, AttributeError):
                if isinstance(printer, io.TextIOWrapper) and printer.fileno() == _STDOUT:
                    self._printers.append((printer, printer.line_buffering))
                    printer.reconfigure(line_buffering=True)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _private(fd: int) -> int:
    """Return *fd*, or a duplicate in its stead if its number is one that others take for a standard stream."""
    low = []
    while fd <= _STDERR:
        low.append(fd)
        fd = os.dup(fd)
    for standard in low:
        os.close(standard)
    return fd
