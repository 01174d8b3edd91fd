"""Which raw JSON Schemas are taken (behaviour F5): valid, closed in themselves, of bounded size.

Owns the limits and the ``x-mcp-header`` rules. Does not own compiling (``registry.validation``). Schemas that we derive
ourselves do not pass here: they are right by construction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from msgspec import Struct, field

from stanchion.registry.validation import DIALECTS, Schema, compile_pattern, misuse

MAX_DEPTH: Final = 32
"""Objects and arrays within each other."""

MAX_SUBSCHEMAS: Final = 2_000
"""Objects in one schema."""

MAX_PATTERN: Final = 512
"""Characters of one regular expression."""

MAX_FAULTS: Final = 20
"""Faults reported for one schema."""

HEADER: Final = "x-mcp-header"
"""2026-07-28, basic/transports, Custom Headers."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_TYPES: Final = frozenset({"string", "integer", "boolean"})
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
_OWN: Final = frozenset({"$schema", "$id", "pattern", HEADER, *_REFERENCES, *_ANCHORS})
"""Keywords that are looked at where they stand."""

# Keywords whose value is a schema or several. Any other value is data: a "$ref" or "pattern" in it is none.
_SCHEMAS: Final = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "allOf",
        "anyOf",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "oneOf",
        "prefixItems",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
# Keywords whose value maps names of the author's own to schemas.
_MAPS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)


class _Survey(Struct):
    """What one walk over a schema found."""

    faults: list[str] = field(default_factory=list)
    subschemas: int = 0
    anchors: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    references: list[tuple[str, str]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)


def check_schema(schema: object, *, arguments: bool = False) -> tuple[str, ...]:
    """What forbids to use *schema*, each as one clause.

    Args:
        schema: Anything an author gave as a JSON Schema.
        arguments: It is a tool's input schema: its root must be an object (all revisions, server/tools).

    Returns:
        Nothing if it may be used.
    """
    if not isinstance(schema, dict):
        return ("the schema is not an object",)
    if arguments and schema.get("type") != "object":
        return ('the input schema\'s root must say "type": "object"',)
    survey = _Survey()
    for fault in _walk(schema, "", 0, survey, on_path=arguments):
        survey.faults.append(fault)
        if len(survey.faults) >= MAX_FAULTS:
            break
    # Only a schema that is bounded and names no other dialect is handed to the library.
    if not survey.faults:
        survey.faults.extend(_unresolved(schema, survey))
    if not survey.faults:
        # Keywords of the wrong type, and what only resolving shows.
        problem = misuse(schema, resolve=bool(survey.references or survey.ids))
        survey.faults.extend([problem] if problem else [])
    return tuple(survey.faults)


def _walk(node: object, at: str, depth: int, survey: _Survey, *, on_path: bool) -> Iterator[str]:
    """Faults of a (sub)schema. *on_path*: only ``properties`` led here from the root."""
    if depth > MAX_DEPTH:
        yield f"{at or 'the root'} is nested more than {MAX_DEPTH} deep"
        return
    if isinstance(node, list | tuple):
        for index, item in enumerate(node):
            yield from _walk(item, f"{at}/{index}", depth + 1, survey, on_path=False)
        return
    if not isinstance(node, dict):
        return
    survey.subschemas += 1
    if survey.subschemas == MAX_SUBSCHEMAS + 1:
        yield f"it has more than {MAX_SUBSCHEMAS} sub-schemas"
    if survey.subschemas > MAX_SUBSCHEMAS:
        return
    if not _OWN.isdisjoint(node):
        yield from _own(node, at, survey, on_path=on_path)
    for key, value in node.items():
        if not isinstance(key, str):
            yield f"{at or 'the root'} has a key that is not a string"
        elif key in _MAPS and isinstance(value, Mapping):
            for name, inner in value.items():
                if key == "patternProperties":
                    yield from _pattern(name, f"{at}/{key}")
                yield from _walk(
                    inner, f"{at}/{key}/{name}", depth + 1, survey, on_path=on_path and key == "properties"
                )
        elif key in _SCHEMAS:
            yield from _walk(value, f"{at}/{key}", depth + 1, survey, on_path=False)


def _own(node: Schema, at: str, survey: _Survey, *, on_path: bool) -> Iterator[str]:
    dialect = node.get("$schema")
    if isinstance(dialect, str) and dialect.removesuffix("#") not in DIALECTS:
        yield f"{at}/$schema names a dialect that is not supported; 2020-12 is"
    for keyword in _ANCHORS:
        anchor = node.get(keyword)
        if isinstance(anchor, str):
            survey.anchors.add(anchor)
    identity = node.get("$id")
    if isinstance(identity, str):
        survey.ids.add(identity.removesuffix("#"))
    for keyword in _REFERENCES:
        target = node.get(keyword)
        if isinstance(target, str):
            survey.references.append((f"{at}/{keyword}", target))
    if isinstance(node.get("pattern"), str):
        yield from _pattern(node["pattern"], f"{at}/pattern")
    if HEADER in node:
        yield from _header(node, at, survey, on_path=on_path)


def _pattern(pattern: object, at: str) -> Iterator[str]:
    if not isinstance(pattern, str):
        yield f"{at} is not a string"
    elif len(pattern) > MAX_PATTERN:
        yield f"{at} has more than {MAX_PATTERN} characters"
    elif problem := compile_pattern(pattern):
        yield f"{at} {problem}"


def _header(node: Schema, at: str, survey: _Survey, *, on_path: bool) -> Iterator[str]:
    """The rules of 2026-07-28, basic/transports, Custom Headers; a client drops a tool that breaks one (HM12)."""
    name = node[HEADER]
    where = f"{at or 'the root'}: {HEADER}"
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        yield f"{where} must be a non-empty HTTP token"
        return
    if not on_path or not at:
        yield f"{where} may only stand on a property that a chain of properties leads to"
    if node.get("type") not in _HEADER_TYPES:
        yield f"{where} needs the type string, integer or boolean"
    other = survey.headers.setdefault(name.lower(), at)
    if other != at:
        yield f"{where} {name!r} is also used at {other}"


def _unresolved(schema: Schema, survey: _Survey) -> Iterator[str]:
    for at, target in survey.references:
        base, _, fragment = target.partition("#")
        if base and base not in survey.ids:
            yield f"{at} leads out of the schema: references are never fetched, write the schema into $defs"
        elif not base and fragment.startswith("/") and not survey.ids and not _points(schema, fragment):
            yield f"{at} points to nothing"
        elif not base and fragment and not fragment.startswith("/") and fragment not in survey.anchors:
            yield f"{at} names no $anchor of this schema"


def _points(schema: object, pointer: str) -> bool:
    here = schema
    for step in unquote(pointer).split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(here, Mapping) and key in here:
            here = here[key]
        elif isinstance(here, list) and key.isdecimal() and int(key) < len(here):
            here = here[int(key)]
        else:
            return False
    return True
