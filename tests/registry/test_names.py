"""Names as clients see them."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion.registry.names import (
    LIMIT,
    RENAMINGS,
    Holders,
    check,
    gemini_name,
    is_accepted,
    nearest,
    omp_name,
    roo_name,
    visible_names,
    word_name,
)

ACCEPTED = st.text(string.ascii_letters + string.digits + "_-.", min_size=1, max_size=128)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("s.x_y.click", "s_x_y_click"),
        ("s.x.y.click", "s_x_y_click"),
        ("Raxol", "raxol"),
        ("__a--b__", "a_b"),
        ("...", "tool"),
        ("é", "tool"),
    ],
)
def test_the_first_row_is_the_references(name: str, shown: str) -> None:
    assert omp_name(name) == shown
    assert RENAMINGS[0].rename is omp_name


@pytest.mark.parametrize(
    ("rename", "name", "shown"),
    [
        (word_name, "a.b c-d", "a_b_c-d"),
        (gemini_name, "a.b c", "a.b_c"),
        (gemini_name, "x" * 30 + "y" * 40, "x" * 28 + "___" + "y" * 32),
        (gemini_name, "x" * 63, "x" * 63),
        (roo_name, "a.b", "ab"),
        (roo_name, "a--b", "a-b"),
        (roo_name, "1a", "_1a"),
        (roo_name, "...", "_unnamed"),
    ],
)
def test_rows_do_what_their_sources_do(rename, name: str, shown: str) -> None:
    assert rename(name) == shown


def test_every_row_but_the_first_says_where_it_was_read() -> None:
    for row in RENAMINGS[1:]:
        assert len(row.sources) == len(row.clients)
        assert all(re.search(r"^\S+/\S+ \S+ @[0-9a-f]{40}$", source) for source in row.sources)


@given(ACCEPTED)
def test_the_shortcut_for_plain_names_agrees_with_the_rows(name: str) -> None:
    assert visible_names(name) == tuple(row.rename(name) for row in RENAMINGS)


@given(st.text(max_size=200))
def test_the_nearest_name_is_accepted(name: str) -> None:
    assert is_accepted(nearest(name))
    if is_accepted(name) and not name.startswith("_") and not name.endswith("_"):
        assert nearest(name) == name


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from(["a.b", "a_b", "a-b", "A_b", "ab", "a..b", "b", "a__b"])),
        max_size=30,
    )
)
def test_holders_agree_with_asking_everybody(steps: list[tuple[bool, str]]) -> None:
    holders = Holders()
    held: dict[str, tuple[str, ...]] = {}
    for claiming, name in steps:
        if not claiming:
            if name in held:
                holders.release(name)
                del held[name]
            continue
        mine = visible_names(name)
        clashing = {
            other
            for other, seen in held.items()
            if other != name and any(a == b for a, b in zip(mine, seen, strict=True))
        }
        holder = holders.claim(name)
        assert (holder is None) == (not clashing)
        if holder is None:
            held[name] = mine
        else:
            assert holder in clashing


def test_judgement() -> None:
    assert check("plain_name", strict=True) == (None, ())
    refusal, warnings = check("has space", strict=False)
    assert refusal is not None
    assert "'has_space'" in refusal
    assert not warnings
    for name, words in (("a.b", "dot"), ("x" * (LIMIT + 1), "characters")):
        refusal, warnings = check(name, strict=False)
        assert refusal is None
        assert words in warnings[0]
        refusal, warnings = check(name, strict=True)
        assert refusal is not None
        assert not warnings
    assert check("", strict=False)[0] is not None
    assert check("x" * 129, strict=False)[0] is not None
