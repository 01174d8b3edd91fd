"""Who listens for what (2026-07-28, basic/patterns/subscriptions).

Owns the open ``subscriptions/listen`` requests and their filters. Each match gets a copy of its own (SU6); what was not
asked for is never sent (SU4). Handshake clients subscribe to resources on their connection instead: ``Clients``.
"""

from __future__ import annotations

from collections.abc import Hashable

from msgspec import Struct

from stanchion.wire.jsonrpc import Id, Ref
from stanchion.wire.model import ListenFilter


class Listener(Struct, frozen=True):
    """One open listen request."""

    ref: Ref
    connection: Hashable
    id: Id
    """Names the subscription in each of its notices, with its JSON type."""
    filter: ListenFilter


class Listeners:
    """The open listen requests, in the order of their coming."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: dict[Ref, Listener] = {}
        self._counts: dict[Hashable, int] = {}

    def __len__(self) -> int:
        """Open listen requests."""
        return len(self._open)

    def add(self, listener: Listener) -> bool:
        """Begin to listen. False if the connection has as many as it may."""
        count = self._counts.get(listener.connection, 0)
        if count >= self._limit:
            return False
        self._counts[listener.connection] = count + 1
        self._open[listener.ref] = listener
        return True

    def remove(self, ref: Ref) -> Listener | None:
        """Stop listening."""
        listener = self._open.pop(ref, None)
        if listener is not None:
            left = self._counts[listener.connection] - 1
            if left:
                self._counts[listener.connection] = left
            else:
                del self._counts[listener.connection]
        return listener

    def drop_all(self) -> list[Listener]:
        """End all of them."""
        dropped = list(self._open.values())
        self._open.clear()
        self._counts.clear()
        return dropped

    def for_list(self, kind: str) -> list[Listener]:
        """Who is to be told that the list of *kind* (tools, resources, prompts) changed."""
        return [one for one in self._open.values() if getattr(one.filter, f"{kind}_list_changed")]

    def for_resource(self, uri: str) -> list[Listener]:
        """Who is to be told that a resource changed."""
        return [one for one in self._open.values() if uri in one.filter.resource_subscriptions]
