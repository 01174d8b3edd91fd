"""Plays a row against a server and settles: afterwards its check can be judged."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Self

from tests.cases.checks import Seen, is_ready, walk
from tests.cases.process import ServerProcess
from tests.cases.rows import Row
from tests.cases.transcript import Message, parse
from tests.wire_schema import REVISIONS, SchemaChecker

STEP_LIMIT: Final = 8.0
"""Seconds that a step waits for the response or request it names."""

QUIET: Final = 0.2
"""Seconds in which a message that should not come may still come."""

ALIVE_LIMIT: Final = 5.0
"""Seconds for a server that is alive to say so."""

ALIVE_ID: Final = "alive-check"
DEFAULT_REVISION: Final = "2025-06-18"
CHUNK: Final = 1 << 20


class Driver:
    """One server process and one row."""

    def __init__(self, row: Row, command: Sequence[str]) -> None:
        self.row = row
        self.server = ServerProcess(command, row.env)
        self.seen = Seen(self.server.transcript, self.server)
        self._saved: dict[str, object] = {}
        self._methods: dict[str, set[str]] = {}
        """Every id we asked with, as JSON, and what it asked for."""

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.__exit__(kind, error, trace)

    def play(self) -> Seen:
        """Send everything, wait for what the check names, and return what was seen."""
        for step in self.row.send:
            self._step(step)
        self.seen.last_step = time.monotonic()
        self._settle()
        return self.seen

    def schema_faults(self) -> list[str]:
        """What is wrong with any message received, by the revision that was negotiated."""
        checker = SchemaChecker(self._revision())
        return [
            f"{fault} in {json.dumps(message):.200}"
            for message in self.server.transcript.messages()
            for fault in self._judge(checker, message)
        ]

    def _judge(self, checker: SchemaChecker, message: Message) -> list[str]:
        methods = self._methods.get(json.dumps(message.get("id")), set())
        verdicts = [checker.check_sent(message, method) for method in methods]
        return min(verdicts, key=len) if verdicts else checker.check_sent(message)

    def _revision(self) -> str:
        for message in self.server.transcript.messages():
            result = message.get("result")
            revision = result.get("protocolVersion") if isinstance(result, dict) else None
            if revision in REVISIONS:
                return str(revision)
        return DEFAULT_REVISION

    def _step(self, step: Any) -> None:
        match step:
            case str():
                self._send_line(step.encode("utf-8", "surrogatepass"))
            case {"jsonrpc": _}:
                self._send_line(json.dumps(step).encode())
            case {"op": "wait", "seconds": seconds}:
                time.sleep(seconds)
            case {"op": "raw_b64", "data": data}:
                self._send(base64.b64decode(data))
            case {"op": "line_gen"}:
                self.seen.sent.setdefault("1", time.monotonic())
                for piece in _generated(step):
                    self.server.write(piece)
            case {"op": "await_response", "id": id_}:
                self.seen.transcript.wait(lambda: bool(self.seen.transcript.responses(id_)), STEP_LIMIT)
            case {"op": "await_request", "method": method, "save": name}:
                self._await_request(method, name)
            case {"op": "reply", "to": name}:
                self._reply(name, {key: step[key] for key in ("result", "error") if key in step})
            case {"op": "close_stdin"}:
                self.server.close_stdin()
            case {"op": "close_stdout"}:
                self.server.close_stdout()
            case {"op": "pause_read", "seconds": seconds}:
                self.server.pause_reading(seconds)
            case {"op": "signal", "name": name}:
                self.server.signal(name)
            case _:
                msg = f"row {self.row.id}: unknown step {step!r:.100}"
                raise ValueError(msg)

    def _send_line(self, line: bytes) -> None:
        self._send(line + b"\n")

    def _send(self, data: bytes) -> None:
        for line in data.split(b"\n"):
            self._note(parse(line))
        self.server.write(data)

    def _note(self, sent: object) -> None:
        """Remember when a request was first sent and what it asked, for times and for the schema."""
        for message in sent if isinstance(sent, list) else [sent]:
            if isinstance(message, dict) and "id" in message and isinstance(message.get("method"), str):
                id_ = json.dumps(message["id"])
                self.seen.sent.setdefault(id_, time.monotonic())
                self._methods.setdefault(id_, set()).add(message["method"])

    def _await_request(self, method: str, name: str) -> None:
        transcript = self.seen.transcript

        def asked() -> list[Message]:
            return [message for message in transcript.with_method(method) if "id" in message]

        if transcript.wait(lambda: bool(asked()), STEP_LIMIT):
            self.seen.server_request = asked()[-1]
            self._saved[name] = self.seen.server_request["id"]

    def _reply(self, name: str, answer: dict[str, Any]) -> None:
        if name in self._saved:
            self._send_line(json.dumps({"jsonrpc": "2.0", "id": self._saved[name], **answer}).encode())

    def _settle(self) -> None:
        """Wait for the answers the check names, then for silence, then for life or the end."""
        check = self.row.check
        transcript = self.seen.transcript
        transcript.wait(lambda: is_ready(check, self.seen), self.row.timeout)
        names = {key for part in walk(check) for key in part}
        if "exits_within" not in names or "alive_after" in names:
            transcript.wait(lambda: False, QUIET)
        if "alive_after" in names:
            self._send_line(json.dumps({"jsonrpc": "2.0", "id": ALIVE_ID, "method": "tools/list"}).encode())
            self.seen.alive = transcript.wait(lambda: bool(transcript.responses(ALIVE_ID)), ALIVE_LIMIT)
        if "exits_within" in names and not self.seen.alive:
            limit = max(part["exits_within"] for part in walk(check) if "exits_within" in part)
            if self.server.wait_exit(self.seen.last_step + limit - time.monotonic()):
                self.seen.exited_after = time.monotonic() - self.seen.last_step


def _generated(step: dict[str, Any]) -> Iterator[bytes]:
    """The bytes of a long line, a megabyte at a time."""
    yield step["prefix"].encode()
    fill = step["fill"].encode()
    left = step["count"]
    while left:
        count = min(left, CHUNK)
        yield fill * count
        left -= count
    yield step["suffix"].encode() + b"\n"
