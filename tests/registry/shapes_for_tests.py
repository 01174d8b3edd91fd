"""Types and values of them, for property tests: what a client may send for a parameter of that type."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import uuid
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

import msgspec
import pydantic
from hypothesis import strategies as st

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    """A point.

    Attributes:
        x: Across.
    """

    x: int
    y: float = 0.0


@dataclasses.dataclass
class Tree:
    value: int
    children: list[Tree] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Box(Generic[T]):
    held: T


class Options(TypedDict):
    name: str
    size: NotRequired[int]


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Order(msgspec.Struct, rename="camel"):
    order_id: str
    line_count: Annotated[int, msgspec.Meta(ge=0)] = 1


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    name: str


class Model(pydantic.BaseModel):
    a: int
    b: str = pydantic.Field(default="b", description="The b.", min_length=1)
    parent: Model | None = None


SMALL = st.integers(-(2**53), 2**53)
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
DATES = st.datetimes(timezones=st.just(dt.UTC))

LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, SMALL),
    (str, TEXT),
    (float, FLOATS),
    (bool, st.booleans()),
    (bytes, st.binary(max_size=8)),
    (dt.datetime, DATES),
    (dt.date, st.dates()),
    (dt.timedelta, st.timedeltas(min_value=dt.timedelta(0), max_value=dt.timedelta(days=99))),
    (uuid.UUID, st.uuids()),
    (decimal.Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=3)),
    (PurePosixPath, TEXT.filter(lambda t: "\x00" not in t).map(PurePosixPath)),
    (Colour, st.sampled_from(Colour)),
    (Level, st.sampled_from(Level)),
    (Literal["a", "b", 3], st.sampled_from(["a", "b", 3])),
    (Point, st.builds(Point, SMALL, FLOATS)),
    (
        Tree,
        st.recursive(
            st.builds(Tree, SMALL),
            lambda inner: st.builds(Tree, SMALL, st.lists(inner, max_size=2)),
            max_leaves=4,
        ),
    ),
    (Box[int], st.builds(Box, SMALL)),
    (Pair, st.builds(Pair, SMALL, TEXT)),
    (Order, st.builds(Order, TEXT, st.integers(0, 9))),
    (Cat | Dog, st.one_of(st.builds(Cat, SMALL), st.builds(Dog, TEXT))),
    (Model, st.builds(Model, a=SMALL, b=TEXT.filter(bool), parent=st.none())),
    (Options, st.fixed_dictionaries({"name": TEXT}, optional={"size": SMALL})),
    (Annotated[int, msgspec.Meta(ge=-5, le=5), "bounded"], st.integers(-5, 5)),
]


def _lists(case: tuple[Any, st.SearchStrategy[Any]]) -> list[tuple[Any, st.SearchStrategy[Any]]]:
    kind, values = case
    return [
        (list[kind], st.lists(values, max_size=3)),
        (dict[str, kind], st.dictionaries(TEXT, values, max_size=3)),
        (tuple[kind, ...], st.lists(values, max_size=3).map(tuple)),
        (tuple[int, kind], st.tuples(SMALL, values)),
        (kind | None, st.one_of(st.none(), values)),
    ]


@st.composite
def typed_values(draw: st.DrawFn) -> tuple[Any, Any]:
    """A type, and a value of it."""
    case = draw(st.sampled_from(LEAVES))
    for _ in range(draw(st.integers(0, 2))):
        case = draw(st.sampled_from(_lists(case)))
    kind, values = case
    return kind, draw(values)


def as_json(value: Any) -> Any:
    """*value* as a client sends it: what a JSON decoder gives."""

    def known(inner: Any) -> Any:
        if isinstance(inner, PurePosixPath):
            return str(inner)
        assert isinstance(inner, pydantic.BaseModel)
        return inner.model_dump(mode="json")

    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=known))


def subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema within *schema*, itself included."""
    if isinstance(schema, Mapping):
        yield dict(schema)
        for key, inner in schema.items():
            if key == "properties":
                for one in inner.values():
                    yield from subschemas(one)
            elif key not in {"default", "enum", "const", "examples"}:
                yield from subschemas(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from subschemas(inner)


def function_of(kind: Any) -> Any:
    """A function with one parameter of that type, which returns it."""

    def take(value: Any) -> Any:
        return value

    take.__annotations__ = {"value": kind}
    return take
