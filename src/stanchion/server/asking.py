"""Asking the client from inside a callback, in both eras.

Owns the callback's side: what it has asked so far in this run, the answers it was given, and the effects it had done once.

In the handshake revisions a question is a request of ours; the callback waits, and goes on where it stands. In 2026-07-28 a
server asks nobody: the first unanswered question ends the run with ``input_required``, everything known so far travels to
the client in a sealed state, and the retry runs the callback again from its top, with the answers in hand. So a callback
that asks must come to the same questions again, and what it does before its last one is done in every round; ``once`` is for
effects that must not be.
"""

from __future__ import annotations

import concurrent.futures
import secrets
from collections.abc import Mapping
from typing import Any

import msgspec

from stanchion.server.ports import Facts, Kept, Mailbox, Questioned, Said, Unsaid
from stanchion.server.questions import AskFailed, CannotAsk, Question, Unfit, lacking
from stanchion.wire.codec import encode_value
from stanchion.wire.jsonrpc import Ref
from stanchion.wire.model import JsonObject


class InputNeeded(BaseException):
    """Ends a run that waits for answers (2026-07-28). Not an ``Exception``, so that a callback's own net lets it pass."""

    def __init__(self, requests: dict[str, JsonObject], kept: bytes) -> None:
        super().__init__("input required")
        self.requests = requests
        self.kept = kept


class Asker:
    """The questions of one call."""

    def __init__(self, ref: Ref, facts: Facts, mailbox: Mailbox) -> None:
        self._ref = ref
        self._facts = facts
        self._mailbox = mailbox
        kept = facts.kept
        self._kept = Kept({}, {}) if kept is None else Kept(dict(kept.answers), dict(kept.once))
        self._open: dict[str, concurrent.futures.Future[JsonObject]] = {}
        self._cancelled = False

    # -- what both eras share

    def memo(self) -> dict[str, Any]:
        """Results of effects done once, by their keys."""
        return self._kept.once

    def known(self, questions: Mapping[str, Question[Any]]) -> dict[str, Any]:
        """The answers there are already, read; one that does not fit is asked for again."""
        answers = {}
        for key, question in questions.items():
            given = self._kept.answers.get(key)
            if given is None:
                continue
            try:
                answers[key] = question.read(given)
            except Unfit:
                del self._kept.answers[key]
        return answers

    def check(self, questions: Mapping[str, Question[Any]]) -> None:
        """See that the client can be asked.

        Raises:
            CannotAsk: It did not declare it, or has no channel.
        """
        for question in questions.values():
            missing = lacking(question.needs, self._facts.abilities)
            if missing:
                raise CannotAsk(missing)

    @property
    def waits(self) -> bool:
        """Whether a question is waited for (handshake revisions) or ends the run (2026-07-28)."""
        return not self._facts.profile.modern

    # -- 2026-07-28

    def needed(self, questions: Mapping[str, Question[Any]]) -> InputNeeded:
        """What ends the run, so that the client can be asked."""
        requests: dict[str, JsonObject] = {
            key: {"method": one.method, "params": one.params} for key, one in questions.items()
        }
        return InputNeeded(requests, msgspec.json.encode(self._kept))

    # -- handshake revisions

    def post(self, question: Question[Any]) -> concurrent.futures.Future[JsonObject]:
        """Put a question to the client; its answer to come."""
        ident = f"ask-{secrets.token_urlsafe(18)}"
        future: concurrent.futures.Future[JsonObject] = concurrent.futures.Future()
        self._open[ident] = future
        if self._cancelled:
            self.close()
        else:
            params = encode_value(question.params)
            self._mailbox.post(Questioned(self._ref, ident, question.method, params, self._deliver))
        return future

    def read(self, question: Question[Any], answer: JsonObject) -> Any:
        """An answer that has come.

        Raises:
            AskFailed: It is none to this question.
        """
        try:
            return question.read(answer)
        except Unfit as error:
            raise AskFailed(f"The client's answer does not fit the question: {error}.") from None

    def close(self) -> None:
        """The call is over: whoever still waits for an answer is told so."""
        self._cancelled = True
        for ident in list(self._open):
            self._deliver(ident, Unsaid("the call was cancelled"))

    def _deliver(self, ident: str, answer: Said | Unsaid) -> None:
        future = self._open.pop(ident, None)
        if future is None or future.done():
            return
        if isinstance(answer, Said):
            try:
                future.set_result(msgspec.json.decode(answer.result, type=dict))
            except msgspec.DecodeError:
                future.set_exception(AskFailed("The client's answer is no object."))
        else:
            future.set_exception(AskFailed(f"The client was asked and did not answer: {answer.why}."))
