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
from stanchion.server.errands import Policy
from stanchion.server.events import Cancelled, Changed, Notified, Updated
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
    Questioned,
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
from tests.server.watch import OWN_PREFIX, Ticket, Working

CHANNELS: list[Hashable] = ["s1", "s2", "d1", DEFAULT]
IDLE: list[Hashable] = ["i1", "i2"]
PRINCIPALS = [None, None, Principal("p"), Principal("q")]
CONNECTIONS = st.sampled_from([*CHANNELS, *CHANNELS, *IDLE, ANONYMOUS])
READY = st.sampled_from(["s1", "s1", "s1", "s2", "s2", "d1", DEFAULT, "i1", ANONYMOUS])
FATES = ["its end", "its end", "its client", "its time", "others"]
DIRECT: list[tuple[str, str, dict[str, Any]]] = [
    ("tool", "add", {"a": 1}),
    ("tool", "add", {"a": 1}),
    ("tool", "wipe", {}),
    ("resource", "file:///a", {}),
    ("resource", "item:///7", {}),
    ("prompt", "greet", {"name": "x"}),
    ("tool", "add", {"a": "x"}),
    ("tool", "apart", {"a": 1}),
    ("tool", "none", {}),
    ("resource", "none", {}),
    ("prompt", "greet", {}),
    ("prompt", "none", {}),
]
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
    """Subclasses say whether calls are authorised. Most rules do something at every step; the rare things share one."""

    guarded = False

    @initialize(
        total=st.integers(2, 6),
        share=st.integers(1, 4),
        remembered=st.integers(1, 5),
        offers=st.sampled_from(
            [None, None, None, ("tools", "resources"), ("prompts", "completions", "logging")]
        ),
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
            max_subscriptions=2,
            list_changed_window=2.0,
            log_level="notice",
            **options,
        )
        self.steps = 0.0
        self.bench.open("s1", "2025-06-18", principal=PRINCIPALS[-1])
        self.bench.open("s2", "2025-03-26")

    @property
    def closed(self) -> list[Hashable]:
        """Names without a channel: the server refuses a second one."""
        live = {client.connection for client in self.bench.kernel._clients.live()}
        return [name for name in CHANNELS if name not in live]

    @property
    def waiting(self) -> list[Ticket]:
        return [one for one in self.bench.watch.tickets.values() if not one.ended]

    # -- clients

    @precondition(lambda self: self.closed)
    @rule(
        data=st.data(),
        who=st.sampled_from(PRINCIPALS),
        revision=st.sampled_from([None, *messages.REVISIONS[:5]]),
    )
    def open(self, data, who: Principal | None, revision: str | None) -> None:
        connection = data.draw(st.sampled_from(self.closed))
        if str(connection).startswith("s"):
            self.bench.open(connection, principal=who)
            if revision is not None:
                self.bench.initialize(connection, revision)
        else:
            self.bench.open_direct(connection, revision, principal=who, transport="memory")

    @rule(connection=READY, requests=st.lists(messages.good_requests(), min_size=1, max_size=3))
    def request(self, connection: Hashable, requests: list[dict[str, Any]]) -> None:
        for message in requests:
            self.bench.send(message, connection)

    @rule(connection=READY, message=messages.good_requests(), fate=st.sampled_from(FATES), data=st.data())
    def request_and_go_on(self, connection: Hashable, message: dict[str, Any], fate: str, data) -> None:
        """What a call meets on its way, in one go, so that long ways are common."""
        ticket = self.bench.send(message, connection)
        working = self.bench.watch.working.get(ticket.ref)
        if working is not None and isinstance(working.job.work, Authorize):
            verdict = data.draw(st.sampled_from(outcomes(working)))
            self.bench.finish(ticket, verdict)
        if ticket.ended:
            return
        if ticket.ref in self.bench.watch.working:
            self.speak("half way", "error")
        match fate:
            case "its end" if ticket.ref in self.bench.watch.working:
                working = self.bench.watch.working[ticket.ref]
                self.bench.finish(ticket, data.draw(st.sampled_from(outcomes(working))))
            case "its client":
                self.bench.notify_cancelled(message["id"], connection)
            case "its time":
                self.bench.tick(10.0)

    @rule(connection=CONNECTIONS, message=messages.any_requests())
    def request_anything(self, connection: Hashable, message: dict[str, Any]) -> None:
        self.bench.send(message, connection)

    @rule(connection=st.sampled_from(["s2", "s2", "s2", "s2", *CHANNELS, *IDLE]), message=messages.batches)
    def batch(self, connection: Hashable, message: list[Any]) -> None:
        self.bench.send(message, connection)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), client=st.booleans())
    def give_up(self, data, client: bool) -> None:
        ticket = data.draw(st.sampled_from(self.waiting))
        if not client or ticket.direct:
            self.bench.cancel(ticket)
            return
        part = data.draw(st.sampled_from(ticket.sent if isinstance(ticket.sent, list) else [ticket.sent]))
        self.bench.notify_cancelled(part.get("id"), ticket.connection)

    # -- workers

    @precondition(lambda self: self.bench.watch.working)
    @rule(data=st.data(), often=st.integers(1, 3))
    def report(self, data, often: int) -> None:
        for _ in range(often):
            working = self.bench.watch.working
            if working:
                ref = data.draw(st.sampled_from(sorted(working)))
                self.bench.finish_ref(ref, data.draw(st.sampled_from(outcomes(working[ref]))))

    @precondition(lambda self: self.bench.watch.working)
    @rule(data=st.data())
    def report_well(self, data) -> None:
        working = self.bench.watch.working
        ref = data.draw(st.sampled_from(sorted(working)))
        self.bench.finish_ref(ref, outcomes(working[ref])[0])

    @precondition(lambda self: self.bench.watch.working)
    @rule(message=st.sampled_from([None, "half way"]), level=st.sampled_from(LOG_LEVELS))
    def speak(self, message: str | None, level: Any) -> None:
        """Work may speak until it ends, also when nobody waits for it any more."""
        for ref in [*self.bench.watch.working, *list(self.bench.watch.tickets)[-2:]]:
            self.steps += 1.0
            total = None if message is None else self.steps + 1
            self.bench.feed(Progressed(ref, self.steps, total, message))
            self.bench.feed(Logged(ref, level, Raw(b'{"said":1}'), None if message is None else "l"))

    @precondition(lambda self: self.bench.watch.working)
    @rule(data=st.data())
    def ask(self, data) -> None:
        """Work asks its client, also when nobody waits for it any more."""
        watch = self.bench.watch
        ref = data.draw(st.sampled_from(sorted(watch.working)))
        self.steps += 1.0
        ident = f"ask-{self.steps:g}"
        watch.questions[ident] = ref
        self.bench.feed(Questioned(ref, ident, "roots/list", Raw(b"{}"), lambda *_: None))

    @precondition(lambda self: self.bench.watch.asked)
    @rule(data=st.data(), connection=CONNECTIONS, owner=st.booleans(), error=st.booleans())
    def answer(self, data, connection: Hashable, owner: bool, error: bool) -> None:
        """Answers come from whoever was asked or from others, once, twice or too late."""
        watch = self.bench.watch
        ident = data.draw(st.sampled_from(sorted(watch.asked)[-4:]))
        ref = watch.questions.get(ident)
        ticket = None if ref is None else watch.tickets.get(ref)
        if owner and ticket is not None:
            connection = ticket.connection
        said = {"error": {"code": -1, "message": "no"}} if error else {"result": {"roots": []}}
        before = set(watch.questions)
        self.bench.send({"jsonrpc": "2.0", "id": ident, **said}, connection)
        if ticket is not None and ticket.connection != connection:
            assert set(watch.questions) == before, "only whoever was asked can answer"

    # -- the program

    @rule(call=st.sampled_from(DIRECT))
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
        self.bench.feed(Updated("file:///a"))

    @rule(
        connection=CONNECTIONS,
        what=st.integers(0, 19),
        message=messages.cancellations | messages.notifications | messages.oddities,
        revision=st.sampled_from(messages.REVISIONS),
        data=st.data(),
    )
    def something_rare(self, connection: Hashable, what: int, message: Any, revision: str, data) -> None:
        match what:
            case 0:
                self.bench.close(connection)
            case 1 | 12:
                self.bench.stop(0.5)
            case 2 | 3:
                self.bench.initialize(connection, revision, capabilities={"roots": {}})
            case 4 | 10:
                self.bench.feed(Notified(OWN_PREFIX + "own", Raw(b"{}")))
                self.bench.feed(LoopStalled(1.5))
            case 5 | 11:
                over = [one.ref for one in self.bench.watch.tickets.values() if one.ended]
                assert self.bench.feed(Cancelled(data.draw(st.sampled_from([UNKNOWN, *over[-5:]])))) == []
            case _:
                self.bench.send(message, connection)

    # -- the clock

    @rule(seconds=st.sampled_from([0.1, 0.5, 1.0, 2.0, 9.0, 10.0]))
    def advance(self, seconds: float) -> None:
        """Deadlines pass without anybody looking: what happens next races them."""
        self.bench.now += seconds

    @rule(seconds=st.sampled_from([0.0, 1.0, 2.0, 10.0]))
    def look(self, seconds: float) -> None:
        self.bench.tick(seconds)

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
        assert not self.waiting
        bench.tick(5.0)
        bench.at_rest()
        assert bench.kernel.statistics().connections == 0
        assert not bench.kernel._execution.admission._charged
        assert bench.kernel.next_deadline is None
