"""A program that uses the whole public API: type checkers must accept it, and infer what `assert_type` says.

It is checked by mypy (strict) and pyright (strict), and never run.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict, assert_type

import msgspec
from pydantic import BaseModel

from stanchion import (
    Config,
    Context,
    Registry,
    Server,
    Stanchion,
    SyncContext,
    ToolCall,
    ToolError,
    Verdict,
    allow,
    ask,
    deny,
)
from stanchion.content import Audio, EmbeddedResource, Image, Message, ResourceLink, Text, ToolResult


async def life(app: Stanchion) -> AsyncIterator[dict[str, str]]:
    """Open what the callbacks share; close it after the yield."""
    assert_type(app.registry, Registry)
    yield {"database": "open"}


async def strict(call: ToolCall) -> Verdict:
    """Decide asynchronously, by every fact a call has."""
    assert_type(call.tool.name, str)
    assert_type(call.tool.destructive, bool)
    assert_type(call.tool.read_only, bool)
    assert_type(call.listing, bool)
    assert_type(call.transport, str)
    assert_type(call.revision, str)
    if call.principal is None or call.arguments.get("force"):
        return deny("nobody is known to ask for this", hide=True)
    return ask(f"May {call.principal.name} run {call.tool.name}?")


def unknown(name: str) -> str | None:
    """Answer for tools that do not exist."""
    return f"{name} went away" if name.startswith("later_") else None


app = Stanchion(
    "typed",
    instructions="Nothing to see.",
    server_version="1.0",
    authorizer=strict,
    unknown_tool_reply=unknown,
    config=Config(max_in_flight=8, callback_timeout=10.0, drain=1.0),
    lifespan=life,
)
bare = Stanchion("bare")


class Row(TypedDict):
    """A result as a typed dictionary."""

    id: int
    name: str


class Point(msgspec.Struct):
    """A result as a struct."""

    x: float
    y: float


class Model(BaseModel):
    """A result as a pydantic model."""

    name: str


@dataclass
class Order:
    """A result as a dataclass."""

    id: str
    total: float


# The decorators return what they are given, so the functions stay what they were to every other caller.


@app.tool
async def plain(text: str) -> str:
    """A tool without options."""
    return text


@app.tool()
def plain_sync(text: str) -> str:
    """A tool with empty options."""
    return text


@app.tool(
    name="everything",
    title="Everything",
    description="All options at once.",
    read_only=True,
    destructive=False,
    idempotent=True,
    open_world=False,
    sensitive=False,
    isolation="thread",
    timeout=30.0,
    is_fault=lambda error: isinstance(error, ToolError) and error.fault,
    input_schema={"type": "object", "properties": {"size": {"type": "integer"}}},
    output_schema={"type": "object"},
    replace=True,
)
def everything(size: int = 1) -> dict[str, int]:
    """A tool with every option."""
    return {"size": size}


@app.tool(isolation="task")
async def with_context(
    ctx: Context, kind: Literal["a", "b"], size: Annotated[int, "How many."] = 1, label: str | None = None
) -> Order:
    """A coroutine that talks to its client."""
    assert_type(await ctx.progress(1, total=size, message=label), None)
    assert_type(await ctx.log("info", {"kind": kind}, logger="typing"), None)
    await ctx.debug("debug")
    await ctx.info("info")
    await ctx.notice("notice")
    await ctx.warning("warning")
    await ctx.error("error", logger="typing")
    assert_type(ctx.cancelled, bool)
    assert_type(ctx.request_id, int | str | None)
    assert_type(ctx.meta.get("key"), Any | None)
    if ctx.principal is not None:
        assert_type(ctx.principal.name, str)
    state: dict[str, str] = ctx.lifespan
    raise ToolError(f"no order in a {state['database']} database", fault=True)


@app.tool(isolation="inline")
def with_sync_context(ctx: SyncContext) -> Row:
    """A plain function that talks to its client."""
    assert_type(ctx.progress(1, total=2, message="half"), None)
    assert_type(ctx.log("warning", "text"), None)
    ctx.debug("debug")
    ctx.info("info")
    ctx.notice("notice")
    ctx.warning("warning")
    ctx.error("error")
    assert_type(ctx.cancelled, bool)
    return {"id": 1, "name": "one"}


@app.tool
async def point() -> Point:
    """A tool that returns a struct."""
    return Point(1, 2)


@app.tool
async def model() -> Model:
    """A tool that returns a model."""
    return Model(name="m")


@app.tool
async def contents() -> list[Text | Image | Audio | ResourceLink | EmbeddedResource]:
    """A tool that returns content of every kind."""
    return [
        Text("text"),
        Image(b"", "image/png"),
        Audio(b"", "audio/wav"),
        ResourceLink("config://settings", "settings"),
        EmbeddedResource("config://settings", text="text", mime_type="text/plain"),
        EmbeddedResource("config://settings", blob=b"\x00", mime_type="image/png"),
    ]


@app.tool
async def whole() -> ToolResult:
    """A tool that says everything itself."""
    return ToolResult(content=[Text("no")], structured={"no": True}, is_error=True, meta={"key": "value"})


@app.resource("config://settings", name="settings", title="Settings", description="…", mime_type="text/plain")
async def settings() -> str:
    """A resource."""
    return "theme = dark"


@app.resource("notes://{name}")
def note(name: str) -> bytes:
    """A template of resources."""
    return name.encode()


@app.prompt(name="greet", title="Greet", description="…")
async def greet(name: str, style: str = "casual") -> list[Message]:
    """A prompt of several messages."""
    return [Message("user", f"Greet {name} in a {style} way."), Message("assistant", Text("Gladly."))]


@app.prompt
def shout(text: str) -> str:
    """A prompt of one text."""
    return text.upper()


@app.completion("greet", "style")
def styles(value: str, context: dict[str, str]) -> list[str]:
    """Completion for a prompt."""
    return [style for style in ("casual", "formal") if style.startswith(value) and context]


@app.completion("notes://{name}", "name")
async def names(value: str, context: dict[str, str]) -> list[str]:
    """Completion for a template."""
    return [value, *context]


@bare.authorizer
def rules(call: ToolCall) -> Verdict:
    """Decide with a decorator."""
    return ask(f"Run {call.tool.name}?") if call.tool.destructive else allow()


@bare.lifespan
async def other_life(served: Stanchion) -> AsyncIterator[int]:
    """A lifespan by decorator."""
    assert_type(served.registry, Registry)
    yield 1


async def callers() -> None:
    """What everybody else sees of the decorated functions."""
    assert_type(await plain("x"), str)
    assert_type(plain_sync("x"), str)
    assert_type(everything(size=2), dict[str, int])
    assert_type(await point(), Point)
    assert_type(await settings(), str)
    assert_type(note("a"), bytes)
    assert_type(await greet("Ada"), list[Message])
    assert_type(shout("x"), str)
    assert_type(styles("", {}), list[str])
    assert_type(allow(), Verdict)
    assert_type(deny(), Verdict)
    assert_type(ask("Sure?"), Verdict)


def misuse() -> None:
    """Mistakes that a type checker must see: mypy fails if one of these comments has nothing to ignore."""
    app.tool(isolation="nowhere")  # type: ignore[call-overload]
    app.tool(timeout="long")  # type: ignore[call-overload]
    app.resource(name="no address")  # type: ignore[call-arg]
    Stanchion("misused", "instructions")  # type: ignore[call-arg]
    Config(max_in_flight="many")  # type: ignore[arg-type]
    ask()  # type: ignore[call-arg]


def main() -> None:
    """Change the tools while serving, then serve."""
    app.tool(name="later_echo", description="Registered by hand.")(plain)
    app.registry.unregister_tools(["later_echo"])
    assert_type(bare.server(), Server)
    assert_type(app.run(), None)


if __name__ == "__main__":
    main()
