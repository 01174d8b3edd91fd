"""The ledger: every request that is not answered yet, and where it stands.

Owns the promise of one answer per request. A call is opened once, walks through the states below, and is closed once;
whoever closes it gets to answer it, and everybody who comes later finds nothing.

    received -> authorising -> parked -> waiting -> running -> ended
        └───────────┴─────────────────────┴──────────┘   (a state may be passed over, never gone back to,
                                                            but for parked -> waiting)

Owns deadlines too: each open call has at most one. The ledger knows nothing of tools or workers.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntEnum
from typing import Generic, TypeVar

from msgspec import Raw

from stanchion.wire.jsonrpc import Id, Ref
from stanchion.wire.revisions import Profile

Subject = TypeVar("Subject")


class State(IntEnum):
    """Where a call stands; only ever rises."""

    RECEIVED = 0
    AUTHORISING = 1
    PARKED = 2
    WAITING = 3
    RUNNING = 4
    ENDED = 5


class Call(Generic[Subject]):
    """One request being worked on."""

    __slots__ = (
        "connection", "deadline", "holder", "id", "meta", "method", "principal", "profile", "ref", "state", "subject", "token",
    )  # fmt: skip

    def __init__(
        self, ref: Ref, connection: Hashable, request: Id | None, method: str, profile: Profile
    ) -> None:
        self.ref = ref
        self.connection = connection
        self.id = request
        """The client's id; None for a call that the embedding program made."""
        self.method = method
        self.profile = profile
        self.state = State.RECEIVED
        self.holder: Hashable = connection
        """Whose share of the slots it uses."""
        self.principal: Hashable | None = None
        self.token: int | str | None = None
        """Names its progress messages; None if the client wants none."""
        self.meta: Raw | None = None
        self.deadline: float | None = None
        self.subject: Subject | None = None
        """What the kernel needs to go on with it."""

    def advance(self, state: State) -> None:
        """Move on to a later state."""
        if state <= self.state:
            raise AssertionError(f"a call can't go from {self.state.name} to {state.name}")
        self.state = state


class Ledger(Generic[Subject]):
    """The open calls."""

    def __init__(self) -> None:
        self._calls: dict[Ref, Call[Subject]] = {}
        self._by_request: dict[tuple[Hashable, bool, Id], Ref] = {}
        # Calls with the same time to live end in the order they began, so each queue is sorted by deadline.
        self._due: dict[float, dict[Ref, float]] = {}

    def __len__(self) -> int:
        """Open calls."""
        return len(self._calls)

    def open(self, call: Call[Subject], *, shared: bool = False) -> bool:
        """Take a call in.

        Args:
            call: The new one.
            shared: Several clients speak on its connection, so its id says nothing.

        Returns:
            False if the connection has an open call of the same era and id: then nothing was taken in.
        """
        if call.id is not None and not shared:
            key = (call.connection, call.profile.modern, call.id)
            if key in self._by_request:
                return False
            self._by_request[key] = call.ref
        self._calls[call.ref] = call
        return True

    def get(self, ref: Ref) -> Call[Subject] | None:
        """The open call, or None."""
        return self._calls.get(ref)

    def in_use(self, connection: Hashable, request: Id, *, modern: bool) -> bool:
        """Whether a connection has an open call with this id in this era."""
        return (connection, modern, request) in self._by_request

    def find(self, connection: Hashable, request: Id) -> Ref | None:
        """Which open call of a connection has this id. A client that mixes eras is taken by its handshake first."""
        found = self._by_request.get((connection, False, request))
        return found if found is not None else self._by_request.get((connection, True, request))

    def of(self, connection: Hashable) -> list[Call[Subject]]:
        """The open calls of a connection."""
        return [call for call in self._calls.values() if call.connection == connection]

    def all(self) -> list[Call[Subject]]:
        """Every open call, oldest first."""
        return list(self._calls.values())

    def close(self, ref: Ref) -> Call[Subject] | None:
        """End a call. Whoever gets it back answers it; for all others it is None."""
        call = self._calls.pop(ref, None)
        if call is None:
            return None
        if call.id is not None:
            key = (call.connection, call.profile.modern, call.id)
            if self._by_request.get(key) == ref:
                del self._by_request[key]
        self.unset_deadline(call)
        call.state = State.ENDED
        return call

    def set_deadline(self, call: Call[Subject], seconds: float, now: float) -> None:
        """Give an open call until *seconds* from now, in place of any earlier deadline."""
        self.unset_deadline(call)
        call.deadline = seconds
        queue = self._due.get(seconds)
        if queue is None:
            queue = self._due[seconds] = {}
        queue[call.ref] = now + seconds

    def unset_deadline(self, call: Call[Subject]) -> None:
        """Let a call take its time."""
        if call.deadline is None:
            return
        queue = self._due[call.deadline]
        del queue[call.ref]
        if not queue:
            del self._due[call.deadline]
        call.deadline = None

    def time_left(self, call: Call[Subject], now: float) -> float | None:
        """Seconds until a call is due, at least a hair; None if it has no deadline."""
        if call.deadline is None:
            return None
        return max(self._due[call.deadline][call.ref] - now, 0.001)

    @property
    def next_deadline(self) -> float | None:
        """When the first open call is due, in the clock's seconds."""
        return min((next(iter(queue.values())) for queue in self._due.values()), default=None)

    def expired(self, now: float) -> list[Call[Subject]]:
        """Open calls that are due at *now*. They stay open: close each, or give it another deadline."""
        due: list[Call[Subject]] = []
        for queue in self._due.values():
            for ref, at in queue.items():
                if at > now:
                    break
                due.append(self._calls[ref])
        return due
