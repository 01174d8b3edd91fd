"""The HTTP status of each kind of answer, by revision."""

from __future__ import annotations

import pytest

from stanchion.wire import errors
from stanchion.wire.jsonrpc import Response
from stanchion.wire.revisions import HANDSHAKE, MODERN, PROFILES
from stanchion.wire.status import status_of

CASES = [
    (errors.ParseError(""), 400, 400),
    (errors.InvalidRequest(""), 400, 400),
    (errors.AlreadyInitialized("x"), 400, 400),
    (errors.MethodNotFound("x"), 200, 404),
    (errors.InvalidParams(""), 200, 400),
    (errors.UnknownTool("x"), 200, 200),
    (errors.UnknownPrompt("x"), 200, 200),
    (errors.ResourceNotFound("x"), 200, 200),
    (errors.InternalError(""), 200, 200),
    (errors.Refused("", {}), 200, 200),
    (errors.HeaderMismatch(""), 200, 400),
    (errors.MissingCapability({}), 200, 400),
    (errors.UnsupportedVersion("x", []), 200, 400),
]


@pytest.mark.parametrize(("error", "handshake", "modern"), CASES, ids=lambda one: type(one).__name__)
def test_each_error_has_its_status(error: errors.McpError, handshake: int, modern: int) -> None:
    assert status_of(MODERN.failure(1, error), MODERN) == modern
    for profile in HANDSHAKE.values():
        assert status_of(profile.failure(1, error), profile) == handshake


def test_each_error_there_is_has_a_row() -> None:
    def below(kind: type) -> set[type]:
        return {one for sub in kind.__subclasses__() for one in {sub, *below(sub)}}

    named = {kind for kind in below(errors.McpError) if kind.__module__ == errors.__name__}
    assert {type(error) for error, _, _ in CASES} == named


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_results_and_batches_are_fine(profile: object) -> None:
    answer = Response(1, {})
    assert status_of(answer, profile) == 200  # type: ignore[arg-type]
    assert status_of((answer, MODERN.failure(1, errors.ParseError(""))), profile) == 200  # type: ignore[arg-type]
