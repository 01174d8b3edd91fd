"""Which revision a request speaks, or why it speaks none (checklist §1.4).

Owns the era decision, made per message and never per connection: metadata of the modern kind decides, whatever came
before; else the connection's handshake does. One function from facts to a ``Profile``; total, first failing rung wins.
"""

from __future__ import annotations

from msgspec import UNSET

from stanchion.machines.session import Session
from stanchion.wire.errors import InvalidParams, InvalidRequest, UnsupportedVersion
from stanchion.wire.model import CLIENT_CAPABILITIES, PROTOCOL_VERSION, Meta
from stanchion.wire.revisions import MODERN, MODERN_REVISIONS, NEWEST_HANDSHAKE, PROFILES, Profile

_BEFORE_HANDSHAKE = frozenset({"initialize", "ping"})


def is_modern(meta: Meta | None) -> bool:
    """Whether a request describes itself: then it is handled statelessly, whatever its connection did before."""
    return meta is not None and meta.protocol_version is not UNSET


def classify(method: str, meta: Meta | None, session: Session, *, enforce: bool) -> Profile:
    """The profile that a request is served by.

    Args:
        method: The request's method.
        meta: What its ``_meta`` holds, or None without one.
        session: The handshake of its connection.
        enforce: Whether a handshake is demanded (a transport) or not (a direct caller).

    Raises:
        InvalidParams: Modern metadata that lacks something (B8), or a modern request without any.
        UnsupportedVersion: A revision that is not spoken, or has no self-describing form (B14).
        InvalidRequest: Nothing but ``initialize`` and ``ping`` may come before the handshake.
    """
    if meta is not None and meta.protocol_version is not UNSET:
        return _modern(meta, meta.protocol_version)
    if session.profile is not None:
        return session.profile
    if method in _BEFORE_HANDSHAKE:
        return NEWEST_HANDSHAKE
    if method == "server/discover" or (meta is not None and _has_modern_key(meta)):
        raise InvalidParams(f"params._meta lacks {PROTOCOL_VERSION}")
    if enforce:
        raise InvalidRequest(
            "Not initialized: send initialize first, or describe each request in params._meta"
        )
    return NEWEST_HANDSHAKE


def error_profile(meta: Meta | None, session: Session) -> Profile:
    """The profile by which the refusal of a request that can't be classified is told."""
    if is_modern(meta):
        return MODERN
    return session.profile or NEWEST_HANDSHAKE


def _has_modern_key(meta: Meta) -> bool:
    return not (meta.client_capabilities is UNSET and meta.client_info is UNSET and meta.log_level is UNSET)


def _modern(meta: Meta, requested: str) -> Profile:
    if meta.client_capabilities is UNSET:
        raise InvalidParams(f"params._meta lacks {CLIENT_CAPABILITIES}")
    profile = PROFILES.get(requested)
    if profile is None or not profile.modern:
        raise UnsupportedVersion(requested, MODERN_REVISIONS)
    return profile
