"""Raw params to values, and what is wrong with them in words.

Owns the texts of ``InvalidParams`` that are about a type. They say where and why, and repeat nothing that a peer sent:
the parser's own messages do, and name parts that only we know.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final, Generic, TypeVar

from msgspec import DecodeError, Raw, ValidationError
from msgspec.json import Decoder

from stanchion.wire.errors import InvalidParams

T = TypeVar("T")

_PLACE: Final = re.compile(r" - at (`key` in )?`\$([^`]*)`\Z")
_EXPECTED: Final = re.compile(r"Expected `([^`]+)`(?:, got `[^`]*`)?")
_MISSING: Final = re.compile(r"Object missing required field `([^`]+)`")
_KINDS: Final = MappingProxyType(
    {
        "array": "an array",
        "bool": "a boolean",
        "float": "a number",
        "int": "an integer",
        "null": "null",
        "object": "an object",
        "str": "a string",
    }
)


class ParamsDecoder(Generic[T]):
    """Makes a message's raw params into values of one type. Make one for each type and keep it.

    Args:
        kind: What the params must be.
        root: What errors call the value decoded.
    """

    __slots__ = ("_decode", "_root")

    def __init__(self, kind: type[T], *, root: str = "params") -> None:
        self._decode = Decoder(kind).decode
        self._root = root

    def decode(self, raw: Raw) -> T:
        """Return the value.

        Raises:
            InvalidParams: It is not of the type; the text says where and why, and nothing that the peer sent.
        """
        try:
            return self._decode(raw)
        except ValidationError as error:
            raise InvalidParams(_sentence(str(error), self._root)) from None
        except (DecodeError, RecursionError):
            raise InvalidParams(f"{self._root} can't be read") from None


def _sentence(fault: str, root: str) -> str:
    """Put msgspec's finding in words of ours: its own may repeat the value found."""
    place = _PLACE.search(fault)
    where = root + place[2] if place else root
    if place and place[1]:
        where = f"a key of {where}"
    what = fault[: place.start()] if place else fault
    if missing := _MISSING.fullmatch(what):
        return f"{where}.{missing[1]} is required"
    if expected := _EXPECTED.fullmatch(what):
        kinds = [_KINDS.get(kind) for kind in expected[1].split(" | ")]
        return (
            f"{where} must be {' or '.join(filter(None, kinds))}" if all(kinds) else f"{where} is not valid"
        )
    if what.startswith(("Invalid enum value", "Invalid value")):
        return f"{where} is not one of the values allowed"
    if what.endswith("out of range"):
        return f"{where} is out of range"
    return f"{where} is not valid"
