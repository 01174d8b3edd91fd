"""What a callback is given to talk with: progress, log, and the facts of its request. Nothing ambient.

Owns the two faces of the context (``Context`` for coroutines, ``SyncContext`` for plain functions) and the limit on how
much one call may send. It does not own what becomes of a message: the kernel knows whether its call still lives and
whether the client wants it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import Any, Final, TypeVar

import msgspec

from stanchion.machines.throttle import Throttle
from stanchion.registry.authorizer import Principal
from stanchion.registry.signature import ContextParameter
from stanchion.server.asking import Asker
from stanchion.server.ports import Clock, Facts, Logged, Mailbox, Progressed
from stanchion.server.questions import (
    Elicit,
    Elicited,
    ElicitUrl,
    Question,
    Root,
    Roots,
    Sample,
    Sampled,
    lacking,
)
from stanchion.wire.codec import encode_value
from stanchion.wire.jsonrpc import Id, Ref
from stanchion.wire.model import LOG_LEVELS, JsonObject, LogLevel

Answer = TypeVar("Answer")

_TRACE_KEYS: Final = ("traceparent", "tracestate", "baggage")


class CallContext(ContextParameter):
    """The part both faces share. Made by a crew for one job; of no use after it."""

    def __init__(
        self,
        ref: Ref,
        facts: Facts,
        mailbox: Mailbox,
        clock: Clock,
        *,
        rate: float = 50.0,
        lifespan: Any = None,
    ) -> None:
        """Bind a context to one job.

        Args:
            ref: The job's call.
            facts: What the callback may know.
            mailbox: Where messages go.
            clock: Seconds, for the limit.
            rate: Progress and log messages let through a second.
            lifespan: What the app's lifespan yielded.
        """
        self._ref = ref
        self._facts = facts
        self._mailbox = mailbox
        self._clock = clock
        self._throttle = Throttle(rate, clock())
        self._last: float | None = None
        self._withheld: Progressed | None = None
        self._cancelled = False
        self._lifespan = lifespan
        self._asker: Asker | None = None
        self._asked = 0

    @property
    def request_id(self) -> Id | None:
        """The client's id of this request; None when the embedding program called."""
        return self._facts.request_id

    @property
    def principal(self) -> Principal | None:
        """Who the transport proved the caller to be."""
        return self._facts.principal

    @property
    def transport(self) -> str:
        """Which transport carries the client, as the server's side declared it."""
        return self._facts.transport

    @property
    def revision(self) -> str:
        """The protocol revision of this request, such as ``2025-11-25``."""
        return self._facts.profile.revision

    @property
    def client_info(self) -> Mapping[str, Any]:
        """Who the client says it is: for display only."""
        return self._facts.client_info or {}

    @property
    def meta(self) -> Mapping[str, Any]:
        """``params._meta`` of the request, whole."""
        if self._facts.meta is None:
            return {}
        value = msgspec.json.decode(self._facts.meta)
        return value if isinstance(value, dict) else {}

    @property
    def trace(self) -> Mapping[str, str]:
        """The W3C trace context that came with the request: those of traceparent, tracestate, baggage that are text."""
        meta = self.meta
        return {key: meta[key] for key in _TRACE_KEYS if isinstance(meta.get(key), str)}

    @property
    def lifespan(self) -> Any:
        """What the app's lifespan yielded; None without one."""
        return self._lifespan

    @property
    def cancelled(self) -> bool:
        """Whether the caller has given up on this call."""
        return self._cancelled

    def can_ask(self, question: Question[Any]) -> bool:
        """Whether the client declared that it can be asked this."""
        return not lacking(question.needs, self._facts.abilities)

    # -- for the crew

    def mark_cancelled(self) -> None:
        """Let the callback see that nobody waits any more."""
        self._cancelled = True
        if self._asker is not None:
            self._asker.close()

    def flush(self) -> None:
        """Send the last progress if the limit held it back. The crew calls this before it reports the end."""
        if self._withheld is not None:
            self._mailbox.post(self._withheld)
            self._withheld = None

    # -- for the faces

    def _asking(self) -> Asker:
        if self._asker is None:
            self._asker = Asker(self._ref, self._facts, self._mailbox)
        return self._asker

    def _key(self, given: str | None) -> str:
        """The name of a question: the same each time the callback is run, as long as it asks in the same order."""
        self._asked += 1
        return f"question-{self._asked}" if given is None else given

    def _put(
        self, questions: Mapping[str, Question[Any]]
    ) -> tuple[dict[str, Any], dict[str, Future[JsonObject]]]:
        """The answers that are there, and those to wait for; ends the run if nobody waits in this era."""
        asker = self._asking()
        answers = asker.known(questions)
        missing = {key: question for key, question in questions.items() if key not in answers}
        asker.check(missing)
        if missing and not asker.waits:
            raise asker.needed(missing)
        return answers, {key: asker.post(question) for key, question in missing.items()}

    def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        _check_progress(progress, total, message)
        if not self._facts.wants_progress or self._cancelled:
            return
        # Values must rise (basic/utilities/progress); one that does not, or that JSON has no word for, is not worth a
        # message.
        if not _is_sayable(progress) or (self._last is not None and progress <= self._last):
            return
        self._last = progress
        known = total if total is not None and _is_sayable(total) else None
        report = Progressed(self._ref, progress, known, message)
        if self._throttle.take(self._clock()):
            self._withheld = None
            self._mailbox.post(report)
        else:
            self._withheld = report

    def _log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        if level not in LOG_LEVELS:
            raise ValueError(f"level must be one of {', '.join(LOG_LEVELS)}")
        if not isinstance(logger, str | None):
            raise TypeError("the name of a logger is text")
        if self._cancelled or LOG_LEVELS.index(level) < self._facts.log_floor:
            return
        if not self._throttle.take(self._clock()):
            return
        try:
            encoded: Any = encode_value(data)
        except Exception:  # noqa: BLE001 - whatever a value's encoder raises, a log line must not end the call
            encoded = f"<{type(data).__name__} that is not JSON>"
        self._mailbox.post(Logged(self._ref, level, encoded, logger))


class Context(CallContext):
    """The context of an ``async def`` callback: ask for it with a parameter annotated ``Context``."""

    async def ask(self, questions: Mapping[str, Question[Any]]) -> dict[str, Any]:
        """Ask the client several things at once.

        In the handshake revisions this waits. In 2026-07-28 it ends the run until the client comes back with the answers;
        the callback is then run again from its top. So come to the same questions again, and do nothing before the last
        one that must not be done in every round; see ``once``.

        Args:
            questions: By keys of your choice, which must be the same each time the callback is run.

        Returns:
            The answers by the same keys: ``Elicited`` for forms and pages, ``Sampled``, or a list of ``Root``.

        Raises:
            CannotAsk: The client did not declare that it can be asked this.
            AskFailed: It was asked and there is no answer.
        """
        answers, waited = self._put(questions)
        for key, future in waited.items():
            answers[key] = self._asking().read(questions[key], await asyncio.wrap_future(future))
        return {key: answers[key] for key in questions}

    async def elicit(self, message: str, form: Any, *, key: str | None = None) -> Elicited:
        """Have a person fill in a form; see ``ask``.

        Args:
            message: What is asked, and why. No secrets, in neither direction.
            form: A class with plain fields, or a JSON schema of such.
            key: Names the question. Default: its place among the questions of this run.
        """
        return await self._ask_one(Elicit(message, form), key)

    async def elicit_url(self, message: str, url: str, *, key: str | None = None) -> Elicited:
        """Have a person open a page; a yes means opened, not done. See ``ask``."""
        return await self._ask_one(ElicitUrl(message, url), key)

    async def sample(self, messages: Any, *, key: str | None = None, **options: Any) -> Sampled:
        """Have the client's model complete messages, or answer a text; see ``ask``, and ``Sample`` for the options."""
        return await self._ask_one(Sample(messages, **options), key)

    async def roots(self, *, key: str | None = None) -> list[Root]:
        """The places that the client works in; see ``ask``."""
        return await self._ask_one(Roots(), key)

    async def once(self, key: str, effect: Callable[[], Any]) -> Any:
        """Do something once, however often the callback is run, and have its result each time.

        The result travels to the client and back, sealed: it must be JSON, small and no secret. If the client never comes
        back, or comes back late, the effect stays done.

        Args:
            key: Names the effect.
            effect: What to do; may be a coroutine function.
        """
        memo = self._asking().memo()
        if key not in memo:
            result = effect()
            memo[key] = msgspec.to_builtins(await result if isinstance(result, Awaitable) else result)
        return memo[key]

    async def _ask_one(self, question: Question[Answer], key: str | None) -> Answer:
        name = self._key(key)
        answer: Answer = (await self.ask({name: question}))[name]
        return answer

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far this call is. Silent unless the client asked for progress.

        Args:
            progress: Must rise from one message to the next; one that does not is dropped.
            total: What *progress* will be at the end, if known.
            message: A line for a person (sent from revision 2025-03-26 on).

        Raises:
            TypeError: A value is of another type.
        """
        self._progress(progress, total, message)

    async def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send a log message to the client, if it wants this level.

        Args:
            level: One of ``stanchion.wire.model.LOG_LEVELS``.
            data: Text or anything that is JSON. It leaves the machine: no secrets.
            logger: A name for the source.

        Raises:
            ValueError: *level* is not a log level.
        """
        self._log(level, data, logger)

    async def debug(self, data: Any, logger: str | None = None) -> None:
        """``log("debug", …)``."""
        self._log("debug", data, logger)

    async def info(self, data: Any, logger: str | None = None) -> None:
        """``log("info", …)``."""
        self._log("info", data, logger)

    async def notice(self, data: Any, logger: str | None = None) -> None:
        """``log("notice", …)``."""
        self._log("notice", data, logger)

    async def warning(self, data: Any, logger: str | None = None) -> None:
        """``log("warning", …)``."""
        self._log("warning", data, logger)

    async def error(self, data: Any, logger: str | None = None) -> None:
        """``log("error", …)``."""
        self._log("error", data, logger)


class SyncContext(CallContext):
    """The context of a plain ``def`` callback: the same names, without ``await``."""

    def ask(self, questions: Mapping[str, Question[Any]]) -> dict[str, Any]:
        """Ask the client several things at once; see ``Context.ask``."""
        answers, waited = self._put(questions)
        for key, future in waited.items():
            answers[key] = self._asking().read(questions[key], future.result())
        return {key: answers[key] for key in questions}

    def elicit(self, message: str, form: Any, *, key: str | None = None) -> Elicited:
        """Have a person fill in a form; see ``Context.elicit``."""
        return self._ask_one(Elicit(message, form), key)

    def elicit_url(self, message: str, url: str, *, key: str | None = None) -> Elicited:
        """Have a person open a page; see ``Context.elicit_url``."""
        return self._ask_one(ElicitUrl(message, url), key)

    def sample(self, messages: Any, *, key: str | None = None, **options: Any) -> Sampled:
        """Have the client's model complete messages; see ``Context.sample``."""
        return self._ask_one(Sample(messages, **options), key)

    def roots(self, *, key: str | None = None) -> list[Root]:
        """The places that the client works in; see ``Context.roots``."""
        return self._ask_one(Roots(), key)

    def once(self, key: str, effect: Callable[[], Any]) -> Any:
        """Do something once, however often the callback is run; see ``Context.once``."""
        memo = self._asking().memo()
        if key not in memo:
            memo[key] = msgspec.to_builtins(effect())
        return memo[key]

    def _ask_one(self, question: Question[Answer], key: str | None) -> Answer:
        name = self._key(key)
        answer: Answer = self.ask({name: question})[name]
        return answer

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far this call is; see ``Context.progress``."""
        self._progress(progress, total, message)

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """Send a log message to the client, if it wants this level; see ``Context.log``."""
        self._log(level, data, logger)

    def debug(self, data: Any, logger: str | None = None) -> None:
        """``log("debug", …)``."""
        self._log("debug", data, logger)

    def info(self, data: Any, logger: str | None = None) -> None:
        """``log("info", …)``."""
        self._log("info", data, logger)

    def notice(self, data: Any, logger: str | None = None) -> None:
        """``log("notice", …)``."""
        self._log("notice", data, logger)

    def warning(self, data: Any, logger: str | None = None) -> None:
        """``log("warning", …)``."""
        self._log("warning", data, logger)

    def error(self, data: Any, logger: str | None = None) -> None:
        """``log("error", …)``."""
        self._log("error", data, logger)


def _check_progress(progress: object, total: object, message: object) -> None:
    """Tell an author at once what no client could be told."""
    if isinstance(progress, bool) or not isinstance(progress, int | float):
        raise TypeError("progress is a number")
    if isinstance(total, bool) or not isinstance(total, int | float | None):
        raise TypeError("total is a number, or None")
    if not isinstance(message, str | None):
        raise TypeError("the message of a progress is text")


def _is_sayable(number: float) -> bool:
    """Whether JSON, and those who read it, have a number like this."""
    return -sys.float_info.max <= number <= sys.float_info.max
