"""Work that was told to end and has not yet.

Owns the patience with it: *grace* seconds after the telling it is written off (see ``admission``). Patience is the same for
all, so the table is in order of deadline.
"""

from __future__ import annotations

from stanchion.wire.jsonrpc import Ref


class Endings:
    """The work told to end."""

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._until: dict[Ref, float] = {}

    def __len__(self) -> int:
        """How much of it there is."""
        return len(self._until)

    def await_end(self, ref: Ref, now: float) -> None:
        """Work was told to end at *now* (seconds)."""
        self._until[ref] = now + self._grace

    def ended(self, ref: Ref) -> None:
        """Work has ended after all."""
        self._until.pop(ref, None)

    @property
    def next_deadline(self) -> float | None:
        """When patience with the first of it is over."""
        return next(iter(self._until.values()), None)

    def due(self, now: float) -> list[Ref]:
        """The work to write off at *now*. Afterwards ``next_deadline`` is later than *now*, or None."""
        refs = []
        for ref, until in self._until.items():
            if until > now:
                break
            refs.append(ref)
        for ref in refs:
            del self._until[ref]
        return refs
