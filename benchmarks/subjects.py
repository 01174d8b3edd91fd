"""What is measured: how to start each server and what its echo is called."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

SERVERS = Path(__file__).parent / "servers"
MAX_IN_FLIGHT = 128


@dataclass(frozen=True, slots=True)
class Subject:
    """One server, started anew for each measurement."""

    name: str
    command: tuple[str, ...]
    tool: str = "echo"


def _ours(isolation: str) -> Subject:
    command = ("-m", "stanchion", "run", str(SERVERS / "ours.py"), "--max-in-flight", str(MAX_IN_FLIGHT))
    return Subject(f"stanchion {isolation}", (sys.executable, *command), f"echo_{isolation}")


FLOOR = Subject("raw floor", (sys.executable, str(SERVERS / "raw_floor.py")))
PEER = Subject("mcp low-level", (sys.executable, str(SERVERS / "mcp_lowlevel.py")))
SUBJECTS = (FLOOR, PEER, _ours("task"), _ours("thread"), _ours("inline"))
