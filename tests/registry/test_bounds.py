"""Raw schemas are valid, closed in themselves and bounded; every fault is told (behaviour F5)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion.registry.bounds import MAX_DEPTH, MAX_FAULTS, MAX_PATTERN, MAX_SUBSCHEMAS, check_schema
from stanchion.registry.validation import DIALECTS, Compiled

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "$ref",
                    "items",
                    "anyOf",
                    "$defs",
                    "pattern",
                    "enum",
                    "x-mcp-header",
                    "$id",
                    "$schema",
                    "required",
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def nest(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


@given(JSON)
def test_a_schema_is_either_told_faulty_or_works(schema: Any) -> None:
    faults = check_schema(schema)
    if not faults:
        Compiled(schema).is_valid({"a": 1})
        assert isinstance(Compiled(schema).faults([1]), tuple)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"$anchor": "b"}, "c": {"$ref": "#b"}},
        },
        {
            "type": "object",
            "$id": "https://example.com/s",
            "properties": {"a": {"$ref": "https://example.com/s#/$defs/x"}},
            "$defs": {"x": {}},
        },
        {"type": "object", "properties": {"$ref": {"type": "string"}, "pattern": {"type": "string"}}},
        {
            "type": "object",
            "properties": {"a": {"default": {"$ref": "http://nowhere"}, "enum": [{"pattern": "("}]}},
        },
        {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "Region"}}},
        {
            "type": "object",
            "properties": {
                "a": {"type": "object", "properties": {"b": {"type": "integer", "x-mcp-header": "B"}}}
            },
        },
        {"type": "object", "allOf": [{"if": {"required": ["a"]}, "then": {"required": ["b"]}}]},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
    ],
)
def test_good_schemas_pass(schema: dict[str, Any]) -> None:
    assert check_schema(schema, arguments=True) == ()


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_supported_dialects_pass(dialect: str) -> None:
    assert check_schema({"$schema": dialect, "type": "object"}, arguments=True) == ()


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (None, "not an object"),
        ([], "not an object"),
        ({}, 'must say "type": "object"'),
        ({"type": "string"}, 'must say "type": "object"'),
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, "properties.a.type"),
        ({"type": "object", "required": "a"}, "required"),
        ({"type": "object", "$schema": "http://json-schema.org/draft-03/schema#"}, "dialect"),
        ({"type": "object", "properties": {"a": {"$schema": "urn:other"}}}, "dialect"),
        ({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1/x"}}}, "never fetched"),
        ({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}, "never fetched"),
        ({"type": "object", "properties": {"a": {"$ref": "other.json#/x"}}}, "never fetched"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}, "points to nothing"),
        ({"type": "object", "properties": {"a": {"$ref": "#none"}}}, "no $anchor"),
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, "regular expression"),
        ({"type": "object", "patternProperties": {"(": {}}}, "regular expression"),
        ({"type": "object", "properties": {"a": {"pattern": "a" * (MAX_PATTERN + 1)}}}, "characters"),
        ({"type": "object"} | nest(MAX_DEPTH + 1), "deep"),
        ({"type": "object", "anyOf": [{} for _ in range(MAX_SUBSCHEMAS + 1)]}, "sub-schemas"),
        ({"type": "object", 3: {}}, "not a string"),
    ],
)
def test_bad_schemas_are_told(schema: Any, words: str) -> None:
    assert any(words in fault for fault in check_schema(schema, arguments=True))


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"a": {"type": "string", "x-mcp-header": ""}}, "token"),
        ({"a": {"type": "string", "x-mcp-header": "a b"}}, "token"),
        ({"a": {"type": "string", "x-mcp-header": "a\r\nb"}}, "token"),
        ({"a": {"type": "string", "x-mcp-header": 3}}, "token"),
        ({"a": {"type": "number", "x-mcp-header": "A"}}, "string, integer or boolean"),
        ({"a": {"x-mcp-header": "A"}}, "string, integer or boolean"),
        (
            {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}},
            "also used",
        ),
        ({"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}, "chain of properties"),
        ({"a": {"anyOf": [{"type": "string", "x-mcp-header": "A"}]}}, "chain of properties"),
    ],
)
def test_header_rules(properties: dict[str, Any], words: str) -> None:
    assert any(
        words in fault for fault in check_schema({"type": "object", "properties": properties}, arguments=True)
    )


def test_a_header_in_a_definition_is_not_reachable() -> None:
    schema = {
        "type": "object",
        "$defs": {"x": {"type": "string", "x-mcp-header": "A"}},
        "properties": {"a": {"$ref": "#/$defs/x"}},
    }
    assert any("chain" in fault for fault in check_schema(schema, arguments=True))
    assert check_schema({"type": "object", "x-mcp-header": "A"}, arguments=True)


def test_all_faults_are_told_up_to_a_bound() -> None:
    two = check_schema(
        {"type": "object", "properties": {"a": {"pattern": "("}, "b": {"$ref": "http://x"}}}, arguments=True
    )
    assert len(two) == 1
    many = check_schema(
        {"type": "object", "properties": {f"p{i}": {"pattern": "("} for i in range(100)}}, arguments=True
    )
    assert len(many) == MAX_FAULTS
