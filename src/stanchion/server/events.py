"""What can happen to a server: the kernel's one way in.

Owns the closed union of events, named in the past tense. Whoever feeds one gives the time with it. What workers report is
in the union too (``ports.Report``).
"""

from __future__ import annotations

from collections.abc import Hashable

from msgspec import Raw, Struct

from stanchion.registry.authorizer import Principal
from stanchion.server.ports import Report
from stanchion.wire.jsonrpc import Inbound, Ref
from stanchion.wire.model import JsonObject
from stanchion.wire.revisions import Profile


class Opened(Struct, frozen=True):
    """A client's channel is there."""

    connection: Hashable
    transport: str = "unknown"
    principal: Principal | None = None
    profile: Profile | None = None
    """The revision to speak without a handshake."""
    holder: Hashable | None = None
    """Whose share its calls use if nobody is proved to be its principal; None: its own."""
    handshake: bool = False
    """Whether requests before a handshake are refused: a transport says so, a direct caller need not shake hands."""


class Closed(Struct, frozen=True):
    """A client's channel is gone, and with it whatever it waited for."""

    connection: Hashable


class Received(Struct, frozen=True):
    """A message came."""

    ref: Ref
    connection: Hashable
    message: Inbound


class Called(Struct, frozen=True):
    """The embedding program wants something run, without an authorizer (behaviour F1)."""

    ref: Ref
    kind: str
    """``tool``, ``resource`` or ``prompt``."""
    key: str
    arguments: JsonObject


class Cancelled(Struct, frozen=True):
    """Nobody waits for this request any more."""

    ref: Ref


class Changed(Struct, frozen=True):
    """The registry's entries of these kinds changed."""

    kinds: frozenset[str]


class Updated(Struct, frozen=True):
    """The contents of a resource changed."""

    uri: str


class Notified(Struct, frozen=True):
    """The embedding program has something to tell every connection (behaviour A9)."""

    method: str
    params: Raw
    """An encoded object."""


class Stopping(Struct, frozen=True):
    """The server is to end: what runs has ``drain`` seconds."""

    drain: float


Event = Opened | Closed | Received | Called | Cancelled | Changed | Updated | Notified | Stopping | Report
