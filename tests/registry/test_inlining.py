"""References are written out, finitely."""

from __future__ import annotations

import json

import pytest

from stanchion.registry.inlining import MAX_NODES, TooLargeError, inline


def test_references_are_replaced_and_titles_dropped() -> None:
    schema = {
        "title": "Order",
        "type": "object",
        "properties": {
            "title": {"title": "Title", "type": "string"},
            "item": {"$ref": "#/$defs/Item", "description": "which"},
        },
        "$defs": {
            "Item": {
                "title": "Item",
                "type": "object",
                "description": "an item",
                "properties": {"$ref": {"const": {"$ref": "x"}}},
            }
        },
    }
    assert inline(schema) == {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "item": {
                "type": "object",
                "description": "which",
                "properties": {"$ref": {"const": {"$ref": "x"}}},
            },
        },
    }


def test_recursion_ends_in_any_object() -> None:
    schema = {"$ref": "#/$defs/T", "$defs": {"T": {"type": "array", "prefixItems": [{"$ref": "#/$defs/T"}]}}}
    once = {"type": "array", "prefixItems": [{"type": "object"}], "items": {}}
    assert inline(schema) == {"type": "array", "prefixItems": [once], "items": {}}


def test_discriminators_and_dangling_references_go() -> None:
    text = json.dumps(
        inline({"anyOf": [{"$ref": "#/$defs/none"}], "discriminator": {"mapping": {"a": "#/$defs/a"}}})
    )
    assert "$" not in text
    assert "discriminator" not in text


def test_references_that_multiply_are_refused() -> None:
    doubling = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)}
    with pytest.raises(TooLargeError, match=str(MAX_NODES)):
        inline({"$ref": "#/$defs/d0", "$defs": doubling})
