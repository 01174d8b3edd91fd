"""Fifty lives of a stdio server in one process leave it as it was (case M06)."""

from __future__ import annotations

import subprocess
import sys

PATIENCE = 60.0
"""Seconds that tell an end from a hang."""

PROGRAM = """
import asyncio, gc, logging, os, signal, sys, threading
from pathlib import Path
from stanchion import Context, Stanchion

LINES = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"later"}}\\n'
    b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"now"}}\\n'
)
HELLO = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":'
    b'{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\\n'
)


def life() -> None:
    app = Stanchion("x")

    @app.tool
    async def later() -> str:
        return "later"

    @app.tool
    def now() -> str:
        return "now"

    theirs, ours = os.pipe()
    answers, out = os.pipe()
    kept = os.dup(0), os.dup(1)
    os.dup2(theirs, 0)
    os.dup2(out, 1)
    os.write(ours, HELLO + LINES)
    os.close(ours)
    app.run()
    os.dup2(kept[0], 0)
    os.dup2(kept[1], 1)
    for number in (*kept, theirs, out):
        os.close(number)
    told = b""
    while chunk := os.read(answers, 65536):
        told += chunk
    os.close(answers)
    assert told.count(b"\\n") == 3, told
    assert b"later" in told and b"now" in told, told


def state() -> object:
    gc.collect()
    return (
        sorted(thread.name for thread in threading.enumerate()),
        len(list(Path("/proc/self/fd").iterdir())),
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        logging.getLogger("stanchion").handlers,
        logging.getLogger().handlers,
        sys.getswitchinterval(),
        (sys.stdin, sys.stdout, sys.stderr),
        [os.get_blocking(number) for number in (0, 1, 2)],
    )


life()
before = state()
for _ in range(50):
    life()
assert state() == before, (before, state())
print("as it was")
"""


def test_fifty_lives_leave_the_process_as_it_was() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=b"",
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ended.returncode, ended.stdout.decode()) == (0, "as it was\n"), ended.stderr.decode()
