"""The app on a real socket: served by this process's loop, or by a process of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from stanchion import Stanchion
from stanchion.transports.asgi import AsgiApp
from stanchion.transports.http_server import listen, serve

ROOT = Path(__file__).parents[2]
PATIENCE = 15.0


@asynccontextmanager
async def on_socket(app: Stanchion, *, sse: bool = False) -> AsyncIterator[tuple[str, AsgiApp]]:
    """Serve as ``stanchion run --http`` does; gives the address, and what serves."""
    listener = listen("127.0.0.1", 0, insecure=False)
    asgi = app.asgi(sse=sse)
    over = asyncio.Event()
    serving = asyncio.create_task(serve(asgi, listener, app.config, over=over))
    try:
        while asgi.endpoint is None and not serving.done():
            await asyncio.sleep(0.005)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asgi
    finally:
        over.set()
        await asyncio.wait_for(serving, PATIENCE)


class Process:
    """A server of its own process."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url
        self.port = int(url.rpartition(":")[2])


@contextmanager
def as_process(file: Path | str, *options: str, env: Any = None) -> Iterator[Process]:
    """``stanchion run FILE --http 127.0.0.1:0``, from its first sign of life on."""
    command: Sequence[str] = (
        sys.executable, "-m", "stanchion", "run", str(file), "--http", "127.0.0.1:0", *options,
    )  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=env)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        while line and "serving on" not in line:
            line = process.stderr.readline()
        assert line, "it ended without serving"
        yield Process(process, line.split()[-1].removesuffix("/mcp"))
    finally:
        process.kill()
        process.communicate()
