"""The life of one client's handshake: which revision is spoken, and since when.

Owns three states and what may happen in each:

    state      initialize            initialized   request        closed
    fresh      -> settled(profile)   -             refused (*)    -> gone
    settled    same profile: again   -> heard      -> heard       -> gone
               other profile: error
    heard      as settled            -             -              -> gone

(*) but for ``ping``; and a connection opened with a revision given (a direct caller) starts settled. *Heard* means that
the client has shown that it knows our answer, by ``notifications/initialized`` or by any further request: from then on it
is sent notices. A value and functions; nothing is mutated. Requests that describe themselves (2026-07-28) pass by here.
"""

from __future__ import annotations

from msgspec import Struct, structs

from stanchion.wire.errors import AlreadyInitialized
from stanchion.wire.model import JsonObject, LogLevel
from stanchion.wire.revisions import Profile, negotiate


class Session(Struct, frozen=True):
    """Where one connection's handshake stands."""

    log_level: LogLevel
    profile: Profile | None = None
    """The revision agreed on; None while fresh."""
    heard: bool = False
    """Whether the client has shown that it knows our answer."""
    client_info: JsonObject | None = None


def initialize(session: Session, requested: str, client_info: JsonObject | None) -> Session:
    """Answer ``initialize`` (basic/lifecycle): settle on a revision, or keep the one in use.

    Args:
        session: Before.
        requested: The revision that the client proposes.
        client_info: Who the client says it is.

    Raises:
        AlreadyInitialized: Another revision is in use on this connection (behaviour C8).
    """
    profile = negotiate(requested)
    if session.profile is not None and session.profile is not profile:
        raise AlreadyInitialized(session.profile.revision)
    return structs.replace(session, profile=profile, client_info=client_info)


def hear(session: Session) -> Session:
    """Note that the client knows our answer to its ``initialize``."""
    if session.heard or session.profile is None:
        return session
    return structs.replace(session, heard=True)


def set_level(session: Session, level: LogLevel) -> Session:
    """Note from which level up the client wants log messages (``logging/setLevel``)."""
    return structs.replace(session, log_level=level)
