"""One ordered, immutable set of entries, as a reader sees it.

Owns order, look-up and paging. Does not own how the set changes (``registry.registry``) or what an entry is
(``registry.features``).

Each key has a *place*: a number given when the key was registered and kept when its entry is replaced. Places grow, so
order is registration order; a key that was removed and registered again has a new place, which is how a reader tells
"replaced" from "another one by that name".
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from stanchion.wire.errors import InvalidParams

T = TypeVar("T")

MAX_CURSOR = 8192
"""Characters. A URI of a resource is the longest key; no cursor of ours is longer than this."""


class Page(Struct, Generic[T], frozen=True):
    """Some entries in order, and where the next ones begin."""

    items: tuple[T, ...]
    next_cursor: str | None = None
    """None on the last page; then the member is left out on the wire (server/utilities/pagination)."""


class Catalog(Generic[T]):
    """An immutable ordered set. Look-up costs the same at any size.

    Args:
        items: Key to entry, in order. Owned by the catalog from here on: nobody may change it.
        places: Key to place, growing in the order of *items*. Likewise owned.
    """

    __slots__ = ("_items", "_keys", "_numbers", "_places")

    def __init__(self, items: Mapping[str, T], places: Mapping[str, int]) -> None:
        self._items = items
        self._places = places
        # Both are made by the first reader that pages beyond the start; two readers make the same.
        self._keys: list[str] | None = None
        self._numbers: list[int] | None = None

    def get(self, key: str) -> T | None:
        """The entry of that key, or None."""
        return self._items.get(key)

    def place(self, key: str) -> int | None:
        """The key's place, or None if nothing is registered there. Same place, same registration."""
        return self._places.get(key)

    def keys(self) -> Iterator[str]:
        """The keys in order."""
        return iter(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items.values())

    def page(self, cursor: str | None, size: int) -> Page[T]:
        """Up to *size* entries after *cursor*.

        A cursor names the last entry given and its place. It needs no memory of ours: it works on another instance with
        the same entries, and after changes it goes on where it was (what was removed is not missed, what was added later
        comes later).

        Args:
            cursor: None for the first page, else a ``next_cursor`` that was given out.
            size: At least 1.

        Raises:
            InvalidParams: No catalog gave out that cursor. The empty text is none.
        """
        start = 0 if cursor is None else self._after(cursor)
        # The first page needs no list of all keys.
        keys = self._listed()[start : start + size] if start else list(islice(self._items, size))
        items = tuple(self._items[key] for key in keys)
        if start + len(keys) >= len(self._items):
            return Page(items)
        return Page(items, _cursor(self._places[keys[-1]], keys[-1]))

    def _after(self, cursor: str) -> int:
        place, key = _parse(cursor)
        # The key comes first: on another instance the same entries may have other places.
        here = self._places.get(key)
        if self._numbers is None:
            self._numbers = list(self._places.values())
        return bisect_right(self._numbers, place if here is None else here)

    def _listed(self) -> list[str]:
        if self._keys is None:
            self._keys = list(self._items)
        return self._keys


def _cursor(place: int, key: str) -> str:
    return urlsafe_b64encode(msgspec.json.encode((place, key))).rstrip(b"=").decode()


def _parse(cursor: str) -> tuple[int, str]:
    try:
        if len(cursor) > MAX_CURSOR:
            raise ValueError(len(cursor))
        packed = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        place, key = msgspec.json.decode(packed, type=tuple[int, str])
        # base64 decoders skip what they do not know; only what we would have written ourselves is ours.
        if _cursor(place, key) != cursor:
            raise ValueError(cursor)
    except (ValueError, msgspec.MsgspecError):
        raise InvalidParams("Invalid cursor") from None
    return place, key
