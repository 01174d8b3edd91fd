"""What is written: one line whatever a value holds, and an answer even when there is none to give."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from stanchion.wire.codec import Codec, encode_value
from stanchion.wire.jsonrpc import ErrorObject, Failure, Notification, Request, Response

CODEC = Codec()


def test_one_compact_line() -> None:
    assert CODEC.encode(Response(1, {"a": "x\ny\r"})) == b'{"jsonrpc":"2.0","id":1,"result":{"a":"x\\ny\\r"}}'
    assert (
        CODEC.encode(Request("a", "roots/list"))
        == b'{"jsonrpc":"2.0","id":"a","method":"roots/list","params":{}}'
    )
    assert (
        CODEC.encode(Notification("n", Raw(b'{"b":1}'))) == b'{"jsonrpc":"2.0","method":"n","params":{"b":1}}'
    )


def test_an_id_that_could_not_be_read_is_left_out_or_null() -> None:
    error = ErrorObject(-32700, "no")
    assert CODEC.encode(Failure(UNSET, error)) == b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}'
    assert (
        CODEC.encode(Failure(None, error))
        == b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}'
    )


def test_a_batch_is_answered_by_an_array() -> None:
    line = CODEC.encode((Response(1, {}), Failure(2, ErrorObject(-1, "x"))))
    assert [part["id"] for part in json.loads(line)] == [1, 2]


@pytest.mark.parametrize("raw", [b'{\n "a": [1,\r\n 2]\n}', b'{"a":[1,2]}', b"{\r}"])
def test_raw_parts_cannot_break_the_line(raw: bytes) -> None:
    """S1."""
    line = CODEC.encode(Response(1, {"part": Raw(raw), "text": "two\nlines"}))
    assert b"\n" not in line
    assert b"\r" not in line
    assert json.loads(line)["result"] == {"part": json.loads(raw), "text": "two\nlines"}


class Part(msgspec.Struct, frozen=True, rename="camel"):
    some_text: str
    more: object = UNSET


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("\ud800", "\ufffd"),
        ("a\udcffb\ud83d\ude00", "a\ufffdb\U0001f600"),
        ({"\udc00": ["\udc00", ("\ud800",), {"x": 1.5, "y": None, "z": True}]}, {"\ufffd": ["\ufffd", ["\ufffd"], {"x": 1.5, "y": None, "z": True}]}),
        (Part("\ud800", Raw(b'{"a":1}')), {"someText": "\ufffd", "more": {"a": 1}}),
        (Part("\ud800"), {"someText": "\ufffd"}),
        ([b"\xff", "\ud800"], ["/w==", "\ufffd"]),
        ({"\ud800"}, ["\ufffd"]),
    ],
)  # fmt: skip
def test_surrogates_are_replaced_wherever_they_are(value: object, sent: object) -> None:
    """B14."""
    assert json.loads(CODEC.encode(Response(1, {"v": value})))["result"] == {"v": sent}
    assert json.loads(CODEC.encode(Failure(1, ErrorObject(-1, "\udfff", {"v": value}))))["error"] == {
        "code": -1,
        "message": "\ufffd",
        "data": {"v": sent},
    }
    assert json.loads(bytes(encode_value(value))) == sent


def circle() -> list[object]:
    loop: list[object] = ["\ud800"]
    loop.append(loop)
    return loop


HOPELESS = {
    "object": object(),
    "key": {(1, 2): 3},
    "circle": circle(),
    "number": 10**5000,
    "half": Raw(b"{\n"),
    "both": ["\ud800", object()],
    "deep": {1: {"\ud800": object()}},
}


@pytest.mark.parametrize("name", HOPELESS)
def test_an_answer_that_cannot_be_encoded_is_an_error(name: str) -> None:
    value = HOPELESS[name]
    line = CODEC.encode(Response("q", {"v": value}))
    assert json.loads(line) == {
        "jsonrpc": "2.0",
        "id": "q",
        "error": {"code": -32603, "message": "The result could not be encoded"},
    }
    failure = CODEC.encode(Failure("q", ErrorObject(-5, "why\ud800", {"v": value})))
    assert json.loads(failure)["error"] == {"code": -5, "message": "why\ufffd"}
    batch = json.loads(CODEC.encode((Response(1, {}), Response(2, value))))
    assert ["error" in part for part in batch] == [False, True]


@given(
    st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_any_text_can_be_sent(value: object) -> None:
    line = CODEC.encode(Response(1, {"v": value}))
    assert "result" in json.loads(line)
    assert isinstance(CODEC.decode(line), Response)


idents = st.integers() | st.text(alphabet=st.characters(codec="utf-8"), max_size=9)
texts = st.text(alphabet=st.characters(codec="utf-8"), max_size=9)
raws = st.dictionaries(texts, texts | st.integers(), max_size=3).map(
    lambda value: Raw(msgspec.json.encode(value))
)
codes = st.integers(-40000, 40000)
whole = st.one_of(
    st.builds(Request, idents, texts, raws),
    st.builds(Notification, texts, raws),
    st.builds(Response, idents, raws),
    st.builds(Failure, idents, st.builds(ErrorObject, codes, texts, raws | st.just(UNSET))),
)


@given(whole)
def test_what_is_encoded_is_decoded_again(sent: Any) -> None:
    line = CODEC.encode(sent)
    found = CODEC.decode(line)
    assert type(found) is type(sent)
    assert CODEC.encode(found) == line  # type: ignore[arg-type]
    assert json.loads(line)["jsonrpc"] == "2.0"
