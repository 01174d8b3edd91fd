"""A server process that speaks HTTP, for as long as clients need it."""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PATIENCE = 15.0
READY = re.compile(r"stanchion: serving on (http://\S+/mcp)$")
NEGLECT = re.compile(
    r"never (retrieved|awaited)|Exception in|^\S+ \S+ (ERROR|CRITICAL) (?!stanchion\.callbacks:)",
    re.MULTILINE,
)
"""What stands on stderr only if the server itself, and not a callback, went wrong."""

Where = list[str] | str
"""How a client gets to a server: the command that starts one on stdio, or the URL of one that runs."""


def command(file: Path) -> list[str]:
    """The command line that serves a file's app on stdio."""
    return [sys.executable, "-m", "stanchion", "run", str(file)]


@contextmanager
def serving(file: Path) -> Iterator[str]:
    """Serve a file's app on a free port; yields the URL. The process must end well when it is told to."""
    process = subprocess.Popen(
        [*command(file), "--http", "127.0.0.1:0"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    said: list[str] = []
    ready: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def listen() -> None:
        assert process.stderr is not None
        with process.stderr as lines:
            for line in lines:
                said.append(line)
                if found := READY.match(line.rstrip()):
                    ready.put(found[1])
        ready.put(None)

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        try:
            url = ready.get(timeout=PATIENCE)
        except queue.Empty:
            url = None
        if url is None:
            pytest.fail(
                f"{file.name} ended, or was not ready within {PATIENCE:g} s; on stderr:\n{''.join(said)}"
            )
        yield url
        assert process.poll() is None, f"the server ended by itself; on stderr:\n{''.join(said)}"
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the server did not end within {PATIENCE:g} s of SIGTERM:\n{''.join(said)}")
    finally:
        process.kill()
        process.wait()
        listener.join(PATIENCE)
    told = "".join(said)
    assert process.returncode == 0 or os.name == "nt", f"the server ended with {process.returncode}:\n{told}"
    assert not NEGLECT.search(told), told
