"""Which arguments of a tool a client repeats in HTTP headers (``x-mcp-header``; 2026-07-28, basic/transports).

Owns the way from an input schema to the list of such arguments. That the annotations are sound was seen to when the tool
was registered (``registry.bounds``); what is not is left out here as clients leave it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, cast

from msgspec import Struct

from stanchion.registry.bounds import HEADER
from stanchion.registry.tools import Tool

Kind = Literal["string", "integer", "boolean"]
_KINDS: tuple[Kind, ...] = ("string", "integer", "boolean")


class Mirrored(Struct, frozen=True):
    """One argument that a header repeats."""

    header: str
    """The end of the header's name, as the schema spells it: ``Mcp-Param-<header>``."""
    path: tuple[str, ...]
    """Where the argument is: names of properties from the root on."""
    kind: Kind


def mirrored(tool: Tool) -> tuple[Mirrored, ...]:
    """The arguments of a tool that headers repeat, in the schema's order."""
    return tuple(_walk(tool.input_schema, ()))


def _walk(schema: object, path: tuple[str, ...]) -> Iterator[Mirrored]:
    if not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    for name, inner in properties.items():
        if not isinstance(inner, Mapping):
            continue
        here = (*path, name)
        header, kind = inner.get(HEADER), inner.get("type")
        if isinstance(header, str) and header and kind in _KINDS:
            yield Mirrored(header, here, cast("Kind", kind))
        yield from _walk(inner, here)
