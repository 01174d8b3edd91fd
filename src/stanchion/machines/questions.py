"""Questions put to clients by running callbacks (handshake revisions), until each is answered or given up.

Owns the open questions: each leaves exactly once, by its client's answer, its deadline, or the end of its call. Only the
connection that was asked can answer; an answer from another one, a second answer, an answer to an unknown question change
nothing (behaviour C4). Deadlines are equally long, so the open questions are in order of deadline.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from msgspec import Struct

from stanchion.wire.jsonrpc import Ref

Asker = TypeVar("Asker")


class Question(Struct, Generic[Asker], frozen=True):
    """One request of ours that a client has not answered."""

    id: str
    """The request's id: made where it was asked, unguessable."""
    ref: Ref
    """The call that asks."""
    connection: Hashable
    asker: Asker
    """Whom to tell."""
    until: float
    """When it is given up, in the clock's seconds."""


class Questions(Generic[Asker]):
    """The open questions."""

    def __init__(self) -> None:
        self._open: dict[str, Question[Asker]] = {}
        self._of: dict[Ref, set[str]] = {}

    def __len__(self) -> int:
        """Open questions."""
        return len(self._open)

    def ask(self, question: Question[Asker]) -> None:
        """Take a question in."""
        self._open[question.id] = question
        self._of.setdefault(question.ref, set()).add(question.id)

    def waits(self, ref: Ref) -> bool:
        """Whether a call has open questions."""
        return ref in self._of

    def answer(self, connection: Hashable, ident: object) -> Question[Asker] | None:
        """The question that a client has answered; None if it was not asked that."""
        question = self._open.get(ident) if isinstance(ident, str) else None
        if question is None or question.connection != connection:
            return None
        self._drop(question)
        return question

    def withdraw(self, ref: Ref) -> list[Question[Asker]]:
        """Give up all questions of a call."""
        questions = [self._open[ident] for ident in sorted(self._of.get(ref, ()))]
        for question in questions:
            self._drop(question)
        return questions

    @property
    def next_deadline(self) -> float | None:
        """When the first question is given up."""
        return next((question.until for question in self._open.values()), None)

    def expire(self, now: float) -> list[Question[Asker]]:
        """Give up the questions that are due. Afterwards ``next_deadline`` is later than *now*, or None."""
        due = []
        for question in self._open.values():
            if question.until > now:
                break
            due.append(question)
        for question in due:
            self._drop(question)
        return due

    def _drop(self, question: Question[Asker]) -> None:
        del self._open[question.id]
        left = self._of[question.ref]
        left.discard(question.id)
        if not left:
            del self._of[question.ref]
