"""The era decision as a table: metadata by session by method by enforcement. Total; the first failing rung wins."""

from __future__ import annotations

import itertools

import pytest
from msgspec import UNSET

from stanchion.machines.classify import classify, error_profile, is_modern
from stanchion.machines.session import Session
from stanchion.wire.errors import InvalidParams, InvalidRequest, McpError, UnsupportedVersion
from stanchion.wire.model import Meta
from stanchion.wire.revisions import MODERN, NEWEST_HANDSHAKE, PROFILES, Profile

NEW = "2026-07-28"
VERSIONS = [UNSET, *PROFILES, "v999.0.0", ""]
CAPABILITIES = [UNSET, {}, {"elicitation": {}}]
INFOS = [UNSET, {}, {"name": "c"}]
LEVELS = [UNSET, "debug"]
TOKENS = [None, 0, ""]
METAS: list[Meta | None] = [
    None,
    *(
        Meta(
            protocol_version=version,
            client_capabilities=capabilities,
            client_info=info,
            log_level=level,
            progress_token=token,
        )
        for version, capabilities, info, level, token in itertools.product(
            VERSIONS, CAPABILITIES, INFOS, LEVELS, TOKENS
        )
    ),
]
SESSIONS = [Session("info"), *(Session("info", profile) for profile in PROFILES.values())]
METHODS = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "logging/setLevel",
    "subscriptions/listen",
    "notifications/initialized",
    "no/such",
    "",
]


def expected(method: str, meta: Meta | None, session: Session, *, enforce: bool) -> Profile | type[McpError]:
    """Checklist §1.4, one line after the other."""
    describes_itself = meta is not None and meta.protocol_version is not UNSET
    if describes_itself:
        if meta.client_capabilities is UNSET:
            return InvalidParams
        return MODERN if meta.protocol_version == NEW else UnsupportedVersion
    if session.profile is not None:
        return session.profile
    if method in ("initialize", "ping"):
        return NEWEST_HANDSHAKE
    if method == "server/discover":
        return InvalidParams
    if meta is not None:
        for key in (meta.client_capabilities, meta.client_info, meta.log_level):
            if key is not UNSET:
                return InvalidParams
    return InvalidRequest if enforce else NEWEST_HANDSHAKE


@pytest.mark.parametrize("enforce", [True, False])
@pytest.mark.parametrize(
    "session", SESSIONS, ids=lambda session: session.profile and session.profile.revision
)
@pytest.mark.parametrize("method", METHODS)
def test_every_combination(method: str, session: Session, enforce: bool) -> None:
    for meta in METAS:
        outcome: Profile | type[McpError]
        try:
            outcome = classify(method, meta, session, enforce=enforce)
        except McpError as error:
            outcome = type(error)
        assert outcome is expected(method, meta, session, enforce=enforce), meta


@pytest.mark.parametrize("session", SESSIONS)
def test_a_refusal_is_told_in_the_dialect_of_whoever_asked(session: Session) -> None:
    for meta in METAS:
        profile = error_profile(meta, session)
        if is_modern(meta):
            assert profile is MODERN
        else:
            assert profile is (session.profile or NEWEST_HANDSHAKE)


def test_the_era_is_decided_by_the_message_and_not_by_the_connection() -> None:
    meta = Meta(protocol_version=NEW, client_capabilities={})
    assert all(classify("ping", meta, session, enforce=True) is MODERN for session in SESSIONS)


def test_an_unsupported_version_is_told_with_those_that_are() -> None:
    with pytest.raises(UnsupportedVersion) as caught:
        classify("ping", Meta(protocol_version="v999.0.0", client_capabilities={}), SESSIONS[0], enforce=True)
    assert caught.value.data == {"supported": [NEW], "requested": "v999.0.0"}


@pytest.mark.parametrize("revision", [name for name in PROFILES if name != NEW])
def test_a_handshake_revision_has_no_self_describing_form(revision: str) -> None:
    with pytest.raises(UnsupportedVersion):
        classify("ping", Meta(protocol_version=revision, client_capabilities={}), SESSIONS[0], enforce=False)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(InvalidParams, match="clientCapabilities"):
        classify("ping", Meta(protocol_version=NEW), SESSIONS[0], enforce=False)
    with pytest.raises(InvalidParams, match="protocolVersion"):
        classify("tools/list", Meta(client_capabilities={}), SESSIONS[0], enforce=False)
