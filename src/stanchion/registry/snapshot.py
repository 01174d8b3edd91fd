"""What is registered at one moment, for readers on any thread.

Owns the immutable view and which entry answers a URI. Does not own when a new one is made (``registry.registry``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from stanchion.registry.catalog import Catalog
from stanchion.registry.prompts import Completer, Prompt
from stanchion.registry.resources import Resource, Template
from stanchion.registry.tools import Tool

CompleterKey = tuple[str, str, str]
"""``("prompt" or "template", its name, the argument)``."""


class Match(Struct, frozen=True):
    """What answers a URI."""

    entry: Resource | Template
    variables: dict[str, str]
    """Of the template; empty for a resource."""


class Snapshot(Struct, frozen=True, eq=False):
    """A consistent view: no change is half in it, and none made later is."""

    version: int
    """Grows with every change."""
    tools: Catalog[Tool]
    resources: Catalog[Resource]
    templates: Catalog[Template]
    prompts: Catalog[Prompt]
    completers: Mapping[CompleterKey, Completer]

    def match(self, uri: str) -> Match | None:
        """What ``resources/read`` of *uri* reads: a resource at exactly that URI, else the first template that fits.

        Each template costs time linear in the URI.
        """
        exact = self.resources.get(uri)
        if exact is not None:
            return Match(exact, {})
        for template in self.templates:
            variables = template.match(uri)
            if variables is not None:
                return Match(template, variables)
        return None

    def completer(self, kind: Literal["prompt", "template"], name: str, argument: str) -> Completer | None:
        """What completes that argument, or None: then there are no values (checklist C6)."""
        return self.completers.get((kind, name, argument))
