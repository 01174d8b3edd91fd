"""Stanchion: an MCP server runtime for tools that can hurt.

Every call is authorised, bounded, isolated and answered exactly once. ``Stanchion`` makes a server of decorated functions;
``Registry`` and ``Server`` are for programs that embed one.

Names are resolved when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stanchion._version import __version__

if TYPE_CHECKING:
    from stanchion.app import Stanchion
    from stanchion.registry.authorizer import Principal, ToolCall, Verdict, allow, ask, deny
    from stanchion.registry.errors import ToolError
    from stanchion.registry.registry import Registry
    from stanchion.runtime import Server
    from stanchion.server.config import Config
    from stanchion.server.context import Context, SyncContext
    from stanchion.server.errors import CallFailed

__all__ = [
    "CallFailed",
    "Config",
    "Context",
    "Principal",
    "Registry",
    "Server",
    "Stanchion",
    "SyncContext",
    "ToolCall",
    "ToolError",
    "Verdict",
    "__version__",
    "allow",
    "ask",
    "deny",
]

_HOMES: Final = {
    "CallFailed": "stanchion.server.errors",
    "Config": "stanchion.server.config",
    "Context": "stanchion.server.context",
    "Principal": "stanchion.registry.authorizer",
    "Registry": "stanchion.registry.registry",
    "Server": "stanchion.runtime",
    "Stanchion": "stanchion.app",
    "SyncContext": "stanchion.server.context",
    "ToolCall": "stanchion.registry.authorizer",
    "ToolError": "stanchion.registry.errors",
    "Verdict": "stanchion.registry.authorizer",
    "allow": "stanchion.registry.authorizer",
    "ask": "stanchion.registry.authorizer",
    "deny": "stanchion.registry.authorizer",
}


def __getattr__(name: str) -> object:
    """Import the module that a public name lives in (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names."""
    return list(__all__)
