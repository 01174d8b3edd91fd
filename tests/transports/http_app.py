"""The app that the HTTP tests call."""

from __future__ import annotations

import asyncio
from typing import Any

from stanchion import Config, Context, Stanchion
from stanchion.registry.features import Tool


def make_app(**options: Any) -> Stanchion:
    """An app with a few tools; ``cancelled`` lists the calls of ``wait`` that were cancelled."""
    app = Stanchion("http", config=Config(**options))
    cancelled: list[str] = []
    app.cancelled = cancelled  # type: ignore[attr-defined]
    app.flooded = flooded = []  # type: ignore[attr-defined,var-annotated]
    app.gates = gates = {}  # type: ignore[attr-defined,var-annotated]

    @app.tool
    async def echo(text: str) -> str:
        return text

    @app.tool
    async def steps(count: int, ctx: Context) -> str:
        for step in range(count):
            await ctx.progress(step + 1, total=count)
        return f"{count} steps"

    @app.tool
    async def wait(name: str, ctx: Context) -> str:
        """Say that it began, then wait for its gate."""
        await ctx.progress(1)
        gate = gates.setdefault(name, asyncio.Event())
        try:
            while not gate.is_set():
                await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            cancelled.append(name)
            raise
        await ctx.progress(2)
        return f"waited {name}"

    @app.tool
    async def who(ctx: Context) -> str:
        return f"{ctx.transport} {ctx.revision} {ctx.principal and ctx.principal.name}"

    @app.tool
    async def flood(count: int, size: int, ctx: Context) -> str:
        for number in range(count):
            await ctx.log("info", f"{number} {'x' * size}")
            if not number:
                await asyncio.sleep(0.05)  # for the response to begin
        flooded.append(count)
        return "flooded"

    @app.tool
    async def big(size: int) -> str:
        return "x" * size

    schema = {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {
                "type": "object",
                "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}},
            },
            "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        },
    }

    def mirrored(region: str = "", deep: Any = None, dry: bool = False) -> str:
        return "mirrored"

    app.registry.register_tools([Tool.of(mirrored, input_schema=schema)])

    @app.resource("note://one")
    async def note() -> str:
        return "a note"

    @app.prompt
    async def greet(name: str) -> str:
        return f"Greet {name}"

    return app
