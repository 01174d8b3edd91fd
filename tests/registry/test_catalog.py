"""Catalogs page without memory: a cursor survives other changes and other instances."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion.registry.catalog import Catalog
from stanchion.wire.errors import InvalidParams

KEYS = st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=30)


def catalog(keys: list[str], places: list[int] | None = None) -> Catalog[str]:
    return Catalog(
        {key: key.upper() for key in keys}, dict(zip(keys, places or range(len(keys)), strict=True))
    )


def walk(entries: Catalog[str], size: int) -> list[str]:
    found, cursor = [], None
    while True:
        page = entries.page(cursor, size)
        found.extend(page.items)
        cursor = page.next_cursor
        if cursor is None:
            return found


@given(KEYS, st.integers(1, 7))
def test_pages_are_the_whole_in_order(keys: list[str], size: int) -> None:
    entries = catalog(keys)
    assert walk(entries, size) == [key.upper() for key in keys] == list(entries)
    assert len(entries) == len(keys)
    assert all(entries.get(key) == key.upper() and key in entries for key in keys)


@given(KEYS, KEYS, st.sets(st.integers(0, 29)), st.integers(1, 7))
def test_changes_between_pages_neither_repeat_nor_skip_what_stays(
    keys: list[str], added: list[str], removed: set[int], size: int
) -> None:
    first = catalog(keys)
    page = first.page(None, size)
    stay = [key for i, key in enumerate(keys) if i not in removed]
    fresh = [key for key in added if key not in keys]
    places = [i for i in range(len(keys)) if i not in removed] + [100 + i for i in range(len(fresh))]
    later = catalog(stay + fresh, places)
    seen = list(page.items)
    cursor = page.next_cursor
    while cursor is not None:
        page = later.page(cursor, size)
        seen.extend(page.items)
        cursor = page.next_cursor
    assert len(seen) == len(set(seen))
    assert {key.upper() for key in stay} <= set(seen)


@given(KEYS, st.integers(1, 7), st.integers(1, 50))
def test_a_cursor_works_on_an_instance_with_another_history(keys: list[str], size: int, gap: int) -> None:
    here = catalog(keys)
    there = catalog(keys, [gap * (i + 1) for i in range(len(keys))])
    cursor = here.page(None, size).next_cursor
    if cursor is not None:
        assert there.page(cursor, 100).items == here.page(cursor, 100).items


@given(
    st.one_of(
        st.text(max_size=40), st.binary(max_size=20).map(lambda b: base64.urlsafe_b64encode(b).decode())
    )
)
def test_what_was_not_given_out_is_invalid(cursor: str) -> None:
    entries = catalog(["a", "b", "c"])
    if cursor in {entries.page(None, 1).next_cursor, entries.page(None, 2).next_cursor}:
        return
    with pytest.raises(InvalidParams, match=r"^Invalid cursor$"):
        entries.page(cursor, 1)


@pytest.mark.parametrize("cursor", ["", "bogus-cursor", "\ud800", "é", "A" * 10_000, "W10", "WzAsImEiXQ=="])
def test_odd_cursors_are_invalid(cursor: str) -> None:
    with pytest.raises(InvalidParams):
        catalog(["a", "b"]).page(cursor, 1)


def test_the_last_page_has_no_cursor() -> None:
    assert catalog([]).page(None, 3).next_cursor is None
    assert catalog(["a", "b", "c"]).page(None, 3).next_cursor is None
    assert catalog(["a", "b", "c"]).page(None, 2).next_cursor is not None


def test_a_place_tells_a_replaced_entry_from_a_new_one() -> None:
    entries = catalog(["a", "b"], [4, 9])
    assert (entries.place("a"), entries.place("b"), entries.place("c")) == (4, 9, None)
    assert list(entries.keys()) == ["a", "b"]
