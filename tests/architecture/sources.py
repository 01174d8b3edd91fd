"""The package's modules as syntax trees, for tests that read code rather than run it."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "src"

PURE: Final = (
    "stanchion.wire",
    "stanchion.machines",
    "stanchion.registry",
    "stanchion.server.kernel",
    "stanchion.server.methods",
)
"""What decides: no I/O, no clock, no randomness."""


@dataclass(frozen=True, slots=True)
class Module:
    """One source file."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def is_pure(self) -> bool:
        return any(self.name == floor or self.name.startswith(f"{floor}.") for floor in PURE)

    def where(self, node: ast.AST) -> str:
        """*node*'s place, as editors take it."""
        return f"{self.path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the package."""
    found = []
    for path in sorted((SOURCE / "stanchion").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = path.read_text(encoding="utf-8")
        found.append(Module(name, path, text, ast.parse(text, filename=str(path))))
    return tuple(found)


@cache
def repository_files() -> tuple[Path, ...]:
    """What the repository holds, or would with the next commit."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return tuple(path for name in listing.split("\0") if name and (path := ROOT / name).is_file())


def python_files() -> Iterator[Path]:
    """Every Python file of the repository, tests and benchmarks included."""
    return (path for path in repository_files() if path.suffix == ".py")


def dotted(node: ast.AST) -> str:
    """``a.b.c`` for a chain of attributes on a name, else an empty string."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
