"""Who is connected, and what each client said it can do.

Owns the table of connections: one entry per connection with a channel, and one per connection that initialised without
one (a direct caller). What a client can do is remembered until its connection closes, for at most *limit* connections
(behaviour C8): past that, entries without a channel are forgotten first, oldest first, then live ones lose what was
remembered, oldest first. A forgotten client keeps working; it just can't be asked until it initialises again.

An entry without a channel has nobody who would tell us of its end, so that limit is also what bounds the table.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from stanchion.machines.session import Session
from stanchion.wire.model import JsonObject


class WellKnown:
    """A connection that has a name of its own (behaviour A8). No two are equal, and each hashes at no cost."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


DEFAULT: Final = WellKnown("DEFAULT")
"""The one connection of stdio, and of direct callers who name none."""
ANONYMOUS: Final = WellKnown("ANONYMOUS")
"""Clients whom a transport can't tell apart: served, but in no table, without a channel."""
PROGRAM: Final = WellKnown("PROGRAM")
"""The embedding program, when it calls something itself (behaviour F1): its calls have a share of their own."""


class Client:
    """One connection. Mutable; only the kernel changes it."""

    __slots__ = (
        "abilities", "connection", "enforced", "has_channel", "holder", "principal", "session", "transport", "watching",
    )  # fmt: skip

    def __init__(
        self,
        connection: Hashable,
        session: Session,
        *,
        transport: str = "unknown",
        principal: Hashable | None = None,
        has_channel: bool = False,
        enforced: bool = False,
        holder: Hashable | None = None,
    ) -> None:
        self.connection = connection
        self.session = session
        self.transport = transport
        self.principal = principal
        self.has_channel = has_channel
        self.holder = next(one for one in (principal, holder, connection) if one is not None)
        """Whose share its calls use: its principal's, else what the transport says (such as an address), else its own."""
        self.enforced = enforced
        """Whether requests before a handshake are refused."""
        self.abilities: JsonObject | None = None
        """What the client said it can do; None if it never did, or was forgotten."""
        self.watching: set[str] = set()
        """URIs of resources it subscribed to."""


class Clients:
    """The table."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._table: dict[Hashable, Client] = {}
        # What is remembered, oldest first; each connection is in at most one of the two.
        self._idle: dict[Hashable, None] = {}
        self._live: dict[Hashable, None] = {}

    def __len__(self) -> int:
        """Connections in the table."""
        return len(self._table)

    def get(self, connection: Hashable) -> Client | None:
        """The entry, or None."""
        return self._table.get(connection)

    def live(self) -> list[Client]:
        """Every connection that has a channel."""
        return [client for client in self._table.values() if client.has_channel]

    def open(self, client: Client) -> None:
        """Take a connection with a channel into the table; one without a channel makes way for it."""
        self.close(client.connection)
        self._table[client.connection] = client

    def remember(self, client: Client, abilities: JsonObject) -> list[Client]:
        """Note what a client can do, and say which clients are forgotten for it."""
        if client.connection is ANONYMOUS:
            return []
        self._forget(client.connection)
        client.abilities = abilities
        self._table[client.connection] = client
        (self._live if client.has_channel else self._idle)[client.connection] = None
        return self._evict()

    def close(self, connection: Hashable) -> Client | None:
        """Drop a connection and all that is known of it."""
        self._forget(connection)
        return self._table.pop(connection, None)

    def _forget(self, connection: Hashable) -> None:
        self._idle.pop(connection, None)
        self._live.pop(connection, None)

    def _evict(self) -> list[Client]:
        evicted = []
        while len(self._idle) + len(self._live) > self._limit:
            line = self._idle or self._live
            oldest = next(iter(line))
            del line[oldest]
            client = self._table[oldest]
            client.abilities = None
            if not client.has_channel:
                del self._table[oldest]
            evicted.append(client)
        return evicted
