"""Lines come out the same however the bytes come in (S1, S13; B04, B06, B07, B09, B10)."""

from __future__ import annotations

import time
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion.wire.codec import Codec
from stanchion.wire.framing import LineSplitter, Overlong
from stanchion.wire.jsonrpc import Malformed, Request

BOM = b"\xef\xbb\xbf"
MIB = 1024 * 1024


def split(*chunks: bytes, limit: int = 100) -> list[bytes | Overlong]:
    splitter = LineSplitter(limit)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return lines + splitter.finish()


def test_a_line_comes_with_its_newline() -> None:
    splitter = LineSplitter(100)
    assert splitter.feed(b"one\ntw") == [b"one"]
    assert splitter.feed(b"o") == []
    assert splitter.feed(b"\nthree\nfour\n") == [b"two", b"three", b"four"]
    assert splitter.finish() == []


def test_a_last_line_without_newline_counts() -> None:
    assert split(b"one\ntwo") == [b"one", b"two"]
    assert split(b"two\r") == [b"two"]
    assert split(b"") == []


def test_carriage_returns_before_newlines_go() -> None:
    """B04."""
    assert split(b"one\r\ntwo\r", b"\n", b"th\rree\r\r\n") == [b"one", b"two", b"th\rree\r"]


def test_blank_lines_are_left_out() -> None:
    assert split(b"\n\r\n  \n\t\none\n\n\n") == [b"one"]


def test_one_byte_order_mark_at_the_start_goes() -> None:
    """B06."""
    assert split(BOM + b"one\n" + BOM + b"two\n") == [b"one", BOM + b"two"]
    assert split(BOM[:1], BOM[1:2], BOM[2:] + b"one", b"\n") == [b"one"]
    assert split(BOM + BOM + b"one\n") == [BOM + b"one"]
    assert split(BOM + b"\n" + BOM) == [BOM]
    assert split(b"\n" + BOM) == [BOM]
    assert split(BOM[:2] + b"\n") == [BOM[:2]]


def test_the_longest_line_allowed_is_allowed() -> None:
    for ending in (b"\n", b"\r\n", b""):
        assert split(b"x" * 100 + ending) == [b"x" * 100]
        assert split(BOM, b"x" * 100, ending) == [b"x" * 100]
        assert split(b"x" * 101 + ending) == [Overlong()]
        assert split(b"x" * 60, b"x" * 41, ending) == [Overlong()]
    assert split(b"x" * 100 + b"\r", b"\n") == [b"x" * 100]
    assert split(b"x" * 100 + b"\r", b"x\n") == [Overlong()]


def test_a_line_too_long_is_told_once_and_early_and_skipped() -> None:
    """B09."""
    splitter = LineSplitter(10)
    assert splitter.feed(b"first\n" + b"x" * 8) == [b"first"]
    assert splitter.feed(b"x" * 8) == [Overlong()]
    assert splitter.feed(b"x" * 8) == []
    assert splitter.feed(b"x" * 8 + b"\nnext\n") == [b"next"]
    assert splitter.feed(b"y" * 11 + b"\nlast") == [Overlong()]
    assert splitter.finish() == [b"last"]
    assert split(b"x" * 30, limit=10) == [Overlong()]


def test_header_lines_are_but_bad_lines() -> None:
    """B07: nothing waits for a number of bytes."""
    good = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    found = [Codec().decode(line) for line in split(b"Content-Length: 60\r\n\r\n" + good + b"\n") if isinstance(line, bytes)]  # fmt: skip
    assert isinstance(found[0], Malformed)
    assert isinstance(found[1], Request)


pieces = st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"bcd", b"\xc3\xa9", b" ", BOM, BOM[:2], b"x" * 9])


@given(st.lists(pieces, max_size=30).map(b"".join), st.data(), st.integers(1, 12))
def test_any_chunking_gives_the_same_lines(stream: bytes, data: st.DataObject, limit: int) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    chunks = [stream[a:b] for a, b in pairwise([0, *cuts, len(stream)])]
    expected: list[bytes | Overlong] = []
    for number, line in enumerate(stream.split(b"\n")):
        bare = (line if number else line.removeprefix(BOM)).removesuffix(b"\r")
        if len(bare) > limit:
            expected.append(Overlong())
        elif bare.strip():
            expected.append(bare)
    assert split(*chunks, limit=limit) == expected
    assert split(*(stream[i : i + 1] for i in range(len(stream))), limit=limit) == expected


def test_a_long_line_takes_time_in_proportion() -> None:
    chunk = b"x" * 65536
    splitter = LineSplitter(16 * MIB)
    started = time.perf_counter()
    for _ in range(255):
        assert splitter.feed(chunk) == []
    assert len(splitter.feed(b"\n")[0]) == 255 * 65536  # type: ignore[arg-type]
    assert time.perf_counter() - started < 2


@pytest.mark.parametrize("chunk", [b"x" * 65536, b"x" * 1024, b"x" * 100_000 + b"\n"])
def test_memory_is_bounded(chunk: bytes) -> None:
    splitter = LineSplitter(64 * 1024)
    tracemalloc.start()
    try:
        for _ in range(2000):
            splitter.feed(chunk)
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()
