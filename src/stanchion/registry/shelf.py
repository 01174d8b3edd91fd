"""The changing set of one kind of entry, before it is published as a ``Catalog``.

Owns keys, places and owners of one kind. Not thread-safe: ``registry.registry`` holds its lock around every call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, Protocol, TypeVar

from msgspec import Struct, structs

from stanchion.registry.catalog import Catalog


class Entry(Protocol):
    """What can stand on a shelf."""

    @property
    def key(self) -> str:
        """What it is registered under."""
        ...

    @property
    def owner(self) -> Hashable | None:
        """Whose end removes it."""
        ...


E = TypeVar("E", bound=Entry)
S = TypeVar("S", bound=Struct)


class Shelf(Generic[E]):
    """Entries of one kind.

    Args:
        forget: Called with each key that goes for good.
    """

    def __init__(self, forget: Callable[[str], None]) -> None:
        self._items: dict[str, E] = {}
        self._places: dict[str, int] = {}
        self._owned: dict[Hashable, dict[str, None]] = {}
        self._next = 0
        self._forget = forget
        self._published: Catalog[E] | None = Catalog({}, {})

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: str) -> E | None:
        """The entry of that key, or None."""
        return self._items.get(key)

    def put(self, entry: E) -> None:
        """Register *entry* under its key. One that replaces another keeps its place, and belongs to its own owner."""
        key = entry.key
        before = self._items.get(key)
        if before is None:
            self._places[key] = self._next
            self._next += 1
        elif before.owner is not None:
            self._disown(before.owner, key)
        self._items[key] = entry
        if entry.owner is not None:
            self._owned.setdefault(entry.owner, {})[key] = None
        self._published = None

    def drop(self, keys: Iterable[str], owner: Hashable | None) -> bool:
        """Unregister *keys*, with *owner* only those that it still owns. Whether anything went."""
        gone = False
        for key in keys:
            entry = self._items.get(key)
            if entry is None or (owner is not None and entry.owner != owner):
                continue
            del self._items[key], self._places[key]
            if entry.owner is not None:
                self._disown(entry.owner, key)
            self._forget(key)
            gone = True
        if gone:
            self._published = None
        return gone

    def drop_owner(self, owner: Hashable) -> bool:
        """Unregister all that *owner* still owns. Whether anything went."""
        return self.drop(list(self._owned.get(owner, ())), owner)

    def owns(self, owner: Hashable) -> bool:
        """Whether *owner* owns anything here."""
        return owner in self._owned

    def publish(self) -> Catalog[E]:
        """What readers see from now on. Copies only if something changed since the last time."""
        published = self._published
        if published is None:
            published = self._published = Catalog(self._items.copy(), self._places.copy())
        return published

    def _disown(self, owner: Hashable, key: str) -> None:
        keys = self._owned[owner]
        keys.pop(key, None)
        if not keys:
            del self._owned[owner]


def owned(entry: S, owner: Hashable | None) -> S:
    """*entry*, a record with an ``owner``, as *owner*'s (or nobody's); itself if it is already."""
    return entry if getattr(entry, "owner", None) == owner else structs.replace(entry, owner=owner)
