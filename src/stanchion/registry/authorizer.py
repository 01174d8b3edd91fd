"""Who is calling, what they want, and the three things that can be said about it.

Owns the values an authorizer sees and returns, and the shape of the authorizer itself. It does not decide when one is
asked, nor what a refusal looks like to the client: that is the kernel's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct, field


class Principal(Struct, frozen=True):
    """Who the transport proved the caller to be."""

    name: str
    """The subject of a token, a token's name, a peer uid, or ``local`` on stdio."""
    kind: Literal["local", "token", "oauth", "uid", "other"] = "other"


LOCAL = Principal("local", "local")
"""Whoever started the process that talks to us over its pipes."""


class Allow(Struct, frozen=True, tag=True):
    """Let the call run."""


class Deny(Struct, frozen=True, tag=True):
    """Refuse the call."""

    reason: str = ""
    """Told to the client."""
    hide: bool = False
    """Answer as if there were no such tool."""


class Ask(Struct, frozen=True, tag=True):
    """Let a human decide."""

    prompt: str
    """What the human is asked."""


Verdict = Allow | Deny | Ask


def allow() -> Verdict:
    """Let the call run."""
    return Allow()


def deny(reason: str = "", *, hide: bool = False) -> Verdict:
    """Refuse the call.

    Args:
        reason: Told to the client, in words that may reach a model.
        hide: Answer as if no such tool existed, and leave the reason out.
    """
    return Deny(reason, hide)


def ask(prompt: str) -> Verdict:
    """Let a human decide; until one says yes, nothing runs.

    Args:
        prompt: What the human is asked.
    """
    return Ask(prompt)


class ToolFacts(Protocol):
    """What an authorizer may rely on about a tool: its definition, as the registering code gave it."""

    @property
    def name(self) -> str:
        """The registered name."""

    @property
    def read_only(self) -> bool:
        """Whether the tool declared that it changes nothing."""

    @property
    def destructive(self) -> bool:
        """Whether the tool declared itself destructive, or sensitive."""


class ToolCall(Struct, frozen=True, kw_only=True):
    """One ``tools/call`` as an authorizer sees it (behaviour B1). The arguments have passed the tool's schema."""

    tool: ToolFacts
    arguments: Mapping[str, Any] = field(default_factory=dict)
    listing: bool = False
    """True when only a list is being filtered: there are no arguments then."""
    connection: Hashable | None = None
    principal: Principal | None = None
    transport: str = "unknown"
    """As declared by the server's side: ``stdio``, ``memory``, ``http``, ``sse``, ``unix`` or ``unknown``."""
    revision: str = ""
    """The protocol revision in use, such as ``2025-11-25``."""


Authorizer = Callable[[ToolCall], Verdict | Awaitable[Verdict]]
"""User code that decides; sync or async, run in a worker. Raising means deny."""
