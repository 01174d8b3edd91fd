"""The peer: an echo on the official SDK's low-level server, its least costly way."""

from __future__ import annotations

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

ECHO = types.Tool(
    name="echo",
    description="Return the text that was sent.",
    input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
)


async def list_tools(_: object, __: object) -> types.ListToolsResult:
    """Offer the echo."""
    return types.ListToolsResult(tools=[ECHO])


async def call_tool(_: object, params: types.CallToolRequestParams) -> types.CallToolResult:
    """Echo."""
    text = (params.arguments or {})["text"]
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


async def main() -> None:
    """Serve on stdio."""
    server = Server("peer", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
