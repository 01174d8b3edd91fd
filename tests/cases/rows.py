"""The rows of ``cases.jsonl`` and which of them cannot be met yet."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

CASES: Final = Path(__file__).parents[1] / "data" / "cases.jsonl"

NEEDS_ASKING: Final = frozenset(
    {
        "E10",
        "F02cancel",
        "F02decline",
        "F05",
        "F07",
        "F09",
        "F10a",
        "F10b",
        "F10c",
        "F10d",
        "F10e",
        "F11",
        "F14",
    }
)
"""Rows that answer an ``elicitation/create`` of the server's, so they say nothing until it can ask."""


@dataclass(frozen=True, slots=True)
class Row:
    """One reported failure: what to send and what must come of it."""

    id: str
    send: list[Any]
    check: dict[str, Any]
    expect: str
    transport: str
    env: dict[str, str] = field(default_factory=dict)
    timeout: float = 8.0
    """Seconds to wait for the responses that the check names."""

    @property
    def awaits_a_server_request(self) -> bool:
        return any(isinstance(step, dict) and step.get("op") == "await_request" for step in self.send)


@cache
def all_rows() -> tuple[Row, ...]:
    """Every row, in the file's order."""
    rows = []
    for line in CASES.read_text(encoding="utf-8").splitlines():
        raw = json.loads(line)
        rows.append(
            Row(
                id=raw["id"],
                send=raw["send"],
                check=raw["expect_check"],
                expect=raw["expect"],
                transport=raw["transport"],
                env=raw.get("env", {}),
                timeout=raw.get("timeout", 8.0),
            )
        )
    return tuple(rows)


def stdio_rows() -> list[Row]:
    """The rows that are played on a process's pipes."""
    return [row for row in all_rows() if row.transport == "stdio"]
