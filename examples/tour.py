"""A tour in ten steps: an official MCP client talks to a Stanchion server over stdio.

Run it with `make run`. Every step says what it does, shows what came back, and checks it; the exit status is 1
if anything was not as it should be.
"""

import re
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import cast

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent, TextResourceContents
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table

SERVER = Path(__file__).with_name("tour_server.py")
PATIENCE = 30.0

console = Console(
    force_terminal=True,
    color_system="256",
    width=min(100, shutil.get_terminal_size((100, 24)).columns),
    highlight=False,
)


class UnexpectedError(Exception):
    """A step did not end the way this tour says it does."""


def expect(condition: object, otherwise: str) -> None:
    """Stop the tour, saying what was wrong, unless the condition holds."""
    if not condition:
        raise UnexpectedError(otherwise)


def step(number: int, title: str, why: str) -> None:
    """Head one step."""
    console.print()
    console.print(Rule(f"[bold cyan]{number}[/]  [bold]{title}[/]", align="left", style="cyan"))
    console.print(f"[dim]{why}[/]")


def sent(text: str) -> None:
    """Show what the client asks for."""
    console.print(f"  [cyan]→[/] {escape(text)}")


def came(text: str, colour: str = "green") -> None:
    """Show what came back."""
    for line in text.splitlines():
        console.print(f"  [{colour}]←[/] {escape(line)}")


def words(result: CallToolResult) -> str:
    """Return the text of a result."""
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


def fields(result: CallToolResult) -> dict[str, object]:
    """Return the data of a result."""
    data = result.structured_content
    return cast("dict[str, object]", data) if isinstance(data, dict) else {}


async def connect(client: Client) -> None:
    """Show who answered, and in which revision of the protocol."""
    step(1, "Connect", "The client starts the server as a child and asks which revision it speaks.")
    info = client.server_info
    expect(info is not None and info.name == "orders", f"the server calls itself {info}")
    came(f"{info.name if info else '?'} speaks MCP {client.protocol_version}")
    came(client.instructions or "no instructions")
    expect(client.protocol_version == "2026-07-28", f"the revision is {client.protocol_version}")


async def list_tools(client: Client) -> None:
    """Show the tools with their hints."""
    step(2, "List the tools", "Schemas come from the signatures, descriptions from the docstrings.")
    tools = (await client.list_tools()).tools
    table = Table("tool", "takes", "what for", box=None, padding=(0, 2), header_style="dim")
    for tool in tools:
        hints = tool.annotations
        colour = (
            "red"
            if hints and hints.destructive_hint
            else "green"
            if hints and hints.read_only_hint
            else "yellow"
        )
        takes = ", ".join(tool.input_schema.get("properties", {}))
        table.add_row(f"[{colour}]{tool.name}[/]", takes, (tool.description or "").splitlines()[0])
    console.print(table)
    console.print("  [dim][green]reads[/] · [yellow]writes[/] · [red]destroys[/][/]")
    expected = {"lookup", "cancel_order", "pack", "look_around", "export"}
    expect({tool.name for tool in tools} == expected, "the tools are not the five of the server")


async def call(client: Client) -> None:
    """Call a tool that returns a dataclass."""
    step(3, "Call a tool", "It returns a dataclass: the client gets the data, and the same as text.")
    sent("lookup(order_id='A-17')")
    result = await client.call_tool("lookup", {"order_id": "A-17"})
    came(str(fields(result)))
    expect(not result.is_error, f"lookup failed: {words(result)}")
    order = fields(result)
    expect(order.get("customer") == "Ada", f"the order is {order}")


async def follow(client: Client) -> None:
    """Show progress as it arrives."""
    step(4, "Follow a slow call", "Progress is shown the moment it arrives, before the result.")
    sent("pack(order_id='A-17')")
    seen: list[float] = []

    async def show(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)
        done, of = round(progress), round(total or 0)
        bar = f"[green]{'━━━━' * done}[/][dim]{'━━━━' * (of - done)}[/]"
        console.print(f"  [green]←[/] {bar} {done}/{of} {message}")

    result = await client.call_tool("pack", {"order_id": "A-17"}, progress_callback=show)
    came(words(result))
    expect(seen == [1, 2, 3, 4], f"progress arrived as {seen}")


async def cancel(client: Client) -> None:
    """Cancel a call that is running, and see that the work really ended."""
    step(5, "Change your mind", "A cancelled call gets no answer, and its work stops at once.")
    sent("pack(order_id='A-17', seconds=3600)")
    with anyio.CancelScope() as scope:

        async def change_mind(progress: float, total: float | None, message: str | None) -> None:
            came(f"{progress:g} of {total:g}: {message} …")
            scope.cancel()

        arguments = {"order_id": "A-17", "seconds": 3600}
        await client.call_tool("pack", arguments, progress_callback=change_mind)
    expect(scope.cancelled_caught, "the call ended by itself")
    sent("cancelled")
    packing: object = None
    with anyio.move_on_after(5):
        while packing != 0:
            packing = fields(await client.call_tool("look_around")).get("packing")
    came(f"look_around(): {packing} orders are being packed")
    expect(packing == 0, "the cancelled call is still at work")


async def mistake(client: Client) -> None:
    """Send arguments that do not fit."""
    step(6, "Get an argument wrong", "The model is told which one and why; no code of yours ran.")
    sent("lookup(order_id=17)")
    result = await client.call_tool("lookup", {"order_id": 17})
    came(words(result), "yellow")
    expect(result.is_error and "order_id" in words(result), "the answer does not name the argument")


async def refusal(client: Client) -> None:
    """Try what only a person may allow, with a client that cannot ask one."""
    step(
        7, "Try to destroy something", "The authorizer wants a person's yes. This client cannot ask one: no."
    )
    sent("cancel_order(order_id='A-17')")
    result = await client.call_tool("cancel_order", {"order_id": "A-17"})
    came(words(result), "red")
    verdict = fields(result)
    came(f"code = {verdict.get('code')}", "red")
    expect(result.is_error and verdict.get("code") == "authorization_required", f"it was answered {verdict}")
    status = fields(await client.call_tool("lookup", {"order_id": "A-17"})).get("status")
    came(f"lookup(): the order is still {status}")
    expect(status == "open", "the order was cancelled after all")


async def crash(client: Client, log: Path) -> None:
    """Crash a tool: the client learns a reference, the log learns the rest."""
    step(
        8,
        "Crash",
        "The exception holds a password: the client gets a reference, the log the rest.",
    )
    sent("export()")
    result = await client.call_tool("export")
    text = words(result)
    came(text, "red")
    expect(result.is_error, "a crash was answered as a success")
    expect("hunter2" not in text, "the password reached the client")
    logged = ""
    with anyio.move_on_after(5):
        while "ConnectionError" not in logged:
            await anyio.sleep(0.01)
            logged = log.read_text(encoding="utf-8")
    reference = next((word for word in re.findall(r"[\w-]{6,}", text) if re.search(r"\d", word)), "none")
    expect(reference in logged and "ConnectionError" in logged, "the log does not know the reference")
    console.print(f"  [dim]  the log names {reference}, with the traceback[/]")


async def read(client: Client) -> None:
    """Read a resource by a template."""
    step(9, "Read a resource", "One function serves every receipt.")
    for template in (await client.list_resource_templates()).resource_templates:
        came(f"template {template.uri_template}")
    sent("orders://A-17/receipt")
    (content,) = (await client.read_resource("orders://A-17/receipt")).contents
    text = content.text if isinstance(content, TextResourceContents) else "not a text"
    came(text)
    expect("Ada" in text and "lamp" in text, "that is not the receipt")


async def prompt(client: Client) -> None:
    """Get a prompt."""
    step(10, "Get a prompt", "A text for the model, filled in by the server.")
    sent("apology(order_id='B-42', tone='formal')")
    (message,) = (await client.get_prompt("apology", {"order_id": "B-42", "tone": "formal"})).messages
    text = message.content.text if isinstance(message.content, TextContent) else "not a text"
    came(f"{message.role}: {text}")
    expect("formal apology to Brook" in text, "that is not the prompt")


async def tour(log: Path) -> None:
    """Take every step, one after the other, on one connection."""
    server = StdioServerParameters(command=sys.executable, args=["-m", "stanchion", "run", str(SERVER)])
    shows: list[Callable[[Client], Awaitable[None]]] = [connect, list_tools, call, follow, cancel]
    shows += [mistake, refusal, partial(crash, log=log), read, prompt]
    with log.open("w", encoding="utf-8") as errors, anyio.fail_after(PATIENCE):
        async with Client(stdio_client(server, errlog=errors)) as client:
            for show in shows:
                await show(client)


def main() -> int:
    """Give the tour; return the exit status."""
    started = time.monotonic()
    console.print("[bold]Stanchion[/], a tour: [cyan]→[/] what the client sends, [green]←[/] what comes back")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "server.log")
        try:
            anyio.run(tour, log)
        except BaseException as error:  # whatever ended the tour, say what and show the server's side
            console.print(f"\n[bold red]✗ {escape(reason(error))}[/]")
            console.print("[dim]The server's log ends:[/]")
            console.print("\n".join(log.read_text("utf-8").splitlines()[-12:]), markup=False)
            return 1
    console.print(
        f"\n[bold green]✓ everything as it should be[/] [dim]in {time.monotonic() - started:.1f} s[/]"
    )
    return 0


def reason(error: BaseException) -> str:
    """Say in one line what ended the tour, looking into groups."""
    if isinstance(error, BaseExceptionGroup):
        return reason(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    if isinstance(error, TimeoutError):
        return f"the tour did not end within {PATIENCE:g} seconds"
    return str(error) if isinstance(error, UnexpectedError) else f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.exit(main())
