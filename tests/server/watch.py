"""What can be told of a server from outside: each request is kept beside what became of it, and each effect is judged.

The promises that hold whatever happens are asserted here, so that every test of the kernel checks all of them:

- a request is answered once, or not at all if it was given up; with its own id; by a message that its revision's schema
  allows; nothing is sent for it afterwards;
- progress bears the caller's token and only rises;
- a call has one live job at most; only live jobs are killed, once; what nobody waits for is killed;
- the slots in use and each holder's charge are exactly the live jobs, and never beyond their bounds.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stanchion.server.config import Config
from stanchion.server.effects import Deliver, Dispatch, Effect, Emit, Fail, Kill, Push, Reply, Return
from stanchion.server.kernel import Kernel
from stanchion.server.ports import Authorize, Job
from stanchion.wire.codec import Codec
from stanchion.wire.jsonrpc import Ref, Request
from stanchion.wire.revisions import NEWEST_HANDSHAKE
from tests.wire_schema import SchemaChecker

MODERN = "2026-07-28"
NEWEST = NEWEST_HANDSHAKE.revision
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
OWN_PREFIX = "notifications/x-"
"""Notices that the embedding program makes up; no schema knows them."""


@dataclass
class Ticket:
    """One message that was sent, or one direct call, and what became of it."""

    ref: Ref
    connection: Hashable
    sent: Any
    revision: str = NEWEST
    direct: bool = False
    given_up: bool = False
    """It may end without an answer."""
    ended: bool = False
    answer: Any = None
    """The decoded answer."""
    end: Return | Fail | None = None
    """Of a direct call."""
    notices: list[dict[str, Any]] = field(default_factory=list)
    progress: float | None = None

    @property
    def is_request(self) -> bool:
        return _is_request(self.sent)

    @property
    def method(self) -> str | None:
        return self.sent.get("method") if isinstance(self.sent, dict) else None

    @property
    def meta(self) -> Mapping[str, Any]:
        params = self.sent.get("params") if isinstance(self.sent, dict) else None
        meta = params.get("_meta") if isinstance(params, dict) else None
        return meta if isinstance(meta, dict) else {}

    @property
    def result(self) -> dict[str, Any]:
        assert self.answer is not None, "no answer yet"
        assert "result" in self.answer, self.answer
        return self.answer["result"]

    @property
    def error(self) -> dict[str, Any]:
        assert self.answer is not None, "no answer yet"
        assert "error" in self.answer, self.answer
        return self.answer["error"]


@dataclass
class Working:
    """A job that was dispatched and has not reported."""

    job: Job
    holder: Hashable
    killed: bool = False
    written_off: bool = False


class Watch:
    """Judges the effects of one kernel."""

    def __init__(self, kernel: Kernel, config: Config, *, guarded: bool) -> None:
        self.kernel = kernel
        self.guarded = guarded
        self.tickets: dict[Ref, Ticket] = {}
        self.working: dict[Ref, Working] = {}
        self.allowed: set[Ref] = set()
        """Calls that the authorizer let run."""
        self.sound = True
        """Nothing was found wrong so far."""
        self.pushed: list[tuple[Hashable, dict[str, Any], Ref | None]] = []
        self.emitted: list[tuple[str, dict[str, object]]] = []
        self.questions: dict[str, Ref] = {}
        """What callbacks have asked and were not told the end of."""
        self.asked: set[str] = set()
        """What clients were asked."""
        self._config = config
        self._codec = Codec()
        self._checkers = {
            name: SchemaChecker(name) for name in ("2024-11-05", "2025-03-26", "2025-06-18", NEWEST, MODERN)
        }

    # -- effects, in order

    def see(self, effects: list[Effect]) -> None:
        self.sound = False
        for effect in effects:
            match effect:
                case Reply():
                    self._reply(effect)
                case Return(ref) | Fail(ref):
                    ticket = self._ending(ref)
                    assert ticket.direct
                    ticket.end = effect
                case Push():
                    self._push(effect)
                case Deliver(_, ident):
                    assert self.questions.pop(ident, None) is not None, "told twice, or unasked"
                case Dispatch(job):
                    self._dispatch(job)
                case Kill(ref):
                    assert ref in self.working, "a kill of what does not run"
                    assert not self.working[ref].killed, "killed twice"
                    self.working[ref].killed = True
                case Emit(name, fields):
                    self.emitted.append((name, fields))
                    if name == "work_written_off":
                        self.working[fields["ref"]].written_off = True
        self.settled()
        self.sound = True

    def _ending(self, ref: Ref) -> Ticket:
        ticket = self.tickets.get(ref)
        assert ticket is not None, f"an end of {ref}, which nobody asked for"
        assert not ticket.ended, f"a second end of {ref}"
        ticket.ended = True
        return ticket

    def _reply(self, reply: Reply) -> None:
        ticket = self._ending(reply.ref)
        assert not ticket.direct
        sent = ticket.sent
        if reply.answer is None:
            parts = sent if isinstance(sent, list) else [sent]
            assert ticket.given_up or not any(map(_is_request, parts)), f"no answer to {sent}"
            return
        line = self._codec.encode(reply.answer)
        assert b"\n" not in line
        ticket.answer = json.loads(line)
        if isinstance(ticket.answer, list):
            self._batch_answer(ticket)
        elif isinstance(sent, dict) and ticket.answer.get("id") is not None:
            assert _same(ticket.answer["id"], sent.get("id"))
        if isinstance(sent, dict):
            self._valid(ticket.answer, self._revision_of_answer(ticket), ticket.method)

    def _batch_answer(self, ticket: Ticket) -> None:
        assert isinstance(ticket.sent, list)
        asked = Counter(_key(one) for one in ticket.sent if _is_request(one))
        for answer in ticket.answer:
            if answer.get("id") is not None:
                assert asked[_key(answer)] > 0, "an answer too many"
                asked[_key(answer)] -= 1
        assert ticket.given_up or not +asked, "a part without an answer"
        for answer in ticket.answer:
            # One id may be in use in both eras.
            same = [one for one in ticket.sent if _is_request(one) and _key(one) == _key(answer)]
            revisions = {MODERN if _is_modern(one) else ticket.revision for one in same} or {ticket.revision}
            faults = [self._checkers[revision].check_sent(answer) for revision in revisions]
            assert not all(faults), (faults, answer)

    def _revision_of_answer(self, ticket: Ticket) -> str:
        if ticket.method == "initialize" and "result" in ticket.answer:
            return str(ticket.answer["result"]["protocolVersion"])
        return ticket.revision

    def _push(self, push: Push) -> None:
        notice = json.loads(self._codec.encode(push.notice))
        self.pushed.append((push.connection, notice, push.related))
        ticket = None if push.related is None else self.tickets.get(push.related)
        if push.related is not None and push.related > 0:
            assert ticket is not None, "a notice for nobody"
        if isinstance(push.notice, Request):
            assert push.notice.id in self.questions
            assert ticket is None or "io.modelcontextprotocol/protocolVersion" not in ticket.meta, (
                "a modern client is never sent a request"
            )
            self.asked.add(str(push.notice.id))
        if ticket is not None:
            assert not ticket.ended, "a notice after the answer"
            ticket.notices.append(notice)
            assert push.connection == ticket.connection
            if notice["method"] == "notifications/progress":
                self._progress(ticket, notice["params"])
        if not notice["method"].startswith(OWN_PREFIX):
            self._valid(notice, self._revision_of_notice(push, ticket, notice), None)

    def _revision_of_notice(self, push: Push, ticket: Ticket | None, notice: dict[str, Any]) -> str:
        if SUBSCRIPTION_KEY in notice.get("params", {}).get("_meta", {}):
            return MODERN
        if notice["method"] == "notifications/cancelled":
            return MODERN
        return self.revision(push.connection) if ticket is None else ticket.revision

    @staticmethod
    def _progress(ticket: Ticket, params: dict[str, Any]) -> None:
        assert _same(params["progressToken"], ticket.meta["progressToken"])
        assert ticket.progress is None or params["progress"] > ticket.progress
        ticket.progress = params["progress"]

    def _dispatch(self, job: Job) -> None:
        assert job.ref not in self.working, "a second live job of one call"
        call = self.kernel._execution.ledger.get(job.ref)
        # The parts of a batch can be cancelled by other parts, before we get to see them.
        assert call is not None or job.ref < 0, "work for a call that has ended"
        ticket = self.tickets.get(job.ref)
        assert ticket is not None or job.ref < 0, "work for nobody"
        assert ticket is None or not ticket.ended
        if self.guarded and type(job.work).__name__ == "RunTool" and not job.raw:
            assert job.ref in self.allowed, "a tool that nobody allowed"
        assert self.guarded or not isinstance(job.work, Authorize)
        holder = (job.facts.principal or job.facts.connection) if call is None else call.holder
        self.working[job.ref] = Working(job, holder)

    def _valid(self, message: Any, revision: str, method: str | None) -> None:
        faults = self._checkers[revision].check_sent(message, method)
        assert not faults, f"{revision}: {faults}: {message}"

    # -- the whole

    def revision(self, connection: Hashable) -> str:
        """What a connection speaks now, handshake or not."""
        client = self.kernel._clients.get(connection)
        profile = client.session.profile if client is not None else None
        return NEWEST if profile is None else profile.revision

    def settled(self) -> None:
        """What holds after each event."""
        kernel, admission = self.kernel, self.kernel._execution.admission
        ledger = kernel._execution.ledger
        figures = kernel.statistics()
        written_off = sum(one.written_off for one in self.working.values())
        assert figures.written_off == written_off
        assert figures.running == len(self.working) - written_off <= self._config.max_in_flight
        assert figures.ending == sum(one.killed and not one.written_off for one in self.working.values())
        for holder, count in Counter(one.holder for one in self.working.values()).items():
            assert admission.charged(holder) == count <= kernel._execution._share(holder)
        for ref, one in self.working.items():
            assert one.killed == (ledger.get(ref) is None), "work that nobody waits for goes on"
        batches = {batch.ref for batch in kernel._batches._open.values()}
        waiting = {ref for ref, ticket in self.tickets.items() if not ticket.ended}
        assert waiting == {call.ref for call in ledger.all() if call.ref > 0} | batches
        assert figures.calls == len(ledger)
        assert figures.questions == len(self.questions)
        for ref in self.questions.values():
            assert ledger.get(ref) is not None, "a question of a call that has ended"


def _same(one: object, other: object) -> bool:
    """Equal, with the same JSON type."""
    return type(one) is type(other) and one == other


def _is_request(message: object) -> bool:
    """Whether it wants an answer, malformed or not."""
    return isinstance(message, dict) and "id" in message and not message.keys() & {"result", "error"}


def _is_modern(message: dict[str, Any]) -> bool:
    return VERSION_KEY in ((message.get("params") or {}).get("_meta") or {})


def _key(message: Any) -> tuple[str, object]:
    ident = message.get("id") if isinstance(message, dict) else None
    return type(ident).__name__, ident if isinstance(ident, int | str) else None
