"""A kernel on a bench: JSON goes in by the codec, effects come out judged, and time moves when told to."""

from __future__ import annotations

import itertools
import json
from collections.abc import Hashable
from typing import Any

from msgspec import structs

from stanchion.machines.clients import ANONYMOUS
from stanchion.registry.authorizer import Allow, Verdict
from stanchion.registry.registry import Registry
from stanchion.server.config import Config
from stanchion.server.effects import Effect
from stanchion.server.errands import Policy
from stanchion.server.events import Called, Cancelled, Closed, Event, Opened, Received, Stopping
from stanchion.server.kernel import Kernel
from stanchion.server.ports import Completed, Finished, Job, Judged, Logged, Outcome, Progressed
from stanchion.wire.codec import Codec
from stanchion.wire.jsonrpc import Ref
from stanchion.wire.model import Implementation
from stanchion.wire.revisions import PROFILES
from tests.server.offered import registry as offered
from tests.server.watch import MODERN, VERSION_KEY, Ticket, Watch

CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
LOG_KEY = "io.modelcontextprotocol/logLevel"
SERVER = Implementation(name="bench", title="Bench", version="1.2.3", description="For tests")


def never_called(call: object) -> Verdict:
    """An authorizer; the tests speak for it."""
    raise AssertionError(call)


def never_told(name: str) -> str | None:
    """Says what became of a tool; likewise."""
    raise AssertionError(name)


def done() -> Completed:
    """A tool's result; the kernel makes the dict its own."""
    return Completed({"content": [{"type": "text", "text": "done"}]})


def describe(params: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    """Params of a request that describes itself (2026-07-28)."""
    given = dict(params or {})
    given["_meta"] = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}, **given.get("_meta", {}), **meta}
    return given


class Bench:
    """Drives one kernel."""

    def __init__(
        self,
        registry: Registry | None = None,
        *,
        guarded: bool = False,
        policy: Policy | None = None,
        instructions: str | None = None,
        **options: Any,
    ) -> None:
        self.registry = offered() if registry is None else registry
        self.config = Config(**options)
        if policy is None and guarded:
            policy = Policy(authorizer=never_called)
        self.kernel = Kernel(self.registry, self.config, SERVER, instructions=instructions, policy=policy)
        self.watch = Watch(self.kernel, self.config, guarded=guarded)
        self.now = 1000.0
        self.effects: list[Effect] = []
        """Of the last event."""
        self._stop_at: float | None = None
        self._refs = itertools.count(1)
        self._ids = itertools.count(100)
        self._codec = Codec()

    # -- events

    def feed(self, event: Event) -> list[Effect]:
        self.effects = self.kernel.feed(event, self.now)
        self.watch.see(self.effects)
        return self.effects

    def tick(self, seconds: float = 0.0) -> list[Effect]:
        """Let time pass, then look at what is due."""
        self.now += seconds
        if self._stop_at is not None and self.now >= self._stop_at:
            for ticket in self.watch.tickets.values():
                ticket.given_up = True
        self.effects = self.kernel.tick(self.now)
        self.watch.see(self.effects)
        due = self.kernel.next_deadline
        assert due is None or due > self.now, "a runner that sleeps until then would spin"
        return self.effects

    def open(self, connection: Hashable = "c", revision: str | None = None, **facts: Any) -> None:
        """Open a channel; with *revision* also shake hands."""
        facts.setdefault("transport", "stdio")
        self.feed(Opened(connection, handshake=True, **facts))
        if revision is not None:
            assert self.initialize(connection, revision).result["protocolVersion"] == revision
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, connection)

    def open_direct(self, connection: Hashable, revision: str | None = None, **facts: Any) -> None:
        """Open a channel that need not shake hands."""
        self.feed(Opened(connection, profile=None if revision is None else PROFILES[revision], **facts))

    def initialize(self, connection: Hashable, revision: str, **params: Any) -> Ticket:
        hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
        return self.ask("initialize", hello | params, connection)

    def send(self, message: Any, connection: Hashable = "c") -> Ticket:
        """Send what is to become JSON, or the bytes themselves."""
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        ticket = Ticket(Ref(next(self._refs)), connection, message, self.watch.revision(connection))
        if VERSION_KEY in ticket.meta:
            ticket.revision = MODERN
        self.watch.tickets[ticket.ref] = ticket
        for part in message if isinstance(message, list) else [message]:
            if isinstance(part, dict) and part.get("method") == "notifications/cancelled":
                self._expect_cancelled(connection, (part.get("params") or {}).get("requestId"))
        self.feed(Received(ticket.ref, connection, self._codec.decode(line)))
        return ticket

    def ask(
        self, method: str, params: dict[str, Any] | None = None, connection: Hashable = "c", ident: Any = None
    ) -> Ticket:
        """Send a request; its ticket holds what becomes of it."""
        message: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": next(self._ids) if ident is None else ident,
            "method": method,
        }
        if params is not None:
            message["params"] = params
        return self.send(message, connection)

    def call(self, tool: str = "add", connection: Hashable = "c", ident: Any = None, **params: Any) -> Ticket:
        """``tools/call`` in the handshake's form."""
        params.setdefault("arguments", {"a": 1} if tool in {"add", "brief", "apart"} else {})
        return self.ask("tools/call", {"name": tool, **params}, connection, ident)

    def direct(self, kind: str, key: str, **arguments: Any) -> Ticket:
        """What the embedding program calls."""
        ticket = Ticket(Ref(next(self._refs)), None, None, direct=True)
        self.watch.tickets[ticket.ref] = ticket
        self.feed(Called(ticket.ref, kind, key, arguments))
        return ticket

    def cancel(self, ticket: Ticket) -> list[Effect]:
        """Our side gives a request up."""
        ticket.given_up = True
        self.feed(Cancelled(ticket.ref))
        assert ticket.ended
        return self.effects

    def notify_cancelled(self, request: Any, connection: Hashable = "c") -> Ticket:
        """The client gives a request up."""
        params = {"requestId": request}
        return self.send(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}, connection
        )

    def close(self, connection: Hashable = "c") -> list[Effect]:
        for ticket in self.watch.tickets.values():
            ticket.given_up = ticket.given_up or ticket.connection == connection
        self.feed(Closed(connection))
        assert all(one.ended for one in self.watch.tickets.values() if one.connection == connection)
        return self.effects

    def stop(self, drain: float) -> list[Effect]:
        self._stop_at = self.now + drain
        return self.feed(Stopping(drain))

    # -- workers

    def job(self, ticket: Ticket) -> Job:
        """The live job of a request."""
        return self.watch.working[ticket.ref].job

    def finish(self, ticket: Ticket, outcome: Outcome | None = None) -> list[Effect]:
        """The worker reports."""
        return self.finish_ref(ticket.ref, outcome or done())

    def finish_ref(self, ref: Ref, outcome: Outcome) -> list[Effect]:
        del self.watch.working[ref]
        if isinstance(outcome, Judged) and isinstance(outcome.verdict, Allow):
            self.watch.allowed.add(ref)
        return self.feed(Finished(ref, outcome))

    def progress(self, ticket: Ticket, progress: float, message: str | None = None) -> None:
        self.feed(Progressed(ticket.ref, progress, None, message))

    def log(self, ticket: Ticket, level: Any, data: object = "said") -> None:
        self.feed(Logged(ticket.ref, level, data))

    # -- what was seen

    def notices(self, method: str, connection: Hashable = "c") -> list[dict[str, Any]]:
        """Params of the notices of *method* that a connection was sent."""
        return [
            notice.get("params", {})
            for to, notice, _ in self.watch.pushed
            if to == connection and notice["method"] == method
        ]

    def events(self, name: str) -> list[dict[str, object]]:
        return [fields for known, fields in self.watch.emitted if known == name]

    def at_rest(self) -> None:
        """Nothing is left of anything."""
        assert self.kernel.quiet
        figures = structs.asdict(self.kernel.statistics())
        del figures["connections"]
        assert not any(figures.values()), figures

    def _expect_cancelled(self, connection: Hashable, request: Any) -> None:
        if connection is ANONYMOUS:
            return
        waiting = [
            one for one in self.watch.tickets.values() if not one.ended and one.connection == connection
        ]
        # One id may be in use in both eras: then it names the older era's request.
        waiting.sort(key=lambda one: one.revision == MODERN)
        named = [one for one in waiting if one.is_request and _has_id(one.sent, request)]
        for one in named[:1]:
            one.given_up = True
        for one in waiting:
            if isinstance(one.sent, list) and any(_has_id(part, request) for part in one.sent):
                one.given_up = True


def _has_id(message: Any, ident: Any) -> bool:
    given = message.get("id") if isinstance(message, dict) else None
    return type(given) is type(ident) and given == ident
