"""The server as a value: what happens comes in as an event with its time, what it wants goes out as effects.

Owns the connections and the routing of messages, and wires the machines to each other; what becomes of a call is
``execution``'s, what is done for a request ``handlers``', what is said of the server itself ``offers``'. It awaits nothing,
reads no clock and calls no user's code, so "exactly once" and "nothing leaks" are properties of a plain object that tests
can drive through any interleaving.
"""

from __future__ import annotations

from typing import assert_never

from msgspec import UNSET, Struct, structs

from stanchion.machines.batches import Batches
from stanchion.machines.calls import Call
from stanchion.machines.classify import classify, error_profile
from stanchion.machines.clients import ANONYMOUS, PROGRAM, Client, Clients
from stanchion.machines.session import Session, hear
from stanchion.registry.registry import Registry
from stanchion.server.config import Config
from stanchion.server.effects import Effect, Emit, Reply
from stanchion.server.errands import Errand, OpenCall, Policy
from stanchion.server.events import (
    Called,
    Cancelled,
    Changed,
    Closed,
    Event,
    Notified,
    Opened,
    Received,
    Stopping,
    Updated,
)
from stanchion.server.execution import Execution
from stanchion.server.handlers import Asked, Handlers
from stanchion.server.methods import CANCELLED, HEAD, META, METHODS, Method
from stanchion.server.notices import Notices
from stanchion.server.offers import Offers
from stanchion.server.ports import Finished, Isolation, Logged, LoopStalled, Progressed, Questioned
from stanchion.server.sealing import Sealing
from stanchion.wire.errors import InvalidParams, InvalidRequest, McpError, MethodNotFound, Refused
from stanchion.wire.jsonrpc import (
    Batch,
    Failure,
    Inbound,
    Malformed,
    Message,
    Notification,
    Ref,
    Request,
    Response,
)
from stanchion.wire.model import SUBSCRIPTION_ID, Implementation, JsonObject, Meta, Params
from stanchion.wire.revisions import NEWEST_HANDSHAKE, Profile, complete


class Statistics(Struct, frozen=True):
    """How much is in each table, at one moment."""

    connections: int
    calls: int
    running: int
    """Slots in use."""
    written_off: int
    ending: int
    """Work told to end that has not reported yet."""
    listeners: int
    batch_parts: int
    questions: int
    """What callbacks have asked clients and is not answered."""


class Kernel:
    """Decides; never does."""

    def __init__(
        self,
        registry: Registry,
        config: Config,
        server: Implementation,
        *,
        instructions: str | None = None,
        policy: Policy | None = None,
        sealing: Sealing | None = None,
        isolations: frozenset[Isolation] = frozenset({"task", "thread", "inline"}),
    ) -> None:
        """Set up.

        Args:
            registry: What is on offer; read by snapshots only.
            config: Options.
            server: Who we are.
            instructions: How to use this server, for the model.
            policy: Whose word decides.
            sealing: Seals what the rounds of a request have in common (2026-07-28).
            isolations: The kinds of worker that the shell has.
        """
        policy = policy or Policy()
        guarded = policy.authorizer is not None
        self._config = config
        self._server = server
        self._clients = Clients(config.max_client_capabilities)
        self._batches = Batches()
        self._parts = 0
        self._offers = Offers(registry, config, server, instructions, guarded=guarded)
        self._execution = Execution(config, policy, server, isolations, sealing)
        self._handlers = Handlers(config, self._offers, self._execution, self._clients, guarded=guarded)
        self._notices = Notices(
            config, self._offers, self._execution.ledger, self._clients, self._handlers.listeners
        )
        self._stopping = False
        self._stop_at: float | None = None

    # -- the way in

    def feed(self, event: Event, now: float) -> list[Effect]:
        """Take one event and say what is to be done.

        Args:
            event: What happened.
            now: Seconds on the clock that all times here are in; never less than before.

        Returns:
            Effects to carry out in this order. Afterwards ``next_deadline`` says when to ``tick``.
        """
        out: list[Effect] = []
        match event:
            case Received(ref, connection, message):
                self._receive(ref, self._client(connection), message, now, out)
            case Finished():
                self._execution.finished(event, now, out)
            case Progressed():
                self._notices.progressed(event, out)
            case Logged():
                self._notices.logged(event, out)
            case Questioned():
                self._execution.asks.questioned(event, now, out)
            case Cancelled(ref):
                self._cancel(ref, now, out)
            case Opened():
                self._open(event)
            case Closed(connection):
                self._close(connection, now, out)
            case Called(ref, kind, key, arguments):
                self._call(Call(ref, PROGRAM, None, kind, NEWEST_HANDSHAKE), key, arguments, now, out)
            case Changed(kinds):
                self._notices.changed(kinds, now, out)
            case Updated(uri):
                self._notices.updated(uri, out)
            case Notified(method, params):
                self._notices.to_all(Notification(method, params), out)
            case LoopStalled(seconds):
                out.append(Emit("loop_stalled", {"seconds": seconds}))
            case Stopping(drain):
                self._stop(drain, now, out)
            case _:
                assert_never(event)
        return self._gather(out) if len(self._batches) else out

    def tick(self, now: float) -> list[Effect]:
        """Do what is due at *now*. Afterwards ``next_deadline`` is later than *now*, or None."""
        out: list[Effect] = []
        self._execution.expire(now, out)
        self._notices.due(now, out)
        if self._stop_at is not None and now >= self._stop_at:
            self._stop_at = None
            for call in self._execution.ledger.all():
                self._cancel(call.ref, now, out)
        return self._gather(out) if len(self._batches) else out

    @property
    def next_deadline(self) -> float | None:
        """When to ``tick`` next, in the clock's seconds; None: not before something happens."""
        due = self._execution.next_deadline
        for other in (self._notices.next_deadline, self._stop_at):
            if other is not None and (due is None or other < due):
                due = other
        return due

    @property
    def quiet(self) -> bool:
        """Whether nothing is under way."""
        return not len(self._execution.ledger) and not self._execution.ending

    def statistics(self) -> Statistics:
        """How much is in each table."""
        execution = self._execution
        return Statistics(
            connections=len(self._clients),
            calls=len(execution.ledger),
            running=execution.admission.running,
            written_off=execution.admission.written_off,
            ending=execution.ending,
            listeners=len(self._handlers.listeners),
            batch_parts=len(self._batches),
            questions=len(execution.asks),
        )

    # -- connections

    def _client(self, connection: object) -> Client:
        client = self._clients.get(connection)
        return client if client is not None else Client(connection, Session(self._config.log_level))

    def _open(self, event: Opened) -> None:
        session = Session(self._config.log_level, event.profile, heard=event.profile is not None)
        client = Client(
            event.connection,
            session,
            transport=event.transport,
            principal=event.principal,
            has_channel=True,
            enforced=event.handshake,
            holder=event.holder,
        )
        self._clients.open(client)

    def _close(self, connection: object, now: float, out: list[Effect]) -> None:
        self._clients.close(connection)
        for call in self._execution.ledger.of(connection):
            self._cancel(call.ref, now, out)

    # -- messages

    def _receive(self, ref: Ref, client: Client, message: Inbound, now: float, out: list[Effect]) -> None:
        match message:
            case Request():
                self._request(ref, client, message, now, out)
            case Notification():
                self._notification(client, message, now, out)
                out.append(Reply(ref, None))
            case Malformed(answer, reason):
                out.append(Emit("malformed_message", {"reason": reason}))
                out.append(Reply(ref, _in_dialect(client, answer)))
            case Batch(items):
                self._batch(ref, client, items, now, out)
            case Response() | Failure():
                if not self._execution.asks.answered(client.connection, message, now, out):
                    out.append(Emit("stray_response", {}))
                out.append(Reply(ref, None))
            case _:
                assert_never(message)

    def _request(self, ref: Ref, client: Client, request: Request, now: float, out: list[Effect]) -> None:
        meta: Meta | None = None
        try:
            row, params, fault = _decode(request)
            meta = None if params.meta is UNSET else META.decode(params.meta)
            profile = classify(request.method, meta, client.session, enforce=client.enforced)
            if row is None or request.method not in profile.methods or not self._offers.offered(row.feature):
                raise MethodNotFound(request.method)
            if self._stopping:
                raise Refused(
                    "The server is shutting down", {"code": "unavailable", "reason": "shutting down"}
                )
            if fault is not None:
                raise fault
            if not profile.modern:
                client.session = hear(client.session)
            result = self._serve(ref, client, request, profile, params, meta, now, out)
        except McpError as error:
            out.append(Reply(ref, error_profile(meta, client.session).failure(request.id, error)))
            return
        if result is not None:
            out.append(Reply(ref, Response(request.id, result)))

    def _serve(
        self,
        ref: Ref,
        client: Client,
        request: Request,
        profile: Profile,
        params: Params,
        meta: Meta | None,
        now: float,
        out: list[Effect],
    ) -> object | None:
        """Have a routed request handled; its result, or None if that comes later."""
        shared = client.connection is ANONYMOUS
        if not shared and self._execution.ledger.in_use(client.connection, request.id, modern=profile.modern):
            raise InvalidRequest("This id is in use by a request that is not answered yet")
        call: OpenCall = Call(ref, client.connection, request.id, request.method, profile)
        asked = Asked(call, client, params, meta, shared, now, out)
        result = self._handlers.table[request.method](asked)
        if isinstance(result, dict):
            return complete(result, call.profile, self._server)
        return result

    def _batch(
        self, ref: Ref, client: Client, items: tuple[Message | Malformed, ...], now: float, out: list[Effect]
    ) -> None:
        profile = client.session.profile
        if profile is None or not profile.batching:
            error = InvalidRequest("Batches belong to revision 2025-03-26 alone")
            out.append(Reply(ref, (profile or NEWEST_HANDSHAKE).failure(None, error)))
            return
        parts = [Ref(-(self._parts + n)) for n in range(1, len(items) + 1)]
        self._parts += len(items)
        self._batches.open(ref, parts)
        for part, item in zip(parts, items, strict=True):
            if isinstance(item, Request) and item.method == "initialize":
                refusal = profile.failure(item.id, InvalidRequest("initialize can't be part of a batch"))
                out.append(Reply(part, refusal))
            else:
                self._receive(part, client, item, now, out)

    def _gather(self, effects: list[Effect]) -> list[Effect]:
        """Turn the answers of a batch's parts into the one answer of the batch."""
        out: list[Effect] = []
        for effect in effects:
            if not isinstance(effect, Reply) or not self._batches.is_part(effect.ref):
                out.append(effect)
                continue
            part = effect.answer
            whole = self._batches.settle(effect.ref, None if isinstance(part, tuple) else part)
            if whole is not None:
                batch, answers = whole
                out.append(Reply(batch, answers or None))
        return out

    def _notification(self, client: Client, message: Notification, now: float, out: list[Effect]) -> None:
        if message.method == "notifications/initialized":
            client.session = hear(client.session)
        elif message.method == "notifications/cancelled":
            try:
                params = CANCELLED.decode(message.params)
            except InvalidParams:
                return
            ref = self._execution.ledger.find(client.connection, params.request_id)
            if ref is not None:
                self._cancel(ref, now, out)

    def _cancel(self, ref: Ref, now: float, out: list[Effect]) -> None:
        parts = self._batches.abandon(ref) if len(self._batches) else []
        if parts:
            out.append(Reply(ref, None))
        for part in parts:
            # Nobody knows of the parts: only what their work needs is said.
            quiet: list[Effect] = []
            self._handlers.listeners.remove(part)
            self._execution.cancel(part, now, quiet)
            out.extend(effect for effect in quiet if not isinstance(effect, Reply))
        self._handlers.listeners.remove(ref)
        self._execution.cancel(ref, now, out)

    def _call(
        self, call: Call[Errand], key: str, arguments: JsonObject, now: float, out: list[Effect]
    ) -> None:
        self._execution.ledger.open(call)
        if self._stopping:
            self._execution.fail(call, Refused("The server is shutting down", {}), out, kind="unavailable")
        else:
            self._handlers.direct(call, key, arguments, now, out)

    # -- the end

    def _stop(self, drain: float, now: float, out: list[Effect]) -> None:
        self._stopping = True
        self._stop_at = now + drain
        for listener in self._handlers.listeners.drop_all():
            call = self._execution.ledger.get(listener.ref)
            if call is not None:
                self._execution.succeed(call, {"_meta": {SUBSCRIPTION_ID: listener.id}}, out)
                self._notices.ended(listener, out)


def _decode(request: Request) -> tuple[Method | None, Params, InvalidParams | None]:
    """The method's row and its params; or just their ``_meta`` with what is wrong with the rest, to be told in its turn."""
    row = METHODS.get(request.method)
    if row is None:
        return None, HEAD.decode(request.params), None
    try:
        return row, row.params.decode(request.params), None
    except InvalidParams as error:
        return row, HEAD.decode(request.params), error


def _in_dialect(client: Client, answer: Failure | None) -> Failure | None:
    """The answer to an unreadable message; a session whose schemas demand it gets ``"id": null``."""
    profile = client.session.profile
    if answer is not None and answer.id is UNSET and profile is not None and profile.null_id:
        return structs.replace(answer, id=None)
    return answer
