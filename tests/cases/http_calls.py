"""One HTTP request of a row: sent byte for byte, read as it comes, dropped when the row says so."""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Thread
from typing import Any, Final

from stanchion.wire.sse import Parser

LIMIT: Final = 20.0
"""Seconds for one answer, and for each piece of a stream."""

PIECE: Final = 1 << 16


def filled(value: Any, saved: Mapping[str, Any]) -> Any:
    """*value* with each ``${name}`` replaced by what was saved under that name."""
    match value:
        case str():
            whole = re.fullmatch(r"\$\{(\w+)\}", value)
            if whole:
                return saved.get(whole[1], "missing")
            return re.sub(r"\$\{(\w+)\}", lambda name: str(saved.get(name[1], "missing")), value)
        case dict():
            return {key: filled(item, saved) for key, item in value.items()}
        case list():
            return [filled(item, saved) for item in value]
        case _:
            return value


class HttpCall:
    """A request on a thread of its own, and what has come back so far."""

    def __init__(self, port: int, request: Mapping[str, Any], saved: Mapping[str, Any]) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.body = b""
        self.messages: list[dict[str, Any]] = []
        self.fault: str | None = None
        self._request = filled({k: v for k, v in request.items() if k != "body_gen"}, saved)
        self._generated = request.get("body_gen")
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
        self._socket: socket.socket | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def drop(self) -> None:
        """Close the connection under whoever is at it."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def with_method(self, method: str) -> list[dict[str, Any]]:
        return [message for message in list(self.messages) if message.get("method") == method]

    def _run(self) -> None:
        try:
            self._send()
            self._read()
        except (OSError, http.client.HTTPException) as error:
            self.fault = repr(error)
        finally:
            self._connection.close()

    def _send(self) -> None:
        connection, headers, body = self._connection, self._request["headers"], self._body()
        connection.connect()
        self._socket = connection.sock
        connection.putrequest(
            self._request["method"],
            self._request["path"],
            skip_host="Host" in headers,
            skip_accept_encoding=True,
        )
        for name, value in headers.items():
            connection.putheader(name, value)
        if body is not None or self._request["method"] in {"POST", "PUT", "PATCH"}:
            connection.putheader("Content-Length", str(len(body or b"")))
        # A server that refuses the body may stop reading; its answer can be read all the same.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.endheaders(body)

    def _body(self) -> bytes | None:
        if self._generated is not None:
            parts = self._generated
            return str(parts["prefix"] + parts["fill"] * parts["count"] + parts["suffix"]).encode()
        if "body_b64" in self._request:
            return base64.b64decode(self._request["body_b64"])
        if "json" in self._request:
            return json.dumps(self._request["json"]).encode()
        body = self._request.get("body")
        return None if body is None else str(body).encode()

    def _read(self) -> None:
        response = self._connection.getresponse()
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.status = response.status
        if "event-stream" not in self.headers.get("content-type", ""):
            self.body = response.read()
            with suppress(ValueError):
                self.messages.append(json.loads(self.body))
            return
        parser = Parser()
        while piece := response.read1(PIECE):
            self.body += piece
            for event in parser.feed(piece):
                with suppress(ValueError):
                    self.messages.append(json.loads(event.data))


def until(what: Callable[[], object], seconds: float) -> bool:
    """Wait until *what* holds, for at most *seconds*; returns whether it does."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
