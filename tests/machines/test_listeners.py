"""Who listens for what, beside a list of listeners."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from stanchion.machines.listeners import Listener, Listeners
from stanchion.wire.jsonrpc import Ref
from stanchion.wire.model import ListenFilter

URIS = ["file:///a", "file:///b", ""]
FILTERS = st.builds(
    ListenFilter,
    tools_list_changed=st.booleans(),
    prompts_list_changed=st.booleans(),
    resources_list_changed=st.booleans(),
    resource_subscriptions=st.lists(st.sampled_from(URIS), unique=True).map(tuple),
)


class ListenersMachine(RuleBasedStateMachine):
    @initialize(limit=st.integers(1, 3))
    def begin(self, limit: int) -> None:
        self.limit = limit
        self.listeners = Listeners(limit)
        self.open: list[Listener] = []
        self.numbers = itertools.count(1)

    @rule(connection=st.sampled_from("abc"), ident=st.sampled_from([0, "", 7, "7"]), wanted=FILTERS)
    def add(self, connection: str, ident: int | str, wanted: ListenFilter) -> None:
        listener = Listener(Ref(next(self.numbers)), connection, ident, wanted)
        room = sum(one.connection == connection for one in self.open) < self.limit
        assert self.listeners.add(listener) == room
        if room:
            self.open.append(listener)

    @rule(data=st.data())
    def remove(self, data) -> None:
        ref = data.draw(st.sampled_from([Ref(0), *(one.ref for one in self.open)]))
        known = next((one for one in self.open if one.ref == ref), None)
        assert self.listeners.remove(ref) is known
        assert self.listeners.remove(ref) is None
        if known:
            self.open.remove(known)

    @rule(often=st.integers(0, 4))
    def drop_all(self, often: int) -> None:
        if often:
            return
        assert self.listeners.drop_all() == self.open
        self.open.clear()
        assert not self.listeners._counts

    @invariant()
    def each_match_is_told_in_the_order_of_coming_and_nobody_else(self) -> None:
        if not hasattr(self, "listeners"):
            return
        assert len(self.listeners) == len(self.open)
        assert self.listeners.for_list("tools") == [one for one in self.open if one.filter.tools_list_changed]
        assert self.listeners.for_list("prompts") == [
            one for one in self.open if one.filter.prompts_list_changed
        ]
        assert self.listeners.for_list("resources") == [
            one for one in self.open if one.filter.resources_list_changed
        ]
        for uri in URIS:
            assert self.listeners.for_resource(uri) == [
                one for one in self.open if uri in one.filter.resource_subscriptions
            ]

    def teardown(self) -> None:
        if not hasattr(self, "listeners"):
            return
        for one in list(self.open):
            assert self.listeners.remove(one.ref) is one
        assert not self.listeners._counts
        assert len(self.listeners) == 0


TestListeners = ListenersMachine.TestCase


def test_one_connection_may_hold_several_filters_apart() -> None:
    listeners = Listeners(2)
    tools = Listener(Ref(1), "c", 0, ListenFilter(tools_list_changed=True))
    prompts = Listener(Ref(2), "c", "0", ListenFilter(prompts_list_changed=True))
    assert listeners.add(tools)
    assert listeners.add(prompts)
    assert not listeners.add(Listener(Ref(3), "c", 1, ListenFilter()))
    assert listeners.add(Listener(Ref(4), "d", 1, ListenFilter()))
    assert listeners.for_list("tools") == [tools]
    assert listeners.for_list("resources") == []
