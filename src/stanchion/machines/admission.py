"""How much work runs at once, and whose it is.

Owns the slots (*total* over all) and the shares (how many of them one holder may use). Checks and counts are here, in one
place, so that two requests can't both pass a check meant for one.

A call holds a slot from ``offer`` to ``release``. Work that was told to end but does not is *written off*: its slot goes
back to everybody, while the charge stays on its holder's share until the work really ends. So a client whose work can't
be killed crowds out only itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Literal

from msgspec import Struct

from stanchion.wire.jsonrpc import Ref


class Busy(Struct, frozen=True):
    """Why there is no slot."""

    scope: Literal["server", "share"]
    """Which bound was hit."""
    limit: int


class Admission:
    """The slots. Promises: never more than *total* in use, never more than a share charged to its holder."""

    def __init__(self, total: int, share_of: Callable[[Hashable], int]) -> None:
        self._total = total
        self._share_of = share_of
        self._holders: dict[Ref, Hashable] = {}
        self._charged: dict[Hashable, int] = {}
        self._written_off: set[Ref] = set()

    @property
    def running(self) -> int:
        """Slots in use."""
        return len(self._holders) - len(self._written_off)

    @property
    def written_off(self) -> int:
        """Work given up on that has not ended yet."""
        return len(self._written_off)

    def charged(self, holder: Hashable) -> int:
        """How much of its share a holder uses, written-off work included."""
        return self._charged.get(holder, 0)

    def offer(self, ref: Ref, holder: Hashable) -> Busy | None:
        """Take a slot for *ref*, or say why there is none."""
        share = self._share_of(holder)
        charged = self._charged.get(holder, 0)
        if charged >= share:
            return Busy("share", share)
        if len(self._holders) - len(self._written_off) >= self._total:
            return Busy("server", self._total)
        self._holders[ref] = holder
        self._charged[holder] = charged + 1
        return None

    def write_off(self, ref: Ref) -> bool:
        """Give the slot of *ref* back to everybody but leave it charged. False if it held none."""
        if ref not in self._holders or ref in self._written_off:
            return False
        self._written_off.add(ref)
        return True

    def release(self, ref: Ref) -> bool:
        """The work of *ref* has ended: nothing is held or charged any more. False if nothing was."""
        if ref not in self._holders:
            return False
        holder = self._holders.pop(ref)
        self._written_off.discard(ref)
        left = self._charged[holder] - 1
        if left:
            self._charged[holder] = left
        else:
            del self._charged[holder]
        return True
