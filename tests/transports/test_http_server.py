"""The app on a real socket, by real HTTP: bounds on heads, ends, signals, clients that vanish."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import importlib.util
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from stanchion.server.errors import CannotStart
from stanchion.serving import split_address
from stanchion.transports.http_server import listen
from tests.transports.http_app import make_app
from tests.transports.http_calls import JSON, META, MODERN, settled
from tests.transports.http_process import PATIENCE, as_process, on_socket

FILE = "import asyncio\nfrom stanchion import Stanchion\napp = Stanchion('x')\n"
ECHO = FILE + "@app.tool\nasync def echo(text: str) -> str: return text\n"
WAIT = (
    ECHO
    + "@app.tool\nasync def wait(seconds: float) -> str:\n    await asyncio.sleep(seconds)\n    return 'waited'\n"
)


@pytest.fixture(params=["httptools", "h11"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which of uvicorn's parsers reads HTTP."""
    name: str = request.param
    if name == "h11":
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    return name


def tool(name: str, arguments: Any, ident: int = 1) -> tuple[bytes, dict[str, str]]:
    params = {"name": name, "arguments": arguments, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}).encode()
    headers = JSON | {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": name}
    return body, headers


def ask(port: int, name: str, arguments: Any) -> Any:
    body, headers = tool(name, arguments)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("POST", "/mcp", body, headers)
    response = connection.getresponse()
    told = json.loads(response.read())
    connection.close()
    return told["result"]["content"][0]["text"]


def head(lines: list[str], body: bytes = b"") -> bytes:
    return "\r\n".join([*lines, "", ""]).encode() + body


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))


async def closed(reader: asyncio.StreamReader) -> bytes:
    """What comes until the server closes; being reset counts as that."""
    with contextlib.suppress(ConnectionError):
        return await asyncio.wait_for(reader.read(), PATIENCE)
    return b""


async def test_many_requests_share_a_connection(parser: str) -> None:
    async with on_socket(make_app()) as (url, _):
        reader, writer = await connect(url)
        body, headers = tool("echo", {"text": "x"})
        lines = ["POST /mcp HTTP/1.1", f"Host: {url[7:]}", f"Content-Length: {len(body)}"]
        request = head(lines + [f"{name}: {value}" for name, value in headers.items()], body)
        for _ in range(3):
            writer.write(request)
            told = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
            assert told.startswith(b"HTTP/1.1 200")
            assert b"server:" not in told
            length = next(
                int(line[15:]) for line in told.split(b"\r\n") if line.startswith(b"content-length")
            )
            assert b'"text":"x"' in await reader.readexactly(length)
        writer.close()


async def test_a_head_must_come_in_time(parser: str) -> None:
    async with on_socket(make_app(head_timeout=0.3)) as (url, _):
        for start in (
            b"",
            b"POST /mcp HTTP/1.1\r\nHost: ",
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: y\r\n",
        ):
            reader, writer = await connect(url)
            writer.write(start)
            began = time.monotonic()
            assert await closed(reader) == b""
            assert 0.2 < time.monotonic() - began < 5
            writer.close()


async def test_a_drip_of_bytes_does_not_buy_time(parser: str) -> None:
    async with on_socket(make_app(head_timeout=0.4)) as (url, _):
        reader, writer = await connect(url)
        writer.write(b"GET /health HTTP/1.1\r\n")

        async def drip() -> None:
            with contextlib.suppress(ConnectionError):
                while True:
                    writer.write(b"X: y\r\n")
                    await writer.drain()
                    await asyncio.sleep(0.05)

        dripping = asyncio.create_task(drip())
        began = time.monotonic()
        await closed(reader)
        assert time.monotonic() - began < 5
        dripping.cancel()
        writer.close()


async def test_the_time_for_a_head_begins_anew_with_each_request(parser: str) -> None:
    async with on_socket(make_app(head_timeout=0.3)) as (url, _):
        reader, writer = await connect(url)
        for _ in range(2):
            writer.write(head(["GET /health HTTP/1.1", "Host: 127.0.0.1"]))
            assert b"200 OK" in await asyncio.wait_for(reader.readuntil(b'"ok"}'), PATIENCE)
            await asyncio.sleep(0.4)
        writer.write(b"GET /health HTTP/1.1\r\n")
        assert await closed(reader) == b""
        writer.close()


async def test_an_endless_head_is_cut_off(parser: str) -> None:
    async with on_socket(make_app(max_header_bytes=10_000)) as (url, _):
        reader, writer = await connect(url)
        writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(1000):
                writer.write(b"X-%d: " % 1 + b"y" * 8000 + b"\r\n")
                await writer.drain()
        await closed(reader)
        writer.close()


async def test_an_endless_head_behind_an_open_stream_is_cut_off(parser: str) -> None:
    app: Any = make_app(max_header_bytes=10_000)
    async with on_socket(app) as (url, asgi):
        body, headers = tool("wait", {"name": "a"})
        lines = ["POST /mcp HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
        reader, writer = await connect(url)
        writer.write(head(lines + [f"{name}: {value}" for name, value in headers.items()], body))
        await settled(lambda: "a" in app.gates)
        writer.write(b"GET /health HTTP/1.1\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(1000):
                writer.write(b"X: " + b"y" * 8000 + b"\r\n")
                await writer.drain()
        await closed(reader)
        await settled(lambda: app.cancelled == ["a"])
        assert asgi.endpoint.held().requests == 0
        writer.close()


async def test_a_body_that_is_too_long_is_answered(parser: str) -> None:
    async with on_socket(make_app(max_body_bytes=1000)) as (url, _):
        for lines in (["Content-Length: 3000000"], ["Transfer-Encoding: chunked"]):
            reader, writer = await connect(url)
            chunk = b"x" * 3_000_000
            data = chunk if "Length" in lines[0] else b"%x\r\n" % len(chunk) + chunk + b"\r\n0\r\n\r\n"
            kind = "Content-Type: application/json"
            writer.write(head(["POST /mcp HTTP/1.1", "Host: localhost", kind, *lines], data))
            told = await closed(reader)
            assert told.startswith(b"HTTP/1.1 413")
            assert b"1000 bytes" in told
            writer.close()


async def test_clients_that_vanish_leave_nothing(parser: str) -> None:
    app: Any = make_app()
    async with on_socket(app) as (url, asgi):
        body, headers = tool("wait", {"name": "a"})
        lines = ["POST /mcp HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
        request = head(lines + [f"{name}: {value}" for name, value in headers.items()], body)
        for cut in (10, len(request) - 10, len(request)):
            _, writer = await connect(url)
            writer.write(request[:cut])
            await writer.drain()
            if cut == len(request):
                await settled(lambda: "a" in app.gates)
            writer.transport.abort()
        await settled(lambda: app.cancelled == ["a"])
        await settled(lambda: asgi.endpoint.held().requests == 0)
        assert asgi.endpoint.server.statistics().connections == 0


async def test_a_reader_that_stalls_is_cut_and_its_memory_bounded(parser: str) -> None:
    app: Any = make_app(reader_timeout=0.5)
    async with on_socket(app) as (url, asgi):
        body, headers = tool("big", {"size": 8_000_000})
        lines = ["POST /mcp HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(body)}"]
        reader, writer = await connect(url)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(head(lines + [f"{name}: {value}" for name, value in headers.items()], body))
        await settled(lambda: asgi.endpoint.held().requests == 1)
        await settled(lambda: asgi.endpoint.held().requests == 0)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert len(await closed(reader)) < 8_000_000
        writer.close()


# -- the command


def test_the_command_serves_and_ends_at_a_signal(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(WAIT)
    for number in (signal.SIGTERM, signal.SIGINT):
        with as_process(file) as server:
            assert ask(server.port, "echo", {"text": "hi"}) == "hi"
            began = time.monotonic()
            server.process.send_signal(number)
            assert server.process.wait(PATIENCE) == 0
            assert time.monotonic() - began < 3


def test_running_work_has_its_time_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(WAIT)
    with as_process(file) as server, waiting(server.port, 0.8) as connection:
        server.process.send_signal(signal.SIGTERM)
        assert b"waited" in connection.getresponse().read()
        assert server.process.wait(PATIENCE) == 0


def test_a_second_signal_waits_for_nobody(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(WAIT)
    with as_process(file, "--drain", "60") as server, waiting(server.port, 60) as connection:
        for _ in range(2):
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.2)
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())["id"]) == (503, 1)
        assert server.process.wait(5) == 0


@contextlib.contextmanager
def waiting(port: int, seconds: float) -> Iterator[http.client.HTTPConnection]:
    """A connection with a call under way."""
    body, headers = tool("wait", {"seconds": seconds})
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        connection.request("POST", "/mcp", body, headers)
        time.sleep(0.3)
        yield connection


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--http", "0.0.0.0:0"], "--insecure"),
        (["--http", "example.com:1"], "--insecure"),
        (["--http", "nonsense"], "HOST:PORT"),
        (["--http", "127.0.0.1:99999"], "HOST:PORT"),
        (["--sse"], "--http"),
        (["--insecure"], "--http"),
    ],
)
def test_a_start_that_makes_no_sense_ends_with_a_sentence(
    tmp_path: Path, options: list[str], sentence: str
) -> None:
    file = tmp_path / "server.py"
    file.write_text(ECHO)
    command = [sys.executable, "-m", "stanchion", "run", str(file), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert sentence in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(ECHO)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        command = [sys.executable, "-m", "stanchion", "run", str(file), "--http", address]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 2
    assert f"can't listen on {address}" in ended.stderr


def test_a_server_that_refuses_to_start_ends_with_its_sentence(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(FILE + "@app.tool(destructive=True)\ndef wipe() -> str: return 'x'\n")
    command = [sys.executable, "-m", "stanchion", "run", str(file), "--http", "127.0.0.1:0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 2
    assert "'wipe' is sensitive" in ended.stderr


def test_app_run_serves_http_too(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(ECHO + "app.run(http='127.0.0.1:0')\n")
    with as_process(file) as server:
        assert ask(server.port, "echo", {"text": "hi"}) == "hi"


def test_insecure_serves_other_machines() -> None:
    with pytest.raises(CannotStart, match="--insecure"):
        listen("0.0.0.0", 0, insecure=False)
    listen("0.0.0.0", 0, insecure=True).close()
    for loopback in ("127.0.0.1", "localhost", "127.1.2.3"):
        listen(loopback, 0, insecure=False).close()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("8000", ("127.0.0.1", 8000)),
        (":8000", ("127.0.0.1", 8000)),
        ("[::1]:8000", ("::1", 8000)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert split_address(text) == address


def test_vanished_clients_leave_the_process_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(WAIT)
    with as_process(file) as server:
        process = psutil.Process(server.process.pid)
        ask(server.port, "echo", {"text": "hi"})
        before = (process.num_fds(), process.num_threads())
        for _ in range(50):
            body, headers = tool("wait", {"seconds": 60})
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
            connection.request("POST", "/mcp", body, headers)
            connection.close()
        until = time.monotonic() + PATIENCE
        while not (process.num_fds() <= before[0] and process.num_threads() <= before[1]):
            assert time.monotonic() < until, (process.num_fds(), process.num_threads(), before)
            time.sleep(0.05)
        assert ask(server.port, "echo", {"text": "hi"}) == "hi"
