"""Rules over every tool of a list, each from a client or model API that refuses tools that break it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

Tool = Mapping[str, Any]


def broken_rule(rule: str, tools: list[dict[str, Any]]) -> str | None:
    """Name the first tool that breaks *rule*, or return None."""
    breaks = RULES[rule]
    return next((f"{tool['name']} breaks it" for tool in tools if breaks(tool)), None)


def _parts(schema: object) -> Iterator[Mapping[str, Any]]:
    """Every object in a schema, itself first."""
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from _parts(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _parts(value)


def _not_an_object_with_properties(tool: Tool) -> bool:
    schema = tool.get("inputSchema")
    return not (
        isinstance(schema, dict)
        and schema.get("type") == "object"
        and isinstance(schema.get("properties"), dict)
    )


def _array_without_items(tool: Tool) -> bool:
    return any(
        part.get("type") == "array" and "items" not in part and "prefixItems" not in part
        for part in _parts(tool.get("inputSchema"))
    )


def _odd_property_name(tool: Tool) -> bool:
    return any(
        not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name)
        for part in _parts(tool.get("inputSchema"))
        if isinstance(part.get("properties"), dict)
        for name in part["properties"]
    )


RULES: Final[Mapping[str, Callable[[Tool], bool]]] = {
    "names": lambda tool: not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool["name"]),
    "names_max_48": lambda tool: len(tool["name"]) > 48,
    "object_with_properties": _not_an_object_with_properties,
    "array_items": _array_without_items,
    "no_root_combinators": lambda tool: bool({"oneOf", "anyOf", "allOf"} & tool["inputSchema"].keys()),
    "no_ref": lambda tool: "$ref" in json.dumps(tool["inputSchema"]),
    "property_names": _odd_property_name,
    "output_object": lambda tool: "outputSchema" in tool and tool["outputSchema"].get("type") != "object",
    "description_max_2048": lambda tool: len((tool.get("description") or "").encode()) > 2048,
}
"""What breaks each rule."""
