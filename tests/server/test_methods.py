"""The method table, the handlers and the revisions name the same methods."""

from __future__ import annotations

import pytest

from stanchion.server.methods import METHODS
from stanchion.wire.revisions import PROFILES
from tests.server.bench import Bench


def test_each_row_has_its_handler_and_each_handler_its_row() -> None:
    assert set(Bench().kernel._handlers.table) == set(METHODS)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.revision)
def test_what_a_revision_has_is_in_the_table(profile) -> None:
    assert profile.methods <= set(METHODS)


def test_no_row_is_without_a_revision() -> None:
    assert set(METHODS) == frozenset().union(*(profile.methods for profile in PROFILES.values()))


def test_the_table_can_t_be_changed() -> None:
    with pytest.raises(TypeError):
        METHODS["x"] = METHODS["ping"]  # type: ignore[index]
