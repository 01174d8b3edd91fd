"""What the kernel may ask of the outside: its one way out.

Owns the closed union of effects, named as orders. The runner carries each out in the order given and has no choice in the
matter; a new effect is a type error there until it is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from msgspec import Struct

from stanchion.server.ports import Job, Said, Unsaid
from stanchion.wire.jsonrpc import Answer, Notification, Ref, Request


class Reply(Struct, frozen=True):
    """Give a request its one answer; None ends it without one."""

    ref: Ref
    answer: Answer | tuple[Answer, ...] | None


class Return(Struct, frozen=True):
    """Give the embedding program what it called for."""

    ref: Ref
    value: object


class Fail(Struct, frozen=True):
    """Tell the embedding program that its call came to nothing, and of what kind the failure is."""

    ref: Ref
    kind: str
    text: str


class Push(Struct, frozen=True):
    """Send a notice or a request of ours to a connection; *related* is the client's request it belongs to, if any."""

    connection: Hashable
    notice: Notification | Request
    related: Ref | None = None


class Deliver(Struct, frozen=True):
    """Tell a waiting callback what became of its question."""

    deliver: Callable[[str, Said | Unsaid], None]
    id: str
    answer: Said | Unsaid


class Dispatch(Struct, frozen=True):
    """Have a worker run a callback."""

    job: Job


class Kill(Struct, frozen=True):
    """Have the work of a call end."""

    ref: Ref


class Emit(Struct, frozen=True):
    """Let it be known that something happened."""

    name: str
    fields: dict[str, object]


Effect = Reply | Return | Fail | Push | Deliver | Dispatch | Kill | Emit
