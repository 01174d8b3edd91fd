"""What an app's decorators share: who registered what where, whose words count against a tool, how a lifespan opens.

Owns the sentence by which two functions under one name are told apart.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import Any

from stanchion.registry.errors import ToolError
from stanchion.server.ports import Lifespan


class DuplicateName(ValueError):
    """Two functions of one app claim one name. The text names both places."""


class Places:
    """What one app's decorators have claimed."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], str] = {}

    def claim(self, kind: str, key: str, function: Callable[..., Any], *, taken: bool, replace: bool) -> None:
        """Note that a function is registered under a name.

        Args:
            kind: Of what, such as ``tool``.
            key: The name.
            function: Who claims it.
            taken: The registry has something under that name.
            replace: Take its place.

        Raises:
            DuplicateName: It is taken and must not be replaced.
        """
        place = place_of(function)
        before = self._places.get((kind, key))
        if taken and not replace:
            raise DuplicateName(
                f"{kind} {key!r} is registered by {place} and by {before or 'other code'}; rename one, or say replace=True"
            )
        self._places[kind, key] = place


def place_of(function: Callable[..., Any]) -> str:
    """A function's name, file and line, as far as it has them."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    name = getattr(function, "__qualname__", repr(function))
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"


def declared_fault(error: BaseException) -> bool:
    """An author's words count against a tool only where the author said so, so that not-founds can't close it to all."""
    return isinstance(error, ToolError) and error.fault


def opened(lifespan: Callable[..., Any], app: object) -> Lifespan:
    """An app's lifespan, an async generator function or a maker of context managers, as the server opens it."""
    make = asynccontextmanager(lifespan) if inspect.isasyncgenfunction(lifespan) else lifespan
    return lambda: make(app)  # either way it is a context manager now
