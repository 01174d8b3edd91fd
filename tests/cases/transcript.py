"""What a server sent, as it came in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Condition
from typing import Any, NoReturn

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One line from the server's stdout."""

    at: float
    """Seconds on the monotonic clock."""

    raw: bytes
    value: object
    """The strict JSON in it, or None when it is none."""


def parse(raw: bytes) -> object:
    """The JSON in *raw*, or None: not UTF-8, not JSON, or with ``NaN`` and its like, which JSON does not have."""
    try:
        return json.loads(raw.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def same(left: object, right: object) -> bool:
    """Equality as ids have it: ``1``, ``1.0``, ``"1"`` and ``True`` are four different ids."""
    return type(left) is type(right) and left == right


@dataclass(slots=True)
class Transcript:
    """The lines so far; the reader adds, everybody else waits for what they need."""

    lines: list[Line] = field(default_factory=list)
    ended: bool = False
    """No line will follow: the server closed its stdout, or we stopped reading for good."""

    changed: Condition = field(default_factory=Condition)

    _answers: dict[str, list[tuple[float, Message]]] = field(default_factory=dict)
    """Responses by their id as JSON, which keeps ``1``, ``1.0``, ``"1"`` and ``true`` apart."""

    def add(self, line: Line) -> None:
        with self.changed:
            self.lines.append(line)
            message = line.value
            if isinstance(message, dict) and "method" not in message and "id" in message:
                self._answers.setdefault(json.dumps(message["id"]), []).append((line.at, message))
            self.changed.notify_all()

    def end(self) -> None:
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def wait(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait until *done*, the end, or for *seconds*; return whether it was *done*."""
        with self.changed:
            self.changed.wait_for(lambda: self.ended or done(), seconds)
            return done()

    def messages(self) -> list[Message]:
        """Every JSON object received, in order."""
        return [message for _, message in self.timed()]

    def timed(self) -> Iterator[tuple[float, Message]]:
        for line in list(self.lines):
            if isinstance(line.value, dict):
                yield line.at, line.value

    def responses(self, id_: object) -> list[tuple[float, Message]]:
        """The responses to *id_* with their times; more than one when the server answered twice."""
        return list(self._answers.get(json.dumps(id_), ()))

    def result(self, id_: object) -> Message:
        """The result that *id_* was answered with, or an empty object."""
        for _, message in self.responses(id_):
            result = message.get("result")
            return result if isinstance(result, dict) else {}
        return {}

    def with_method(self, method: str) -> list[Message]:
        return [message for message in self.messages() if message.get("method") == method]

    def errors_without_id(self) -> list[Message]:
        return [message for message in self.messages() if "error" in message and message.get("id") is None]

    def last_tools(self) -> list[Message]:
        """The tools of the newest ``tools/list`` answer."""
        for message in reversed(self.messages()):
            result = message.get("result")
            if isinstance(result, dict) and isinstance(result.get("tools"), list):
                return list(result["tools"])
        return []


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
