"""What the tests' servers offer: a little of everything. No callback here is ever called."""

from __future__ import annotations

from stanchion.registry.features import Completer, Prompt, Resource, Template, Tool
from stanchion.registry.registry import Registry

OBJECT = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
ICON = {"src": "https://example.test/icon.png", "mimeType": "image/png"}


def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


async def later(text: str = "") -> str:
    return text


def wipe() -> str:
    return ""


def read() -> str:
    return ""


def item(key: str) -> str:
    return key


def greet(name: str, tone: str = "") -> str:
    """Greet someone."""
    return name + tone


def suggest(value: str) -> list[str]:
    return [value]


SUM = Tool.raw(
    name="sum",
    callback=lambda arguments: arguments,
    input_schema={"type": "object"},
    output_schema=OBJECT,
    title="Sum",
    icons=[ICON],
    annotations={"readOnlyHint": True, "title": "Sum it"},
    meta={"example.test/x": 1},
)
"""Its results are objects: told to clients from 2025-06-18 on."""
MANY = Tool.raw(
    name="many",
    callback=lambda arguments: arguments,
    input_schema={"type": "object"},
    output_schema={"type": "array", "items": {"type": "integer"}},
)
"""Its results are arrays: only 2026-07-28 can be told."""


def tools() -> list[Tool]:
    """Every tool but the sensitive one."""
    return [
        Tool.of(add),
        Tool.of(later),
        SUM,
        MANY,
        Tool.of(add, name="brief", timeout=2),
        Tool.of(add, name="apart", isolation="process"),
    ]


WIPE = Tool.of(wipe, destructive=True)


def registry(*, sensitive: bool = False) -> Registry:
    """A registry with all kinds of entries."""
    made = Registry()
    made.register_all(
        tools=[*tools(), *([WIPE] if sensitive else [])],
        resources=[
            Resource.of(
                read, uri="file:///a", name="a", title="A", icons=[ICON], annotations={"priority": 0.5}
            ),
            Resource.of(
                read, uri="file:///b", name="b", annotations={"lastModified": "2025-01-01T00:00:00Z"}
            ),
        ],
        templates=[Template.of(item, uri_template="item:///{key}", title="Item")],
        prompts=[Prompt.of(greet, title="Greet", icons=[ICON], meta={"example.test/y": 2})],
        completers=[
            Completer.of(suggest, kind="prompt", name="greet", argument="name"),
            Completer.of(suggest, kind="template", name="item:///{key}", argument="key"),
        ],
    )
    return made
