"""The kernel in every order of things: clients, workers, the program and the clock each do what they please.

All that is asserted at each step stands in ``watch``; here are only the moves, and what is left at the end.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec import Raw

from stanchion.machines.clients import ANONYMOUS, DEFAULT
from stanchion.registry.authorizer import Allow, Ask, Deny, Principal
from stanchion.registry.errors import Fault
from stanchion.registry.features import Prompt, Resource, Tool
from stanchion.server.events import Cancelled, Changed, Notified, Updated
from stanchion.server.execution import Policy
from stanchion.server.ports import (
    Authorize,
    Broke,
    Complete,
    Completed,
    Explained,
    ExplainUnknownTool,
    GetPrompt,
    Judged,
    Killed,
    Logged,
    LoopStalled,
    Missing,
    Outcome,
    Progressed,
    ReadResource,
    Rejected,
    RunTool,
    Told,
    Value,
)
from stanchion.wire.jsonrpc import Ref
from stanchion.wire.model import LOG_LEVELS
from tests.server import messages, offered
from tests.server.bench import Bench, never_called, never_told
from tests.server.watch import OWN_PREFIX, Working

CHANNELS: list[Hashable] = ["s1", "s2", "d1", DEFAULT]
IDLE: list[Hashable] = ["i1", "i2"]
PRINCIPALS = [None, None, Principal("p"), Principal("q")]
CONNECTIONS = st.sampled_from([*CHANNELS, *CHANNELS, *IDLE, ANONYMOUS])
UNKNOWN = Ref(10**9)
JUDGED = [Judged(Allow())] * 3 + [Judged(Deny("no")), Judged(Deny(hide=True)), Judged(Ask("sure?"))]


def told(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def outcomes(working: Working) -> list[Outcome]:
    """All that a worker may make of a job."""
    job, work = working.job, working.job.work
    both: list[Outcome] = [Broke("r1"), Killed()]
    author: list[Outcome] = [*both, Told("sorry"), Told("bad", fault=True), Rejected((Fault("a", "is odd"),))]
    if isinstance(work, Authorize):
        return [*JUDGED, *both]
    if isinstance(work, ExplainUnknownTool):
        return [Explained(None), Explained("it was closed"), *both]
    if job.raw:
        return [Value(object()), *author, *([Missing()] if isinstance(work, ReadResource) else [])]
    match work:
        case RunTool(tool):
            fields = told("done")
            if tool is offered.SUM and job.facts.profile.admits_output(tool.output_schema):
                fields["structuredContent"] = {"sum": 1}
            return [Completed(fields), *author]
        case ReadResource(_, uri):
            return [Completed({"contents": [{"uri": uri, "text": "x"}]}), Missing(), *author]
        case GetPrompt():
            message = {"role": "user", "content": {"type": "text", "text": "x"}}
            return [Completed({"messages": [message]}), *author]
        case Complete():
            return [Completed({"completion": {"values": ["x"], "total": 1, "hasMore": False}}), *author]
    raise AssertionError(work)


class KernelMachine(RuleBasedStateMachine):
    """Subclasses say whether calls are authorised."""

    guarded = False

    @initialize(
        total=st.integers(1, 4),
        share=st.integers(1, 2),
        remembered=st.integers(1, 3),
        offers=st.sampled_from([None, None, ("tools", "resources"), ("prompts", "completions", "logging")]),
        explains=st.booleans(),
    )
    def begin(self, total: int, share: int, remembered: int, offers: Any, explains: bool) -> None:
        options = {} if offers is None else {"offers": offers}
        policy = Policy(
            authorizer=never_called if self.guarded else None,
            unknown_tool_reply=never_told if explains else None,
        )
        self.bench = Bench(
            offered.registry(sensitive=True),
            guarded=self.guarded,
            policy=policy,
            max_in_flight=total,
            max_in_flight_per_connection=min(share, total),
            max_in_flight_per_principal=min(2, total),
            max_client_capabilities=remembered,
            callback_timeout=10.0,
            kill_grace=1.0,
            page_size=4,
            max_listeners=2,
            list_changed_window=2.0,
            **options,
        )
        self.steps = 0.0
        for connection, revision in (("s1", None), ("s2", "2025-03-26")):
            self.bench.open(connection, revision)

    # -- clients

    @rule(
        connection=st.sampled_from(CHANNELS),
        who=st.sampled_from(PRINCIPALS),
        revision=st.sampled_from([None, *messages.REVISIONS[:5]]),
    )
    def open(self, connection: Hashable, who: Principal | None, revision: str | None) -> None:
        client = self.bench.kernel._clients.get(connection)
        if client is not None and client.has_channel:
            return  # the server refuses a second channel
        if str(connection).startswith("s"):
            self.bench.open(connection, principal=who)
        else:
            self.bench.open_direct(connection, revision, principal=who, transport="memory")

    @rule(connection=st.sampled_from(CHANNELS), sure=st.integers(0, 2))
    def close(self, connection: Hashable, sure: int) -> None:
        if not sure:
            self.bench.close(connection)

    @rule(connection=CONNECTIONS, revision=st.sampled_from(messages.REVISIONS))
    def shake_hands(self, connection: Hashable, revision: str) -> None:
        self.bench.initialize(connection, revision, capabilities={"roots": {}})

    @rule(connection=CONNECTIONS, message=messages.requests())
    def request(self, connection: Hashable, message: dict[str, Any]) -> None:
        self.bench.send(message, connection)

    @rule(connection=st.sampled_from(["s2", "s2", "s2", *CHANNELS, *IDLE]), message=messages.batches)
    def batch(self, connection: Hashable, message: list[Any]) -> None:
        self.bench.send(message, connection)

    @rule(connection=CONNECTIONS, message=messages.cancellations | messages.notifications | messages.oddities)
    def remark(self, connection: Hashable, message: Any) -> None:
        self.bench.send(message, connection)

    @rule(data=st.data())
    def give_up(self, data) -> None:
        waiting = [one for one in self.bench.watch.tickets.values() if not one.ended]
        if waiting:
            self.bench.cancel(data.draw(st.sampled_from(waiting)))

    @rule(data=st.data())
    def give_up_what_is_over(self, data) -> None:
        over = [one.ref for one in self.bench.watch.tickets.values() if one.ended]
        ref = data.draw(st.sampled_from([UNKNOWN, *over[-5:]]))
        assert self.bench.feed(Cancelled(ref)) == []

    # -- workers

    @rule(data=st.data())
    def report(self, data) -> None:
        working = self.bench.watch.working
        if working:
            ref = data.draw(st.sampled_from(sorted(working)))
            self.bench.finish_ref(ref, data.draw(st.sampled_from(outcomes(working[ref]))))

    @precondition(lambda self: self.bench.watch.tickets)
    @rule(data=st.data(), message=st.sampled_from([None, "half way"]), level=st.sampled_from(LOG_LEVELS))
    def speak(self, data, message: str | None, level: Any) -> None:
        """Work may speak until it ends, also when nobody waits for it any more."""
        ref = data.draw(st.sampled_from([*self.bench.watch.working, *list(self.bench.watch.tickets)[-3:]]))
        self.steps += 1.0
        self.bench.feed(Progressed(ref, self.steps, None, message))
        self.bench.feed(Logged(ref, level, Raw(b'{"said":1}'), None if message is None else "l"))

    # -- the program

    @rule(
        call=st.sampled_from(
            [
                ("tool", "add", {"a": 1}),
                ("tool", "add", {"a": "x"}),
                ("tool", "wipe", {}),
                ("tool", "apart", {"a": 1}),
                ("tool", "none", {}),
                ("resource", "file:///a", {}),
                ("resource", "item:///7", {}),
                ("resource", "none", {}),
                ("prompt", "greet", {"name": "x"}),
                ("prompt", "greet", {}),
                ("prompt", "none", {}),
            ]
        )
    )
    def call_directly(self, call: tuple[str, str, dict[str, Any]]) -> None:
        kind, key, arguments = call
        self.bench.direct(kind, key, **arguments)

    @rule(there=st.booleans(), kind=st.sampled_from(["tools", "resources", "prompts"]))
    def change(self, there: bool, kind: Any) -> None:
        registry = self.bench.registry
        match kind, there:
            case "tools", True:
                registry.register_tools([Tool.of(offered.wipe, name="extra", sensitive=True), offered.SUM])
            case "tools", False:
                registry.unregister_tools(["extra", "sum"])
            case "resources", True:
                registry.register_resources([Resource.of(offered.read, uri="file:///a", name="again")])
            case "resources", False:
                registry.unregister_resources(["file:///a"])
            case "prompts", True:
                registry.register_prompts([Prompt.of(offered.greet)])
            case _:
                registry.unregister_prompts(["greet"])
        self.bench.feed(Changed(frozenset({kind})))

    @rule(uri=st.sampled_from(["file:///a", "item:///1", "none"]))
    def update(self, uri: str) -> None:
        self.bench.feed(Updated(uri))

    @rule()
    def notify(self) -> None:
        self.bench.feed(Notified(OWN_PREFIX + "own", Raw(b"{}")))
        self.bench.feed(LoopStalled(1.5))

    @rule(drain=st.sampled_from([0.0, 3.0]), sure=st.integers(0, 15))
    def stop(self, drain: float, sure: int) -> None:
        if sure == 0:
            self.bench.stop(drain)

    # -- the clock

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0, 2.0, 9.0, 10.0]))
    def advance(self, seconds: float) -> None:
        self.bench.now += seconds

    @rule()
    def look(self) -> None:
        self.bench.tick()

    def teardown(self) -> None:
        if not hasattr(self, "bench") or not self.bench.watch.sound:
            return
        bench = self.bench
        for _ in range(2):
            for ref, working in list(bench.watch.working.items()):
                bench.finish_ref(ref, outcomes(working)[0])
        bench.tick(5.0)
        for connection in (*CHANNELS, *IDLE, ANONYMOUS):
            bench.close(connection)
        assert all(ticket.ended for ticket in bench.watch.tickets.values())
        bench.tick(5.0)
        bench.at_rest()
        assert bench.kernel.statistics().connections == 0
        assert not bench.kernel._execution.admission._charged
        assert bench.kernel.next_deadline is None
