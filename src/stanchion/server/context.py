"""What a callback is given to talk with: progress, log, and the facts of its request. Nothing ambient.

Owns the two faces of the context (``Context`` for coroutines, ``SyncContext`` for plain functions) and the limit on how
much one call may send. It does not own what becomes of a message: the kernel knows whether its call still lives and
whether the client wants it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from stanchion.machines.throttle import Throttle
from stanchion.registry.authorizer import Principal
from stanchion.registry.signature import ContextParameter
from stanchion.server.ports import Clock, Facts, Logged, Mailbox, Progressed
from stanchion.wire.codec import encode_value
from stanchion.wire.jsonrpc import Id, Ref
from stanchion.wire.model import LOG_LEVELS, LogLevel

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

    # -- for the crew

    def mark_cancelled(self) -> None:
        """Let the callback see that nobody waits any more."""
        self._cancelled = True

    def flush(self) -> None:
        """Send the last progress if the limit held it back. The crew calls this before it reports the end."""
        if self._withheld is not None:
            self._mailbox.post(self._withheld)
            self._withheld = None

    # -- for the faces

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
