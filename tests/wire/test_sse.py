"""Events as bytes: what is written is read again, however it is cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion.wire.sse import COMMENT, Event, Parser, encode_event

lines = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]))
events = st.tuples(
    lines,
    st.none() | lines,
    st.none() | lines.filter(bool),
    st.none() | st.integers(min_value=0, max_value=10**9),
)


def read(data: bytes, *cuts: int) -> list[Event]:
    parser = Parser()
    places = [0, *sorted(cuts), len(data)]
    return [event for a, b in pairwise(places) for event in parser.feed(data[a:b])]


@given(st.lists(events, max_size=5), st.data())
def test_what_is_written_is_read(
    written: list[tuple[str, str | None, str | None, int | None]], data: st.DataObject
) -> None:
    text = b"".join(
        COMMENT + encode_event(body.encode(), ident=ident, event=event, retry=retry)
        for body, ident, event, retry in written
    )
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6))
    newest: str | None = None
    expected = []
    for body, ident, event, retry in written:
        newest = newest if ident is None else ident
        expected.append(Event(body, event or "message", newest, retry))
    assert read(text, *cuts) == expected


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=6))
def test_where_a_stream_is_cut_makes_no_difference(data: bytes, cuts: list[int]) -> None:
    assert read(data, *(min(cut, len(data)) for cut in cuts)) == read(data)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"data: a\n\n", [Event("a")]),
        (b"data:a\r\n\r\n", [Event("a")]),
        (b"data: a\r\r", [Event("a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [Event("a")]),
        (b"data: a\ndata:  b\ndata\n\n", [Event("a\n b\n")]),
        (b"event: x\ndata: a\n\ndata: b\n\n", [Event("a", "x"), Event("b")]),
        (b"id: 1\ndata:\n\n", [Event("", ident="1")]),
        (b"id: 1\n\ndata: a\n\n", [Event("a", ident="1")]),
        (b"id: \0\ndata: a\n\n", [Event("a")]),
        (b"retry: 5x\nother: y\n: comment\ndata: a\n\n", [Event("a")]),
        (b"data: never ended\n", []),
        (b":\n\n", []),
    ],
)
def test_the_standard_s_cases(data: bytes, expected: list[Event]) -> None:
    assert read(data) == expected


def test_comments_are_counted_and_are_no_events() -> None:
    parser = Parser()
    assert parser.feed(COMMENT * 3) == []
    assert parser.comments == 3


def test_an_event_that_is_too_long_is_left_out_and_the_next_one_read() -> None:
    parser = Parser(max_bytes=100)
    assert parser.feed(b"data: " + b"x" * 50) == []
    for _ in range(100):
        assert parser.feed(b"x" * 50) == []
    assert len(parser._rest) <= 200
    assert parser.feed(b"\n\ndata: a\n\n") == [Event("a")]


def test_each_message_is_one_line_of_data() -> None:
    data = encode_event(b'{"a":1}', ident="s-1-2", event="message", retry=1000)
    assert data == b'event: message\nid: s-1-2\nretry: 1000\ndata: {"a":1}\n\n'
    assert encode_event(b"", ident="s-1-0") == b"id: s-1-0\ndata:\n\n"
