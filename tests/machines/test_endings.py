"""Patience with work that was told to end."""

from __future__ import annotations

from stanchion.machines.endings import Endings
from stanchion.wire.jsonrpc import Ref


def test_work_is_due_when_the_grace_is_over_and_only_once() -> None:
    endings = Endings(2.0)
    endings.await_end(Ref(1), 0.0)
    endings.await_end(Ref(2), 1.0)
    assert endings.next_deadline == 2.0
    assert endings.due(1.9) == []
    assert endings.due(2.0) == [Ref(1)]
    assert endings.due(2.0) == []
    assert endings.next_deadline == 3.0
    assert endings.due(9.0) == [Ref(2)]
    assert (len(endings), endings.next_deadline) == (0, None)


def test_work_that_ended_is_not_due() -> None:
    endings = Endings(2.0)
    endings.await_end(Ref(1), 0.0)
    endings.ended(Ref(1))
    endings.ended(Ref(7))
    assert endings.due(9.0) == []
