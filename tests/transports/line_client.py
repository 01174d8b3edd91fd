"""A client that speaks lines to a server process, for tests of what is on the wire."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.wire_schema import SchemaChecker

PATIENCE = 20.0
"""Seconds that tell an answer from a hang."""

Message = dict[str, Any]


class LineClient:
    """One server process. Each message it sends is held to the schema of the revision that was agreed on."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.heard: list[Message] = []
        self._checker: SchemaChecker | None = None
        self._asked: dict[Any, str] = {}

    def send(self, *messages: Message | bytes) -> None:
        assert self.process.stdin is not None
        for message in messages:
            if isinstance(message, bytes):
                self.process.stdin.write(message + b"\n")
            else:
                if "method" in message and "id" in message:
                    self._asked[json.dumps(message["id"])] = message["method"]
                self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def ask(self, ident: int | str, method: str, params: Any = None) -> None:
        message: Message = {"jsonrpc": "2.0", "id": ident, "method": method}
        self.send(message if params is None else {**message, "params": params})

    def call(self, ident: int | str, tool: str, **arguments: Any) -> None:
        self.ask(ident, "tools/call", {"name": tool, "arguments": arguments})

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def line(self) -> Message:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), PATIENCE)
        if not line:
            raise EOFError("the server closed its stdout")
        message: Message = json.loads(line)
        if self._checker is not None:
            asked = self._asked.get(json.dumps(message.get("id"))) if "method" not in message else None
            assert self._checker.check_sent(message, asked) == []
        self.heard.append(message)
        return message

    async def until(self, wanted: Callable[[Message], bool]) -> Message:
        while not wanted(message := await self.line()):
            pass
        return message

    async def answer_to(self, ident: int | str) -> Message:
        for message in self.heard:
            if "method" not in message and message.get("id") == ident:
                return message
        return await self.until(lambda message: "method" not in message and message.get("id") == ident)

    async def shake_hands(self, revision: str = "2025-06-18", **capabilities: Any) -> Message:
        client = {"name": "lines", "version": "0"}
        params = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": client}
        self.ask("init", "initialize", params)
        answer = await self.answer_to("init")
        self._checker = SchemaChecker(answer["result"]["protocolVersion"])
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def end(self) -> int:
        return await asyncio.wait_for(self.process.wait(), PATIENCE)

    async def stderr(self) -> str:
        assert self.process.stderr is not None
        return (await asyncio.wait_for(self.process.stderr.read(), PATIENCE)).decode()


@asynccontextmanager
async def serving(file: Path, *arguments: str, command: tuple[str, ...] = ()) -> AsyncIterator[LineClient]:
    """Serve a file over stdio; whatever happens the process is gone afterwards."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *(command or ("-m", "stanchion", "run", str(file), *arguments)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=64 * 1024 * 1024,
    )
    try:
        yield LineClient(process)
    finally:
        if process.returncode is None:
            process.kill()
        # Reads what is left, so that the pipes are closed here and not by the garbage collector.
        await process.communicate()


def modern(ident: int | str, method: str, params: Message | None = None, **meta: Any) -> Message:
    """A request that describes itself (2026-07-28)."""
    about = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        **meta,
    }
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": {**(params or {}), "_meta": about}}
