"""Build the wheel, install it without extras outside the clone, and use it as a stranger would.

What is looked at: both ways to ask for the version, a server started from a file and spoken to over its pipes, and
that a stdio start loads nothing that only HTTP, sealing or the approvals page need.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
UNNEEDED: Final = ("cryptography", "starlette", "uvicorn")
LIMIT: Final = 60.0
"""Seconds for any one command."""

SERVER: Final = f"""
import sys

from stanchion import Stanchion

app = Stanchion("stranger")


@app.tool(read_only=True)
async def loaded() -> str:
    return ",".join(name for name in {UNNEEDED!r} if name in sys.modules)
"""

INITIALIZE: Final = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "wheel-check", "version": "0"},
}
CONVERSATION: Final[list[dict[str, Any]]] = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "loaded", "arguments": {}}},
]


def main() -> None:
    """Run the steps; the first that fails ends the run with its output."""
    with tempfile.TemporaryDirectory(prefix="wheel-check-") as folder:
        home = Path(folder)
        wheel = _build(home / "dist")
        print(f"built {wheel.name}")
        python = _install(home / "venv", wheel)
        _check_versions(python, home, wheel.name.split("-")[1])
        _check_server(python, home)
    print("the wheel serves on stdio with no extra installed")


def _build(folder: Path) -> Path:
    _run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT], ROOT)
    (wheel,) = folder.glob("stanchion-*.whl")
    return wheel


def _install(folder: Path, wheel: Path) -> Path:
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    _run([python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", wheel], folder)
    return python


def _check_versions(python: Path, home: Path, version: str) -> None:
    for command in ([python.with_name("stanchion"), "--version"], [python, "-m", "stanchion", "--version"]):
        printed = _run(command, home)
        if version not in printed:
            sys.exit(f"{command[-2:]} printed {printed!r}, not the wheel's version {version}")
        print(f"--version: {printed.strip()}")


def _check_server(python: Path, home: Path) -> None:
    file = home / "stranger.py"
    file.write_text(SERVER, encoding="utf-8")
    lines = "".join(json.dumps(message) + "\n" for message in CONVERSATION)
    printed = _run([python.with_name("stanchion"), "run", file], home, lines)
    messages = [json.loads(line) for line in printed.splitlines()]
    answers = {message["id"]: message for message in messages if "id" in message}
    if [tool["name"] for tool in answers[2]["result"]["tools"]] != ["loaded"]:
        sys.exit(f"tools/list answered {answers[2]}")
    text = answers[3]["result"]["content"][0]["text"]
    if text:
        sys.exit(f"a stdio start loaded {text}")
    print(f"initialize, tools/list and tools/call answered; none of {', '.join(UNNEEDED)} loaded")


def _run(command: list[Any], folder: Path, stdin: str = "") -> str:
    """Run *command* in *folder* and return what it printed; say why and stop when it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=LIMIT * 5,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
