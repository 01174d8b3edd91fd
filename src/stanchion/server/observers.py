"""Tells whoever wants to know what the server did, off the protocol loop.

Owns one thread and a bounded queue. An observer is user code: it may be slow, raise or hang. One that raises is dropped with
one log line; while one hangs the queue fills, and events that find it full are counted and left out. Neither is ever felt
by a client. The log lines go the same way, because a log handler may block too.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Iterable, Mapping
from typing import Final

from stanchion.server.ports import Observer

_LOG: Final = logging.getLogger("stanchion")
_QUEUED: Final = 10_000
"""Events that may wait for slow observers."""
_QUIET: Final = frozenset({"malformed_message", "stray_response", "arguments_rejected", "call_busy"})
"""Events that a peer can cause at will; logged at debug level so that it can't fill a disk."""
_CLOSE_WAIT: Final = 1.0
"""Seconds that closing waits for events already queued."""


class Observers:
    """The observers of one server. Safe to use from any thread."""

    def __init__(self, observers: Iterable[Observer] = ()) -> None:
        self._observers = list(observers)
        self._queue: queue.Queue[tuple[str, Mapping[str, object]] | None] = queue.Queue(_QUEUED)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False
        self.dropped = 0
        """Events left out because the queue was full."""

    def add(self, observer: Observer) -> None:
        """Tell *observer* of every event from now on."""
        with self._lock:
            self._observers.append(observer)

    def emit(self, name: str, fields: Mapping[str, object]) -> None:
        """Pass an event on. Never blocks."""
        if self._closed or not (self._observers or _LOG.isEnabledFor(_level(name))):
            return
        if self._thread is None:
            self._start()
        try:
            self._queue.put_nowait((name, fields))
        except queue.Full:
            self.dropped += 1

    def close(self) -> None:
        """Pass on what is queued, then end. May be called twice."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is None or thread is threading.current_thread():
            return
        try:
            self._queue.put(None, timeout=_CLOSE_WAIT)
        except queue.Full:
            return
        thread.join(_CLOSE_WAIT)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="stanchion-observers", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while (event := self._queue.get()) is not None:
            name, fields = event
            _LOG.log(_level(name), "%s %s", name, fields)
            for observer in tuple(self._observers):
                try:
                    observer(name, fields)
                except BaseException:  # noqa: BLE001 - whatever it raises, the others are still told
                    with self._lock:
                        self._observers.remove(observer)
                    _LOG.exception("an observer raised at %s and is not told any more", name)


def _level(name: str) -> int:
    return logging.DEBUG if name in _QUIET else logging.INFO
