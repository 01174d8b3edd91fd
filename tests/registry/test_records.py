"""Classes with fields, read as JSON sees them."""

from __future__ import annotations

import dataclasses
from typing import Annotated, NamedTuple, NotRequired, Required, TypedDict

import msgspec
import pytest

from stanchion.registry.records import is_record, is_tuple, read
from stanchion.registry.signature import MISSING


@dataclasses.dataclass
class Plain:
    """Plain words.

    Attributes:
        a: The a.
    """

    a: int
    b: str = "b"
    c: list[int] = dataclasses.field(default_factory=list)
    hidden: int = dataclasses.field(init=False, default=0)


class Keys(TypedDict, total=False):
    a: Required[int]
    b: Annotated[NotRequired[str], "x"]
    c: int


class Pair(NamedTuple):
    a: int
    b: str = "b"


class Struct(msgspec.Struct, rename="camel", tag_field="kind", tag="s", omit_defaults=True):
    first_name: str
    age: int | msgspec.UnsetType = msgspec.UNSET


class Row(msgspec.Struct, array_like=True):
    a: int


def test_dataclasses() -> None:
    record = read(Plain)
    assert [(f.key, f.required, f.always) for f in record.fields] == [
        ("a", True, True),
        ("b", False, True),
        ("c", False, True),
    ]
    assert record.fields[0].description == "The a."
    assert record.description == "Plain words."
    assert record.fields[1].default == "b"
    assert record.fields[2].default is MISSING


def test_typed_dicts() -> None:
    assert [(f.key, f.required) for f in read(Keys).fields] == [("a", True), ("b", False), ("c", False)]


def test_named_tuples_and_rows_are_arrays() -> None:
    assert [(f.key, f.required) for f in read(Pair).fields] == [("a", True), ("b", False)]
    assert read(Pair).is_tuple
    assert read(Row).is_tuple
    assert read(Pair).description == ""


def test_structs_have_their_names_on_the_wire() -> None:
    record = read(Struct)
    assert [(f.key, f.required, f.always) for f in record.fields] == [
        ("firstName", True, True),
        ("age", False, False),
    ]
    assert record.fields[1].annotation is int
    assert record.tag == ("kind", "s")
    assert record.omits


@pytest.mark.parametrize(
    ("kind", "record"),
    [
        (Plain, True),
        (Keys, True),
        (Pair, True),
        (Struct, True),
        (int, False),
        (list[int], False),
        ("x", False),
    ],
)
def test_what_is_a_record(kind: object, record: bool) -> None:
    assert is_record(kind) is record
    assert is_tuple(kind) is (kind is Pair)
