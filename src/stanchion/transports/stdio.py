"""MCP over this process's own pipes (basic/transports, stdio): one client, one message a line.

Owns the two ends of the framing, what ends the conversation (EOF, a broken pipe, a signal), and that nothing but messages
is ever written to stdout. Messages of any revision may come, one after the other; the server tells them apart.

The order at the end: no more is read; running work has ``drain`` seconds and its answers are written; the rest is killed;
what the client has not read yet is written, within ``drain`` seconds again; then the process may exit.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from typing import Final

from msgspec import UNSET

from stanchion.machines.clients import DEFAULT
from stanchion.registry.authorizer import LOCAL
from stanchion.server.effects import Fail, Reply, Return
from stanchion.server.server import BaseServer
from stanchion.transports.guard import StdoutGuard
from stanchion.transports.pipes import Reader, Writer, open_reader, open_writer
from stanchion.wire.codec import Codec
from stanchion.wire.errors import InvalidRequest
from stanchion.wire.framing import LineSplitter, Overlong
from stanchion.wire.jsonrpc import ErrorObject, Failure, Inbound, Malformed, Outbound

_TOO_LONG: Final = Malformed(
    Failure(UNSET, ErrorObject(InvalidRequest.code, "The line is too long")), "line too long"
)
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


async def serve_stdio(server: BaseServer, guard: StdoutGuard) -> None:
    """Serve one client over stdin and stdout, until it goes or a signal comes.

    Args:
        server: Not started yet; it is run on this loop and closed at the end.
        guard: Installed already, so that nothing printed since could reach the wire.

    Raises:
        CannotStart: The server refuses to.
    """
    server.host()
    conversation = _Conversation(server)
    conversation.open(guard.stdin, guard.stdout)
    restore = _on_signals(conversation.interrupt)
    try:
        await _until(conversation.over, server)
        await server.aclose(0.0 if conversation.broken else None)
        await conversation.finish(server.config.drain)
    finally:
        restore()
        await server.aclose(0.0)
        conversation.close()


async def _until(over: asyncio.Event, server: BaseServer) -> None:
    """Wait for the end; what callbacks need is made ready meanwhile, and if that fails it is the end too."""
    ready = asyncio.create_task(server.prepare())
    end = asyncio.create_task(over.wait())
    try:
        await asyncio.wait({ready, end}, return_when=asyncio.FIRST_COMPLETED)
        # A client that is gone already does not make a failed start a good one.
        await asyncio.wait({ready}, timeout=server.config.drain)
        if ready.done():
            ready.result()
            await end
        # Else the lifespan is still opening; closing the server ends that.
    finally:
        end.cancel()


class _Conversation:
    """Bytes in, messages to the server, answers and notices out as bytes."""

    def __init__(self, server: BaseServer) -> None:
        config = server.config
        self.over = asyncio.Event()
        self.broken = False
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._codec = Codec(
            max_depth=config.max_depth, max_batch=config.max_batch, max_bytes=config.max_message_bytes
        )
        self._splitter = LineSplitter(config.max_message_bytes)
        self._max_outbox = config.max_outbox_bytes
        self._out: list[bytes] = []
        self._held_back = False
        self._reader: Reader
        self._writer: Writer

    def open(self, stdin: int, stdout: int) -> None:
        """Begin to read and to be able to write."""
        self._writer = open_writer(stdout, self._break, self._drained)
        self._server.connect(DEFAULT, self._send, transport="stdio", principal=LOCAL, handshake=True)
        self._reader = open_reader(stdin, self._read, self._end)

    def interrupt(self) -> None:
        """End as at EOF; a second time, without waiting for anybody."""
        if self.over.is_set():
            self._server.hurry()
        self._reader.pause()
        self.over.set()

    async def finish(self, seconds: float) -> None:
        """Write what is left, as long as the client reads, but no longer than *seconds*."""
        self._write_out()
        try:
            async with asyncio.timeout(seconds):
                await self._writer.drain()
        except TimeoutError:
            return

    def close(self) -> None:
        """Let go of the pipes."""
        self._reader.close()
        self._writer.close()

    def _read(self, chunk: bytes) -> None:
        self._take(self._splitter.feed(chunk))
        if self._writer.pending > self._max_outbox and not self._held_back:
            # The client asks and does not read: it must read before it may ask on.
            self._held_back = True
            self._reader.pause()

    def _end(self) -> None:
        self._take(self._splitter.finish())
        self.over.set()

    def _break(self) -> None:
        self.broken = True
        self.over.set()

    def _drained(self) -> None:
        if self._held_back:
            self._held_back = False
            if not self.over.is_set():
                self._reader.resume()

    def _take(self, lines: list[bytes | Overlong]) -> None:
        if lines and not self.over.is_set():
            decode = self._codec.decode
            messages: list[Inbound] = [
                _TOO_LONG if isinstance(line, Overlong) else decode(line) for line in lines
            ]
            self._server.receive(DEFAULT, messages, self._answer)

    def _answer(self, end: Reply | Return | Fail) -> None:
        if isinstance(end, Reply) and end.answer is not None:
            self._send(end.answer)

    def _send(self, message: Outbound) -> None:
        line = self._codec.encode(message)
        if not self._out:
            # Whatever else this turn of the loop brings goes out in the same write.
            self._loop.call_soon(self._write_out)
        self._out.append(line)

    def _write_out(self) -> None:
        if self._out:
            self._out.append(b"")
            data = b"\n".join(self._out)
            self._out.clear()
            if not self.broken:
                self._writer.write(data)


def _on_signals(interrupt: Callable[[], None]) -> Callable[[], None]:
    """Call *interrupt* on the loop for each SIGINT and SIGTERM; returns what puts the old handlers back."""
    loop = asyncio.get_running_loop()
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    # signal.signal and not the loop's own: it works on every loop and system, and what was there can be put back.
    before = {
        number: signal.signal(number, lambda *_: loop.call_soon_threadsafe(interrupt)) for number in _SIGNALS
    }

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    return restore
