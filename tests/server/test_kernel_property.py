"""Any order of events keeps the promises (A3, A5, E3, E4): see ``watch`` for what they are and ``kernel_machine`` for the moves."""

from __future__ import annotations

from tests.server.kernel_machine import KernelMachine


class Unguarded(KernelMachine):
    """Nothing authorises calls."""


class Guarded(KernelMachine):
    """Each tool call is judged first, by a worker."""

    guarded = True


TestUnguarded = Unguarded.TestCase
TestGuarded = Guarded.TestCase
