"""Plays an HTTP row against a server of its own, and judges what came of it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final, Self

from tests.cases.http_calls import HttpCall, until
from tests.cases.process import ROOT
from tests.cases.rows import Row

START_LIMIT: Final = 20.0
ANSWER_LIMIT: Final = 15.0
REQUEST_LIMIT: Final = 5.0
EXIT_LIMIT: Final = 12.0

Check = dict[str, Any]


class HttpDriver:
    """One server process and one row."""

    def __init__(self, row: Row, command: Sequence[str]) -> None:
        self.row = row
        self.calls: dict[str, HttpCall] = {}
        self.exited_after: float | None = None
        self._saved: dict[str, Any] = {}
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed on leaving
        self._process = subprocess.Popen(
            [*command, "--http", "127.0.0.1:0"], stdout=subprocess.DEVNULL, stderr=self._errors, cwd=ROOT
        )
        self._port = 0

    def __enter__(self) -> Self:
        assert until(lambda: "/mcp" in self.stderr() or self._process.poll() is not None, START_LIMIT)
        found = re.search(r"serving on http://[^:]+:(\d+)/mcp", self.stderr())
        assert found, self.stderr()
        self._port = int(found[1])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for call in self.calls.values():
            call.drop()
            call.join(ANSWER_LIMIT)
        self._errors.close()

    def stderr(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")

    def play(self) -> str | None:
        """Send everything, and return what is wrong, or None."""
        for step in self.row.send:
            self._step(step)
        return self._judge(self.row.check)

    def _step(self, step: dict[str, Any]) -> None:
        match step:
            case {"http": request}:
                self._ask(request)
            case {"op": "wait", "seconds": seconds}:
                time.sleep(seconds)
            case {"op": "join", "label": label, "seconds": seconds}:
                self.calls[label].join(seconds)
            case {"op": "drop", "label": label}:
                self.calls[label].drop()
            case {"op": "signal", "name": name}:
                self._process.send_signal(signal.Signals[name])
                began = time.monotonic()
                if until(lambda: self._process.poll() is not None, EXIT_LIMIT):
                    self.exited_after = time.monotonic() - began
            case _:
                msg = f"row {self.row.id}: unknown step {step!r:.100}"
                raise ValueError(msg)

    def _ask(self, request: dict[str, Any]) -> None:
        call = self.calls[request["label"]] = HttpCall(self._port, request, self._saved)
        if awaited := request.get("await_request"):
            until(lambda: call.with_method(awaited["method"]), REQUEST_LIMIT)
            asked = call.with_method(awaited["method"])
            self._saved[awaited["save"]] = asked[0]["id"] if asked else None
        elif not request.get("background"):
            call.join(ANSWER_LIMIT)
        for name, source in request.get("save", {}).items():
            self._saved[name] = call.headers.get(source.partition(":")[2], "")

    # -- checks

    def _judge(self, check: Check) -> str | None:
        if "all" in check:
            return next((fault for part in check["all"] if (fault := self._judge(part))), None)
        if "any" in check:
            faults = [self._judge(part) for part in check["any"]]
            return None if None in faults else " | ".join(filter(None, faults))
        for name, function in _CHECKS.items():
            if name in check:
                fault = function(self, check[name])
                return None if fault is None else f"{json.dumps(check):.120}: {fault}"
        return f"unknown check {json.dumps(check):.120}"

    def _status(self, wanted: dict[str, list[int]]) -> str | None:
        for label, statuses in wanted.items():
            call = self.calls[label]
            if call.status not in statuses:
                return f"{label}: {call.status} {call.fault or ''} {call.body!r:.140}"
        return None

    def _status_class(self, wanted: tuple[str, int]) -> str | None:
        status = self.calls[wanted[0]].status
        return None if (status or 0) // 100 == wanted[1] else f"{status}"

    def _status_not(self, wanted: tuple[str, int]) -> str | None:
        status = self.calls[wanted[0]].status
        return f"{status}" if status in {None, wanted[1]} else None

    def _no_header(self, wanted: tuple[str, str]) -> str | None:
        return "it is there" if wanted[1] in self.calls[wanted[0]].headers else None

    def _header_matches(self, wanted: tuple[str, str, str]) -> str | None:
        value = self.calls[wanted[0]].headers.get(wanted[1], "")
        return None if re.match(wanted[2], value) else repr(value)

    def _stream_text(self, wanted: tuple[str, Any, str]) -> str | None:
        text = self._text(wanted[0], wanted[1])
        return None if text == wanted[2] else repr(text)

    def _stream_text_not(self, wanted: tuple[str, Any, str]) -> str | None:
        return "crossed" if self._text(wanted[0], wanted[1]) == wanted[2] else None

    def _stream_has_response(self, wanted: tuple[str, Any]) -> str | None:
        return None if self._response(wanted[0], wanted[1]) else f"{self.calls[wanted[0]].messages!r:.140}"

    def _stream_progress(self, wanted: tuple[str, Any, int]) -> str | None:
        label, token, least = wanted
        notices = self.calls[label].with_method("notifications/progress")
        count = sum(notice["params"].get("progressToken") == token for notice in notices)
        return None if count >= least else f"{count} of them"

    def _pending(self, label: str) -> str | None:
        call = self.calls[label]
        ended = [one for one in call.messages if "result" in one or "error" in one]
        return f"{ended[-1]!r:.140}" if ended else None

    def _not_executed(self, name: str) -> str | None:
        return "it ran" if f"EXECUTED:{name}" in self.stderr() else None

    def _exits_within(self, seconds: float) -> str | None:
        after = self.exited_after
        return None if after is not None and after <= seconds else f"ended after {after}"

    def _response(self, label: str, ident: Any) -> dict[str, Any] | None:
        for message in self.calls[label].messages:
            if message.get("id") == ident and ("result" in message or "error" in message):
                return message
        return None

    def _text(self, label: str, ident: Any) -> str | None:
        response = self._response(label, ident) or {}
        if "result" not in response:
            return None
        return "".join(block.get("text", "") for block in response["result"].get("content", []))


_CHECKS: Final[dict[str, Callable[[HttpDriver, Any], str | None]]] = {
    "status": HttpDriver._status,
    "status_class": HttpDriver._status_class,
    "status_not": HttpDriver._status_not,
    "no_header": HttpDriver._no_header,
    "header_matches": HttpDriver._header_matches,
    "stream_text": HttpDriver._stream_text,
    "stream_text_not": HttpDriver._stream_text_not,
    "stream_has_response": HttpDriver._stream_has_response,
    "stream_progress": HttpDriver._stream_progress,
    "pending": HttpDriver._pending,
    "not_executed": HttpDriver._not_executed,
    "exits_within": HttpDriver._exits_within,
}
