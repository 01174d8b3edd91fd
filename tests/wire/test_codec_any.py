"""Whatever comes in, the codec returns something sound."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from stanchion.wire.codec import Codec
from stanchion.wire.jsonrpc import (
    Batch,
    Failure,
    Malformed,
    Notification,
    Request,
    Response,
)

CODEC = Codec()


def message(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


GOOD = [
    message(id=1, method="tools/call", params={"name": "x", "arguments": {"text": "caf\u00e9 \U0001f600"}}),
    message(method="notifications/cancelled", params={"requestId": 1}),
    message(id="a", result={"action": "accept", "content": {}}),
    message(id=5, error={"code": -32000, "message": "no"}),
    b"[" + message(id=1, method="ping") + b"," + message(id=2, method="ping") + b"]",
]


def check(found: object) -> None:
    """What holds for whatever the codec returns."""
    match found:
        case Batch(items):
            assert 0 < len(items) <= 100
            for item in items:
                assert not isinstance(item, Batch)
                check(item)
        case Request(ident, method, params):
            assert type(ident) in {int, str}
            assert type(method) is str
            assert isinstance(json.loads(bytes(params)), dict)
        case Notification(method, params):
            assert type(method) is str
            assert isinstance(json.loads(bytes(params)), dict)
        case Response(ident, result):
            assert type(ident) in {int, str}
            assert isinstance(result, Raw)
        case Failure(ident, error):
            assert type(ident) in {int, str}
            assert type(error.code) is int
        case Malformed(answer):
            if answer is not None:
                assert answer.id is UNSET or type(answer.id) in {int, str}
                json.loads(CODEC.encode(answer))
        case _:
            pytest.fail(f"{found!r}")


@given(st.binary(max_size=200))
def test_any_bytes_get_an_answer(data: bytes) -> None:
    check(CODEC.decode(data))


@given(st.data())
def test_any_damage_gets_an_answer(data: st.DataObject) -> None:
    line = bytearray(data.draw(st.sampled_from(GOOD)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(line)))
        cut = data.draw(st.integers(0, 3))
        line[at : at + cut] = data.draw(
            st.binary(max_size=3)
            | st.sampled_from([b'"', b"{", b"[", b"}", b"]", b",", b":", b"null", b"\\ud800"])
        )
    check(CODEC.decode(bytes(line)))


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
names = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"])
members = st.dictionaries(names, st.just("2.0") | anything, max_size=6)


@given(anything | members | st.lists(members, max_size=4), st.booleans())
def test_any_json_gets_an_answer(value: object, escaped: bool) -> None:
    text = json.dumps(value, ensure_ascii=escaped).encode("utf-8", "surrogatepass")
    check(CODEC.decode(text))


@given(members)
def test_only_what_the_rules_allow_is_a_request(value: dict[str, object]) -> None:
    found = CODEC.decode(json.dumps(value).encode())
    ident = value.get("id")
    sound = type(ident) is int or (
        isinstance(ident, str)
        and ident.encode("utf-16", "surrogatepass").decode("utf-16", "replace") == ident
    )
    fits = (
        value.get("jsonrpc") == "2.0"
        and isinstance(value.get("method"), str)
        and isinstance(value.get("params", {}), dict | None)
        and not {"result", "error"} & value.keys()
    )
    if isinstance(found, Request):
        assert fits
        assert sound
    elif fits and sound:
        assert isinstance(found, Malformed)
        assert found.reason == "The message holds an unpaired surrogate"
