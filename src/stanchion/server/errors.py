"""What a program that holds a server may catch. What clients see is ``wire.errors``.

ServerClosed      the server has ended
ConnectionTaken   a connection's name is in use
CannotStart       the server refuses to start
CallFailed        a direct call came to nothing
"""

from __future__ import annotations


class ServerClosed(RuntimeError):
    """The server has ended and takes nothing more."""


class ConnectionTaken(ValueError):
    """A channel is already open under this connection's name (behaviour A8)."""


class CannotStart(RuntimeError):
    """The server refuses to start. The text is one sentence: what, where, what to do."""


class CallFailed(Exception):
    """A direct call came to nothing (behaviour F1)."""

    def __init__(self, kind: str, text: str) -> None:
        """Set up.

        Args:
            kind: One of ``unknown``, ``not_found``, ``invalid_arguments``, ``tool_error``, ``raised``, ``timed_out``,
                ``killed``, ``busy``, ``unavailable``, ``cancelled``.
            text: For a person.
        """
        super().__init__(text)
        self.kind = kind
