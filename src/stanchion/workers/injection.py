"""Making another thread raise, as safely as that can be done.

Owns the exception that ends a thread's work, the calls into the interpreter, and the judgement whether a thread may be hit
where it stands. Who is hit, and when, is ``threads``'.

An exception that comes up between the taking of a lock and the ``try`` that would give it back leaves the lock taken for
ever. Where that lock is everybody's, as a log handler's is, the whole process would stop.
"""

from __future__ import annotations

import ctypes
import enum
import sys
import threading
from types import FrameType
from typing import Final

FRAGILE: Final = ("logging", "importlib._bootstrap", "stanchion.server")
"""Modules whose work, once begun, had better be finished: half a log line, half an import."""

LOCKING: Final = ("logging", "importlib._bootstrap", "threading")
"""Modules that take locks by hand."""

BY_HAND: Final = frozenset(
    {
        "acquire",
        "release",
        "_acquireLock",
        "_releaseLock",
        "acquire_lock",
        "release_lock",
        "__enter__",
        "__exit__",
    }
)
"""What their functions call to do so."""

WAITS: Final = frozenset({"wait", "wait_for", "join", "_wait_for_tstate_lock"})
"""Those that may be left at any point all the same; threads stand in them for long."""

POST: Final = "post"
"""The function by which everything reaches the server (``ports.Mailbox``). Half a post would leave it unheard."""

_OWN_CODE: Final = "stanchion.workers.threads"
"""The module whose frame is the lowest that belongs to a job."""

_set_async_exc: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_ulong, ctypes.py_object)(
    ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
)


class WorkerKilled(BaseException):
    """Comes up in a thread whose work is to end."""


class Footing(enum.Enum):
    """Whether a thread may be hit where it stands."""

    FREE = enum.auto()
    FRAGILE = enum.auto()
    """It had better not, but no harm is done to others."""
    LOCKING = enum.auto()
    """It must not."""


def footing(ident: int) -> Footing:
    """Where the thread stands while it waits for the interpreter.

    Args:
        ident: Its ``Thread.ident``.
    """
    frame = innermost = sys._current_frames().get(ident)  # noqa: SLF001 - documented; the underscore only warns of its purpose
    if innermost is not None and _is_locking(innermost):
        return Footing.LOCKING
    found = Footing.FREE
    while frame is not None:
        module = _module(frame)
        if module == _OWN_CODE:
            break
        if frame.f_code.co_name == POST and module.startswith("stanchion."):
            return Footing.LOCKING
        if _is_of(module, FRAGILE):
            found = Footing.FRAGILE
        frame = frame.f_back
    return found


def inject(ident: int) -> bool:
    """Have the thread raise ``WorkerKilled`` at its next bytecode.

    Args:
        ident: Its ``Thread.ident``. The caller knows that the thread lives (idents are used again) and where it stands.

    Returns:
        Whether it stood. False if it was found in the middle of something after all, and the exception taken back; it may
        have come up before that.
    """
    _set_async_exc(ident, ctypes.py_object(WorkerKilled))
    # This thread may have lost the interpreter since it looked, if rarely; that it loses it here too is rarer still.
    if footing(ident) is not Footing.LOCKING:
        return True
    _set_async_exc(ident, ctypes.py_object())
    return False


def take_back() -> None:
    """Forget the exception that was put into this thread, if it has not come up yet."""
    _set_async_exc(threading.get_ident(), ctypes.py_object())


def _is_locking(frame: FrameType) -> bool:
    code = frame.f_code
    return (
        _is_of(_module(frame), LOCKING)
        and code.co_name not in WAITS
        and not BY_HAND.isdisjoint(code.co_names)
    )


def _is_of(module: str, names: tuple[str, ...]) -> bool:
    return module in names or any(module.startswith(f"{name}.") for name in names)


def _module(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__")
    return name if isinstance(name, str) else ""
