"""Batches beside a list of parts: each is answered once, with exactly its answers."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from stanchion.machines.batches import Batches
from stanchion.wire.jsonrpc import Answer, Ref, Response


class BatchesMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.batches = Batches()
        self.numbers = itertools.count(1)
        self.waiting: dict[Ref, list[Ref]] = {}
        self.answers: dict[Ref, list[Answer]] = {}
        self.ended: set[Ref] = set()

    @rule(size=st.integers(1, 5))
    def open(self, size: int) -> None:
        ref = Ref(next(self.numbers))
        parts = [Ref(next(self.numbers)) for _ in range(size)]
        self.batches.open(ref, parts)
        self.waiting[ref] = parts
        self.answers[ref] = []

    @rule(data=st.data(), silent=st.booleans())
    def settle(self, data, silent: bool) -> None:
        parts = [(batch, part) for batch, parts in self.waiting.items() for part in parts]
        if not parts:
            return
        batch, part = data.draw(st.sampled_from(parts))
        answer = None if silent else Response(int(part), {})
        whole = self.batches.settle(part, answer)
        self.waiting[batch].remove(part)
        if answer is not None:
            self.answers[batch].append(answer)
        if self.waiting[batch]:
            assert whole is None
        else:
            assert whole == (batch, tuple(self.answers[batch]))
            assert batch not in self.ended
            self.ended.add(batch)
            del self.waiting[batch]

    @rule(data=st.data())
    def abandon(self, data) -> None:
        ref = data.draw(st.sampled_from([Ref(0), *self.waiting]))
        assert self.batches.abandon(ref) == self.waiting.pop(ref, [])
        assert self.batches.abandon(ref) == []

    @invariant()
    def parts_are_known_until_they_are_settled(self) -> None:
        left = {part for parts in self.waiting.values() for part in parts}
        assert len(self.batches) == len(left)
        assert all(self.batches.is_part(part) for part in left)
        assert not self.batches.is_part(Ref(0))
        assert not any(self.batches.is_part(ref) for ref in self.ended)


TestBatches = BatchesMachine.TestCase


def test_a_batch_without_answers_has_none() -> None:
    batches = Batches()
    batches.open(Ref(1), [Ref(2), Ref(3)])
    assert batches.settle(Ref(3), None) is None
    assert batches.settle(Ref(2), None) == (Ref(1), ())
