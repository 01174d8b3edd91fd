"""Questions leave once: answered by whoever was asked, given up in time, or withdrawn with their call."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stanchion.machines.questions import Question, Questions
from stanchion.wire.jsonrpc import Ref

PATIENCE = 5.0


class Model(RuleBasedStateMachine):
    """A dict beside the machine; deadlines race answers."""

    def __init__(self) -> None:
        super().__init__()
        self.machine: Questions[str] = Questions()
        self.open: dict[str, Question[str]] = {}
        self.now = 0.0
        self.made = 0

    @rule(ref=st.integers(1, 4), connection=st.sampled_from("ab"))
    def ask(self, ref: int, connection: str) -> None:
        self.made += 1
        ident = f"q{self.made}"
        question = Question(ident, Ref(ref), connection, f"asker of {ident}", self.now + PATIENCE)
        self.machine.ask(question)
        self.open[ident] = question

    @rule(by=st.floats(0, 4))
    def wait(self, by: float) -> None:
        self.now += by

    @rule(data=st.data(), connection=st.sampled_from("ab"))
    def answer(self, data: st.DataObject, connection: str) -> None:
        ident = data.draw(st.sampled_from([*sorted(self.open), "unknown", 7, None]))
        expected = self.open.get(ident) if isinstance(ident, str) else None
        if expected is not None and expected.connection != connection:
            expected = None
        assert self.machine.answer(connection, ident) == expected
        if expected is not None:
            del self.open[expected.id]
            assert self.machine.answer(connection, ident) is None

    @precondition(lambda self: self.open)
    @rule(ref=st.integers(1, 4))
    def withdraw(self, ref: int) -> None:
        gone = {question.id for question in self.machine.withdraw(Ref(ref))}
        assert gone == {ident for ident, question in self.open.items() if question.ref == ref}
        for ident in gone:
            del self.open[ident]

    @rule()
    def expire(self) -> None:
        gone = [question.id for question in self.machine.expire(self.now)]
        assert gone == [ident for ident, question in self.open.items() if question.until <= self.now]
        for ident in gone:
            del self.open[ident]
        due = self.machine.next_deadline
        assert due is None or due > self.now

    @invariant()
    def they_agree(self) -> None:
        assert len(self.machine) == len(self.open)
        assert self.machine.next_deadline == min((one.until for one in self.open.values()), default=None)
        for ref in range(1, 5):
            assert self.machine.waits(Ref(ref)) == any(one.ref == ref for one in self.open.values())

    def teardown(self) -> None:
        self.now += 2 * PATIENCE
        self.machine.expire(self.now)
        assert not len(self.machine)


TestQuestions = Model.TestCase
