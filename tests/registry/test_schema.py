"""Types become schemas that every client takes, and that let through exactly what the types can be built from."""

from __future__ import annotations

import dataclasses
import importlib.util
import pathlib
import sys
import threading
from typing import Annotated, Any, Literal, NewType, TypedDict, Union

import annotated_types
import msgspec
import pydantic
import pytest
from hypothesis import given
from typing_extensions import TypeAliasType

from stanchion.registry.bounds import check_schema
from stanchion.registry.errors import UnderivableSignature
from stanchion.registry.schema import PROPERTY, default_of, input_schema, output_schema, type_schema
from stanchion.registry.signature import read
from stanchion.registry.tools import Tool

_path = pathlib.Path(__file__).with_name("shapes_for_tests.py")
_spec = importlib.util.spec_from_file_location("shapes_for_tests", _path)
assert _spec is not None
assert _spec.loader is not None
shapes = importlib.util.module_from_spec(_spec)
sys.modules.setdefault("shapes_for_tests", shapes)
_spec.loader.exec_module(shapes)


@given(shapes.typed_values())
def test_what_a_type_can_be_built_from_passes_and_is_built(case: tuple[Any, Any]) -> None:
    kind, value = case
    tool = Tool.of(shapes.function_of(kind))
    arguments, faults = tool.prepare({"value": shapes.as_json(value)})
    assert faults == ()
    assert tool.call(arguments, None) == value


@given(shapes.typed_values())
def test_every_schema_is_what_clients_take(case: tuple[Any, Any]) -> None:
    schema = input_schema(read(shapes.function_of(case[0])))
    assert check_schema(schema, arguments=True) == ()
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert not {"anyOf", "oneOf", "allOf", "enum", "not"} & schema.keys()
    for one in shapes.subschemas(schema):
        assert not {"$ref", "$defs", "title", "$schema"} & one.keys()
        assert one.get("type") != "array" or "items" in one
        assert all(PROPERTY.fullmatch(name) for name in one.get("properties", ()))


@given(shapes.typed_values())
def test_what_goes_out_fits_the_output_schema(case: tuple[Any, Any]) -> None:
    from stanchion.registry.validation import Compiled

    kind, value = case
    schema = type_schema(kind, "output")
    assert Compiled(schema).faults(shapes.as_json(value)) == ()


def test_no_arguments_is_an_object_with_properties() -> None:
    assert input_schema(read(lambda: None)) == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


def test_descriptions_and_defaults_are_shown() -> None:
    def tool(
        a: Annotated[int, "the a", annotated_types.Interval(ge=1, lt=5)],
        b: Annotated[str, pydantic.Field(min_length=2, description="the b", pattern="^x")] = "xx",
        c: Annotated[list[int], annotated_types.Len(1, 3)] = [1],  # noqa: B006
        d: Annotated[int | None, annotated_types.Gt(0)] = None,
        e: shapes.Colour = shapes.Colour.RED,
        f: pathlib.Path = pathlib.Path("x"),
        g: object = object(),
        h: float = float("nan"),
    ) -> None:
        """Do it.

        Args:
            c: the c
        """

    tool.__annotations__["e"], tool.__annotations__["g"] = shapes.Colour, object
    properties = input_schema(read(tool))["properties"]
    assert properties == {
        "a": {"type": "integer", "description": "the a", "minimum": 1, "exclusiveMaximum": 5},
        "b": {"type": "string", "description": "the b", "minLength": 2, "pattern": "^x", "default": "xx"},
        "c": {
            "type": "array",
            "items": {"type": "integer"},
            "minItems": 1,
            "maxItems": 3,
            "description": "the c",
            "default": [1],
        },
        "d": {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "null"}]},
        "e": {"type": "string", "enum": ["red", "green"], "default": "red"},
        "f": {"type": "string", "format": "path", "default": "x"},
        "g": {},
        "h": {"type": "number"},
    }


UserId = NewType("UserId", int)
Alias = TypeAliasType("Alias", list[int])


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (Any, {}),
        (None, {"type": "null"}),
        (UserId, {"type": "integer"}),
        (Alias, {"type": "array", "items": {"type": "integer"}}),
        (list, {"type": "array", "items": {}}),
        (set[int], {"type": "array", "items": {"type": "integer"}}),
        (tuple[()], {"type": "array", "items": {}, "minItems": 0, "maxItems": 0}),
        (tuple[int, int], {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}),
        (dict, {"type": "object"}),
        (dict[str, Any], {"type": "object"}),
        (
            dict[Literal["a"], int],
            {"type": "object", "additionalProperties": {"type": "integer"}, "propertyNames": {"enum": ["a"]}},
        ),
        (Union[int, str, None], {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}),  # noqa: UP007  the older spelling
        (Union[int, Any], {}),  # noqa: UP007  as above
        (Literal[True, "a"], {"enum": [True, "a"]}),
        (
            Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})],
            {"type": "string", "x-mcp-header": "Region"},
        ),
    ],
)
def test_single_types(kind: Any, schema: dict[str, Any]) -> None:
    assert type_schema(kind, "input") == schema


def test_a_recursive_type_ends_in_any_object() -> None:
    schema = type_schema(shapes.Tree, "input")
    inner = schema["properties"]["children"]["items"]["properties"]["children"]["items"]
    assert inner == {"type": "object"}


class Wide(TypedDict):
    a: list[Wide]
    b: list[Wide]
    c: list[Wide]


def test_types_that_multiply_each_other_stay_bounded() -> None:
    assert sum(1 for _ in shapes.subschemas(type_schema(Wide, "input"))) < 100


def test_what_goes_out_is_open_and_whole() -> None:
    schema = type_schema(shapes.Point, "output")
    assert schema["required"] == ["x", "y"]
    assert "additionalProperties" not in schema
    assert schema["description"] == "A point."
    assert type_schema(shapes.Point, "input")["required"] == ["x"]


@pytest.mark.parametrize(
    "kind", [str, list[shapes.Point], dict[str, int], int, None, Any, shapes.Pair, threading.Thread]
)
def test_only_classes_with_fields_promise_an_output(kind: Any) -> None:
    def tool() -> None: ...

    tool.__annotations__["return"] = kind
    assert output_schema(read(tool)) is None


@pytest.mark.parametrize(
    "kind", [shapes.Point, shapes.Options, shapes.Order, shapes.Model, Annotated[shapes.Point, "x"]]
)
def test_classes_with_fields_promise_an_output(kind: Any) -> None:
    def tool() -> None: ...

    tool.__annotations__["return"] = kind
    schema = output_schema(read(tool))
    assert schema is not None
    assert schema["type"] == "object"


@dataclasses.dataclass
class Holder:
    lock: threading.Event


class Renamed(msgspec.Struct, rename={"a": "@type"}):
    a: int


class Unschemed(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    lock: threading.Event


@pytest.mark.parametrize(
    "kind",
    [threading.Event, Holder, dict[bytes, int], dict[int | str, int], Renamed, Unschemed, Literal[b"x"], 5],
)
def test_a_type_without_json_is_refused_with_the_parameter(kind: Any) -> None:
    with pytest.raises(UnderivableSignature) as caught:
        input_schema(read(shapes.function_of(kind)))
    assert "take" in str(caught.value)
    assert "value" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_defaults_that_json_cannot_show_are_left_out() -> None:
    assert default_of(float("inf")) == {}
    assert default_of(object()) == {}
    assert default_of(None) == {}
    assert default_of([1, {"a": shapes.Colour.RED}]) == {"default": [1, {"a": "red"}]}
