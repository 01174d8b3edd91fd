"""The official Python client, connected and bounded, and what servers tell it unasked."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.clients.serving import Where

PATIENCE = 15.0
LEGACY, MODERN = "2025-11-25", "2026-07-28"


@contextmanager
def within(what: str, seconds: float = PATIENCE) -> Iterator[None]:
    """Bound what stands inside, and say what was waited for when it takes too long."""
    try:
        with anyio.fail_after(seconds):
            yield
    except TimeoutError:
        pytest.fail(f"waited {seconds:g} s for {what}")


class Peer:
    """A connected client, and what the server told it without being asked."""

    def __init__(self, where: Where, mode: str, **options: Any) -> None:
        self.notices: list[types.ServerNotification | Exception] = []
        self.noticed = anyio.Event()
        self.client = Client(
            where if isinstance(where, str) else StdioServerParameters(command=where[0], args=where[1:]),
            mode=mode,
            read_timeout_seconds=PATIENCE,
            message_handler=self.hear,
            **options,
        )

    async def hear(self, message: types.ServerNotification | Exception) -> None:
        self.notices.append(message)
        self.noticed.set()
        self.noticed = anyio.Event()

    async def notice(self, kind: type[Any]) -> Any:
        """Wait until a notification of that kind has arrived."""
        with within(f"a {kind.__name__}"):
            while True:
                for notice in self.notices:
                    if isinstance(notice, kind):
                        return notice
                await self.noticed.wait()


@asynccontextmanager
async def connected(where: Where, mode: str, **options: Any) -> AsyncIterator[Peer]:
    peer = Peer(where, mode, **options)
    try:
        with within("the whole session", 4 * PATIENCE):
            async with peer.client:
                yield peer
    except BaseExceptionGroup as group:  # the client's task groups wrap what a test raises
        raise first(group) from None
    broken = [notice for notice in peer.notices if isinstance(notice, Exception)]
    assert not broken, f"the client could not read what the server sent: {broken}"


def first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def text(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text
