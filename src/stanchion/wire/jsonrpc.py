"""The four kinds of JSON-RPC message and the names by which things are known.

Owns the message values and nothing else: no bytes (``codec``), no revision (``revisions``), no method (``server.methods``).
``params`` and ``result`` stay raw until somebody knows their type, so a message is decoded once, straight to the right
type, and a large argument is never turned into objects only to be thrown away.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final, NewType, cast

from msgspec import UNSET, Raw, Struct, UnsetType

Id = int | str
"""A request id. Its JSON type is part of it: ``1`` and ``"1"`` are different requests."""

ConnectionId = Hashable
"""One client's channel, as the transport names it."""

Ref = NewType("Ref", int)
"""Our own name for one request in flight; unique in a server's life, never sent to a peer."""

_INVALID_REQUEST: Final = -32600

EMPTY = Raw(b"{}")
"""Params of a message that sent none."""


class ErrorObject(Struct, frozen=True, omit_defaults=True):
    """The ``error`` member of a failure."""

    code: int
    message: str
    data: object | UnsetType = UNSET


class Request(Struct, frozen=True):
    """A message that wants exactly one answer."""

    id: Id
    method: str
    params: Raw = EMPTY
    """A JSON object; the codec has seen to that."""


class Notification(Struct, frozen=True):
    """A message that is never answered."""

    method: str
    params: Raw = EMPTY


class Response(Struct, frozen=True):
    """A request's result. Ours hold a struct or a dict to encode; a peer's holds ``Raw``."""

    id: Id
    result: object


class Failure(Struct, frozen=True):
    """A request's error.

    When the request's id could not be read, ``id`` is unset (the member is left out) or, for revisions whose schemas
    demand it, None (``"id": null``).
    """

    id: Id | UnsetType | None
    error: ErrorObject


Message = Request | Notification | Response | Failure
Answer = Response | Failure


class Malformed(Struct, frozen=True):
    """What stands in for a message that is none: the answer it gets, or None where nothing may be answered."""

    answer: Failure | None
    reason: str
    """For our log. Never holds what the peer sent."""


class Batch(Struct, frozen=True):
    """Several messages in one array. Only revision 2025-03-26 has them; whether this one may come is decided later."""

    items: tuple[Message | Malformed, ...]


Inbound = Message | Batch | Malformed
"""What one line or body from a peer can turn out to be."""

Outbound = Request | Notification | Response | Failure | tuple[Answer, ...]
"""What can be sent to a peer; the tuple answers a batch."""


def undecoded(message: Mapping[str, object]) -> Malformed:
    """What stands in for a mapping that nobody decoded (behaviour A1): refused if it has an id, else ignored."""
    reason = "The message is not decoded"
    if "id" not in message:
        return Malformed(None, reason)
    ident = message["id"]
    sound = isinstance(ident, int | str) and not isinstance(ident, bool)
    return Malformed(
        Failure(cast("Id", ident) if sound else UNSET, ErrorObject(_INVALID_REQUEST, reason)), reason
    )
