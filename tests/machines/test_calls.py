"""The ledger beside a list of what is open: ids, deadlines, and one owner of each end."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from stanchion.machines.calls import Call, Ledger, State
from stanchion.wire.jsonrpc import Id, Ref
from stanchion.wire.revisions import MODERN, NEWEST_HANDSHAKE

SOME_CONNECTIONS = ["a", 0]
SOME_IDS = [0, "", "0"]
CONNECTIONS = st.sampled_from(SOME_CONNECTIONS)
IDS = st.sampled_from(SOME_IDS)
SPANS = st.sampled_from([1, 2, 3])


@dataclass
class Open:
    """What the model knows of an open call."""

    call: Call[None]
    connection: object
    modern: bool
    id: Id | None
    shared: bool
    due: float | None = None


class LedgerMachine(RuleBasedStateMachine):
    """Time moves apart from looking at deadlines, so that an end may come after its deadline and before the look."""

    refs = Bundle("refs")

    def __init__(self) -> None:
        super().__init__()
        self.ledger: Ledger[None] = Ledger()
        self.open: list[Open] = []
        self.now = 10.0
        self.numbers = itertools.count(1)

    def named(self, connection: object, ident: Id, *, modern: bool) -> Open | None:
        found = [
            one
            for one in self.open
            if not one.shared
            and one.connection == connection
            and one.modern == modern
            and type(one.id) is type(ident)
            and one.id == ident
        ]
        assert len(found) <= 1
        return found[0] if found else None

    def by_ref(self, ref: Ref) -> Open | None:
        return next((one for one in self.open if one.call.ref == ref), None)

    @rule(
        target=refs,
        connection=CONNECTIONS,
        ident=st.none() | IDS,
        modern=st.booleans(),
        shared=st.booleans(),
    )
    def begin(self, connection: object, ident: Id | None, modern: bool, shared: bool) -> Ref:
        ref = Ref(next(self.numbers))
        call: Call[None] = Call(ref, connection, ident, "x", MODERN if modern else NEWEST_HANDSHAKE)
        taken = ident is not None and not shared and self.named(connection, ident, modern=modern)
        assert self.ledger.open(call, shared=shared) == (not taken)
        if not taken:
            self.open.append(Open(call, connection, modern, ident, shared))
        return ref

    @rule(ref=consumes(refs))
    def end(self, ref: Ref) -> None:
        known = self.by_ref(ref)
        got = self.ledger.close(ref)
        assert got is (known.call if known else None)
        assert self.ledger.close(ref) is None
        if known:
            assert known.call.state is State.ENDED
            assert known.call.deadline is None
            self.open.remove(known)

    @rule(ref=refs, seconds=SPANS)
    def set_deadline(self, ref: Ref, seconds: float) -> None:
        known = self.by_ref(ref)
        if known:
            self.ledger.set_deadline(known.call, seconds, self.now)
            known.due = self.now + seconds

    @rule(ref=refs)
    def unset_deadline(self, ref: Ref) -> None:
        known = self.by_ref(ref)
        if known:
            self.ledger.unset_deadline(known.call)
            known.due = None

    @rule(seconds=st.sampled_from([1, 1, 2, 50]))
    def advance(self, seconds: float) -> None:
        self.now += seconds

    @rule(choices=st.lists(st.sampled_from(["close", "again", "unset"]), max_size=8))
    def look(self, choices: list[str]) -> None:
        due = self.ledger.expired(self.now)
        wanted = [one.call for one in self.open if one.due is not None and one.due <= self.now]
        assert len(due) == len(wanted)
        assert {call.ref for call in due} == {call.ref for call in wanted}
        for call, choice in itertools.zip_longest(due, choices[: len(due)], fillvalue="close"):
            if choice == "close":
                self.end(call.ref)
            elif choice == "again":
                self.set_deadline(call.ref, 5)
            else:
                self.unset_deadline(call.ref)
        assert self.ledger.next_deadline is None or self.ledger.next_deadline > self.now
        assert not self.ledger.expired(self.now)

    @invariant()
    def the_next_deadline_is_the_least(self) -> None:
        assert self.ledger.next_deadline == min(
            (one.due for one in self.open if one.due is not None), default=None
        )

    @invariant()
    def every_open_call_is_there_and_no_other(self) -> None:
        assert len(self.ledger) == len(self.open)
        assert self.ledger.all() == [one.call for one in self.open]
        for one in self.open:
            assert self.ledger.get(one.call.ref) is one.call
        assert self.ledger.get(Ref(0)) is None

    @invariant()
    def an_id_names_what_it_should(self) -> None:
        for connection, ident in itertools.product(SOME_CONNECTIONS, SOME_IDS):
            legacy, modern = (self.named(connection, ident, modern=era) for era in (False, True))
            assert self.ledger.in_use(connection, ident, modern=False) == bool(legacy)
            assert self.ledger.in_use(connection, ident, modern=True) == bool(modern)
            first = legacy or modern
            assert self.ledger.find(connection, ident) == (first.call.ref if first else None)
        for connection in SOME_CONNECTIONS:
            assert self.ledger.of(connection) == [
                one.call for one in self.open if one.connection == connection
            ]

    def teardown(self) -> None:
        for one in list(self.open):
            self.end(one.call.ref)
        assert vars(self.ledger) == {"_calls": {}, "_by_request": {}, "_due": {}}


TestLedger = LedgerMachine.TestCase


def call(ref: int, ident: Id | None, *, modern: bool = False) -> Call[None]:
    return Call(Ref(ref), "c", ident, "x", MODERN if modern else NEWEST_HANDSHAKE)


@pytest.mark.parametrize("ident", [0, 1, "", "1", 2**70])
def test_an_id_is_in_use_until_its_call_is_closed(ident: Id) -> None:
    ledger: Ledger[None] = Ledger()
    assert ledger.open(call(1, ident))
    assert not ledger.open(call(2, ident))
    assert ledger.get(Ref(2)) is None
    assert ledger.open(call(3, ident, modern=True))
    assert ledger.find("c", ident) == 1
    ledger.close(Ref(1))
    assert ledger.find("c", ident) == 3
    assert ledger.open(call(4, ident))


def test_clients_that_share_a_connection_do_not_share_ids() -> None:
    ledger: Ledger[None] = Ledger()
    assert ledger.open(call(1, 7))
    assert ledger.open(call(2, 7), shared=True)
    assert ledger.open(call(3, 7), shared=True)
    ledger.close(Ref(2))
    assert ledger.find("c", 7) == 1


def test_a_call_is_due_at_its_time_and_not_before() -> None:
    ledger: Ledger[None] = Ledger()
    one = call(1, 7)
    ledger.open(one)
    ledger.set_deadline(one, 5, 10)
    assert ledger.next_deadline == 15
    assert ledger.expired(14.9) == []
    assert ledger.expired(15) == [one]
    ledger.set_deadline(one, 9, 15)
    assert ledger.expired(23) == []
    assert ledger.expired(24) == [one]


@pytest.mark.parametrize("to", State)
@pytest.mark.parametrize("at", State)
def test_a_call_only_moves_on(at: State, to: State) -> None:
    call: Call[None] = Call(Ref(1), "c", 1, "x", MODERN)
    call.state = at
    if to > at:
        call.advance(to)
        assert call.state is to
    else:
        with pytest.raises(AssertionError, match=f"from {at.name} to {to.name}"):
            call.advance(to)
        assert call.state is at
