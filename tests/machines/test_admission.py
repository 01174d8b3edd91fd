"""The slots beside a list of who holds what."""

from __future__ import annotations

import itertools
from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
)

from stanchion.machines.admission import Admission, Busy
from stanchion.wire.jsonrpc import Ref

HOLDERS = ("a", "b", "c")


class AdmissionMachine(RuleBasedStateMachine):
    """Nothing but two lists: work that holds a slot, and work that was written off."""

    refs = Bundle("refs")

    def __init__(self) -> None:
        super().__init__()
        self.numbers = itertools.count(1)
        self.holding: dict[Ref, str] = {}
        self.given_up: dict[Ref, str] = {}

    @initialize(total=st.integers(1, 6), shares=st.tuples(*(st.integers(1, 4) for _ in HOLDERS)))
    def begin(self, total: int, shares: tuple[int, ...]) -> None:
        self.total = total
        self.shares = dict(zip(HOLDERS, shares, strict=True))
        self.admission = Admission(total, lambda holder: self.shares[holder])

    def charge(self, holder: str) -> int:
        return Counter([*self.holding.values(), *self.given_up.values()])[holder]

    @rule(target=refs, holder=st.sampled_from(HOLDERS))
    def offer(self, holder: str) -> Ref:
        ref = Ref(next(self.numbers))
        busy = self.admission.offer(ref, holder)
        if self.charge(holder) >= self.shares[holder]:
            assert busy == Busy("share", self.shares[holder])
        elif len(self.holding) >= self.total:
            assert busy == Busy("server", self.total)
        else:
            assert busy is None  # work-conserving: a free slot is never withheld
            self.holding[ref] = holder
        return ref

    @rule(ref=refs)
    def write_off(self, ref: Ref) -> None:
        assert self.admission.write_off(ref) == (ref in self.holding)
        if ref in self.holding:
            self.given_up[ref] = self.holding.pop(ref)

    @rule(ref=consumes(refs))
    def release(self, ref: Ref) -> None:
        held = ref in self.holding or ref in self.given_up
        assert self.admission.release(ref) == held
        assert not self.admission.release(ref)
        self.holding.pop(ref, None)
        self.given_up.pop(ref, None)

    @invariant()
    def no_bound_is_passed(self) -> None:
        if not hasattr(self, "admission"):
            return
        assert self.admission.running == len(self.holding) <= self.total
        assert self.admission.written_off == len(self.given_up)
        for holder in HOLDERS:
            assert self.admission.charged(holder) == self.charge(holder) <= self.shares[holder]

    def teardown(self) -> None:
        if not hasattr(self, "admission"):
            return
        for ref in [*self.holding, *self.given_up]:
            assert self.admission.release(ref)
        assert self.admission.running == self.admission.written_off == 0
        assert not self.admission._charged
        assert not self.admission._holders
        assert not self.admission._written_off


TestAdmission = AdmissionMachine.TestCase


def test_a_share_bounds_even_when_the_server_is_idle() -> None:
    admission = Admission(8, lambda _: 1)
    assert admission.offer(Ref(1), "a") is None
    assert admission.offer(Ref(2), "a") == Busy("share", 1)
    assert admission.offer(Ref(3), "b") is None


def test_work_written_off_crowds_out_its_holder_alone() -> None:
    admission = Admission(1, lambda _: 1)
    admission.offer(Ref(1), "a")
    assert admission.offer(Ref(2), "b") == Busy("server", 1)
    assert admission.write_off(Ref(1))
    assert admission.offer(Ref(3), "b") is None
    assert admission.offer(Ref(4), "a") == Busy("share", 1)
    admission.release(Ref(1))
    assert admission.offer(Ref(5), "a") == Busy("server", 1)
