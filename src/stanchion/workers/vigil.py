"""A thread that looks at something at the right moments, and sleeps for as long as there is nothing to look at.

Owns the sleeping and the waking. What is looked at, and when again, is its owner's: a crew watches its callback loop for
stalls, another one repeats its kills.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

_LOG: Final = logging.getLogger("stanchion.workers")


class Vigil:
    """Calls *look* when woken and when the time it asked for is over, on a daemon thread started by the first ``wake``."""

    def __init__(self, name: str, look: Callable[[], float | None]) -> None:
        """Make a vigil that is not awake yet.

        Args:
            name: The thread's name.
            look: Is called on the thread. It returns the seconds until it wants to be called again, or None to be left
                alone until ``wake``. One that raises is logged and left alone until ``wake``.
        """
        self._name = name
        self._look = look
        self._lock = threading.Lock()
        self._bell = threading.Event()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def wake(self) -> None:
        """Have *look* called soon. From any thread; does nothing once stopped."""
        if self._thread is None:
            self._begin()
        self._bell.set()

    def stop(self, seconds: float) -> None:
        """End the thread and wait for it, at most *seconds*. From any thread; may be called twice."""
        with self._lock:
            self._stopped = True
            thread = self._thread
        self._bell.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)

    def _begin(self) -> None:
        with self._lock:
            if self._thread is None and not self._stopped:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                thread.start()
                self._thread = thread

    def _run(self) -> None:
        pause: float | None = None
        while True:
            self._bell.wait(pause)
            # Cleared before the look: a wake-up that comes during it is not lost.
            self._bell.clear()
            if self._stopped:
                return
            try:
                pause = self._look()
            except Exception:  # noqa: BLE001 - the next wake-up may do better
                _LOG.exception("the %s thread could not look", self._name)
                pause = None
