"""Nothing is guessed, nothing is quoted, and text is read as a type only where everything is text (cases H06 to H09)."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import pathlib
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion.registry.arguments import decoder, text_decoder
from stanchion.registry.errors import InvalidArguments, UnderivableSignature
from stanchion.registry.signature import read
from stanchion.registry.tools import Tool


def function_of(kind: Any) -> Any:
    def take(value: Any) -> Any:
        return value

    take.__annotations__ = {"value": kind}
    return take


def built(kind: Any, value: Any) -> Any:
    tool = Tool.of(function_of(kind))
    arguments, faults = tool.prepare({"value": value})
    if faults:
        raise InvalidArguments(faults)
    return tool.call(arguments, None)


def from_text(kind: Any, value: str) -> Any:
    return text_decoder(read(function_of(kind))).build({"value": value})["value"]


@dataclasses.dataclass
class Span:
    start: int
    end: int

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError("end must not be before start")


@dataclasses.dataclass
class Telling:
    secret: str

    def __post_init__(self) -> None:
        raise ValueError(f"bad secret {self.secret}")


class Unspeakable(ValueError):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@dataclasses.dataclass
class Mute:
    a: int

    def __post_init__(self) -> None:
        raise Unspeakable


class First(pydantic.BaseModel):
    kind: Literal["first"]
    a: int


class Second(pydantic.BaseModel):
    kind: Literal["second"]
    b: int


class Strict(pydantic.BaseModel):
    span: Annotated[list[int], pydantic.Field(max_length=2)]

    @pydantic.field_validator("span")
    @classmethod
    def ordered(cls, value: list[int]) -> list[int]:
        if value != sorted(value):
            raise ValueError("must be ascending")
        return value


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class One:
    a: int


@dataclasses.dataclass
class Two:
    b: int


@given(
    st.text(st.characters(exclude_categories=["Cs"]))
    | st.sampled_from(["123", "true", "null", '{"a":1}', "[1]", "1e5", "NaN", ""])
)
def test_a_text_stays_a_text(value: str) -> None:
    for kind in (str, str | None, int | str, Annotated[str, "x"], dt.date | str):
        assert built(kind, value) == value


@pytest.mark.parametrize(
    "kind", [int, int | None, list[int], One, dict[str, int], int | str, tuple[int, str]]
)
@pytest.mark.parametrize("number", [1, 1.0])
def test_a_number_without_fraction_is_an_int(kind: Any, number: float) -> None:
    wrap: dict[Any, Any] = {
        list[int]: [number],
        One: {"a": number},
        dict[str, int]: {"k": number},
        tuple[int, str]: [number, "x"],
    }
    found = built(kind, wrap.get(kind, number))
    inner = (
        found.a
        if isinstance(found, One)
        else next(iter(found.values()))
        if isinstance(found, dict)
        else found
    )
    inner = inner[0] if isinstance(inner, list | tuple) else inner
    assert inner == 1
    assert type(inner) is int


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, True),
        (int, 1.5),
        (int, "1"),
        (bool, "false"),
        (bool, 1),
        (bool, 0),
        (str, 5),
        (str, None),
        (list[int], "[1]"),
        (float, "1"),
    ],
)
def test_nothing_is_coerced(kind: Any, value: Any) -> None:
    with pytest.raises(InvalidArguments):
        built(kind, value)


def test_an_int_for_a_float_is_a_float() -> None:
    assert type(built(float, 3)) is float


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        (One | Two, {"b": 1}, Two(1)),
        (list[One | Two], [{"a": 1}, {"b": 2}], [One(1), Two(2)]),
        (dict[str, One | Two], {"k": {"b": 1}}, {"k": Two(1)}),
        (tuple[One | Two, int], [{"a": 1}, 2], (One(1), 2)),
        (First | Second, {"kind": "second", "b": 2}, Second(kind="second", b=2)),
        (list[First], [{"kind": "first", "a": 1}], [First(kind="first", a=1)]),
        (dt.date | str, "x", "x"),
        (dt.date | int, "2020-01-02", dt.date(2020, 1, 2)),
        (pathlib.Path | None, "a/b", pathlib.Path("a/b")),
        (set[int], [1, 1, 2], {1, 2}),
        (dict[int, str], {"1": "a"}, {1: "a"}),
        (Literal[True], True, True),
        (list[Literal["a", 1] | None], ["a", 1, None], ["a", 1, None]),
        (Annotated[int, pydantic.AfterValidator(lambda v: v + 1)], 1, 2),
        (Strict, {"span": [1, 2]}, Strict(span=[1, 2])),
    ],
)
def test_types_are_built(kind: Any, value: Any, found: Any) -> None:
    assert built(kind, value) == found


@pytest.mark.parametrize(
    ("kind", "value", "path", "words"),
    [
        (Span, {"start": 2, "end": 1}, "value", "end must not be before start"),
        (list[Span], [{"start": 1, "end": 2}, {"start": 2, "end": 1}], "value[1]", "end must not be before"),
        (Telling, {"secret": "hunter2"}, "value", "is not accepted"),
        (Strict, {"span": [2, 1]}, "value.span", "must be ascending"),
        (dt.datetime, "yesterday", "value", "is not accepted"),
        (dict[str, dt.date], {"k": "hunter2"}, "value", "is not accepted"),
        (pathlib.Path, "a\x00b", "value", "must be a path"),
    ],
)
def test_the_authors_types_refuse_in_the_authors_words_if_those_quote_nothing(
    kind: Any, value: Any, path: str, words: str
) -> None:
    with pytest.raises(InvalidArguments) as caught:
        built(kind, value)
    (fault,) = caught.value.faults
    assert fault.path == path
    assert words in fault.message
    assert "hunter2" not in fault.message


def test_all_refused_arguments_are_named() -> None:
    def tool(a: dt.date, b: dt.date, c: dt.date = dt.date(2020, 1, 1)) -> None: ...

    tool.__annotations__ |= {"a": dt.date, "b": dt.date, "c": dt.date}
    with pytest.raises(InvalidArguments) as caught:
        Tool.of(tool).call({"a": "x", "b": "y"}, None)
    assert [fault.path for fault in caught.value.faults] == ["a", "b"]


def test_an_error_that_is_no_refusal_passes_through() -> None:
    def explode(_value: int) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        built(Annotated[int, pydantic.AfterValidator(explode)], 1)


def test_a_refusal_without_words_passes_through_as_a_failure() -> None:
    with pytest.raises(RuntimeError, match="no words"):
        built(Mute, {"a": 1})


@dataclasses.dataclass
class Untagged:
    inner: One | Two


def test_a_type_that_cannot_be_built_is_refused_at_registration() -> None:
    with pytest.raises(UnderivableSignature, match="tags"):
        decoder(read(function_of(Untagged)))


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        (str, "123", "123"),
        (str | None, "null", "null"),
        (Any, "1", "1"),
        (int | str, "1", "1"),
        (int, "12", 12),
        (float, "1.5", 1.5),
        (bool, "true", True),
        (int | None, "3", 3),
        (dt.date, "2020-01-02", dt.date(2020, 1, 2)),
        (Colour, "red", Colour.RED),
        (Literal["a", 1, True], "1", 1),
        (Literal["a", 1, True], "true", True),
        (pathlib.Path, "a/b", pathlib.Path("a/b")),
    ],
)
def test_text_is_read_as_the_type_asked_for(kind: Any, text: str, found: Any) -> None:
    made = from_text(kind, text)
    assert made == found
    assert type(made) is type(found)


@pytest.mark.parametrize(
    ("kind", "text"),
    [(int, "x"), (int, "1.5"), (bool, "maybe"), (Colour, "hunter2"), (Literal["a"], "hunter2")],
)
def test_text_that_is_no_such_thing_is_refused(kind: Any, text: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        from_text(kind, text)
    assert text not in str(caught.value).replace("not accepted", "")


@pytest.mark.parametrize("kind", [list[int], dict[str, int], list, set[str]])
def test_containers_cannot_be_read_from_text(kind: Any) -> None:
    with pytest.raises(UnderivableSignature, match="split"):
        text_decoder(read(function_of(kind)))


def test_the_dict_given_is_not_changed() -> None:
    given_arguments = {"value": "2020-01-02"}
    decoder(read(function_of(dt.date))).build(given_arguments)
    assert given_arguments == {"value": "2020-01-02"}


def test_plain_types_need_no_step() -> None:
    assert decoder(read(function_of(str))).steps == ()
    assert msgspec.structs.asdict(decoder(read(function_of(str)))) == {"steps": ()}
