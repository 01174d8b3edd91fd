"""What is told to clients unasked: progress, log messages, and that something changed.

Owns who is told what, and by which form: handshake clients on their connection, modern ones only on the listen request that
asked for it, with its id. The coalescing of list changes is ``machines.changes``'. Pure.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from stanchion.machines.calls import Ledger
from stanchion.machines.changes import Changes
from stanchion.machines.clients import Clients
from stanchion.machines.listeners import Listener, Listeners
from stanchion.server.config import Config
from stanchion.server.effects import Effect, Push
from stanchion.server.errands import Errand, OpenCall
from stanchion.server.offers import Offers
from stanchion.server.ports import Logged, Progressed
from stanchion.wire.codec import encode_value
from stanchion.wire.jsonrpc import Notification, Ref
from stanchion.wire.model import LOG_LEVELS, SUBSCRIPTION_ID

_ONE_STREAM: Final = frozenset({"stdio", "unix", "memory"})
"""Transports on which all of a connection's messages share one stream."""


class Notices:
    """Makes the pushes."""

    def __init__(
        self, config: Config, offers: Offers, ledger: Ledger[Errand], clients: Clients, listeners: Listeners
    ) -> None:
        self._offers = offers
        self._ledger = ledger
        self._clients = clients
        self._listeners = listeners
        self._changes = Changes(config.list_changed_window)

    @property
    def next_deadline(self) -> float | None:
        """When a change that waits is to be announced."""
        return self._changes.next_deadline

    def progressed(self, report: Progressed, out: list[Effect]) -> None:
        """A callback got further: told to its caller, if it asked, as long as its call is open (U10)."""
        call = self._ledger.get(report.ref)
        if call is None or call.token is None:
            return
        params: dict[str, object] = {"progressToken": call.token, "progress": report.progress}
        if report.total is not None:
            params["total"] = report.total
        if report.message is not None and call.profile.progress_message:
            params["message"] = report.message
        _push(call.connection, "notifications/progress", params, out, call.ref)

    def logged(self, report: Logged, out: list[Effect]) -> None:
        """A callback said something for the log: told to its caller from the level up that it wants (U3, U4)."""
        call = self._ledger.get(report.ref)
        if call is None:
            return
        if LOG_LEVELS.index(report.level) < self._log_floor(call):
            return
        params: dict[str, object] = {"level": report.level, "data": report.data}
        if report.logger is not None:
            params["logger"] = report.logger
        _push(call.connection, "notifications/message", params, out, call.ref)

    def _log_floor(self, call: OpenCall) -> int:
        """The least level wanted now: on a connection it may have changed since the call began."""
        client = self._clients.get(call.connection)
        if call.profile.log_by_request or client is None or not self._offers.offered("logging"):
            return len(LOG_LEVELS) if call.subject is None else call.subject.facts.log_floor
        return LOG_LEVELS.index(client.session.log_level)

    def changed(self, kinds: frozenset[str], now: float, out: list[Effect]) -> None:
        """Lists changed: announced now, or at the end of the window that an earlier notice opened."""
        for kind in sorted(kinds):
            if self._offers.offered(kind) and self._changes.note(kind, now):
                self._announce(kind, out)

    def due(self, now: float, out: list[Effect]) -> None:
        """Announce the changes whose window is over."""
        for kind in self._changes.due(now):
            self._announce(kind, out)

    def updated(self, uri: str, out: list[Effect]) -> None:
        """A resource's contents changed: told to those who subscribed to it (RS10, RS11)."""
        method = "notifications/resources/updated"
        for client in self._clients.live():
            if uri in client.watching:
                _push(client.connection, method, {"uri": uri}, out)
        for listener in self._listeners.for_resource(uri):
            params: dict[str, object] = {"uri": uri, "_meta": {SUBSCRIPTION_ID: listener.id}}
            _push(listener.connection, method, params, out, listener.ref)

    def to_all(self, notice: Notification, out: list[Effect]) -> None:
        """The embedding program's own notice, to every connection with a channel (behaviour A9)."""
        out.extend(Push(client.connection, notice) for client in self._clients.live())

    def ended(self, listener: Listener, out: list[Effect]) -> None:
        """The server ended a listen request, whose result was sent before.

        The texts of 2026-07-28 differ on whether a notice must follow; on one shared stream it fulfils both.
        """
        client = self._clients.get(listener.connection)
        if client is not None and client.transport in _ONE_STREAM:
            _push(listener.connection, "notifications/cancelled", {"requestId": listener.id}, out)

    def _announce(self, kind: str, out: list[Effect]) -> None:
        method = f"notifications/{kind}/list_changed"
        for client in self._clients.live():
            session = client.session
            if session.heard and session.profile is not None and not session.profile.listens:
                _push(client.connection, method, {}, out)
        for listener in self._listeners.for_list(kind):
            _push(listener.connection, method, {"_meta": {SUBSCRIPTION_ID: listener.id}}, out, listener.ref)


def _push(
    connection: Hashable,
    method: str,
    params: dict[str, object],
    out: list[Effect],
    related: Ref | None = None,
) -> None:
    out.append(Push(connection, Notification(method, encode_value(params)), related))
