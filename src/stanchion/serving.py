"""Starting a server in a process that is ours: what ``app.run()`` and ``stanchion run`` share.

Owns what may be done to a process only by its owner (the event loop's kind, how often threads take turns, where log lines
go) and the sentence with which a start fails.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import importlib.util
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, NoReturn

from stanchion.runtime import Server
from stanchion.transports.asgi import AsgiApp
from stanchion.transports.guard import StdoutGuard
from stanchion.transports.http_server import listen, serve
from stanchion.transports.stdio import serve_stdio

SWITCH_INTERVAL: Final = 0.001
"""Seconds a thread may keep the interpreter while others wait. At Python's own 5 ms a few spinning tools would hold every
answer back; much below this a burst of thread calls is slowed to a third by the switching alone."""

USAGE_ERROR: Final = 2

LINGER: Final = 0.5
"""Seconds that threads which callbacks started have to end in, once the server has."""


def run_stdio(make: Callable[[], Server], *, debug: bool = False) -> None:
    """Serve one client over this process's stdin and stdout.

    Args:
        make: Makes the server; called once nothing printed can reach the wire any more.
        debug: Show where a failed start comes from.

    Raises:
        SystemExit: With code 2 and a sentence on stderr: the server can't start.
    """
    before = set(threading.enumerate())
    with _own_process(debug=debug), StdoutGuard() as guard:
        try:
            server = make()
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(serve_stdio(server, guard))
        except (RuntimeError, ValueError, TypeError) as error:
            refuse(error, debug=debug)
    _leave_none_waiting(before)


def run_http(
    make: Callable[[], Server],
    address: str,
    *,
    sse: bool = False,
    insecure: bool = False,
    debug: bool = False,
) -> None:
    """Serve HTTP clients until SIGINT or SIGTERM comes.

    Args:
        make: Makes the server.
        address: ``HOST:PORT``, or a port alone for this machine's own clients.
        sse: Serve the transport of 2024-11-05 as well.
        insecure: Other machines may be served, though nothing proves who they are.
        debug: Show where a failed start comes from.

    Raises:
        SystemExit: With code 2 and a sentence on stderr: the server can't start.
    """
    with _own_process(debug=debug):
        try:
            host, port = split_address(address)
            server = make()
            with listen(host, port, insecure=insecure) as listener:
                name = f"[{host}]" if ":" in host else host
                sys.stderr.write(f"stanchion: serving on http://{name}:{listener.getsockname()[1]}/mcp\n")
                sys.stderr.flush()
                app = AsgiApp(lambda: server, sse=sse)
                with asyncio.Runner(loop_factory=loop_factory()) as runner:
                    runner.run(serve(app, listener, server.config))
        except (RuntimeError, ValueError, TypeError) as error:
            refuse(error, debug=debug)


def split_address(address: str) -> tuple[str, int]:
    """``HOST:PORT``, ``[HOST]:PORT``, ``:PORT`` or ``PORT`` as host and port.

    Raises:
        ValueError: It is none of these. The text is one sentence.
    """
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) < 1 << 16):
        raise ValueError(f"{address!r} is no address to serve on; write HOST:PORT, such as 127.0.0.1:8000")
    return host.strip("[]") or "127.0.0.1", int(port)


def _leave_none_waiting(before: set[threading.Thread]) -> None:
    """End the process here and now if a thread that a callback started would keep it from ending.

    What a callback gives to ``asyncio.to_thread`` or to an executor runs on a thread that the interpreter waits for at its
    end, however long that takes. The work had its time; a client that has gone waits for nobody.
    """
    # An executor's threads are waited for even if they are daemons; the interpreter keeps the list of them.
    pooled = getattr(concurrent.futures.thread, "_threads_queues", {})
    stuck = [
        thread
        for thread in threading.enumerate()
        if thread not in before and (not thread.daemon or thread in pooled)
    ]
    for thread in stuck:
        thread.join(LINGER / len(stuck))
    stuck = [thread for thread in stuck if thread.is_alive()]
    if stuck:
        logging.getLogger("stanchion").warning(
            "threads of callbacks do not end (%s); the process ends without them",
            ", ".join(t.name for t in stuck),
        )
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                with suppress(OSError, ValueError):
                    stream.flush()
        os._exit(0)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's, where it is installed and can be; else None, for asyncio's own."""
    if sys.platform == "win32" or importlib.util.find_spec("uvloop") is None:
        return None
    uvloop = importlib.import_module("uvloop")
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def refuse(error: BaseException, *, debug: bool) -> NoReturn:
    """End a start that failed: the error's sentence on stderr, and where it came from only if asked."""
    if debug:
        traceback.print_exception(error)
    sys.stderr.write(f"stanchion: {error}\n")
    raise SystemExit(USAGE_ERROR) from None


@contextmanager
def _own_process(*, debug: bool) -> Iterator[None]:
    """Do to the process what only its owner may, and undo it."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    log = logging.getLogger("stanchion")
    level, handler = log.level, _stderr_handler(log)
    if handler is not None:
        log.addHandler(handler)
        log.setLevel(logging.DEBUG if debug else logging.INFO)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        if handler is not None:
            log.removeHandler(handler)
            log.setLevel(level)


def _stderr_handler(log: logging.Logger) -> logging.Handler | None:
    """What lets log lines be seen, unless the program has seen to that itself."""
    if logging.getLogger().handlers or log.handlers:
        return None
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    return handler
