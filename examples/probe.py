"""A server whose tools misbehave on purpose: what the failure rows and the client tests call.

Each tool does one thing a server must survive (block, print, crash, return what JSON cannot say), or one
thing a client must see (progress, logs, structured results, tools that come and go). Serve it with
`stanchion run examples/probe.py`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, NoReturn, TypeVar

from stanchion import Context, Stanchion, ToolCall, ToolError, Verdict, allow, ask
from stanchion.content import Audio, EmbeddedResource, Image, Message, ResourceLink, Text, ToolResult

T = TypeVar("T")
Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

# The smallest PNG (one transparent pixel) and the smallest WAV (a header and no samples).
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000b49444154789c6360000200000500017a5eab3f0000000049454e44ae426082"
)
SILENCE = bytes.fromhex(
    "524946462400000057415645666d74201000000001000100401f0000401f0000010008006461746100000000"
)

app = Stanchion(
    "probe",
    instructions="Every tool here tests one way in which a server can fail. Nothing is useful.",
    server_version="1.0",
)


@app.authorizer
def rules(call: ToolCall) -> Verdict:
    """Ask a person before anything guarded runs; let everything else through."""
    if call.tool.name.startswith("guarded"):
        return ask(f"Run {call.tool.name}?")
    return allow()


# -- plain calls


@app.tool(read_only=True, idempotent=True)
async def noop() -> str:
    """Do nothing and say so."""
    return "ok"


@app.tool(title="Echo", read_only=True, idempotent=True, open_world=False)
async def echo(text: str) -> str:
    """Return the text that was sent.

    Args:
        text: Any text at all.
    """
    return text


@app.tool(read_only=True)
async def add(a: int, b: int) -> str:
    """Add two whole numbers and return the sum as text."""
    return str(a + b)


@app.tool(read_only=True)
async def optional(label: str | None = None) -> str:
    """Take an argument that may be left out or null."""
    return f"label is {label!r}"


@app.tool
async def count() -> str:
    """Leave a mark on stderr, so that a test can count how often the call really ran."""
    mark("count")
    return "counted"


# -- time and size


@app.tool
async def sleep(seconds: float) -> str:
    """Wait without blocking; can be cancelled."""
    await asyncio.sleep(seconds)
    return f"slept {seconds:g} s"


@app.tool
async def sleep_echo(seconds: float, text: str) -> str:
    """Wait, then return the text."""
    await asyncio.sleep(seconds)
    return text


@app.tool
def block(seconds: float) -> str:
    """Hold the thread it runs in for that long, as careless synchronous code does."""
    time.sleep(seconds)
    return f"blocked {seconds:g} s"


@app.tool(read_only=True)
async def big(size: int) -> str:
    """Return that many characters."""
    return "x" * size


# -- the process's own streams


@app.tool
def noisy(text: str) -> str:
    """Write to stdout with `print` and with `sys.stdout`; neither may reach the client."""
    print(text, flush=True)
    sys.stdout.write(f"{text}\n")
    return "printed twice"


@app.tool
def spawn(mode: Literal["print", "read_stdin"]) -> str:
    """Start a child that inherits our streams and prints to stdout, or reads stdin to its end."""
    code = {
        "print": "print('hello from a child')",
        "read_stdin": "import sys; print(len(sys.stdin.buffer.read()))",
    }[mode]
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=20)
    return f"child ended with {done.returncode}"


# -- what a call says while it runs


@app.tool
async def progress(steps: int, ctx: Context) -> str:
    """Report progress from 1 to `steps`."""
    for step in range(1, steps + 1):
        await ctx.progress(step, total=steps, message=f"step {step} of {steps}")
    return f"{steps} steps"


@app.tool
async def logmsg(level: Level, text: str, ctx: Context) -> str:
    """Send one log message to the client."""
    await ctx.log(level, text, logger="probe")
    return f"logged at {level}"


# -- failures


class NoText(Exception):
    """An exception whose `str` raises."""

    def __str__(self) -> str:
        """Raise."""
        raise ValueError(type(self).__name__)


class NoRepr(Exception):
    """An exception whose `repr` raises."""

    def __repr__(self) -> str:
        """Raise."""
        raise ValueError(type(self).__name__)


def pick(table: dict[str, T], kind: str) -> T:
    """Return the entry of that name, or tell the model which there are."""
    if kind not in table:
        raise ToolError(f"Unknown kind {kind!r}. Known: {', '.join(table)}.")
    return table[kind]


ODD: dict[str, Callable[[], BaseException]] = {
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
    "CancelledError": asyncio.CancelledError,
    "GeneratorExit": GeneratorExit,
    "ExceptionGroup": lambda: ExceptionGroup("several", [ValueError("one"), OSError("two")]),
    "BaseExceptionGroup": lambda: BaseExceptionGroup("several", [SystemExit(3), KeyboardInterrupt()]),
    "StopIteration": lambda: StopIteration("value"),
    "StopAsyncIteration": StopAsyncIteration,
    "RecursionError": lambda: RecursionError("too deep"),
    "MemoryError": MemoryError,
    "TimeoutError": TimeoutError,
    "BrokenPipeError": BrokenPipeError,
    "BaseException": lambda: BaseException("bare"),
    "empty": lambda: Exception(""),
    "bad_str": NoText,
    "bad_repr": NoRepr,
}


@app.tool
async def fail(message: str) -> NoReturn:
    """Crash: the client must not learn the message."""
    raise RuntimeError(message)


@app.tool
async def fail_tool_error(message: str) -> NoReturn:
    """Fail on purpose, with a text meant for the model."""
    raise ToolError(message)


@app.tool
async def raise_kind(kind: str) -> NoReturn:
    """Raise the named exception, most of them ones that `except Exception` does not catch."""
    make = pick(ODD, kind)
    raise make()


# -- results


@dataclass
class Report:
    """What `typed` promises to return."""

    name: str
    total: int
    tags: list[str]


def nested(depth: int, *, closed: bool = False) -> list[object]:
    """Return a list nested that deep, or one that holds itself."""
    outer: list[object] = []
    inner = outer
    for _ in range(depth):
        outer = [outer]
    if closed:
        inner.append(outer)
    return outer


VALUES: dict[str, Callable[[], object]] = {
    "text": lambda: "plain text",
    "empty": lambda: "",
    "none": lambda: None,
    "bool": lambda: True,
    "int": lambda: 7,
    "huge_int": lambda: 10**400,
    "float": lambda: 2.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "nested_nan": lambda: {"values": [1.0, float("nan"), float("-inf")]},
    "surrogate": lambda: "before \ud800 after",
    "nul": lambda: "before \x00 after",
    "list": lambda: [1, "two", None],
    "empty_list": list,
    "dict": lambda: {"a": 1, "b": [True]},
    "int_keys": lambda: {1: "one", None: "none"},
    "set": lambda: {3},
    "bytes": lambda: b"\x00\xff",
    "object": object,
    "function": lambda: nested,
    "exception": lambda: ValueError("returned, not raised"),
    "generator": lambda: (number for number in range(3)),
    "datetime": lambda: datetime(2026, 7, 28, 12, 30, tzinfo=UTC),
    "dataclass": lambda: Report("returned", 2, ["x"]),
    "circular": lambda: nested(1, closed=True),
    "deep": lambda: nested(5000),
    "image": lambda: Image(PIXEL, "image/png"),
    "audio": lambda: Audio(SILENCE, "audio/wav"),
    "link": lambda: ResourceLink("config://settings", "settings"),
    "embedded": lambda: EmbeddedResource("notes://today", text="buy milk", mime_type="text/plain"),
    "blob": lambda: EmbeddedResource("notes://pixel", blob=PIXEL, mime_type="image/png"),
    "mixed": lambda: [Text("a picture:"), Image(PIXEL, "image/png")],
    "result": lambda: ToolResult(
        content=[Text("whole")], structured={"whole": True}, meta={"probe/kind": "result"}
    ),
    "error_result": lambda: ToolResult(content=[Text("refused by the tool")], is_error=True),
}


@app.tool(read_only=True)
async def return_value(kind: str) -> object:
    """Return the named value, most of them awkward to write as JSON."""
    return pick(VALUES, kind)()


@app.tool(read_only=True)
async def typed(fail: bool = False) -> Report:  # noqa: FBT001, FBT002  wire name
    """Return a result with a declared shape, or raise instead."""
    if fail:
        raise RuntimeError("typed was told to fail")
    return Report(name="typed", total=3, tags=["a", "b"])


# -- tools that come and go


@app.tool
async def toggle(name: str, on: bool, kind: Literal["echo", "sleep"] = "echo") -> str:  # noqa: FBT001  wire name
    """Register or unregister a tool while the server is serving."""
    if not on:
        app.registry.unregister_tools([name])
        return f"unregistered {name}"
    app.tool(name=name, description=f"A {kind} that came later.", replace=True)(later(kind))
    return f"registered {name}"


@app.tool
async def toggle_many(count: int, on: bool = True) -> str:  # noqa: FBT001, FBT002  wire name
    """Register, or unregister, `bulk_0` to `bulk_<count - 1>` one after the other."""
    for number in range(count):
        name = f"bulk_{number}"
        if on:
            app.tool(name=name, replace=True)(later("echo"))
        else:
            app.registry.unregister_tools([name])
    return f"{'registered' if on else 'unregistered'} {count}"


def later(kind: Literal["echo", "sleep"]) -> Callable[..., object]:
    """Make a fresh function for a tool that is registered at run time."""

    async def later_echo(text: str = "") -> str:
        """Echo, registered at run time."""
        return text

    async def later_sleep(seconds: float = 0) -> str:
        """Sleep, registered at run time."""
        await asyncio.sleep(seconds)
        return f"slept {seconds:g} s"

    return later_sleep if kind == "sleep" else later_echo


# -- tools that need a person


@app.tool(destructive=True)
async def guarded() -> str:
    """Run only after a person said yes."""
    mark("guarded")
    return "ran"


@app.tool(destructive=True)
async def guarded_short() -> str:
    """Run only after a person said yes; meant to be asked with little patience."""
    mark("guarded_short")
    return "ran"


def mark(name: str) -> None:
    """Say on stderr that a callback really ran: tests look for this line."""
    print(f"EXECUTED:{name}", file=sys.stderr, flush=True)


# -- resources, prompts, completion

NOTES = {"today": "buy milk", "tomorrow": "drink milk"}
STYLES = ["casual", "ceremonial", "formal"]


@app.resource("config://settings", name="settings", title="Settings", mime_type="text/plain")
async def settings() -> str:
    """Say how the probe is set up."""
    return "theme = dark"


@app.resource("notes://{name}", name="note", title="A note", mime_type="text/plain")
async def note(name: str) -> str:
    """Read one note."""
    return NOTES.get(name, f"nothing noted for {name}")


@app.prompt(name="greet", title="Greet somebody")
async def greet(name: str, style: str = "casual") -> list[Message]:
    """Ask the model for a greeting in a given style."""
    return [Message("user", f"Greet {name} in a {style} way."), Message("assistant", "With pleasure.")]


@app.completion("greet", "style")
async def greet_styles(value: str, context: dict[str, str]) -> list[str]:
    """Complete the style; a name that was already given as `Majesty` narrows it."""
    offered = ["ceremonial"] if context.get("name") == "Majesty" else STYLES
    return [style for style in offered if style.startswith(value)]


@app.completion("notes://{name}", "name")
def note_names(value: str, context: dict[str, str]) -> list[str]:
    """Complete the name of a note."""
    return [name for name in NOTES if name.startswith(value)]


if __name__ == "__main__":
    app.run()
