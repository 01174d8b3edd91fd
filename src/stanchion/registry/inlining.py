"""Schemas with ``$ref`` made into schemas without, as model APIs want them (case H04).

Owns replacing local references by what they point to and dropping generated titles. Used for schemas that pydantic
makes; raw schemas of authors are published as they are (checklist T9).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

UNROLL: Final = 2
"""How often a recursive definition is written out within itself; below that it is any object."""

MAX_NODES: Final = 5_000
"""Objects in one inlined schema. References that multiply each other end here instead of in memory."""

_DATA: Final = frozenset({"const", "enum", "default", "examples"})
_MAPS: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})


class TooLargeError(ValueError):
    """The schema has more than ``MAX_NODES`` objects once its references are written out."""


def inline(schema: Mapping[str, object]) -> dict[str, object]:
    """*schema* without ``$ref``, ``$defs``, ``discriminator`` and generated titles.

    Raises:
        TooLargeError: See there.
    """
    definitions = schema.get("$defs")
    named = definitions if isinstance(definitions, Mapping) else {}
    return _Inliner(named).schema({key: value for key, value in schema.items() if key != "$defs"}, ())


class _Inliner:
    def __init__(self, definitions: Mapping[str, object]) -> None:
        self._definitions = definitions
        self._nodes = 0

    def schema(self, node: Mapping[str, object], inside: tuple[str, ...]) -> dict[str, object]:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise TooLargeError(f"it has more than {MAX_NODES} parts")
        result: dict[str, object] = {}
        for key, value in node.items():
            if key == "$ref":
                result = {**self._target(str(value), inside), **result}
            elif key == "discriminator" or (key == "title" and isinstance(value, str)):
                continue
            elif key in _DATA:
                result[key] = value
            elif key in _MAPS and isinstance(value, Mapping):
                result[key] = {name: self._any(inner, inside) for name, inner in value.items()}
            else:
                result[key] = self._any(value, inside)
        if result.get("type") == "array" and "items" not in result:
            result["items"] = {}
        return result

    def _any(self, value: object, inside: tuple[str, ...]) -> object:
        if isinstance(value, Mapping):
            return self.schema(value, inside)
        if isinstance(value, list):
            return [self._any(item, inside) for item in value]
        return value

    def _target(self, reference: str, inside: tuple[str, ...]) -> dict[str, object]:
        name = reference.removeprefix("#/$defs/").replace("~1", "/").replace("~0", "~")
        target = self._definitions.get(name)
        if not isinstance(target, Mapping) or inside.count(name) >= UNROLL:
            return {"type": "object"}
        return self.schema(target, (*inside, name))
