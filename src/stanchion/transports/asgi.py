"""The server as an ASGI app: mounts anywhere, brings no framework, keeps nothing outside of itself.

Owns the server's life: begun by the host's lifespan if that is passed on, else by the first request; and begun again after
its end, with a fresh server. What is served while it lives is in ``http_endpoint``.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import msgspec

from stanchion.server.errors import CannotStart
from stanchion.server.server import BaseServer
from stanchion.transports.http_endpoint import Endpoint, Identify
from stanchion.transports.http_io import JSON, Receive, Scope, Send

_LOG: Final = logging.getLogger("stanchion")

_NOT_STARTED: Final = msgspec.json.encode(
    {
        "jsonrpc": "2.0",
        "error": {"code": -32603, "message": "The server could not be started; its log says why"},
    }
)


class AsgiApp:
    """The ASGI callable. It belongs to one event loop at a time."""

    def __init__(
        self,
        make: Callable[[], BaseServer],
        *,
        path: str = "/mcp",
        sse: bool = False,
        identify: Identify | None = None,
    ) -> None:
        """Set up; nothing runs yet.

        Args:
            make: Makes a server, not started.
            path: Where the endpoint is, below where this is mounted.
            sse: Serve the transport of 2024-11-05 as well, on ``/sse`` and ``/messages/``.
            identify: Who the host proved a caller to be; without it, nobody is anybody.
        """
        self._make = make
        self._path = path
        self._sse = sse
        self._identify = identify
        self._endpoint: Endpoint | None = None
        self._ending: Endpoint | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, as ASGI has it."""
        if scope["type"] == "http":
            try:
                endpoint = self._begin()
            except (CannotStart, RuntimeError) as error:
                _LOG.error("the server can't start: %s", error)
                await _refuse(send)
            else:
                await endpoint.serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1003})

    @property
    def endpoint(self) -> Endpoint | None:
        """What serves now; None while nothing runs."""
        return self._endpoint

    # -- life

    def lifespan(self, _app: object = None) -> AbstractAsyncContextManager[None]:
        """The server's life as a context manager, for hosts that run no lifespan of a mounted app.

        ``Starlette(lifespan=mcp.lifespan, …)``, or ``async with mcp.lifespan():`` inside the host's own.

        Raises:
            CannotStart: The server refuses to.
        """
        return self._live()

    @asynccontextmanager
    async def _live(self) -> AsyncIterator[None]:
        endpoint = self._begin()
        try:
            await endpoint.server.prepare()
            yield
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """End the server, if it runs: work has ``Config.drain`` seconds, then every stream is ended."""
        endpoint, self._endpoint = self._endpoint, None
        if endpoint is None:
            return
        self._ending = endpoint
        try:
            await endpoint.close()
        finally:
            self._ending = None

    def hurry(self) -> None:
        """While it ends: wait for nobody any more."""
        if self._ending is not None:
            self._ending.server.hurry()

    def _begin(self) -> Endpoint:
        """What serves on this loop; begun if it has not.

        Raises:
            CannotStart: The server refuses to.
        """
        endpoint = self._endpoint
        if endpoint is not None:
            if endpoint.is_here:
                return endpoint
            if not endpoint.is_lost:
                raise CannotStart("it runs on another event loop already; make one app for each loop")
            _LOG.warning(
                "the event loop that served is closed, without the lifespan's end: its sessions are lost"
            )
        elif self._ending is not None:
            raise CannotStart("it is being ended")
        server = self._make()
        server.host()
        self._endpoint = Endpoint(server, path=self._path, sse=self._sse, identify=self._identify)
        return self._endpoint

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._begin().server.prepare()
        except (CannotStart, RuntimeError) as error:
            _LOG.error("the server can't start: %s", error)
            await self.aclose()
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})


async def _refuse(send: Send) -> None:
    length = (b"content-length", b"%d" % len(_NOT_STARTED))
    await send({"type": "http.response.start", "status": 503, "headers": [JSON, length]})
    await send({"type": "http.response.body", "body": _NOT_STARTED})
