"""stdio as a client of any revision meets it: real processes, real pipes, real signals."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tests.transports.line_client import LineClient, modern, serving
from tests.wire_schema import SchemaChecker

SERVER = """
import asyncio, subprocess, sys, threading, time
from stanchion import Config, Context, Stanchion

app = Stanchion("stdio", config=Config(drain=1.0, max_message_bytes=100_000))


@app.tool
async def echo(text: str) -> str:
    return text


@app.tool
async def wait_for(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"


@app.tool
def block() -> str:
    print("blocking", file=sys.stderr, flush=True)
    time.sleep(3600)


@app.tool
async def delegate() -> str:
    print("delegating", file=sys.stderr, flush=True)
    await asyncio.to_thread(time.sleep, 3600)


@app.tool
def spin() -> str:
    print("spinning", file=sys.stderr, flush=True)
    while True:
        pass


@app.tool
async def freeze() -> str:
    print("frozen", file=sys.stderr, flush=True)
    while True:
        pass


@app.tool
def noisy() -> str:
    print("printed")
    sys.stdout.write("written")
    subprocess.run([sys.executable, "-c", "print('from a child')"])
    return repr(sys.stdin.read())


@app.tool
def big(size: int) -> str:
    return "x" * size


@app.tool
async def steps(context: Context) -> str:
    for step in range(1, 4):
        await context.progress(step, 3, "step")
        await context.info({"step": step})
    return "done"


@app.tool
def grow() -> str:
    app.tool(name="grown")(lambda: "new")
    return "grown"


@app.resource("config://a")
def settings() -> str:
    return "a"
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("stdio") / "server.py"
    file.write_text(SERVER)
    return file


async def until_stderr(client: LineClient, word: bytes) -> None:
    assert client.process.stderr is not None
    while word not in await asyncio.wait_for(client.process.stderr.readline(), 20):
        pass


def text(message: dict[str, object]) -> str:
    result = message["result"]
    assert isinstance(result, dict)
    return "".join(block["text"] for block in result["content"])


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ],
)
async def test_every_handshake_revision_is_served(file: Path, asked: str, agreed: str) -> None:
    async with serving(file) as client:
        answer = await client.shake_hands(asked)
        assert answer["result"]["protocolVersion"] == agreed
        client.ask(1, "tools/list")
        client.call(2, "echo", text="hi")
        client.ask(3, "resources/read", {"uri": "config://nothing"})
        assert {tool["name"] for tool in (await client.answer_to(1))["result"]["tools"]} >= {"echo", "steps"}
        assert text(await client.answer_to(2)) == "hi"
        assert (await client.answer_to(3))["error"]["code"] == -32002


async def test_requests_of_both_eras_are_served_on_one_pipe(file: Path) -> None:
    checker = SchemaChecker("2026-07-28")
    async with serving(file) as client:
        client.send(modern(1, "server/discover"))
        found = await client.answer_to(1)
        assert checker.check_sent(found, "server/discover") == []
        client.send(modern(2, "tools/call", {"name": "echo", "arguments": {"text": "modern"}}))
        answer = await client.answer_to(2)
        assert checker.check_sent(answer, "tools/call") == []
        assert answer["result"]["resultType"] == "complete"
        await client.shake_hands("2025-06-18")
        client.call(2, "echo", text="legacy")
        assert (await client.until(lambda message: message.get("id") == 2))["result"] == {
            "content": [{"type": "text", "text": "legacy"}]
        }


async def test_a_listener_is_acknowledged_told_and_ended(file: Path) -> None:
    checker = SchemaChecker("2026-07-28")
    async with serving(file) as client:
        client.send(modern("l", "subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
        first = await client.line()
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {"toolsListChanged": True}
        client.send(modern(1, "tools/call", {"name": "grow"}))
        told = await client.until(lambda message: message.get("method", "").endswith("list_changed"))
        assert told["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "l"}
        client.close_stdin()
        ended = await client.answer_to("l")
        assert ended["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "l"
        last = await client.line()
        assert (last["method"], last["params"]) == ("notifications/cancelled", {"requestId": "l"})
        assert [fault for one in client.heard for fault in checker.check_sent(one)] == []
        assert await client.end() == 0


async def test_batches_belong_to_one_revision(file: Path) -> None:
    batch = (
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call",'
        b'"params":{"name":"echo","arguments":{"text":"b"}}},{"jsonrpc":"2.0","method":"notifications/x"},7]'
    )
    async with serving(file) as client:
        await client.shake_hands("2025-03-26")
        client.send(batch)
        line = await client.process.stdout.readline()  # type: ignore[union-attr]
        assert sorted(line.count(part) for part in (b'"id":1', b'"id":2', b"-32600")) == [1, 1, 1]
        assert line.startswith(b"[")
    async with serving(file) as client:
        await client.shake_hands("2025-06-18")
        client.send(batch)
        refused = await client.line()
        assert (refused["error"]["code"], refused["id"]) == (-32600, None)


async def test_a_line_too_long_is_answered_and_the_next_one_served(file: Path) -> None:
    async with serving(file) as client:
        await client.shake_hands("2025-11-25")
        client.send(b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 200_000 + b'"}')
        client.call(2, "echo", text="next")
        refused = await client.line()
        assert refused["error"]["code"] == -32600
        assert "id" not in refused
        assert text(await client.answer_to(2)) == "next"


async def test_progress_and_log_come_before_the_answer(file: Path) -> None:
    async with serving(file) as client:
        await client.shake_hands()
        client.ask(1, "tools/call", {"name": "steps", "_meta": {"progressToken": "t"}})
        await client.answer_to(1)
        methods = [message.get("method", "answer") for message in client.heard[1:]]
        assert methods == ["notifications/progress", "notifications/message"] * 3 + ["answer"]


async def test_nothing_printed_reaches_the_wire_and_stdin_is_empty(file: Path) -> None:
    async with serving(file) as client:
        await client.shake_hands()
        client.call(1, "noisy")
        assert text(await client.answer_to(1)) == "''"
        client.close_stdin()
        assert await client.end() == 0
        printed = await client.stderr()
        assert all(word in printed for word in ("printed", "written", "from a child"))


async def test_at_eof_what_is_in_flight_is_answered_within_the_drain(file: Path) -> None:
    async with serving(file) as client:
        await client.shake_hands()
        client.call(1, "wait_for", seconds=0.3)
        client.call(2, "wait_for", seconds=3600)
        client.close_stdin()
        assert text(await client.answer_to(1)) == "waited"
        with pytest.raises(EOFError):
            await client.line()
        assert await client.end() == 0


@pytest.mark.parametrize("tool", ["block", "spin", "freeze", "delegate"])
async def test_no_callback_keeps_the_process_from_its_end(file: Path, tool: str) -> None:
    async with serving(file) as client:
        await client.shake_hands()
        client.call(1, tool)
        await until_stderr(client, b"ing" if tool != "freeze" else b"frozen")
        client.ask(2, "ping")
        assert (await client.answer_to(2))["result"] == {}
        client.close_stdin()
        assert await client.end() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_is_a_clean_end(file: Path, number: signal.Signals) -> None:
    async with serving(file) as client:
        await client.shake_hands()
        client.call(1, "wait_for", seconds=0.3)
        client.ask(2, "ping")
        await client.answer_to(2)
        client.signal(number)
        assert text(await client.answer_to(1)) == "waited"
        assert await client.end() == 0
        assert await client.stderr() == ""


async def test_a_second_signal_waits_for_nobody(file: Path) -> None:
    async with serving(file, "--drain", "3600") as client:
        await client.shake_hands()
        client.call(1, "wait_for", seconds=3600)
        client.ask(2, "ping")
        await client.answer_to(2)
        client.signal(signal.SIGTERM)
        client.signal(signal.SIGINT)
        assert await client.end() == 0


async def test_a_client_that_does_not_read_gets_everything_once_it_does(file: Path) -> None:
    async with serving(file) as client:
        await client.shake_hands()
        for ident in range(8):
            client.call(ident, "big", size=1_000_000)
        client.ask("p", "ping")
        assert len(text(await client.answer_to(7))) == 1_000_000
        for ident in range(7):
            assert len(text(await client.answer_to(ident))) == 1_000_000
        assert (await client.answer_to("p"))["result"] == {}


async def test_a_blocked_loop_is_replaced_and_later_calls_are_served(file: Path) -> None:
    async with serving(file) as client:
        await client.shake_hands()
        client.call(1, "freeze")
        await until_stderr(client, b"frozen")
        client.call(2, "echo", text="still here")
        assert text(await client.answer_to(2)) == "still here"
