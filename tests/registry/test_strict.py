"""Strict JSON or a sentence; never a silent null, never the value itself."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import json
import pathlib
import threading
import types
import uuid
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion.registry.errors import Unrenderable
from stanchion.registry.strict import MAX_DIGITS, clean, encode, plain

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(ANY_TEXT | st.integers() | st.none() | st.booleans(), inner, max_size=4)
    ),
    max_leaves=15,
)


def no_constant(name: str) -> Any:
    raise AssertionError(name)


def finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list):
        return all(map(finite, value))
    return not isinstance(value, float) or value - value == 0


@given(JSON)
def test_every_value_is_strict_json_or_refused(value: Any) -> None:
    try:
        text = encode(value)
    except Unrenderable as error:
        told = str(error)
        assert "\n" not in told
        assert not finite(value) or "two keys" in told
        return
    assert finite(value)
    decoded = json.loads(text.decode(), parse_constant=no_constant)
    assert msgspec.json.decode(text) == decoded


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        lambda i: st.lists(i, max_size=3),
    )
)
def test_what_json_knows_comes_back(value: Any) -> None:
    assert json.loads(encode(value)) == value
    assert plain(value) == value


@given(ANY_TEXT)
def test_cleaning_keeps_whole_characters(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert clean(cleaned) == cleaned
    if not any("\ud800" <= c <= "\udfff" for c in text):
        assert cleaned == text


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    assert json.loads(encode({"a\ud800": ["before \udfff after"]})) == {"a\ufffd": ["before \ufffd after"]}


class Colour(enum.Enum):
    RED = "red"


class Markup(str):
    __slots__ = ()


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Point:
    x: float
    note: str = "\ud800"


class Struct(msgspec.Struct, rename="camel", tag="kind"):
    my_field: float
    unset: int | msgspec.UnsetType = msgspec.UNSET


class Model(pydantic.BaseModel):
    a: dt.date
    b: float = pydantic.Field(default=1.0, alias="bee")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({1: "a", None: "b", "1": "c"}, None),
        (
            {2: "a", None: "b", True: "c", 2.5: "d", Colour.RED: "e"},
            {"2": "a", "null": "b", "true": "c", "2.5": "d", "red": "e"},
        ),
        ({dt.date(2020, 1, 1): 1, None: 2}, {"2020-01-01": 1, "null": 2}),
        ([Point(1.0), {"k": Colour.RED}], [{"x": 1.0, "note": "\ufffd"}, {"k": "red"}]),
        ([Struct(1.0), "\ud800"], [{"type": "kind", "myField": 1.0}, "\ufffd"]),
        (Model(a=dt.date(2020, 1, 2), bee=2), {"a": "2020-01-02", "bee": 2.0}),
        ([Model(a=dt.date(2020, 1, 2)), "\ud800"], [{"a": "2020-01-02", "bee": 1.0}, "\ufffd"]),
        (pathlib.PurePosixPath("a/b"), "a/b"),
        (types.MappingProxyType({"a": 1}), {"a": 1}),
        ({3}, [3]),
        (frozenset({3}), [3]),
        ((1, 2), [1, 2]),
        (b"\x00\xff", "AP8="),
        (decimal.Decimal("1.5"), "1.5"),
        (uuid.UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        (dt.datetime(2020, 1, 2, tzinfo=dt.UTC), "2020-01-02T00:00:00Z"),
        (10**400, 10**400),
        (Markup("x"), "x"),
        ([Markup("x\ud800"), {Markup("k"): None}], ["x\ufffd", {"k": None}]),
        (collections.deque([1]), [1]),
        (range(3), [0, 1, 2]),
        ({"a": 1}.keys(), ["a"]),
        ({"a": 1}.values(), [1]),
        (Level.LOW, 1),
        ({"a": None}, {"a": None}),
    ],
)
def test_values_python_knows(value: Any, found: Any) -> None:
    if found is None:
        with pytest.raises(Unrenderable, match="two keys"):
            encode(value)
        return
    assert json.loads(encode(value)) == found


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
RING: dict[Any, Any] = {None: 1}
RING["self"] = RING


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        {"a": [1.0, float("inf")]},
        Point(float("nan"), "x"),
        Struct(float("-inf")),
        Model.model_construct(a=dt.date(2020, 1, 1), b=float("nan")),
        CIRCLE,
        RING,
        nested(100_000),
        [nested(1_000), "\ud800"],
        object(),
        Point,
        nested,
        threading.Lock(),
        (number for number in range(3)),
        ValueError("hunter2"),
        {(1, 2): 3},
        {object(): 3},
        {float("nan"): 3, None: 1},
        [10 ** (MAX_DIGITS + 10)],
        {"a": {"b": object()}},
    ],
)
def test_what_has_no_json_is_refused_in_a_sentence(value: Any) -> None:
    with pytest.raises(Unrenderable) as caught:
        encode(value)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert "hunter2" not in text
    assert len(text) < 200
