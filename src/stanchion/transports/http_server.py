"""The app on a socket of its own: uvicorn, bounded where it is not.

Owns what an ASGI app can't do for itself: the time and size of a request's head, the cutting of connections whose client
does not read, and the order at the end (streams end first, or the HTTP server would wait for them for ever).

uvicorn is imported when a server is run, as a stdio start should not pay for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import signal
import socket
import threading
from collections.abc import Iterator
from typing import Any, Final

from stanchion.machines.http_headers import is_loopback
from stanchion.server.config import Config
from stanchion.server.errors import CannotStart
from stanchion.transports.asgi import AsgiApp
from stanchion.transports.http_io import ABORT

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_BACKLOG: Final = 2048
_IDLE_SECONDS: Final = 75
"""Seconds a connection may wait for its next request."""


def listen(host: str, port: int, *, insecure: bool) -> socket.socket:
    """Bind the address that is to be served on.

    Args:
        host: A name or an address.
        port: 0 takes any that is free.
        insecure: Other machines may be served, though nothing proves who they are.

    Raises:
        CannotStart: The address can't be had, or other machines could reach it.
    """
    if not insecure and not is_loopback(host):
        raise CannotStart(
            f"{host} can be reached from other machines and nothing proves who they are: serve on 127.0.0.1, or say "
            "--insecure (insecure=True)"
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise CannotStart(f"can't listen on {host}:{port}: {error.strerror or error}") from error


async def serve(
    app: AsgiApp, listener: socket.socket, config: Config, *, over: asyncio.Event | None = None
) -> None:
    """Serve until SIGINT or SIGTERM comes; a second one waits for nobody.

    Args:
        app: Not started.
        listener: Bound already; closed at the end.
        config: Options.
        over: Setting it ends the serving too.

    Raises:
        CannotStart: The server refuses to.
    """
    uvicorn: Any = importlib.import_module("uvicorn")
    settings = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        # Named, for what _bounded knows of a protocol holds of these two.
        http="httptools" if importlib.util.find_spec("httptools") else "h11",
        server_header=False,
        # Said in full, as uvicorn would look for it in the environment.
        proxy_headers=bool(config.trusted_proxies),
        forwarded_allow_ips=list(config.trusted_proxies),
        ws="none",
        timeout_keep_alive=_IDLE_SECONDS,
        backlog=_BACKLOG,
    )
    settings.load()
    settings.http_protocol_class = _bounded(settings.http_protocol_class, config)
    server = uvicorn.Server(settings)
    over = over or asyncio.Event()

    def interrupt() -> None:
        if over.is_set():
            app.hurry()
        over.set()

    async with app.lifespan():
        with _on_signals(interrupt):
            # Not serve(): that takes the signals for itself, and then waits for streams before it tells anybody.
            running = asyncio.create_task(server._serve([listener]))  # noqa: SLF001
            ending = asyncio.create_task(over.wait())
            await asyncio.wait({running, ending}, return_when=asyncio.FIRST_COMPLETED)
            ending.cancel()
            for one in getattr(server, "servers", ()):
                one.close()
            await app.aclose()
            server.should_exit = True
            await running


@contextlib.contextmanager
def _on_signals(interrupt: Any) -> Iterator[None]:
    """Call *interrupt* on the loop for each SIGINT and SIGTERM."""
    loop = asyncio.get_running_loop()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, lambda *_: loop.call_soon_threadsafe(interrupt)) for number in _SIGNALS
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _bounded(protocol: Any, config: Config) -> Any:
    """Derive from uvicorn's protocol (either of them) one whose request heads are bounded in time and size."""

    class Bounded(protocol):  # type: ignore[misc]
        """One connection."""

        _head_bytes = 0
        _head_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._expect_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            cycle = self.cycle
            answered = cycle is None or cycle.response_complete
            if answered and self._head_timer is None:
                self._expect_head()
            if answered or not cycle.more_body:
                # Of the next head, though the response before it may still be under way.
                self._head_bytes += len(data)
            super().data_received(data)
            if self.cycle is not cycle:
                # A head is whole: from here on the app's own bounds hold.
                self._head_bytes = 0
                self._stop_timer()
                self._let_be_cut()
            elif self._head_bytes > config.max_header_bytes + len(data):
                self.transport.abort()

        def _expect_head(self) -> None:
            self._head_timer = self.loop.call_later(config.head_timeout, self._give_up)

        def _give_up(self) -> None:
            self._head_timer = None
            self.transport.abort()

        def _stop_timer(self) -> None:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None

        def _let_be_cut(self) -> None:
            extensions = self.cycle.scope.setdefault("extensions", {})
            extensions[ABORT] = self.transport.abort

    return Bounded
