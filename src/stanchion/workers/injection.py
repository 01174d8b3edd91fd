"""Making another thread raise, as safely as that can be done.

Owns the exception that ends a thread's work, the calls into the interpreter, the judgement whether a thread may be hit where
it stands, and the mending afterwards. Who is hit, and when, is ``threads``'.

The danger is an exception that comes up between the taking of a lock and the ``try`` that would give it back: the lock stays
taken for ever. ``with`` is safe; code that takes locks by hand is not, and it stands in the library as well.
"""

from __future__ import annotations

import ctypes
import enum
import logging
import sys
import threading
from types import FrameType
from typing import Final

FRAGILE: Final = ("logging", "importlib._bootstrap", "stanchion.server")
"""Modules whose work, once begun, had better be finished: half a log line, half an import."""

BY_HAND: Final = frozenset({"acquire", "release", "__enter__", "__exit__"})
"""What functions of ``threading`` call that take and give back locks by hand."""

WAITS: Final = frozenset({"wait", "wait_for", "join", "_wait_for_tstate_lock"})
"""Those of them that may be left at any point; threads stand in them for long."""

POST: Final = "post"
"""The function by which everything reaches the server (``ports.Mailbox``). It is short, and half of it done would leave the
server deaf."""

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
    """It had better not, while that can be helped."""
    POSTING = enum.auto()
    """It must not."""


def footing(ident: int) -> Footing:
    """Where the thread stands while it waits for the interpreter.

    Args:
        ident: Its ``Thread.ident``.
    """
    frame = innermost = sys._current_frames().get(ident)  # noqa: SLF001 - documented; its underscore only warns
    fragile = innermost is not None and _takes_locks(innermost)
    while frame is not None:
        module = _module(frame)
        if module == _OWN_CODE:
            break
        if frame.f_code.co_name == POST and module.startswith("stanchion."):
            return Footing.POSTING
        fragile = fragile or any(module == name or module.startswith(f"{name}.") for name in FRAGILE)
        frame = frame.f_back
    return Footing.FRAGILE if fragile else Footing.FREE


def inject(ident: int) -> bool:
    """Have the thread raise ``WorkerKilled`` at its next bytecode.

    Args:
        ident: Its ``Thread.ident``. The caller knows that the thread lives (idents are used again) and where it stands.

    Returns:
        Whether it stood. False if the thread was found to be posting after all, and the exception taken back; it may have
        come up before that.
    """
    _set_async_exc(ident, ctypes.py_object(WorkerKilled))
    # This thread may have lost the interpreter since it looked, if rarely; that it loses it here too is rarer still.
    if footing(ident) is not Footing.POSTING:
        return True
    _set_async_exc(ident, ctypes.py_object())
    return False


def take_back() -> None:
    """Forget the exception that was put into this thread, if it has not come up yet."""
    _set_async_exc(threading.get_ident(), ctypes.py_object())


def mend() -> None:
    """Give back what this thread still has of the locks of ``logging``.

    Called when nothing but the crew's own code is left on the thread: then whoever took them is gone.
    """
    handlers = [reference() for reference in list(getattr(logging, "_handlerList", ()))]
    for lock in [getattr(logging, "_lock", None), *(getattr(handler, "lock", None) for handler in handlers)]:
        is_ours = getattr(lock, "_is_owned", None)
        while lock is not None and is_ours is not None and is_ours():
            lock.release()


def _takes_locks(frame: FrameType) -> bool:
    code = frame.f_code
    return (
        _module(frame) == threading.__name__
        and code.co_name not in WAITS
        and not BY_HAND.isdisjoint(code.co_names)
    )


def _module(frame: FrameType) -> str:
    name = frame.f_globals.get("__name__")
    return name if isinstance(name, str) else ""
