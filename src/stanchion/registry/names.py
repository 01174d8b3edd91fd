"""Tool names as clients show them to their models (behaviour F4).

Owns which names are accepted and what each known client makes of one. Does not own who holds a name
(``registry.registry``). Two tools that a client renames to the same name are one tool to its model: one of them can
never be called, or the wrong one is. Hence the table: one row for each renaming that was read in a client's source.

Prefixes that clients add (``mcp__server__``) are the same for all tools of a server and so are left out; what a
client does with names over its length limit is modelled only where it can make two names one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

ACCEPTED: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""2025-11-25, server/tools, Tool Names."""

_RUN_NOT_OMP: Final = re.compile(r"[^a-z0-9_]+")
_UNDERSCORES: Final = re.compile(r"_+")
_NOT_WORD: Final = re.compile(r"[^A-Za-z0-9_-]")
_NOT_WORD_OR_DOT: Final = re.compile(r"[^A-Za-z0-9_.-]")
_HYPHENS: Final = re.compile(r"-{2,}")
_NOT_ACCEPTED: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_UNCHANGED: Final = re.compile(r"[a-z](?:[a-z0-9]|_(?!_|$)){0,62}")
"""Names that every row leaves as they are. A row added to the table must keep that true, or narrow this."""

MAX_GEMINI: Final = 63
"""Characters, beyond which the middle is cut out."""


def omp_name(name: str) -> str:
    """The reference's own row: lowercase, runs outside ``[a-z0-9_]`` to ``_``, runs of ``_`` to one, ends trimmed."""
    lowered = _RUN_NOT_OMP.sub("_", name.lower())
    return _UNDERSCORES.sub("_", lowered).strip("_") or "tool"


def word_name(name: str) -> str:
    """Each character outside ``[A-Za-z0-9_-]`` becomes ``_``."""
    return _NOT_WORD.sub("_", name) or "_"


def gemini_name(name: str) -> str:
    """Each character outside ``[A-Za-z0-9_.-]`` becomes ``_``; past 63 characters the middle becomes ``___``."""
    mapped = _NOT_WORD_OR_DOT.sub("_", name)
    return mapped if len(mapped) <= MAX_GEMINI else f"{mapped[:28]}___{mapped[-32:]}"


def roo_name(name: str) -> str:
    """Characters outside ``[A-Za-z0-9_-]`` vanish, runs of ``-`` become one, a digit or ``-`` in front gets a ``_``."""
    kept = _HYPHENS.sub("-", _NOT_WORD.sub("", name))
    if not kept:
        return "_unnamed"
    return kept if kept[0].isalpha() or kept[0] == "_" else f"_{kept}"


class Renaming(Struct, frozen=True):
    """One row: what some clients do to a tool's name."""

    clients: tuple[str, ...]
    sources: tuple[str, ...]
    """Where the rule was read: repository, path and commit, one for each client."""
    rename: Callable[[str], str]
    limit: int
    """Characters a tool's name may have before the client cuts, hashes or drops it, with a server of one letter."""


RENAMINGS: Final = (
    Renaming(
        clients=("omp",),
        sources=(
            "Raxol.MCP.Registry.omp_name/1, Raxol MCP 2.8.0 (mcp/tool-bridge.ts at the version of its ADR-0042)",
        ),
        rename=omp_name,
        limit=57,  # mcp__<server>_ before it, 64 in all; past it a hash keeps names apart
    ),
    Renaming(
        clients=("codex", "opencode", "vscode"),
        sources=(
            # Later codex versions also map "-" but tell colliding names apart by a hash, so the row stays as it is.
            "openai/codex codex-rs/core/src/mcp_connection_manager.rs @00302de71ca3c3d5fc3f9361b7111ca41964f8c5",
            "anomalyco/opencode packages/opencode/src/mcp/catalog.ts @0ded052d8ba57792e56917ae5fe66f6631015dce",
            "microsoft/vscode src/vs/workbench/contrib/mcp/common/mcpServer.ts @0052d689f910e056718b44fdecc7a5e1ad2c3b66",
        ),
        rename=word_name,
        limit=56,  # codex: mcp__<server>__ before it, 64 in all
    ),
    Renaming(
        clients=("gemini-cli",),
        sources=(
            "google-gemini/gemini-cli packages/core/src/tools/mcp-tool.ts @03647aa5cd6f7022bf18ff6f603e8a1e3e1422c8",
        ),
        rename=gemini_name,
        limit=MAX_GEMINI,
    ),
    Renaming(
        clients=("roo-code",),
        sources=("RooCodeInc/Roo-Code src/utils/mcp-name.ts @0a6c8f50e6242d81fa04e02f17b51934f96fb66f",),
        rename=roo_name,
        limit=56,  # mcp--<server>-- before it, cut at 64
    ),
)
"""Known renamings. The order has no meaning but for the first, which is the reference's."""

LIMIT: Final = min(row.limit for row in RENAMINGS)
"""Characters; a longer name is shortened by some client."""


def visible_names(name: str) -> tuple[str, ...]:
    """What *name* becomes under each row, in the table's order."""
    if _UNCHANGED.fullmatch(name):
        return (name,) * len(RENAMINGS)
    return tuple(row.rename(name) for row in RENAMINGS)


def is_accepted(name: str) -> bool:
    """Whether the protocol's own rule admits *name*: 1 to 128 of ``A-Z a-z 0-9 _ - .``."""
    return ACCEPTED.fullmatch(name) is not None


def nearest(name: str) -> str:
    """The accepted name nearest to *name*, to suggest it."""
    return _NOT_ACCEPTED.sub("_", name)[:128].strip("_") or "tool"


def check(name: str, *, strict: bool) -> tuple[str | None, tuple[str, ...]]:
    """Judge a tool's name.

    Args:
        name: Any text.
        strict: Refuse what is otherwise only warned about.

    Returns:
        The reason to refuse it, or None; and warnings for the log, which say what some client will do to it.
    """
    if not is_accepted(name):
        return f"the name {name[:128]!r} is not accepted by clients: write {nearest(name)!r}", ()
    if "." not in name and len(name) <= LIMIT:
        return None, ()
    warnings = []
    if "." in name:
        dotless = name.replace(".", "_")
        warnings.append(
            f"the name {name!r} has a dot, which several clients and model APIs replace or refuse: {dotless!r} is safe"
        )
    if len(name) > LIMIT:
        clients = ", ".join(client for row in RENAMINGS if len(name) > row.limit for client in row.clients)
        warnings.append(
            f"the name {name!r} has {len(name)} characters and is shortened by {clients}: {LIMIT} are safe"
        )
    if strict:
        return "; ".join(warnings), ()
    return None, tuple(warnings)


class Holders:
    """Who holds which visible name. One look-up a row, at any number of tools. Not thread-safe."""

    def __init__(self) -> None:
        self._rows: tuple[dict[str, str], ...] = tuple({} for _ in RENAMINGS)

    def claim(self, name: str) -> str | None:
        """Take *name*'s visible names; or, taking none, the differently named holder of one of them."""
        seen = visible_names(name)
        for row, shown in zip(self._rows, seen):  # noqa: B905  both have one item a row
            if row.get(shown, name) != name:
                return row[shown]
        for row, shown in zip(self._rows, seen):  # noqa: B905
            row[shown] = name
        return None

    def release(self, name: str) -> None:
        """Give *name*'s visible names back."""
        for row, shown in zip(self._rows, visible_names(name), strict=True):
            if row.get(shown) == name:
                del row[shown]
