"""The registry beside a dict: order, owners, collisions, notices; and readers beside writers."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from stanchion.registry.errors import InvalidDefinitions, NameCollision
from stanchion.registry.features import Completer, Prompt, Resource, Template, Tool
from stanchion.registry.names import visible_names
from stanchion.registry.registry import LARGE, Registry


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


NAMES = st.sampled_from(["a.b", "a_b", "a-b", "c", "C", "d", "d_", "e"])
OWNERS = st.sampled_from([None, "one", "two"])


class BesideADict(RuleBasedStateMachine):
    """Tools only: what holds for them holds for the others, which have no visible names."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = Registry()
        self.model: dict[str, tuple[str | None, int, bool]] = {}
        self.order: list[str] = []
        self.serial = 0
        self.told: list[frozenset[str]] = []
        self.expected: list[frozenset[str]] = []
        self.registry.listen(self.told.append)

    def holder(self, name: str) -> set[str]:
        mine = visible_names(name)
        return {
            other
            for other in self.model
            if other != name and any(a == b for a, b in zip(mine, visible_names(other), strict=True))
        }

    @rule(batch=st.lists(NAMES, max_size=4), owner=OWNERS, derived=st.booleans(), records=st.booleans())
    def register(self, batch: list[str], owner: str | None, derived: bool, records: bool) -> None:
        self.serial += 1
        given = [definition(name, description=str(self.serial)) for name in batch]
        made = [
            Tool.raw(
                name=one["name"],
                description=one["description"],
                callback=callback,
                input_schema={"type": "object"},
            )
            for one in given
        ]
        refused = self.registry.register_tools(made if records else given, owner=owner, derived=derived)
        expected, changed = [], False
        for name in batch:
            holders = self.holder(name)
            if holders:
                expected.append((name, holders))
                continue
            if name not in self.model:
                self.order.append(name)
            self.model[name] = (owner, self.serial, derived)
            changed = True
        assert [name for name, _ in refused] == [name for name, _ in expected]
        assert all(holder in holders for (_, holder), (_, holders) in zip(refused, expected, strict=True))
        if changed:
            self.expected.append(frozenset({"tools"}))

    @rule(batch=st.lists(NAMES, max_size=4))
    def register_all(self, batch: list[str]) -> None:
        before = self.registry.snapshot()
        seen = dict(self.model)
        clash = False
        for name in batch:
            clash = clash or bool(self.holder(name))
            self.model[name] = (None, self.serial + 1, False)
        if clash:
            self.model = seen
            with pytest.raises(NameCollision):
                self.registry.register_all(tools=[definition(name) for name in batch])
            assert self.registry.snapshot().version == before.version
            return
        self.serial += 1
        self.registry.register_all(tools=[definition(name, description=str(self.serial)) for name in batch])
        self.order.extend(name for name in dict.fromkeys(batch) if name not in self.order)
        if batch:
            self.expected.append(frozenset({"tools"}))

    @rule(batch=st.lists(NAMES, max_size=3), owner=OWNERS)
    def unregister(self, batch: list[str], owner: str | None) -> None:
        self.registry.unregister_tools(batch, owner=owner)
        gone = [
            name for name in self.model if name in batch and (owner is None or self.model[name][0] == owner)
        ]
        self.forget(gone)

    @rule(owner=st.sampled_from(["one", "two", "three"]))
    def end(self, owner: str) -> None:
        changed = self.registry.owner_ended(owner)
        gone = [name for name, (held, _, _) in self.model.items() if held == owner]
        assert changed == (frozenset({"tools"}) if gone else frozenset())
        assert not self.registry.owns(owner)
        self.forget(gone)

    def forget(self, gone: list[str]) -> None:
        for name in gone:
            del self.model[name]
            self.order.remove(name)
        if gone:
            self.expected.append(frozenset({"tools"}))

    @invariant()
    def the_same(self) -> None:
        snapshot = self.registry.snapshot()
        assert [tool.name for tool in snapshot.tools] == self.order
        assert {
            tool.name: (tool.owner, int(tool.description or 0), tool.derived) for tool in snapshot.tools
        } == self.model
        assert [tool.name for tool in self.registry.list_tools()] == self.order
        assert [tool.name for tool in self.registry.static_tools()] == [
            n for n in self.order if not self.model[n][2]
        ]
        assert self.registry.snapshot() is snapshot
        assert self.told == self.expected
        assert all(
            self.registry.owns(owner) == any(o == owner for o, _, _ in self.model.values())
            for owner in ("one", "two")
        )


TestBesideADict = BesideADict.TestCase


def test_a_snapshot_does_not_change() -> None:
    registry = Registry()
    registry.register_tools([definition("a")])
    before = registry.snapshot()
    registry.register_tools([definition("b"), definition("a", description="new")])
    registry.unregister_tools(["a"])
    assert [tool.name for tool in before.tools] == ["a"]
    assert before.tools.get("b") is None
    assert registry.snapshot().version > before.version


def test_a_replaced_entry_keeps_its_place_and_a_new_one_gets_another() -> None:
    registry = Registry()
    registry.register_tools([definition("a"), definition("b")])
    first = registry.snapshot().tools.place("a")
    registry.register_tools([definition("a", description="new")])
    assert registry.snapshot().tools.place("a") == first
    registry.unregister_tools(["a"])
    registry.register_tools([definition("a")])
    assert registry.snapshot().tools.place("a") != first
    assert names(registry) == ["b", "a"]


def test_a_derived_key_in_a_definition_does_nothing() -> None:
    registry = Registry()
    registry.register_tools([definition("a.b", derived=True, **{":derived": True})])
    assert [tool.name for tool in registry.static_tools()] == ["a.b"]


def test_reference_shapes_are_taken() -> None:
    registry = Registry()
    registry.register_all(
        tools=[
            definition(
                "t",
                **{
                    "outputSchema": {"type": "object"},
                    "fault?": bool,
                    "_meta": {"a": 1},
                    "annotations": {"readOnlyHint": True},
                },
            )
        ],
        resources=[
            {"uri": "a://b", "name": "r", "description": "d", "mimeType": "text/plain", "callback": text}
        ],
        prompts=[{"name": "p", "description": "d", "arguments": [{"name": "x"}], "callback": callback}],
        templates=[Template.of(named, uri_template="a://{name}")],
        completers=[Completer.of(lambda value: [value], kind="prompt", name="p", argument="x")],
        owner="me",
    )
    snapshot = registry.snapshot()
    tool = snapshot.tools.get("t")
    assert tool is not None
    assert tool.is_fault is bool
    assert tool.read_only
    assert [one.name for one in registry.list_resources()] == ["r"]
    assert [one.name for one in registry.list_templates()] == ["named"]
    assert [one.name for one in registry.list_prompts()] == ["p"]
    assert snapshot.completer("prompt", "p", "x") is not None
    assert snapshot.completer("prompt", "p", "y") is None
    assert registry.owner_ended("me") == {"tools", "resources", "prompts"}
    empty = registry.snapshot()
    assert [
        len(one) for one in (empty.tools, empty.resources, empty.templates, empty.prompts, empty.completers)
    ] == [0] * 5
    assert snapshot.completer("prompt", "p", "x") is not None


def test_strict_names_refuse_what_lenient_ones_warn_about_once() -> None:
    lenient = Registry()
    lenient.register_tools([definition("a.b")])
    lenient.register_tools([definition("a.b")])
    assert len(lenient.warnings) == 1
    assert lenient.take_warnings() == lenient.warnings
    assert lenient.take_warnings() == ()
    with pytest.raises(InvalidDefinitions, match="dot"):
        Registry(names="strict").register_tools([definition("a.b")])
    with pytest.raises(ValueError, match="lenient"):
        Registry(names="other")  # type: ignore[arg-type]


def test_matching_prefers_the_exact_resource_then_the_first_template() -> None:
    registry = Registry()
    registry.register_templates(
        [
            Template.of(named, uri_template="a://{name}", name="one"),
            Template.of(named, uri_template="a://x{name}", name="two"),
        ]
    )
    registry.register_resources([Resource.of(text, uri="a://xy")])
    snapshot = registry.snapshot()
    exact, first, none = snapshot.match("a://xy"), snapshot.match("a://xz"), snapshot.match("b://")
    assert exact is not None
    assert (exact.entry.name, exact.variables) == ("text", {})
    assert first is not None
    assert (first.entry.name, first.variables) == ("one", {"name": "xz"})
    assert none is None


def test_other_kinds_unregister_and_tell() -> None:
    registry = Registry()
    told: list[frozenset[str]] = []
    registry.register_all(
        resources=[Resource.of(text, uri="a://b")],
        templates=[Template.of(named, uri_template="a://{name}")],
        prompts=[Prompt.of(named)],
        completers=[Completer.of(lambda value: [value], kind="prompt", name="p", argument="x")],
    )
    unsubscribe = registry.listen(told.append)
    registry.unregister_resources(["a://b", "a://missing"])
    registry.unregister_templates(["a://{name}"])
    registry.unregister_prompts(["named"])
    registry.unregister_prompts(["named"])
    registry.unregister_completers([("prompt", "p", "x"), ("prompt", "p", "missing")])
    assert told == [{"resources"}, {"resources"}, {"prompts"}]
    assert registry.snapshot().completer("prompt", "p", "x") is None
    unsubscribe()
    unsubscribe()
    registry.register_prompts([Prompt.of(named)])
    assert len(told) == 3
    assert registry.owner_ended(None) == frozenset()  # type: ignore[arg-type]


def test_a_listener_that_raises_or_calls_back_hurts_nobody() -> None:
    registry = Registry()
    seen: list[int] = []

    def bad(_changed: frozenset[str]) -> None:
        raise RuntimeError

    registry.listen(bad)
    registry.listen(lambda _changed: seen.append(len(registry.snapshot().tools)))
    registry.listen(lambda _changed: registry.owns("nobody"))
    registry.register_tools([definition("a")])
    assert seen == [1]


def test_readers_and_writers_do_not_disturb_each_other() -> None:
    # Case G08: one thread changes the registry while another lists it.
    registry = Registry()
    batch = [definition(f"pair_{i}_{half}") for i in range(LARGE) for half in "ab"]
    stop = threading.Event()
    problems: list[BaseException] = []

    def write() -> None:
        try:
            while not stop.is_set():
                registry.register_tools(batch, owner="writer")
                registry.register_tools([definition("single_a"), definition("single_b")])
                registry.owner_ended("writer")
                registry.unregister_tools(["single_a", "single_b"])
        except BaseException as error:
            problems.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(1_000):
            snapshot = registry.snapshot()
            listed = [tool.name for tool in snapshot.tools]
            halves = [name[:-1] for name in listed]
            assert len(set(listed)) == len(listed)
            assert all(halves.count(half) == 2 for half in set(halves[:3]))
            assert len(listed) % 2 == 0
            assert [tool.name for tool in snapshot.tools.page(None, 5).items] == listed[:5]
    finally:
        stop.set()
        writer.join()
    assert problems == []
    assert names(registry) == []


def test_what_was_registered_is_seen_by_the_thread_that_did_it() -> None:
    registry = Registry()
    failed: list[str] = []

    def write(me: str) -> None:
        for i in range(100):
            registry.register_tools([definition(f"{me}_{i}")])
            if registry.snapshot().tools.get(f"{me}_{i}") is None:
                failed.append(f"{me}_{i}")

    threads = [threading.Thread(target=write, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(names(registry)) == 400


def test_a_reader_does_not_wait_for_a_large_batch() -> None:
    registry = Registry()
    registry.register_tools([definition("before")])
    seen: list[list[str]] = []

    # Reading inside the lock would block for ever; a published snapshot is simply there.
    original = registry._shared

    def shared(tool: Tool) -> Tool:
        if not seen:
            reader = threading.Thread(target=lambda: seen.append(names(registry)))
            reader.start()
            reader.join(5)
        return original(tool)

    registry._shared = shared  # type: ignore[method-assign]
    registry.register_tools([definition(f"n{i}") for i in range(LARGE)])
    assert seen == [["before"]]
    assert len(names(registry)) == LARGE + 1


def test_one_name_alone_is_unregistered_as_a_list_of_it() -> None:
    registry = Registry()
    registry.register_tools([definition("abc"), definition("a")])
    registry.unregister_tools("abc")
    assert names(registry) == ["a"]


def test_an_owner_that_cannot_be_looked_up_changes_nothing() -> None:
    registry = Registry()
    with pytest.raises(TypeError):
        registry.register_tools([definition("a")], owner=[])  # type: ignore[arg-type]
    assert names(registry) == []


def test_equal_schemas_are_compiled_once() -> None:
    registry = Registry()
    registry.register_tools([definition("a"), definition("b")])
    one, two = registry.snapshot().tools
    assert one.arguments is two.arguments
