"""Every number a user may change, with its unit and default, checked once at start-up.

Owns the options of a server, and the sentences that say what is wrong with them. Reads nothing: no file, no environment.
"""

from __future__ import annotations

import math
from typing import Final, Literal, get_args

from msgspec import Struct

from stanchion.wire.model import LOG_LEVELS, LogLevel

Feature = Literal["tools", "resources", "prompts", "completions", "logging"]
FEATURES: Final[tuple[Feature, ...]] = get_args(Feature)

MIB: Final = 1024 * 1024


class InvalidConfig(ValueError):
    """Options that can't be used. The text lists every fault, one a line."""


class Config(Struct, frozen=True, kw_only=True):
    """A server's options. Times are seconds, sizes bytes.

    Raises:
        InvalidConfig: When an option is out of its range; all faults are named at once.
    """

    max_in_flight: int = 32
    """Callbacks running at once, all clients together. Work beyond it is answered ``busy``."""
    max_in_flight_per_connection: int | None = None
    """Of these, for one connection without a principal. Default: half of ``max_in_flight``, at least 1."""
    max_in_flight_per_principal: int | None = None
    """Of these, for one principal. Default: the connection's share."""
    callback_timeout: float = 300.0
    """Seconds one callback may run, unless its registration says otherwise."""
    elicitation_timeout: float = 60.0
    """Seconds a client has to answer what a callback asks it. They do not count as the callback's own time."""
    sealed_state_ttl: float = 600.0
    """Seconds a question may take to come back answered (revision 2026-07-28)."""
    kill_grace: float = 0.1
    """Seconds to wait for killed work to end before it is written off."""
    stall_limit: float = 1.0
    """Seconds the callback loop may stand still before later calls get a fresh one."""
    drain: float = 5.0
    """Seconds that running work has to end in at shutdown."""
    busy_retry_after: float = 1.0
    """Seconds a refused client is told to wait."""

    max_message_bytes: int = 16 * MIB
    """Longest message read; a longer one is answered with an error and skipped."""
    max_depth: int = 128
    """Deepest nesting of arrays and objects in a message."""
    max_batch: int = 100
    """Most messages in one batch (revision 2025-03-26)."""
    max_outbox_bytes: int = 64 * MIB
    """Bytes waiting for a client that does not read; above it, no more of its messages are read."""
    max_result_bytes: int | None = None
    """Longest text of one result; what is longer is cut, with a note. Default: no limit."""

    max_body_bytes: int = 16 * MIB
    """Longest body of an HTTP request; a longer one is answered 413 while it arrives."""
    body_timeout: float = 30.0
    """Seconds the body of an HTTP request may take to arrive."""
    head_timeout: float = 10.0
    """Seconds the head of an HTTP request may take to arrive (`stanchion run --http`)."""
    max_header_bytes: int = 64 * 1024
    """Bytes in all headers of an HTTP request together."""
    max_headers: int = 100
    """Headers of an HTTP request."""
    allowed_hosts: tuple[str, ...] = ()
    """`Host` names that HTTP clients may use, with a port or for any. Default: on a loopback address its names alone, else all; `*` for all."""
    allowed_origins: tuple[str, ...] = ()
    """Web origins that may ask, besides those on an allowed host; `*` for all."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses of proxies that are believed when they say whose request they pass on (`stanchion run --http`)."""
    keep_alive: float = 15.0
    """Seconds an HTTP stream is quiet before a comment shows that it lives."""
    reader_timeout: float = 60.0
    """Seconds an HTTP client may leave what it is sent unread before it is cut off."""
    session_idle: float = 1800.0
    """Seconds without a call or an open stream after which a session ends (handshake revisions over HTTP)."""
    max_sessions: int = 10_000
    """Sessions at once; for one more, the one that is idle longest ends, and if none is, the newcomer is answered 503."""
    event_store_messages: int = 256
    """Messages kept for each stream of a session, for clients that lost it."""
    event_store_bytes: int = MIB
    """Bytes kept for each stream of a session; the newest message is kept whatever its size."""
    event_store_streams: int = 16
    """Ended streams of a session that can still be resumed."""
    event_store_seconds: float = 300.0
    """Seconds an ended stream can still be resumed."""
    reconnect_after: float = 1.0
    """Seconds a client is told to wait before it resumes a stream."""

    page_size: int = 1000
    """Entries in one page of a list."""
    list_changed_window: float = 0.1
    """Seconds within which changes of one kind become one notice."""
    notices_per_second: float = 50.0
    """Progress and log messages one call may send a second; the last progress is always sent."""
    max_client_capabilities: int = 1024
    """Connections whose abilities are remembered."""
    max_listeners: int = 64
    """``subscriptions/listen`` requests open at once on one connection."""
    max_subscriptions: int = 1000
    """Resources one connection may watch."""
    log_level: LogLevel = "info"
    """Least severe log message sent to a connection that never set a level (handshake revisions)."""
    offers: tuple[Feature, ...] = FEATURES
    """What is declared and served. A feature left out answers as an unknown method."""

    @property
    def connection_share(self) -> int:
        """Callbacks one connection may run at once."""
        given = self.max_in_flight_per_connection
        return max(1, self.max_in_flight // 2) if given is None else given

    @property
    def principal_share(self) -> int:
        """Callbacks one principal may run at once."""
        given = self.max_in_flight_per_principal
        return self.connection_share if given is None else given

    def __post_init__(self) -> None:
        faults = [
            *(f"{name} must be at least 1, not {value}" for name, value in self._counts() if value < 1),
            *(
                f"{name} must be more than 0 seconds, not {value}"
                for name, value in self._spans()
                if not 0 < value < math.inf
            ),
            *self._shares(),
            *(
                f"{name} must be 0 or more seconds, not {value}"
                for name, value in self._waits()
                if not 0 <= value < math.inf
            ),
            *self._words(),
        ]
        if faults:
            raise InvalidConfig("\n".join(faults))

    def _counts(self) -> list[tuple[str, int]]:
        names = (
            "max_in_flight",
            "max_in_flight_per_connection",
            "max_in_flight_per_principal",
            "max_message_bytes",
            "max_depth",
            "max_batch",
            "max_outbox_bytes",
            "max_result_bytes",
            "max_body_bytes",
            "max_header_bytes",
            "max_headers",
            "max_sessions",
            "event_store_messages",
            "event_store_bytes",
            "event_store_streams",
            "page_size",
            "max_client_capabilities",
            "max_listeners",
            "max_subscriptions",
        )
        return [(name, value) for name in names if (value := getattr(self, name)) is not None]

    def _spans(self) -> list[tuple[str, float]]:
        names = (
            "callback_timeout",
            "elicitation_timeout",
            "sealed_state_ttl",
            "kill_grace",
            "stall_limit",
            "body_timeout",
            "head_timeout",
            "keep_alive",
            "reader_timeout",
            "session_idle",
            "event_store_seconds",
            "list_changed_window",
        )
        return [(name, getattr(self, name)) for name in names]

    def _waits(self) -> list[tuple[str, float]]:
        names = ("drain", "busy_retry_after", "reconnect_after")
        return [(name, getattr(self, name)) for name in names]

    def _shares(self) -> list[str]:
        pairs = (
            ("max_in_flight_per_connection", self.max_in_flight_per_connection),
            ("max_in_flight_per_principal", self.max_in_flight_per_principal),
        )
        return [
            f"{name} ({share}) may not exceed max_in_flight ({self.max_in_flight})"
            for name, share in pairs
            if share is not None and share > self.max_in_flight
        ]

    def _words(self) -> list[str]:
        faults = []
        if not 0 < self.notices_per_second < math.inf:
            faults.append(f"notices_per_second must be more than 0, not {self.notices_per_second}")
        if self.log_level not in LOG_LEVELS:
            faults.append(f"log_level must be one of {', '.join(LOG_LEVELS)}, not {self.log_level!r}")
        faults.extend(
            f"{name} must be a tuple of texts, not one text"
            for name in ("allowed_hosts", "allowed_origins", "trusted_proxies")
            if isinstance(getattr(self, name), str)
        )
        unknown = [feature for feature in self.offers if feature not in FEATURES]
        if unknown:
            faults.append(f"offers must name only {', '.join(FEATURES)}, not {', '.join(map(repr, unknown))}")
        return faults
