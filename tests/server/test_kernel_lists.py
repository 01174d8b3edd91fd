"""What is listed, and how each revision sees it (checklist §1.5, T1-T5, RS1-RS2, P2, U6-U8, K1-K7)."""

from __future__ import annotations

import pytest

from stanchion.registry.features import Tool
from stanchion.registry.registry import Registry
from stanchion.server.events import Changed
from stanchion.wire.revisions import PROFILES
from tests.server import offered
from tests.server.bench import Bench, describe
from tests.server.watch import MODERN, NEWEST, Ticket

REVISIONS = sorted(PROFILES)
LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


def listed(bench: Bench, method: str, revision: str, cursor: str | None = None) -> Ticket:
    params = {} if cursor is None else {"cursor": cursor}
    return bench.ask(method, describe(params) if revision == MODERN else params)


def bench_of(revision: str, **options) -> Bench:
    bench = Bench(**options)
    bench.open("c", None if revision == MODERN else revision)
    return bench


def since(revision: str, first: str, **fields: object) -> dict[str, object]:
    return fields if revision >= first else {}


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_tool_has_the_fields_of_its_reader_s_revision(revision: str) -> None:
    tools = {one["name"]: one for one in listed(bench_of(revision), "tools/list", revision).result["tools"]}
    assert tools["sum"] == {
        "name": "sum",
        "inputSchema": {"type": "object"},
        **since(revision, "2025-03-26", annotations={"readOnlyHint": True, "title": "Sum it"}),
        **since(
            revision, "2025-06-18", title="Sum", outputSchema=offered.OBJECT, _meta={"example.test/x": 1}
        ),
        **since(revision, "2025-11-25", icons=[offered.ICON]),
    }
    assert ("outputSchema" in tools["many"]) == (revision == MODERN)
    assert tools["add"]["description"] == "Add two numbers."


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_resource_has_the_fields_of_its_reader_s_revision(revision: str) -> None:
    bench = bench_of(revision)
    first, second = listed(bench, "resources/list", revision).result["resources"]
    assert first == {
        "uri": "file:///a",
        "name": "a",
        "annotations": {"priority": 0.5},
        **since(revision, "2025-06-18", title="A"),
        **since(revision, "2025-11-25", icons=[offered.ICON]),
    }
    assert ("lastModified" in second.get("annotations", {})) == (revision >= "2025-06-18")
    (template,) = listed(bench, "resources/templates/list", revision).result["resourceTemplates"]
    assert template == {
        "uriTemplate": "item:///{key}",
        "name": "item",
        **since(revision, "2025-06-18", title="Item"),
    }


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_prompt_has_the_fields_of_its_reader_s_revision(revision: str) -> None:
    (prompt,) = listed(bench_of(revision), "prompts/list", revision).result["prompts"]
    assert prompt == {
        "name": "greet",
        "description": "Greet someone.",
        "arguments": [{"name": "name", "required": True}, {"name": "tone", "required": False}],
        **since(revision, "2025-06-18", title="Greet", _meta={"example.test/y": 2}),
        **since(revision, "2025-11-25", icons=[offered.ICON]),
    }


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize("revision", REVISIONS)
def test_only_modern_lists_say_how_long_they_keep(revision: str, method: str) -> None:
    """K1, K7, B6: and that they are complete."""
    result = listed(bench_of(revision), method, revision).result
    assert set(result) - {LISTS[method]} == (
        {"resultType", "ttlMs", "cacheScope", "_meta"} if revision == MODERN else set()
    )
    if revision == MODERN:
        assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == ("complete", 0, "private")


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_empty_list_is_a_list(revision: str) -> None:
    bench = Bench(Registry())
    bench.open("c", None if revision == MODERN else revision)
    for method, member in LISTS.items():
        assert listed(bench, method, revision).result[member] == []


@pytest.mark.parametrize("size", [1, 2, 4, 6, 7])
def test_pages_make_up_the_whole_in_order(size: int) -> None:
    bench = bench_of(NEWEST, page_size=size)
    names: list[str] = []
    cursor, pages = None, 0
    while True:
        result = listed(bench, "tools/list", NEWEST, cursor).result
        assert 0 < len(result["tools"]) <= size
        names += [one["name"] for one in result["tools"]]
        pages += 1
        if "nextCursor" not in result:
            break
        cursor = result["nextCursor"]
    assert names == [tool.name for tool in offered.tools()]
    assert pages == -(-len(names) // size)


@pytest.mark.parametrize("cursor", ["", "x", "WzAsImFkZCJd=", "\u00e9", "A" * 10_000])
@pytest.mark.parametrize("method", LISTS)
def test_a_cursor_that_was_not_given_out_is_refused(method: str, cursor: str) -> None:
    assert listed(bench_of(NEWEST), method, NEWEST, cursor).error["code"] == -32602


def test_a_cursor_works_on_another_connection_and_era() -> None:
    """U9: it holds all that is needed."""
    bench = bench_of(NEWEST, page_size=2)
    cursor = listed(bench, "tools/list", NEWEST).result["nextCursor"]
    assert [one["name"] for one in listed(bench, "tools/list", MODERN, cursor).result["tools"]] == [
        "sum",
        "many",
    ]


def test_a_list_is_as_new_as_the_registry() -> None:
    bench = bench_of(NEWEST)
    assert len(listed(bench, "tools/list", NEWEST).result["tools"]) == 6
    bench.registry.unregister_tools(["sum"])
    assert len(listed(bench, "tools/list", NEWEST).result["tools"]) == 5
    bench.registry.register_tools([Tool.of(offered.add, name="fresh")])
    bench.feed(Changed(frozenset({"tools"})))
    assert listed(bench, "tools/list", NEWEST).result["tools"][-1]["name"] == "fresh"


@pytest.mark.parametrize("guarded", [False, True])
def test_a_sensitive_tool_is_listed_only_if_calls_are_authorised(guarded: bool) -> None:
    """B3."""
    bench = Bench(offered.registry(sensitive=True), guarded=guarded)
    bench.open("c", NEWEST)
    names = [one["name"] for one in listed(bench, "tools/list", NEWEST).result["tools"]]
    assert ("wipe" in names) == guarded


def test_pages_that_were_given_out_are_the_same_again() -> None:
    bench = bench_of(NEWEST, page_size=2)
    first = listed(bench, "tools/list", NEWEST).result
    assert listed(bench, "tools/list", NEWEST).result == first
    for number in range(200):
        listed(bench, "tools/list", NEWEST, first["nextCursor"] if number % 2 else None)
    assert listed(bench, "tools/list", NEWEST).result == first
