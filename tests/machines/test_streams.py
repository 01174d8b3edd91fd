"""Windows, streams and ids beside a slow model that keeps everything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stanchion.machines.streams import STANDING, Gap, Resumption, Stream, Streams, Window

MESSAGES, SIZE = 4, 20

datas = st.binary(max_size=15)


class WindowMachine(RuleBasedStateMachine):
    """One stream, a reader that reads when it wants to, and a list of all that was ever sent."""

    def __init__(self) -> None:
        super().__init__()
        self.stream: Stream[str] = Stream(1, Window(MESSAGES, SIZE))
        self.sent: list[bytes] = []
        self.read: list[bytes] = []
        self.broken = False

    @rule(data=datas, ready=st.booleans())
    def append(self, data: bytes, ready: bool) -> None:
        before = self.stream.window.start
        self.sent.append(data)
        assert self.stream.append(data, ready=ready) == len(self.sent)
        if ready:
            assert self.stream.window.start <= max(self.stream.position, before)
        else:
            self.is_bounded()

    def is_bounded(self) -> None:
        window = self.stream.window
        assert len(window) <= MESSAGES
        assert window.held <= SIZE or len(window) == 1

    @precondition(lambda self: not self.broken)
    @rule(most=st.integers(1, 5))
    def take(self, most: int) -> None:
        found = self.stream.read()
        if isinstance(found, Gap):
            assert self.stream.window.start > self.stream.position
            self.broken = True
            return
        assert found == self.sent[self.stream.position - 1 :]
        self.read += found[:most]
        self.stream.advance(len(found[:most]))
        if self.stream.position == self.stream.window.end:
            self.is_bounded()

    @rule(number=st.integers(0, 12))
    def forget(self, number: int) -> None:
        number = min(number, self.stream.position)
        self.stream.window.forget(number)
        assert self.stream.window.start >= min(number, self.stream.window.end)

    @rule()
    def come_anew(self) -> None:
        """A reader without a place of its own goes on as near as it can."""
        self.stream.take("other")
        self.read = self.sent[: self.stream.position - 1]
        self.broken = False

    @invariant()
    def what_was_read_is_the_beginning_of_what_was_sent(self) -> None:
        assert self.read == self.sent[: len(self.read)]

    @invariant()
    def the_newest_are_held(self) -> None:
        window = self.stream.window
        assert window.end == len(self.sent) + 1
        assert window.since(window.start) == self.sent[window.start - 1 :]
        assert window.held == sum(map(len, self.sent[window.start - 1 :]))


TestWindows = WindowMachine.TestCase


def streams(kept: int = 2) -> Streams[str]:
    return Streams("tag", messages=MESSAGES, size=SIZE, kept=kept, unheard=2)


def resumed(found: object) -> tuple[int, int]:
    assert isinstance(found, Resumption)
    return found.stream.number, found.position


def test_an_id_leads_back_to_its_stream_and_place() -> None:
    table = streams()
    one, two = table.open(), table.open()
    for stream, count in ((one, 2), (two, 3)):
        for _ in range(count):
            stream.append(b"x", ready=False)
    for stream, count in ((one, 2), (two, 3)):
        for number in range(count + 1):
            assert resumed(table.resume(table.ident(stream, number))) == (stream.number, number + 1)
    assert resumed(table.resume(table.ident(table.standing, 0))) == (STANDING, 1)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), unique=True))
def test_no_two_events_have_one_id(events: list[tuple[int, int]]) -> None:
    table = streams()
    opened = [table.standing, *(table.open() for _ in range(3))]
    assert len({table.ident(opened[stream], number) for stream, number in events}) == len(events)


@pytest.mark.parametrize(
    "ident",
    [
        "",
        "x",
        "tag",
        "tag-1",
        "tag-1-2",
        "tag-9-0",
        "other-1-0",
        "tag-1-x",
        "tag--1-0",
        "tag-1-²",
        "1-0",
        "tag-1-99",
    ],
)
def test_what_nobody_was_told_is_unknown(ident: str) -> None:
    table = streams()
    table.open().append(b"x", ready=False)
    assert table.resume(ident) is None


@given(st.text(max_size=12))
def test_any_text_is_taken(ident: str) -> None:
    table = streams()
    table.open()
    assert table.resume(ident) is None or ident.startswith("tag-")


def test_what_was_dropped_is_a_gap() -> None:
    table = streams()
    stream = table.open()
    for _ in range(MESSAGES + 2):
        stream.append(b"x", ready=False)
    assert isinstance(table.resume(table.ident(stream, 1)), Gap)
    assert resumed(table.resume(table.ident(stream, 2))) == (stream.number, 3)


def test_ended_streams_are_kept_in_number_and_in_time() -> None:
    table = streams(kept=2)
    opened = [table.open() for _ in range(4)]
    for now, stream in enumerate(opened[:3]):
        table.end(stream, float(now))
    assert isinstance(table.resume(table.ident(opened[0], 0)), Gap)
    assert len(table) == 3
    table.expire(1.0)
    assert isinstance(table.resume(table.ident(opened[1], 0)), Gap)
    assert resumed(table.resume(table.ident(opened[2], 0))) == (3, 1)
    table.drop(opened[3])
    table.drop(opened[3])
    table.expire(9.0)
    assert len(table) == 0


def test_the_newest_reader_wins() -> None:
    stream: Stream[str] = streams().open()
    assert stream.take("a") is None
    stream.append(b"x", ready=True)
    stream.advance(1)
    assert stream.take("b") == "a"
    stream.leave("a")
    assert stream.reader == "b"
    stream.append(b"y", ready=True)
    assert stream.read() == [b"y"]
    stream.take("c", 1)
    assert stream.read() == [b"x", b"y"]
    stream.leave("c")
    assert stream.reader is None


def test_before_it_is_heard_the_standing_stream_holds_little() -> None:
    table = streams()
    for number in range(5):
        table.standing.append(b"%d" % number, ready=False)
    assert table.hear("a") is None
    assert table.standing.read() == [b"3", b"4"]
    table.standing.advance(2)
    table.standing.leave("a")
    for number in range(5, 10):
        table.standing.append(b"%d" % number, ready=False)
    table.hear("b")
    assert table.standing.read() == [b"6", b"7", b"8", b"9"]


def test_a_stream_is_read_once_it_has_ended_and_all_was_taken() -> None:
    stream: Stream[str] = streams().open()
    stream.append(b"x", ready=False)
    stream.ended = True
    assert not stream.is_read
    stream.advance(1)
    assert stream.is_read
