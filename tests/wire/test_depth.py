"""Nesting has a bound, and so has the time that any text takes (B15)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from stanchion.wire.codec import Codec
from stanchion.wire.jsonrpc import Malformed, Request
from stanchion.wire.text import is_deeper

CODEC = Codec()
MIB = 1024 * 1024
REQUEST = -32600
NO_ID = UNSET
SILENCE = object()


def decode(text: str | bytes) -> Any:
    return CODEC.decode(text.encode() if isinstance(text, str) else text)


def message(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def told(found: object) -> object:
    """What a malformed message is answered: (code, id), or silence."""
    assert isinstance(found, Malformed), found
    return SILENCE if found.answer is None else (found.answer.error.code, found.answer.id)


def nested(levels: int, *, before: str = '"id":1,"method":"x",', after: str = "") -> str:
    inner = "[" * (levels - 2) + "]" * (levels - 2)
    return '{"jsonrpc":"2.0",' + before + '"params":{"a":' + inner + "}" + after + "}"


def test_the_depth_allowed_is_allowed() -> None:
    assert isinstance(decode(nested(128)), Request)
    assert told(decode(nested(129))) == (REQUEST, 1)
    assert told(decode(nested(129, before='"method":"x",', after=',"id":"last"'))) == (REQUEST, "last")
    assert told(decode(nested(129, before='"method":"x",'))) is SILENCE


@pytest.mark.parametrize("levels", [500, 20_000, 1_000_000])
def test_the_id_is_found_where_clients_write_it(levels: int) -> None:
    assert told(decode(nested(levels))) == (REQUEST, 1)


def test_a_response_that_is_too_deep_is_dropped() -> None:
    for levels in (200, 20_000):
        deep = "[" * levels + "]" * levels
        assert told(decode('{"jsonrpc":"2.0","id":1,"result":' + deep + "}")) is SILENCE


def test_what_may_be_a_request_is_answered_though_the_id_is_out_of_reach() -> None:
    assert told(decode(nested(1_000_000, before='"method":"x",', after=',"id":5'))) == (REQUEST, NO_ID)
    assert told(decode('{"jsonrpc":"2.0","id":{"a":1},"params":' + "[" * 20_000)) == (REQUEST, NO_ID)


def test_a_limit_beyond_what_can_be_read_still_gives_an_answer() -> None:
    codec = Codec(max_depth=1_000_000)
    assert told(codec.decode(nested(100_000).encode())) == (REQUEST, 1)


def test_brackets_in_strings_do_not_count() -> None:
    for text in ("[" * 500, '\\"[' * 500, "\\\\" * 200, "]" * 300 + "[" * 300):
        assert isinstance(decode(message(id=1, method="x", params={"a": text})), Request)


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


tricky = st.text(alphabet='[]{}"\\ab\n', max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | tricky,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(tricky, inner, max_size=4),
    max_leaves=30,
)


@given(values, st.integers(1, 6), st.booleans())
def test_depth_is_counted_exactly(value: object, limit: int, spaced: bool) -> None:
    text = json.dumps(value, indent=1 if spaced else None).encode()
    assert is_deeper(text, limit) == (depth_of(value) > limit)


SIZE = 16 * MIB
ADVERSARIES = {
    "opening brackets": b"[" * SIZE,
    "pairs": b"[]," * (SIZE // 3),
    "valid pairs": b"[" + b"[]," * (SIZE // 3 - 2) + b"1]",
    "saw": b"[[]," * (SIZE // 4),
    "teeth of the depth allowed": (b"[" * 128 + b"]" * 128 + b",") * (SIZE // 257),
    "keys": b'{"a":' * (SIZE // 5),
    "quotes": b'"' * SIZE,
    "strings with brackets": b"[" + b'"[",' * (SIZE // 4 - 1) + b"1]",
    "backslashes": b"\\" * SIZE,
    "backslashes in a string": b'"\\ud800' + b"\\" * (SIZE - 8) + b'"',
    "surrogates": b'["' + b"\\ud800" * (SIZE // 6 - 1) + b'"]',
    "numbers": b"[" + b"1," * (SIZE // 2 - 2) + b"1]",
    "one number": b"1" * SIZE,
    "id": b'{"jsonrpc":"2.0","method":"x","id":' + b"1" * (SIZE - 40) + b"}",
    "members": b"{" + b'"a":1,' * (SIZE // 6 - 2) + b'"a":1}',
    "not UTF-8": b"\xff" * SIZE,
    "spaces": b" " * SIZE,
    "error data": b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"","data":['
    + b"[]," * (SIZE // 3 - 30)
    + b"1]}}",
}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_no_text_takes_long(name: str) -> None:
    started = time.perf_counter()
    CODEC.decode(ADVERSARIES[name])
    assert time.perf_counter() - started < 10
