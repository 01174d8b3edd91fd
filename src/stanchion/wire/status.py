"""The HTTP status of an answer (checklist §1.3).

Owns the one table. The handshake revisions answer whatever was understood with 200; 2026-07-28 has a status for each of its
errors. What is refused before there is an answer (no such path, no such session) is the transport's.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from msgspec import UNSET

from stanchion.wire.errors import (
    HeaderMismatch,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    MissingCapability,
    ParseError,
    UnsupportedVersion,
)
from stanchion.wire.jsonrpc import Answer, Failure
from stanchion.wire.revisions import Profile

OK: Final = 200
BAD_REQUEST: Final = 400
NOT_FOUND: Final = 404

_HANDSHAKE: Final = MappingProxyType({ParseError.code: BAD_REQUEST, InvalidRequest.code: BAD_REQUEST})
_MODERN: Final = MappingProxyType(
    {
        **_HANDSHAKE,
        MethodNotFound.code: NOT_FOUND,
        HeaderMismatch.code: BAD_REQUEST,
        MissingCapability.code: BAD_REQUEST,
        UnsupportedVersion.code: BAD_REQUEST,
    }
)


def status_of(answer: Answer | tuple[Answer, ...], profile: Profile) -> int:
    """The status that goes with an answer, as long as none of it was sent.

    Args:
        answer: To one request, or to a batch.
        profile: The revision that it was asked in.
    """
    if not isinstance(answer, Failure):
        return OK
    error = answer.error
    if not profile.modern:
        return _HANDSHAKE.get(error.code, OK)
    if error.code == InvalidParams.code:
        # A well-formed request for something that is not there has data that names it; all else is malformed.
        return BAD_REQUEST if error.data is UNSET else OK
    return _MODERN.get(error.code, OK)
