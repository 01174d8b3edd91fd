"""Making another thread raise, as safely as that can be done.

Owns the exception that ends a thread's work and the two calls into the interpreter. Who is hit, and when, is ``threads``'.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import Final

FRAGILE: Final = ("logging", "importlib._bootstrap", "stanchion.server")
"""Modules in the middle of which no exception is put in while it can be helped: it could leave behind, locked or half
done, what everybody else in the process needs."""

_PACKAGES: Final = tuple(f"{module}." for module in FRAGILE)

_OWN_CODE: Final = "stanchion.workers.threads"
"""The module whose frame is the lowest that belongs to a job."""

_set_async_exc: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_ulong, ctypes.py_object)(
    ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
)


class WorkerKilled(BaseException):
    """Comes up in a thread whose work is to end."""


def inject(ident: int) -> None:
    """Have the thread raise ``WorkerKilled`` at its next bytecode.

    Args:
        ident: Its ``Thread.ident``. The caller knows that the thread lives: idents are used again.
    """
    _set_async_exc(ident, ctypes.py_object(WorkerKilled))


def take_back() -> None:
    """Forget the exception that was put into this thread, if it has not come up yet."""
    _set_async_exc(threading.get_ident(), ctypes.py_object())


def is_fragile(ident: int) -> bool:
    """Whether the thread is in the middle of something that others need whole (``FRAGILE``).

    Its frames are looked at while it waits for the interpreter, so that the answer still holds when ``inject`` follows
    at once.
    """
    frame = sys._current_frames().get(ident)  # noqa: SLF001 - documented; the underscore only warns of its purpose
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if module == _OWN_CODE:
            return False
        if module in FRAGILE or (isinstance(module, str) and module.startswith(_PACKAGES)):
            return True
        frame = frame.f_back
    return False
