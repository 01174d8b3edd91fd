"""Questions of running callbacks, on their way to clients and back (handshake revisions).

Owns the sending of our requests, the matching of answers, and the giving up: when nobody answers in ``elicitation_timeout``
seconds, and when the call that asks has ended, in which case the question is withdrawn. While a call waits its own time
stands still. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, cast

from msgspec import Raw

from stanchion.machines.calls import Ledger, State
from stanchion.machines.questions import Question, Questions
from stanchion.server.config import Config
from stanchion.server.effects import Deliver, Effect, Emit, Push
from stanchion.server.ports import Questioned, Said, Unsaid
from stanchion.wire.codec import encode_value
from stanchion.wire.jsonrpc import Failure, Notification, Ref, Request, Response

Deliverer = Callable[[str, Said | Unsaid], None]


class Asks:
    """The questions that clients have not answered."""

    def __init__(self, config: Config, ledger: Ledger[Any]) -> None:
        self._timeout = config.elicitation_timeout
        self._ledger = ledger
        self._questions: Questions[Deliverer] = Questions()
        self._left: dict[Ref, float] = {}
        """Seconds that a waiting call has when it goes on."""

    def __len__(self) -> int:
        """Open questions."""
        return len(self._questions)

    @property
    def next_deadline(self) -> float | None:
        """When the first question is given up."""
        return self._questions.next_deadline

    def questioned(self, report: Questioned, now: float, out: list[Effect]) -> None:
        """A callback asks. It is told at once if its call has ended or nobody can be asked in its name.

        That is so for calls of the embedding program, and for clients of 2026-07-28, who are never sent requests (B20).
        """
        call = self._ledger.get(report.ref)
        if call is None or call.state is not State.RUNNING or call.id is None or call.profile.modern:
            out.append(Deliver(report.deliver, report.id, Unsaid("nobody can be asked")))
            return
        if not self._questions.waits(report.ref) and (left := self._ledger.time_left(call, now)) is not None:
            self._left[report.ref] = left
            self._ledger.unset_deadline(call)
        question = Question(report.id, report.ref, call.connection, report.deliver, now + self._timeout)
        self._questions.ask(question)
        out.append(Push(call.connection, Request(report.id, report.method, report.params), report.ref))

    def answered(
        self, connection: Hashable, message: Response | Failure, now: float, out: list[Effect]
    ) -> bool:
        """A client sends a response. False if it was not asked that (behaviour C4)."""
        question = self._questions.answer(connection, message.id)
        if question is None:
            return False
        if isinstance(message, Response):
            answer: Said | Unsaid = Said(cast("Raw", message.result))
        else:
            answer = Unsaid(f"it reported error {message.error.code}")
        out.append(Deliver(question.asker, question.id, answer))
        self._go_on(question.ref, now)
        return True

    def withdraw(self, ref: Ref, out: list[Effect]) -> None:
        """A call has ended: what it asked is asked no more."""
        self._left.pop(ref, None)
        for question in self._questions.withdraw(ref):
            self._give_up(question, "the call has ended", out)

    def expire(self, now: float, out: list[Effect]) -> None:
        """Give up the questions that nobody answered in time."""
        for question in self._questions.expire(now):
            out.append(Emit("question_timed_out", {"ref": question.ref}))
            self._give_up(question, f"nobody answered within {self._timeout:g} s", out)
            self._go_on(question.ref, now)

    def _give_up(self, question: Question[Deliverer], why: str, out: list[Effect]) -> None:
        params = encode_value({"requestId": question.id, "reason": why})
        out.append(Push(question.connection, Notification("notifications/cancelled", params), question.ref))
        out.append(Deliver(question.asker, question.id, Unsaid(why)))

    def _go_on(self, ref: Ref, now: float) -> None:
        """Let the call's own time run again, once it waits for nothing more."""
        call = self._ledger.get(ref)
        if (
            call is not None
            and not self._questions.waits(ref)
            and (left := self._left.pop(ref, None)) is not None
        ):
            self._ledger.set_deadline(call, left, now)
