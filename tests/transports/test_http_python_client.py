"""The official Python client over real HTTP, in both eras, against the probe; and an old and a new client at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import ClientSession, MCPError
from mcp.client import Client
from mcp.client.sse import sse_client
from mcp.client.subscriptions import ToolsListChanged

from tests.transports.http_process import Process, as_process

PATIENCE = 15.0
both = pytest.mark.parametrize("mode", ["legacy", "auto"])


@pytest.fixture(scope="module")
def probe() -> Iterator[Process]:
    with as_process("examples/probe.py", "--sse") as process:
        yield process


@asynccontextmanager
async def connected(probe: Process, mode: str, **options: Any) -> AsyncIterator[Client]:
    client = Client(f"{probe.url}/mcp", mode=mode, read_timeout_seconds=PATIENCE, **options)
    try:
        with anyio.fail_after(4 * PATIENCE):
            async with client:
                yield client
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


def text(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


@both
async def test_calls_lists_and_errors(probe: Process, mode: str) -> None:
    async with connected(probe, mode) as client:
        assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
        assert [tool.name for tool in (await client.list_tools()).tools][:2] == ["noop", "echo"]
        assert text(await client.call_tool("echo", {"text": "héllo ☃"})) == "héllo ☃"
        assert text(await client.call_tool("big", {"size": 3_000_000})) == "x" * 3_000_000
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("no_such_tool", {})
        assert (unknown.value.code, unknown.value.data["tool"]) == (types.INVALID_PARAMS, "no_such_tool")
        (content,) = (await client.read_resource("config://settings")).contents
        assert isinstance(content, types.TextResourceContents)
        with pytest.raises(MCPError) as missing:
            await client.read_resource("nowhere://at/all")
        assert missing.value.code == (-32002 if mode == "legacy" else types.INVALID_PARAMS)
        assert (await client.get_prompt("greet", {"name": "Ada", "style": "formal"})).messages


@both
async def test_progress_arrives_in_order(probe: Process, mode: str) -> None:
    seen: list[float] = []

    async def show(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async with connected(probe, mode) as client:
        assert text(await client.call_tool("progress", {"steps": 3}, progress_callback=show)) == "3 steps"
        assert seen == [1, 2, 3]


@both
async def test_a_slow_call_is_answered_on_its_stream(probe: Process, mode: str) -> None:
    async with connected(probe, mode) as client:
        assert text(await client.call_tool("sleep", {"seconds": 0.6})) == "slept 0.6 s"


@both
async def test_calls_run_beside_each_other_and_can_be_cancelled(probe: Process, mode: str) -> None:
    async with connected(probe, mode) as client:
        for _ in range(3):
            async with anyio.create_task_group() as group:
                for _ in range(10):
                    group.start_soon(client.call_tool, "sleep", {"seconds": 3600})
                await anyio.sleep(0.3)
                assert text(await client.call_tool("echo", {"text": "meanwhile"})) == "meanwhile"
                group.cancel_scope.cancel()
        assert text(await client.call_tool("echo", {"text": "after"})) == "after"


@both
async def test_list_changed_reaches_the_client(probe: Process, mode: str) -> None:
    changed = anyio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            changed.set()

    async with connected(probe, mode, message_handler=hear) as client:
        toggle = {"name": f"later_{mode}", "on": True}
        if mode == "legacy":
            await client.call_tool("toggle", toggle)
            with anyio.fail_after(PATIENCE):
                await changed.wait()
        else:
            async with client.listen(tools_list_changed=True) as events:
                await client.call_tool("toggle", toggle)
                with anyio.fail_after(PATIENCE):
                    assert await anext(events) == ToolsListChanged()
        assert f"later_{mode}" in {tool.name for tool in (await client.list_tools()).tools}
        await client.call_tool("toggle", toggle | {"on": False})


async def test_an_old_and_a_new_client_at_once(probe: Process) -> None:
    async with connected(probe, "legacy") as old, connected(probe, "auto") as new:
        for client in (old, new, old):
            assert text(await client.call_tool("echo", {"text": "x"})) == "x"
        assert (old.protocol_version, new.protocol_version) == ("2025-11-25", "2026-07-28")


async def test_the_old_pair(probe: Process) -> None:
    with anyio.fail_after(4 * PATIENCE):
        async with sse_client(f"{probe.url}/sse") as streams, ClientSession(*streams) as session:
            await session.initialize()
            assert text(await session.call_tool("echo", {"text": "old"})) == "old"
            assert (await session.list_tools()).tools
