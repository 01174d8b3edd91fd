"""What a docstring says: the description, and a line for each parameter.

Owns reading the three styles in use (google, numpy, sphinx). Does not own which parameters there are
(``registry.signature``). Never fails: what looks like no style is description.
"""

from __future__ import annotations

import inspect
import re
from typing import Final

from msgspec import Struct, field

_GOOGLE: Final = re.compile(
    r"(Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters|Attributes"
    r"|Returns?|Yields?|Raises|Warns|See Also|References|Todo):\s*$"
)
_PARAMETERS: Final = frozenset(
    {
        "Args",
        "Arguments",
        "Parameters",
        "Params",
        "Keyword Args",
        "Keyword Arguments",
        "Other Parameters",
        "Attributes",
    }
)
_ITEM: Final = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_SPHINX: Final = re.compile(
    r":(param|parameter|arg|argument|key|keyword|ivar|var)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)$"
)
_SPHINX_FIELD: Final = re.compile(r":(\w+)(?:\s[^:]*)?:(?:\s|$)")
_NUMPY_NAMES: Final = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")


class Docstring(Struct, frozen=True):
    """A docstring taken apart."""

    description: str = ""
    """What stands before and between the sections, without them."""
    parameters: dict[str, str] = field(default_factory=dict)
    """Name to one line of text."""


def read(text: str | None) -> Docstring:
    """Take a docstring apart; None or blank text has nothing in it."""
    if not text or not text.strip():
        return Docstring()
    lines = inspect.cleandoc(text).splitlines()
    kept: list[str] = []
    found: dict[str, list[str]] = {}
    at = 0
    while at < len(lines):
        taken = _section(lines, at, found)
        if taken:
            at += taken
        else:
            kept.append(lines[at])
            at += 1
    description = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return Docstring(
        description, {name: " ".join(words).strip() for name, words in found.items() if any(words)}
    )


def _section(lines: list[str], at: int, found: dict[str, list[str]]) -> int:
    """Lines of the section that begins at *at*; 0 if none does. Puts its parameters into *found*."""
    line = lines[at]
    if line[:1].isspace():
        return 0
    google = _GOOGLE.match(line)
    if google and (at + 1 == len(lines) or not lines[at + 1].strip() or lines[at + 1][:1].isspace()):
        length = _indented(lines, at + 1)
        if google[1] in _PARAMETERS:
            _google(lines[at + 1 : at + 1 + length], found)
        return 1 + length
    if at + 1 < len(lines) and re.fullmatch(r"-{3,}\s*", lines[at + 1]) and line.strip():
        return _numpy(lines, at, found)
    if _SPHINX_FIELD.match(line):
        length = 1 + _indented(lines, at + 1, blank=False)
        named = _SPHINX.match(line)
        if named:
            found[named[2]] = [named[3], *(more.strip() for more in lines[at + 1 : at + length])]
        return length
    return 0


def _indented(lines: list[str], at: int, *, blank: bool = True) -> int:
    """How many lines from *at* are indented or (if *blank*) blank."""
    end = at
    while end < len(lines) and (lines[end][:1].isspace() or (blank and not lines[end].strip())):
        end += 1
    return end - at


def _google(lines: list[str], found: dict[str, list[str]]) -> None:
    """``name (type): text`` items; deeper lines continue an item."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        return
    indent = min(len(line) - len(line.lstrip()) for line in filled)
    words: list[str] | None = None
    for line in filled:
        item = _ITEM.match(line.strip()) if len(line) - len(line.lstrip()) == indent else None
        if item:
            words = found.setdefault(item[1], [])
            words.append(item[2])
        elif words is not None:
            words.append(line.strip())


def _numpy(lines: list[str], at: int, found: dict[str, list[str]]) -> int:
    """``Title``, a line of ``-``, then ``name : type`` with indented text below."""
    end = at + 2
    while end < len(lines) and not (end + 1 < len(lines) and re.fullmatch(r"-{3,}\s*", lines[end + 1])):
        end += 1
    if lines[at].strip() in {"Parameters", "Other Parameters", "Attributes"}:
        names: list[str] = []
        for line in lines[at + 2 : end]:
            header = None if line[:1].isspace() else _NUMPY_NAMES.match(line)
            if header:
                names = [name.strip().lstrip("*") for name in header[1].split(",")]
            elif line.strip():
                for name in names:
                    found.setdefault(name, []).append(line.strip())
    return end - at
