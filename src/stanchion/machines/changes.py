"""Turns a storm of changes into a few notices.

Owns the window: the first change of a kind is told at once, those within *window* seconds of a notice wait for its end
and become one. So the last state is always announced, and a kind is never announced more than once per window.
"""

from __future__ import annotations


class Changes:
    """The kinds that have changed and were not announced yet."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._quiet_until: dict[str, float] = {}
        self._pending: set[str] = set()

    def note(self, kind: str, now: float) -> bool:
        """Take a change of *kind* in. True if it is to be announced now."""
        if now < self._quiet_until.get(kind, now):
            self._pending.add(kind)
            return False
        # A change whose window is over, but whose turn has not come yet, is told with this one.
        self._pending.discard(kind)
        self._quiet_until[kind] = now + self._window
        return True

    @property
    def next_deadline(self) -> float | None:
        """When the next waiting change is to be announced."""
        return min((self._quiet_until[kind] for kind in self._pending), default=None)

    def due(self, now: float) -> list[str]:
        """The kinds to announce at *now*, in order of name; their next windows begin."""
        kinds = sorted(kind for kind in self._pending if self._quiet_until[kind] <= now)
        for kind in kinds:
            self._pending.discard(kind)
            self._quiet_until[kind] = now + self._window
        return kinds
