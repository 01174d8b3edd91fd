"""The server that the suite is put on: `stanchion run examples/conformance.py --http`, in a process of its own."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
START = 20.0
STOP = 10.0


@pytest.fixture(scope="session")
def server_command() -> list[str]:
    """How to serve; ``{port}`` stands for the port."""
    served = ["run", "examples/conformance.py", "--http", "127.0.0.1:{port}"]
    return [sys.executable, "-m", "stanchion", *served]


@pytest.fixture(scope="session")
def server_url(server_command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server, which all sets share: it speaks all revisions on one port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "stderr.txt"
    with log.open("wb") as stderr:
        server = subprocess.Popen(
            [part.format(port=port) for part in server_command],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
        )
        try:
            wait_until_it_listens(server, port, log)
            yield f"http://127.0.0.1:{port}/mcp"
            assert server.poll() is None, f"the server died:\n{log.read_text(encoding='utf-8')}"
        finally:
            server.terminate()
            try:
                server.wait(STOP)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
                pytest.fail(f"the server did not stop within {STOP:g} s of SIGTERM")


def wait_until_it_listens(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + START
    while time.monotonic() < until:
        if server.poll() is not None:
            pytest.fail(f"the server ended with {server.returncode}:\n{log.read_text(encoding='utf-8')}")
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    pytest.fail(f"the server does not listen after {START:g} s:\n{log.read_text(encoding='utf-8')}")
