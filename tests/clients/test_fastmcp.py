"""FastMCP's client, in both eras, on stdio and over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest

from tests.clients.peer import LEGACY, MODERN, PATIENCE, first, within
from tests.clients.serving import Where

if TYPE_CHECKING:
    from fastmcp.client import Client

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("mode", ["legacy", "auto"])


@asynccontextmanager
async def connected(where: Where, mode: str, **options: Any) -> AsyncIterator[Client[Any]]:
    from fastmcp.client import Client  # takes a second, which only these tests should pay
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    transport = (
        StreamableHttpTransport(where)
        if isinstance(where, str)
        else StdioTransport(where[0], where[1:], keep_alive=False)
    )
    client = Client(transport, mode=mode, timeout=PATIENCE, init_timeout=PATIENCE, **options)
    try:
        with within("the whole session", 4 * PATIENCE):
            async with client:
                yield client
    except BaseExceptionGroup as group:
        raise first(group) from None


@pytest.mark.parametrize(
    ("mode", "revision"),
    [("legacy", LEGACY), ("auto", MODERN), (MODERN, MODERN)],
    ids=["legacy", "auto", "pinned"],
)
async def test_it_connects_in_its_mode(probe: Where, mode: str, revision: str) -> None:
    async with connected(probe, mode) as client:
        assert client.protocol_version == revision
        assert (await client.call_tool("echo", {"text": "héllo ☃"})).content[0].text == "héllo ☃"


@both
async def test_it_lists_and_calls_tools(probe: Where, mode: str) -> None:
    from fastmcp.exceptions import ToolError

    async with connected(probe, mode) as client:
        assert {"echo", "typed", "guarded"} <= {tool.name for tool in await client.list_tools()}
        assert (await client.call_tool("add", {"a": 2, "b": 3})).content[0].text == "5"
        typed = await client.call_tool("typed")
        assert typed.structured_content == {"name": "typed", "total": 3, "tags": ["a", "b"]}
        assert (typed.data.name, typed.data.total, typed.data.tags) == ("typed", 3, ["a", "b"])
        with pytest.raises(ToolError, match="no such element"):
            await client.call_tool("fail_tool_error", {"message": "no such element"})


@both
async def test_it_reads_resources(probe: Where, mode: str) -> None:
    async with connected(probe, mode) as client:
        assert [str(one.uri) for one in await client.list_resources()] == ["config://settings"]
        assert [one.uri_template for one in await client.list_resource_templates()] == ["notes://{name}"]
        (note,) = await client.read_resource("notes://today")
        assert note.text == "buy milk"


@both
async def test_it_gets_and_completes_a_prompt(probe: Where, mode: str) -> None:
    async with connected(probe, mode) as client:
        assert [one.name for one in await client.list_prompts()] == ["greet"]
        got = await client.get_prompt("greet", {"name": "Ada", "style": "formal"})
        assert got.messages[0].content.text == "Greet Ada in a formal way."
        greet = types.PromptReference(name="greet")
        completion = await client.complete(greet, {"name": "style", "value": "c"})
        assert completion.values == ["casual", "ceremonial"]


@both
async def test_it_sees_progress(probe: Where, mode: str) -> None:
    seen: list[tuple[float, float | None]] = []

    async def show(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total))

    async with connected(probe, mode) as client:
        result = await client.call_tool("progress", {"steps": 3}, progress_handler=show)
        assert result.content[0].text == "3 steps"
        assert seen == [(1, 3), (2, 3), (3, 3)]


@both
async def test_it_cancels_a_call_and_goes_on(probe: Where, mode: str) -> None:
    async with connected(probe, mode) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "hold")
            await client.call_tool("held", {"count": 1})
            group.cancel_scope.cancel()
        assert (await client.call_tool("held", {"count": 0})).content[0].text == "0 held"


@both
async def test_it_is_asked(asker: Where, mode: str) -> None:
    async def answer(message: str, kind: type[Any], params: Any, context: Any) -> dict[str, Any]:
        return {"size": "small", "sugar": True}

    async with connected(asker, mode, elicitation_handler=answer) as client:
        assert (await client.call_tool("brew")).content[0].text == "small, sugar"
