"""The coalescing of changes beside a diary of changes and notices."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from stanchion.machines.changes import Changes

KINDS = ("prompts", "resources", "tools")


class ChangesMachine(RuleBasedStateMachine):
    """The diary is what a client sees: when each kind changed, and when it was told so."""

    @initialize(window=st.sampled_from([1, 3, 10]))
    def begin(self, window: float) -> None:
        self.window = window
        self.changes = Changes(window)
        self.now = 0.0
        self.changed: dict[str, float] = {}
        self.told: dict[str, list[float]] = {kind: [] for kind in KINDS}
        self.news: set[str] = set()

    def tell(self, kind: str) -> None:
        assert kind in self.news, "a notice without a change since the last"
        self.news.discard(kind)
        self.told[kind].append(self.now)

    @rule(kind=st.sampled_from(KINDS))
    def note(self, kind: str) -> None:
        self.news.add(kind)
        last = self.told[kind][-1] if self.told[kind] else None
        announced = self.changes.note(kind, self.now)
        assert announced == (last is None or self.now >= last + self.window)
        if announced:
            self.tell(kind)

    @rule(seconds=st.sampled_from([0, 1, 1, 2, 7, 30]))
    def advance(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def tick(self) -> None:
        due = self.changes.due(self.now)
        expected = [
            kind for kind in KINDS if kind in self.news and self.told[kind][-1] + self.window <= self.now
        ]
        assert due == expected
        for kind in due:
            self.tell(kind)
        assert self.changes.next_deadline is None or self.changes.next_deadline > self.now
        assert self.changes.due(self.now) == []

    @invariant()
    def a_change_that_was_not_told_has_its_time(self) -> None:
        if hasattr(self, "changes"):
            waiting = [self.told[kind][-1] + self.window for kind in self.news]
            assert self.changes.next_deadline == min(waiting, default=None)

    @invariant()
    def never_two_notices_within_a_window(self) -> None:
        if hasattr(self, "changes"):
            for times in self.told.values():
                assert all(later >= earlier + self.window for earlier, later in itertools.pairwise(times))

    def teardown(self) -> None:
        if not hasattr(self, "changes"):
            return
        self.now += self.window
        self.tick()
        assert not self.news, "the last change is always told"
        assert self.changes.next_deadline is None


TestChanges = ChangesMachine.TestCase


def test_ten_thousand_changes_in_a_second_are_a_few_notices() -> None:
    changes, told, now = Changes(0.1), 0, 0.0
    for number in range(10_000):
        now = number / 10_000
        told += changes.note("tools", now)
        due = changes.next_deadline
        if due is not None and due <= now:
            told += len(changes.due(now))
    told += len(changes.due(now + 0.1))
    assert 2 <= told <= 11
    assert changes.next_deadline is None


def test_a_change_after_its_window_is_told_once_even_if_the_timer_is_late() -> None:
    changes = Changes(1)
    assert changes.note("tools", 0)
    assert not changes.note("tools", 0.5)
    assert changes.note("tools", 2)
    assert changes.next_deadline is None
    assert changes.due(10) == []
