"""A token bucket: how many notices one call may send.

Owns the counting only. The caller passes the time in and decides what happens to what may not pass.
"""

from __future__ import annotations


class Throttle:
    """Lets *rate* events a second pass, and up to one second's worth at once."""

    __slots__ = ("_at", "_rate", "_tokens")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._tokens = max(1.0, rate)
        self._at = now

    def take(self, now: float) -> bool:
        """Whether an event may pass at *now* (seconds); a time before the last one counts as the last one."""
        if now > self._at:
            self._tokens = min(max(1.0, self._rate), self._tokens + (now - self._at) * self._rate)
            self._at = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
