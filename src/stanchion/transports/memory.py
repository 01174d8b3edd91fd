"""A client and a server joined in one process: real bytes, no pipe.

Owns the pair of queues. What passes is what would pass over stdio, line by line, so a test sees exactly the wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from stanchion.registry.authorizer import Principal
from stanchion.server.effects import Fail, Reply, Return
from stanchion.server.server import BaseServer
from stanchion.wire.codec import Codec
from stanchion.wire.jsonrpc import Outbound


class MemoryTransport:
    """One connection. Use it on the loop that runs now; the server may run on another."""

    def __init__(
        self,
        server: BaseServer,
        connection: Hashable | None = None,
        *,
        principal: Principal | None = None,
        handshake: bool = True,
        revision: str | None = None,
    ) -> None:
        """Open a connection.

        Args:
            server: Where to.
            connection: Its name; None makes one that nobody else has.
            principal: Who the client is to be taken for.
            handshake: Refuse requests before a handshake, as a real transport does.
            revision: Speak this revision without one.

        Raises:
            ConnectionTaken: The name has a live channel.
        """
        self.connection: Hashable = object() if connection is None else connection
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._codec = Codec(
            max_depth=server.config.max_depth,
            max_batch=server.config.max_batch,
            max_bytes=server.config.max_message_bytes,
        )
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        server.connect(
            self.connection,
            self._deliver,
            transport="memory",
            principal=principal,
            revision=revision,
            handshake=handshake,
        )

    def send(self, line: bytes) -> None:
        """Send one message, as bytes."""
        self._server.submit(self._codec.decode(line), self.connection, self._answered)

    async def receive(self) -> bytes:
        """The next line from the server.

        Raises:
            EOFError: The connection is closed and nothing is left.
        """
        line = await self._lines.get()
        if line is None:
            self._lines.put_nowait(None)
            raise EOFError("the connection is closed")
        return line

    def close(self) -> None:
        """Go away: whatever the client waited for ends."""
        self._server.disconnect(self.connection)
        self._lines.put_nowait(None)

    def _answered(self, end: Reply | Return | Fail) -> None:
        if isinstance(end, Reply) and end.answer is not None:
            self._deliver(end.answer)

    def _deliver(self, message: Outbound) -> None:
        line = self._codec.encode(message)
        self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
