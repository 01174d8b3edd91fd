"""Gathers the answers to a batch (revision 2025-03-26, basic/index; JSON-RPC 2.0, section 6).

Owns the count: the batch is answered when its last part is, with whatever answers there are; without any, not at all.
"""

from __future__ import annotations

from stanchion.wire.jsonrpc import Answer, Ref


class _Open:
    __slots__ = ("answers", "left", "ref")

    def __init__(self, ref: Ref, left: int) -> None:
        self.ref = ref
        self.left = left
        self.answers: list[Answer] = []


class Batches:
    """The batches with unanswered parts."""

    def __init__(self) -> None:
        self._open: dict[Ref, _Open] = {}

    def __len__(self) -> int:
        """Unanswered parts."""
        return len(self._open)

    def open(self, ref: Ref, parts: list[Ref]) -> None:
        """Begin a batch named *ref* with at least one part."""
        batch = _Open(ref, len(parts))
        for part in parts:
            self._open[part] = batch

    def is_part(self, ref: Ref) -> bool:
        """Whether *ref* is a part that is not answered yet."""
        return ref in self._open

    def abandon(self, ref: Ref) -> list[Ref]:
        """Forget the batch named *ref*, and say which of its parts were not answered."""
        parts = [part for part, batch in self._open.items() if batch.ref == ref]
        for part in parts:
            del self._open[part]
        return parts

    def settle(self, part: Ref, answer: Answer | None) -> tuple[Ref, tuple[Answer, ...]] | None:
        """Take the answer of a part, or None if it gets none.

        Returns:
            The batch's name and all its answers, once this was its last part.
        """
        batch = self._open.pop(part)
        if answer is not None:
            batch.answers.append(answer)
        batch.left -= 1
        return None if batch.left else (batch.ref, tuple(batch.answers))
