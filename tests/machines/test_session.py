"""The handshake as a table: every state by every input."""

from __future__ import annotations

import pytest
from msgspec import structs

from stanchion.machines.session import Session, hear, initialize, set_level
from stanchion.wire.errors import AlreadyInitialized
from stanchion.wire.model import LOG_LEVELS
from stanchion.wire.revisions import HANDSHAKE, MODERN, NEWEST_HANDSHAKE, PROFILES

STATES = [
    Session("info"),
    *(
        Session(level, profile, heard, info)
        for profile in PROFILES.values()
        for heard in (False, True)
        for level, info in (("info", None), ("debug", {"name": "before"}))
    ),
]
"""Fresh, settled and heard, in each revision (the modern one is given to ``connect``)."""
PROPOSALS = [*PROFILES, "1999-01-01", "", "2025-06-18 "]
INFO: list[dict[str, object] | None] = [None, {"name": "c"}]


def settles_on(requested: str):
    """Said again, the slow way: what L2 answers."""
    if requested in {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}:
        return PROFILES[requested]
    return PROFILES["2025-11-25"]


@pytest.mark.parametrize("info", INFO)
@pytest.mark.parametrize("requested", PROPOSALS)
@pytest.mark.parametrize("before", STATES)
def test_initialize(before: Session, requested: str, info) -> None:
    wanted = settles_on(requested)
    if before.profile is not None and before.profile != wanted:
        with pytest.raises(AlreadyInitialized) as caught:
            initialize(before, requested, info)
        assert caught.value.code == -32600
        assert caught.value.data == {"protocolVersion": before.profile.revision}
        return
    after = initialize(before, requested, info)
    assert after == Session(before.log_level, wanted, before.heard, info)
    assert not after.profile.modern  # there is no handshake in 2026-07-28


@pytest.mark.parametrize("before", STATES)
def test_hear(before: Session) -> None:
    """A fresh session can't have heard anything; others have, once and for all."""
    after = hear(before)
    assert after.heard == (before.profile is not None)
    assert structs.replace(after, heard=before.heard) == before
    assert hear(after) is after


@pytest.mark.parametrize("level", LOG_LEVELS)
@pytest.mark.parametrize("before", STATES)
def test_set_level(before: Session, level) -> None:
    after = set_level(before, level)
    assert after.log_level == level
    assert structs.replace(after, log_level=before.log_level) == before


def test_states_are_values() -> None:
    before = Session("info")
    initialize(before, "2025-03-26", None)
    hear(before)
    set_level(before, "error")
    assert before == Session("info")
    with pytest.raises(AttributeError):
        before.heard = True  # type: ignore[misc]


def test_an_unknown_proposal_gets_the_newest_handshake_revision() -> None:
    assert initialize(Session("info"), MODERN.revision, None).profile is NEWEST_HANDSHAKE
    assert max(HANDSHAKE) == NEWEST_HANDSHAKE.revision
