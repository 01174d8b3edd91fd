"""What an ``Annotated`` adds to a type: a description, bounds, a pattern.

Owns the translation into JSON Schema keywords of ``msgspec.Meta``, of ``annotated_types`` and of pydantic's ``Field``.
The latter two are recognised by their attributes, so neither library is imported. Does not own the types themselves
(``registry.schema``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

_NUMBERS: Final = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
}
_LENGTHS: Final = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_NUMERIC: Final = frozenset({"integer", "number"})


def apply(schema: dict[str, Any], extras: Iterable[object]) -> dict[str, Any]:
    """*schema* with what *extras* of an ``Annotated`` say.

    A bound on a union goes to those of its members that it makes sense for. Extras of other kinds say nothing here.
    """
    for extra in extras:
        if isinstance(extra, str):
            schema = {**schema, "description": extra}
            continue
        schema = _words(schema, extra)
        # pydantic's Field keeps its bounds in a list of annotated_types.
        for part in (extra, *_list(getattr(extra, "metadata", None))):
            schema = _bound(schema, part)
    return schema


def _words(schema: dict[str, Any], extra: object) -> dict[str, Any]:
    added: dict[str, Any] = {}
    text = getattr(extra, "description", None) or getattr(extra, "documentation", None)
    if isinstance(text, str) and text:
        added["description"] = text
    if isinstance(extra, msgspec.Meta):
        if extra.title:
            added["title"] = extra.title
        if extra.examples:
            added["examples"] = list(extra.examples)
        added |= extra.extra_json_schema or {}
    elif isinstance(examples := getattr(extra, "examples", None), list):
        added["examples"] = examples
    return {**schema, **added} if added else schema


def _bound(schema: dict[str, Any], part: object) -> dict[str, Any]:
    """Add the bounds of one object, whichever attributes it has."""
    members = schema.get("anyOf")
    if isinstance(members, list):
        return {**schema, "anyOf": [_bound(member, part) for member in members]}
    kind = schema.get("type")
    added: dict[str, Any] = {}
    if kind in _NUMERIC:
        for attribute, keyword in _NUMBERS.items():
            limit = getattr(part, attribute, None)
            if isinstance(limit, int | float):
                added[keyword] = limit
    if isinstance(kind, str) and kind in _LENGTHS:
        shortest, longest = _LENGTHS[kind]
        low, high = getattr(part, "min_length", None), getattr(part, "max_length", None)
        # annotated_types.Len counts from 0 and says so by default.
        if isinstance(low, int) and low > 0:
            added[shortest] = low
        if isinstance(high, int):
            added[longest] = high
    if kind == "string":
        pattern = getattr(part, "pattern", None)
        if isinstance(pattern, re.Pattern):
            pattern = pattern.pattern
        if isinstance(pattern, str):
            added["pattern"] = pattern
    return {**schema, **added} if added else schema


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
