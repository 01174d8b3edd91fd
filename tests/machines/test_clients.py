"""The table of connections beside two lists (behaviour C8): idle ones go first, oldest first, then live ones."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from stanchion.machines.clients import ANONYMOUS, DEFAULT, Client, Clients
from stanchion.machines.session import Session

NAMES = [DEFAULT, "a", "b", "c", 0, ("t", 1)]
SOME = st.sampled_from(NAMES)


def client(name: object, *, has_channel: bool) -> Client:
    return Client(name, Session("info"), has_channel=has_channel)


class ClientsMachine(RuleBasedStateMachine):
    """The model: who has a channel, and who is remembered, in the order of being so."""

    @initialize(limit=st.integers(1, 4))
    def begin(self, limit: int) -> None:
        self.limit = limit
        self.clients = Clients(limit)
        self.channels: list[object] = []
        self.remembered: list[object] = []

    @rule(name=SOME)
    def open(self, name: object) -> None:
        new = client(name, has_channel=True)
        self.clients.open(new)
        assert self.clients.get(name) is new
        self.drop(name)
        self.channels.append(name)

    @rule(name=SOME)
    def close(self, name: object) -> None:
        known = name in self.channels or name in self.remembered
        assert (self.clients.close(name) is not None) == known
        assert self.clients.close(name) is None
        self.drop(name)

    def drop(self, name: object) -> None:
        for line in (self.channels, self.remembered):
            if name in line:
                line.remove(name)

    @rule(name=SOME, ability=st.sampled_from(["roots", "sampling"]))
    def remember(self, name: object, ability: str) -> None:
        one = self.clients.get(name) or client(name, has_channel=False)
        forgotten = self.clients.remember(one, {ability: {}})
        if name in self.remembered:
            self.remembered.remove(name)
        self.remembered.append(name)
        expected = []
        while len(self.remembered) > self.limit:
            idle = [other for other in self.remembered if other not in self.channels]
            oldest = (idle or self.remembered)[0]
            self.remembered.remove(oldest)
            expected.append(oldest)
        assert [gone.connection for gone in forgotten] == expected
        assert all(gone.abilities is None for gone in forgotten)
        if name in self.remembered:
            assert one.abilities == {ability: {}}

    @rule()
    def nobody_remembers_the_anonymous(self) -> None:
        one = client(ANONYMOUS, has_channel=False)
        assert self.clients.remember(one, {"roots": {}}) == []
        assert self.clients.get(ANONYMOUS) is None
        assert one.abilities is None

    @invariant()
    def the_table_is_bounded(self) -> None:
        if not hasattr(self, "clients"):
            return
        there = {*self.channels, *self.remembered}
        assert len(self.clients) == len(there) <= len(self.channels) + self.limit
        assert [one.connection for one in self.clients.live()] == self.channels
        for name in NAMES:
            one = self.clients.get(name)
            assert (one is not None) == (name in there)
            if one is not None:
                assert one.has_channel == (name in self.channels)
                assert (one.abilities is not None) == (name in self.remembered)

    def teardown(self) -> None:
        if not hasattr(self, "clients"):
            return
        for name in NAMES:
            self.clients.close(name)
        assert len(self.clients) == 0
        assert not self.clients._idle
        assert not self.clients._live


TestClients = ClientsMachine.TestCase


def test_a_forgotten_live_client_stays_connected() -> None:
    clients = Clients(1)
    first, second = client("a", has_channel=True), client("b", has_channel=True)
    for one in (first, second):
        clients.open(one)
    assert clients.remember(first, {}) == []
    assert clients.remember(second, {}) == [first]
    assert clients.get("a") is first
    assert clients.live() == [first, second]


def test_idle_entries_go_before_older_live_ones() -> None:
    clients = Clients(2)
    live, idle, new = (
        client("a", has_channel=True),
        client("b", has_channel=False),
        client("c", has_channel=True),
    )
    clients.open(live)
    clients.open(new)
    clients.remember(live, {})
    clients.remember(idle, {})
    assert clients.remember(new, {}) == [idle]
    assert clients.get("b") is None
    assert live.abilities == {}
