"""What a call is to do, and whose word it needs.

Owns the values that ``handlers`` make and ``execution`` carries through a call's life.
"""

from __future__ import annotations

from msgspec import Struct

from stanchion.machines.calls import Call
from stanchion.registry.authorizer import Authorizer
from stanchion.server.ports import Facts, Isolation, UnknownToolReply, Work


class Policy(Struct, frozen=True):
    """Whose word decides, and where it is asked."""

    authorizer: Authorizer | None = None
    authorizer_isolation: Isolation = "thread"
    unknown_tool_reply: UnknownToolReply | None = None


class Errand(Struct, frozen=True):
    """What a call is to do once it may."""

    work: Work
    facts: Facts
    isolation: Isolation
    timeout: float
    """Seconds."""
    raw: bool = False
    """The callback's value is wanted as it is."""


OpenCall = Call[Errand]
