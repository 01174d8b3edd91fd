"""JSON as mere text: whether it is UTF-8, how deep it nests, which surrogates stand alone.

Owns what must be known about a text that a parser may not be given, or has refused. All of it takes time linear to the
text. What follows for the message is the codec's.
"""

from __future__ import annotations

import re
from array import array
from itertools import accumulate
from typing import Final


def is_utf8(data: bytes) -> bool:
    """Whether *data* is UTF-8. The parser looks at strings it makes, not at those it skips."""
    try:
        str(data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


# -- depth ---------------------------------------------------------------------------------------------------------

_KEPT: Final = b'[]{}"'
_DROPPED: Final = bytes(byte for byte in range(256) if byte not in _KEPT)
_STEPS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""Brackets as signed bytes: one down, one up."""
_PIECE: Final = 65536
_HEAD: Final = re.compile(rb'[ \t\r\n]*+\{(?:[^"\[{]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
"""A message up to the first member that is an array or an object."""
_HEAD_BYTES: Final = 4096


def is_deeper(data: bytes, limit: int) -> bool:
    """Whether arrays and objects in *data* nest deeper than *limit*.

    Exact for JSON; for anything else either answer may come.
    """
    if data.count(b"[") + data.count(b"{") <= limit:
        return False
    unescaped = data.replace(rb"\\", b"").replace(rb"\"", b"")
    # Brackets and quotes only; two quotes with nothing between them change nothing for the rest.
    bones = unescaped.translate(_STEPS, _DROPPED).replace(b'""', b"")
    depth = inside = 0
    # By the piece, so that a text of nothing but brackets and quotes does not become as many objects at once.
    for start in range(0, len(bones), _PIECE):
        parts = bones[start : start + _PIECE].split(b'"')
        steps = array("b", b"".join(parts[inside::2]))
        if steps and max(accumulate(steps, initial=depth)) > limit:
            return True
        depth += sum(steps)
        inside ^= (len(parts) - 1) & 1
    return False


def shallow_part(data: bytes) -> bytes:
    """Return an object with the first members of the one in *data*, as far as they are short and flat.

    The member after them is null. Empty if *data* is no object.
    """
    head = _HEAD.match(data[:_HEAD_BYTES])
    return b"" if head is None else head[0] + b"null}"


# -- unpaired surrogates -------------------------------------------------------------------------------------------

_LONE: Final = re.compile(
    rb"""
    \\u[dD]                                  # the start of a surrogate of either kind
    (?: [89abAB] [0-9a-fA-F]{2}             # a high one
        (?! \\u[dD] [c-fC-F] [0-9a-fA-F]{2} )
      | (?<! \\u[dD] [89abAB] [0-9a-fA-F]{2} \\u[dD] )
        [c-fC-F] [0-9a-fA-F]{2}             # a low one
    )
    """,
    re.VERBOSE,
)
MARK: Final = rb"\uFfFd"
"""Stands in for an unpaired surrogate; spelled as nobody spells it, so that a part with a mark is known to be broken."""


def mark_surrogates(data: bytes) -> bytes | None:
    r"""Return JSON that means the same but has marks for unpaired surrogates (``"\ud800"``); None if there are none."""
    # Escaped backslashes are spelled out first: then every backslash left begins an escape.
    marked, count = _LONE.subn(MARK.replace(b"\\", rb"\\"), data.replace(rb"\\", rb"\u005c"))
    return marked if count else None


def mend(text: str) -> str:
    """Return *text* with halves of surrogate pairs joined where they meet and replaced by U+FFFD where not."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
