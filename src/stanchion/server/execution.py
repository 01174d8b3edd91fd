"""A call's way from the request to its answer: admission, authorisation, the run, and every way it can end.

Owns the ledger, the slots and the deadlines, and wires them: a call takes its slot before its authorizer runs and keeps it
into the callback. Whoever closes it in the ledger answers it; all later comers find it gone. So each request is answered
exactly once, or was cancelled.

Work that is told to end may take its time. Its slot stays in use until the worker reports, at most ``kill_grace`` seconds;
then it is written off (``machines.admission``).

Pure: no I/O, no clock. Built for the kernel alone: each method appends to the effects it is given.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import assert_never

from msgspec import structs

from stanchion.machines.admission import Admission
from stanchion.machines.calls import Ledger, State
from stanchion.machines.endings import Endings
from stanchion.registry.authorizer import Allow, Ask, Deny, Principal, ToolCall, Verdict
from stanchion.registry.errors import describe_faults
from stanchion.server import refusals
from stanchion.server.asks import Asks
from stanchion.server.config import Config
from stanchion.server.effects import Dispatch, Effect, Emit, Fail, Kill, Reply, Return
from stanchion.server.errands import Errand, OpenCall, Policy
from stanchion.server.ports import (
    Authorize,
    Broke,
    Completed,
    Explained,
    ExplainUnknownTool,
    Facts,
    Finished,
    Isolation,
    Job,
    Judged,
    Killed,
    Missing,
    NeedsInput,
    Outcome,
    ReadResource,
    Rejected,
    RunTool,
    Told,
    Unaskable,
    Value,
)
from stanchion.server.refusals import Refusal
from stanchion.server.sealing import Sealing
from stanchion.wire.errors import (
    InternalError,
    InvalidParams,
    McpError,
    MissingCapability,
    ResourceNotFound,
    UnknownTool,
)
from stanchion.wire.jsonrpc import Ref, Response
from stanchion.wire.model import Implementation, Retried, TextContent
from stanchion.wire.revisions import CacheHint, complete, interim


class Execution:
    """The calls under way."""

    def __init__(
        self,
        config: Config,
        policy: Policy,
        server: Implementation,
        isolations: frozenset[Isolation],
        sealing: Sealing | None,
    ) -> None:
        """Set up.

        Args:
            config: Options.
            policy: Whose word decides.
            server: Who we are, for results that say so.
            isolations: The kinds of worker there are.
            sealing: Seals what the rounds of a request have in common; without it nothing can be asked for.
        """
        self.ledger: Ledger[Errand] = Ledger()
        self.admission = Admission(config.max_in_flight, self._share)
        self.asks = Asks(config, self.ledger)
        self._config = config
        self._policy = policy
        self._server = server
        self._sealing = sealing
        self._isolations = isolations
        self._principal_share = config.principal_share
        self._connection_share = config.connection_share
        self._endings = Endings(config.kill_grace)

    @property
    def ending(self) -> int:
        """Work told to end that has not reported yet."""
        return len(self._endings)

    @property
    def next_deadline(self) -> float | None:
        """When something is due, in the clock's seconds."""
        due = self.ledger.next_deadline
        for other in (self._endings.next_deadline, self.asks.next_deadline):
            if other is not None and (due is None or other < due):
                due = other
        return due

    # -- beginning

    def begin(self, call: OpenCall, errand: Errand, now: float, out: list[Effect]) -> None:
        """Take an open call to its worker, by way of its authorizer if it is a client's call of a tool."""
        call.subject = errand
        if errand.isolation not in self._isolations:
            self._refuse(call, refusals.no_worker(errand.isolation), out)
            return
        busy = self.admission.offer(call.ref, call.holder)
        if busy is not None:
            self._refuse(call, refusals.busy(busy, self._config.busy_retry_after), out)
            return
        if self._policy.authorizer is not None and isinstance(errand.work, RunTool) and not errand.raw:
            self._authorise(call, errand.work, errand.facts, now, out)
        else:
            self._run(call, errand, now, out)

    def unguarded(self, call: OpenCall, errand: Errand, out: list[Effect]) -> None:
        """Refuse a sensitive tool that nobody's policy covers (behaviour B3)."""
        call.subject = errand
        self._refuse(call, refusals.authorization_required(refusals.NO_AUTHORIZER), out)

    def unknown_tool(self, call: OpenCall, name: str, facts: Facts, now: float, out: list[Effect]) -> None:
        """Answer a call of a tool that is not there, with the program's own words if it has some (A7)."""
        reply = self._policy.unknown_tool_reply
        if reply is None or call.id is None:
            self.fail(call, UnknownTool(name), out)
            return
        timeout = self._config.callback_timeout
        errand = Errand(ExplainUnknownTool(reply, name), facts, "thread", timeout)
        self.begin(call, errand, now, out)

    def _authorise(self, call: OpenCall, work: RunTool, facts: Facts, now: float, out: list[Effect]) -> None:
        assert self._policy.authorizer is not None
        judged = ToolCall(
            tool=work.tool,
            arguments=work.arguments,
            connection=facts.connection,
            principal=facts.principal,
            transport=facts.transport,
            revision=facts.profile.revision,
        )
        call.advance(State.AUTHORISING)
        self.ledger.set_deadline(call, self._config.callback_timeout, now)
        job = Job(
            call.ref, Authorize(self._policy.authorizer, judged), facts, self._policy.authorizer_isolation
        )
        out.append(Dispatch(job))

    def _run(self, call: OpenCall, errand: Errand, now: float, out: list[Effect]) -> None:
        # No queue yet, so waiting is passed through; the state is there for who watches.
        call.advance(State.WAITING)
        call.advance(State.RUNNING)
        self.ledger.set_deadline(call, errand.timeout, now)
        out.append(Dispatch(Job(call.ref, errand.work, errand.facts, errand.isolation, errand.raw)))

    # -- ending

    def finished(self, report: Finished, now: float, out: list[Effect]) -> None:
        """A worker is done with a call's job."""
        ref, outcome = report.ref, report.outcome
        call = self.ledger.get(ref)
        if call is None:
            # Cancelled or timed out before: only its slot was waiting for this.
            self._endings.ended(ref)
            self.admission.release(ref)
        elif call.state is State.AUTHORISING:
            verdict = outcome.verdict if isinstance(outcome, Judged) else Deny()
            self._judged(call, verdict, now, out)
        else:
            self.admission.release(ref)
            self._settle(call, outcome, now, out)

    def _judged(self, call: OpenCall, verdict: Verdict, now: float, out: list[Effect]) -> None:
        errand = call.subject
        assert errand is not None
        assert isinstance(errand.work, RunTool)
        self.ledger.unset_deadline(call)
        if isinstance(verdict, Allow):
            self._run(call, errand, now, out)
            return
        self.admission.release(call.ref)
        match verdict:
            case Deny(hide=True):
                name = errand.work.tool.name
                out.append(
                    Emit(
                        "call_denied",
                        {"method": call.method, "of": refusals.subject_of(errand.work), "hidden": True},
                    )
                )
                self.fail(call, UnknownTool(name), out)
            case Deny(reason):
                self._refuse(call, refusals.denied(reason), out)
            case Ask():
                self._refuse(call, refusals.authorization_required(refusals.NOT_ASKABLE), out)
            case _:
                assert_never(verdict)

    def _settle(self, call: OpenCall, outcome: Outcome, now: float, out: list[Effect]) -> None:
        errand = call.subject
        assert errand is not None
        is_tool = isinstance(errand.work, RunTool)
        match outcome:
            case Completed(fields):
                self.succeed(call, fields, out)
            case Value(value) if call.id is None:
                if self._close(call.ref, out) is not None:
                    out.append(Return(call.ref, value))
            case Missing():
                uri = errand.work.uri if isinstance(errand.work, ReadResource) else ""
                self.fail(call, ResourceNotFound(uri), out, kind="not_found")
            case NeedsInput():
                self._interim(call, errand, outcome, now, out)
            case Unaskable(required, text):
                missing: McpError = (
                    MissingCapability(required) if call.profile.modern else InternalError(text)
                )
                self._tell(
                    call, text, missing, out, kind="unaskable", is_tool=is_tool and not call.profile.modern
                )
            case Told(text):
                self._tell(call, text, InternalError(text), out, kind="tool_error", is_tool=is_tool)
            case Rejected(faults):
                error = InvalidParams(describe_faults(refusals.subject_of(errand.work), faults))
                if isinstance(errand.work, ReadResource):
                    # A variable that does not fit its type means that the URI names nothing.
                    self.fail(call, ResourceNotFound(errand.work.uri), out, kind="not_found")
                else:
                    self._tell(call, str(error), error, out, kind="invalid_arguments", is_tool=is_tool)
            case Broke(reference):
                if isinstance(errand.work, ExplainUnknownTool):
                    self.fail(call, UnknownTool(errand.work.name), out)
                    return
                text = (
                    f"Something went wrong inside {refusals.subject_of(errand.work)} (reference {reference})."
                )
                self._tell(call, text, InternalError(text), out, kind="raised", is_tool=is_tool)
            case Explained(text):
                name = errand.work.name if isinstance(errand.work, ExplainUnknownTool) else ""
                if text is None:
                    self.fail(call, UnknownTool(name), out)
                else:
                    self._tell(call, text, UnknownTool(name), out, kind="unknown_tool", is_tool=True)
            case Killed() | Judged() | Value():
                self._refuse(call, refusals.killed(), out)
            case _:
                assert_never(outcome)

    def reject(self, call: OpenCall, work: RunTool, text: str, out: list[Effect]) -> None:
        """Tell the model what is wrong with its arguments (F6): a result, in every revision."""
        if call.id is None:
            self.fail(call, InvalidParams(text), out, kind="invalid_arguments")
        else:
            out.append(Emit("arguments_rejected", {"tool": work.tool.name}))
            self.succeed(call, {"content": [TextContent(text=text)], "isError": True}, out)

    def succeed(
        self, call: OpenCall, fields: dict[str, object], out: list[Effect], cache: CacheHint | None = None
    ) -> None:
        """Close a call with a result."""
        if self._close(call.ref, out) is None:
            return
        if call.id is None:
            # A crew that renders what was wanted as it is: nobody shall wait for the rest.
            out.append(Fail(call.ref, "raised", "the worker reported something else than a value"))
        else:
            if call.method == "resources/read":
                cache = CacheHint()
            out.append(
                Reply(call.ref, Response(call.id, complete(fields, call.profile, self._server, cache)))
            )

    def resume(self, errand: Errand, retried: Retried, now: float) -> Errand:
        """The errand of a request that may be a retry, with what its earlier rounds left.

        Raises:
            InvalidParams: Its state is none that was given for this request.
        """
        if retried.request_state is None and not retried.input_responses:
            return errand
        if self._sealing is None:
            raise InvalidParams("This server gave no requestState")
        kept = self._sealing.open(
            retried.request_state, retried.input_responses, errand.work, errand.facts.principal, now
        )
        return structs.replace(errand, facts=structs.replace(errand.facts, kept=kept))

    def _interim(
        self, call: OpenCall, errand: Errand, needed: NeedsInput, now: float, out: list[Effect]
    ) -> None:
        """Close a call with what its client must answer before it can be made again (2026-07-28)."""
        if self._sealing is None or call.id is None:
            self.fail(call, InternalError("This server can't ask for input"), out, kind="unaskable")
        elif self._close(call.ref, out) is not None:
            state = self._sealing.seal(needed, errand.work, errand.facts.principal, now)
            fields: dict[str, object] = {"inputRequests": needed.requests, "requestState": state}
            out.append(Reply(call.ref, Response(call.id, interim(fields, self._server))))

    def _close(self, ref: Ref, out: list[Effect]) -> OpenCall | None:
        """End a call in the ledger, and with it whatever it asked its client."""
        call = self.ledger.close(ref)
        if call is not None and len(self.asks):
            self.asks.withdraw(ref, out)
        return call

    def fail(self, call: OpenCall, error: McpError, out: list[Effect], *, kind: str = "invalid") -> None:
        """Close a call with an error."""
        if self._close(call.ref, out) is None:
            return
        if call.id is None:
            out.append(Fail(call.ref, kind, str(error)))
        else:
            out.append(Reply(call.ref, call.profile.failure(call.id, error)))

    def _tell(
        self, call: OpenCall, text: str, error: McpError, out: list[Effect], *, kind: str, is_tool: bool
    ) -> None:
        if is_tool and call.id is not None:
            self.succeed(call, {"content": [TextContent(text=text)], "isError": True}, out)
        else:
            self.fail(call, error, out, kind=kind)

    def _refuse(self, call: OpenCall, refusal: Refusal, out: list[Effect]) -> None:
        errand = call.subject
        work = errand.work if errand is not None else None
        out.append(
            Emit(
                f"call_{refusal.code}",
                {"method": call.method, "of": refusals.subject_of(work), **refusal.fields},
            )
        )
        if call.id is not None and isinstance(work, RunTool):
            typed = work.tool.output_schema is not None and call.profile.admits_output(
                work.tool.output_schema
            )
            self.succeed(call, refusal.result(work.tool.name, call.profile, typed=typed), out)
        elif isinstance(work, ExplainUnknownTool):
            # The program had its chance to explain; the protocol's own error stands (A7).
            self.fail(call, UnknownTool(work.name), out)
        else:
            self.fail(call, refusal.error(), out, kind=refusal.code)

    # -- being ended

    def cancel(self, ref: Ref, now: float, out: list[Effect]) -> None:
        """End a call without an answer, wherever it is. Of one that is gone nothing is said."""
        call = self.ledger.get(ref)
        if call is None:
            return
        was = call.state
        self._close(ref, out)
        out.append(Fail(ref, "cancelled", "cancelled") if call.id is None else Reply(ref, None))
        self._end_work(call.ref, was, now, out)

    def expire(self, now: float, out: list[Effect]) -> None:
        """End the calls whose time is over, and write off work that did not end when told."""
        self.asks.expire(now, out)
        for call in self.ledger.expired(now):
            was, errand = call.state, call.subject
            assert errand is not None
            refusal = refusals.denied("") if was is State.AUTHORISING else refusals.timed_out(errand.timeout)
            self._refuse(call, refusal, out)
            self._end_work(call.ref, was, now, out)
        written_off = [ref for ref in self._endings.due(now) if self.admission.write_off(ref)]
        out.extend(Emit("work_written_off", {"ref": ref}) for ref in written_off)

    def _end_work(self, ref: Ref, was: State, now: float, out: list[Effect]) -> None:
        if was in {State.AUTHORISING, State.RUNNING}:
            out.append(Kill(ref))
            self._endings.await_end(ref, now)
        else:
            self.admission.release(ref)

    def _share(self, holder: Hashable) -> int:
        return self._principal_share if isinstance(holder, Principal) else self._connection_share
