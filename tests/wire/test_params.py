"""What is told of params of the wrong type: where and why, never what was there."""

from __future__ import annotations

import contextlib
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, Struct

from stanchion.wire.codec import Codec, ParamsDecoder
from stanchion.wire.errors import InvalidParams
from stanchion.wire.jsonrpc import Request
from stanchion.wire.model import CallToolParams, CompleteParams, Meta, Params, SetLevelParams


class Inner(Struct):
    number: float
    words: tuple[str, ...] = ()
    table: dict[str, int] | None = None
    flag: bool = False
    short: Annotated[str, msgspec.Meta(max_length=3)] = ""
    keyed: dict[int, str] | None = None


class Outer(Struct):
    inner: Inner
    kind: Literal["a", "b"] = "a"
    ref: int | str | None = None


CASES = [
    (CallToolParams, "{}", "params.name is required"),
    (CallToolParams, '{"name":5}', "params.name must be a string"),
    (CallToolParams, '{"name":"x","arguments":[]}', "params.arguments must be an object or null"),
    (CompleteParams, '{"ref":{"type":"hunter2"},"argument":{}}', "params.ref.type is not one of the values allowed"),
    (CompleteParams, '{"ref":{},"argument":{}}', "params.ref.type is required"),
    (SetLevelParams, '{"level":"hunter2"}', "params.level is not one of the values allowed"),
    (SetLevelParams, '{"level":"hunter2 - at `$.hunter2`"}', "params.level is not one of the values allowed"),
    (Outer, '{"inner":{"number":"1"}}', "params.inner.number must be a number"),
    (Outer, '{"inner":{"number":1e999}}', "params.inner.number is out of range"),
    (Outer, '{"inner":{"number":1,"words":["a",2]}}', "params.inner.words[1] must be a string"),
    (Outer, '{"inner":{"number":1,"table":{"hunter2":"x"}}}', "params.inner.table[...] must be an integer"),
    (Outer, '{"inner":{"number":1,"table":{"hunter2":' + "1" * 5000 + "}}}", "params.inner.table[...] is out of range"),
    (Outer, '{"inner":{"number":1,"flag":null}}', "params.inner.flag must be a boolean"),
    (Outer, '{"inner":{"number":1,"short":"hunter2"}}', "params.inner.short is not valid"),
    (Outer, '{"inner":{"number":1,"keyed":{"hunter2":""}}}', "a key of params.inner.keyed must be an integer"),
    (Outer, '{"inner":{"number":1},"ref":[]}', "params.ref must be an integer or a string or null"),
    (Outer, '{"inner":[]}', "params.inner must be an object"),
    (Outer, "[]", "params must be an object"),
    (Params, "{", "params can't be read"),
    (CallToolParams, '{"name":"x","arguments":' + "[" * 100_000, "params.arguments must be an object or null"),
    (CallToolParams, '{"name":"x","arguments":{"a":' + "[" * 100_000, "params can't be read"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "raw", "text"), CASES)
def test_the_text_says_where_and_why(kind: Any, raw: str, text: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        ParamsDecoder(kind).decode(Raw(raw.encode()))
    assert str(caught.value) == text
    assert "hunter2" not in text
    assert caught.value.__cause__ is None


def test_the_root_can_be_named() -> None:
    with pytest.raises(InvalidParams, match=r"^params\._meta must be an object$"):
        ParamsDecoder(Meta, root="params._meta").decode(Raw(b"[]"))


def test_good_params_become_their_type() -> None:
    found = ParamsDecoder(CallToolParams).decode(Raw(b'{"name":"x","other":1}'))
    assert found == CallToolParams(name="x")


words = st.text(alphabet=st.characters(codec="utf-8"), max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words | st.just("name"), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["inner", "kind", "ref", "name", "_meta"]), values))
def test_whatever_is_a_request_has_params_that_can_be_judged(params: dict[str, object]) -> None:
    line = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "x", "params": params})
    request = Codec().decode(line)
    assert isinstance(request, Request)
    for kind in (Outer, CallToolParams, CompleteParams, dict[str, object]):
        with contextlib.suppress(InvalidParams):
            ParamsDecoder[Any](kind).decode(request.params)
