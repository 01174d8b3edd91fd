"""What people hand to the registry: every fault is found, with its index, before anything changes (behaviour F5)."""

from __future__ import annotations

from typing import Any

import pytest

from stanchion.registry.errors import InvalidDefinitions
from stanchion.registry.registry import Registry


def callback(arguments: dict[str, object]) -> object:
    return arguments


def definition(name: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "d", "inputSchema": {"type": "object"}, "callback": callback} | more


def names(registry: Registry) -> list[str]:
    return [tool.name for tool in registry.snapshot().tools]


def pair(a: int, b: int) -> None: ...


def text() -> str:
    return ""


def named(name: str) -> str:
    return name


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (definition(3), "must be a str"),
        (definition(None), "must be a str"),
        (definition(""), "empty"),
        (definition("a b"), "'a_b'"),
        (definition("é"), "'tool'"),
        (definition("x" * 129), "not accepted"),
        ({"name": "a"}, "lacks"),
        (3, "neither a record nor a mapping"),
        (definition("a", callback=3), "not callable"),
        (definition("a", callback=pair), "one dict of arguments"),
        (definition("a", inputSchema=None), "object is expected"),
        (definition("a", inputSchema={"type": "string"}), "root"),
        (
            definition("a", inputSchema={"type": "object", "properties": {"a": {"$ref": "http://x"}}}),
            "never fetched",
        ),
        (definition("a", outputSchema={"type": "nothing"}), "output schema"),
        (definition("a", description=3), "description"),
        (definition("a", title="\ud800"), "Unicode"),
        (definition("a", timeout=-1), "timeout"),
        (definition("a", isolation="magic"), "isolation"),
        (definition("a", annotations={"readOnlyHint": 3}), "annotations"),
    ],
)
def test_a_bad_definition_refuses_the_batch_with_its_index(item: Any, words: str) -> None:
    for whole in (False, True):
        registry = Registry()
        batch = [definition("good"), item]
        register = (
            (lambda tools, into=registry: into.register_all(tools=tools))
            if whole
            else registry.register_tools
        )
        with pytest.raises(InvalidDefinitions) as caught:
            register(batch)
        ((index, reasons),) = caught.value.faults
        assert index == 1
        assert any(words in reason for reason in reasons)
        assert names(registry) == []
        assert registry.register_tools([definition("good")]) == ()


def test_every_fault_of_a_batch_is_listed() -> None:
    with pytest.raises(InvalidDefinitions) as caught:
        Registry().register_tools(
            [definition("a b"), definition("ok"), definition("c d", inputSchema={"type": "string"})]
        )
    assert [(index, len(reasons)) for index, reasons in caught.value.faults] == [(0, 1), (2, 2)]


@pytest.mark.parametrize(
    ("kind", "items", "words"),
    [
        ("resources", [{"uri": "no scheme", "name": "r", "callback": text}], "scheme"),
        ("resources", [{"uri": 3, "name": "r", "callback": text}], "must be a str"),
        ("resources", [{"uri": "a://{b}", "name": "r", "callback": text}], "template"),
        ("resources", [{"uri": "a://b", "name": "r", "callback": named}], "no arguments"),
        ("resources", [{"uri": "a://b"}], "lacks"),
        ("templates", ["a://{b}"], "Template.of"),
        ("prompts", [{"name": "p", "callback": 3}], "callable"),
        ("prompts", [{"name": 3, "callback": callback}], "must be a str"),
        ("completers", [3], "Completer.of"),
    ],
)
def test_bad_entries_of_other_kinds_are_told(kind: str, items: list[Any], words: str) -> None:
    registry = Registry()
    with pytest.raises(InvalidDefinitions, match=words):
        getattr(registry, f"register_{kind}")(items)
    with pytest.raises(InvalidDefinitions, match=words):
        registry.register_all(**{kind: items})
