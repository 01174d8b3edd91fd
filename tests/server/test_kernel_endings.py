"""How calls end that nobody answers, batches, direct calls, and the end of the server (A5, F1, H5, L8, U12, 2025-03-26)."""

from __future__ import annotations

from typing import Any

import pytest

from stanchion.machines.calls import Call, State
from stanchion.registry.authorizer import Allow
from stanchion.server.effects import Fail, Kill, Reply, Return
from stanchion.server.events import Cancelled
from stanchion.server.ports import Broke, Judged, Killed, LoopStalled, Missing, Told, Value
from stanchion.wire.jsonrpc import Ref
from stanchion.wire.revisions import HANDSHAKE
from tests.server import offered
from tests.server.bench import Bench, describe
from tests.server.watch import NEWEST, Ticket

LEGACY = sorted(HANDSHAKE)


def opened(revision: str | None = NEWEST, **options: Any) -> Bench:
    bench = Bench(**options)
    bench.open("c", revision)
    return bench


def guarded() -> Bench:
    return opened(registry=offered.registry(sensitive=True), guarded=True)


# -- A5: cancelling


@pytest.mark.parametrize("way", ["ours", "the client's", "its connection closes"])
@pytest.mark.parametrize("state", ["running", "authorising", "authorised"])
def test_a_cancelled_call_ends_without_an_answer_wherever_it_is(state: str, way: str) -> None:
    bench = opened() if state == "running" else guarded()
    ticket = bench.call(ident=0, _meta={"progressToken": 1})
    if state == "authorised":
        bench.finish(ticket, Judged(Allow()))
    if way == "ours":
        bench.cancel(ticket)
    elif way == "the client's":
        bench.notify_cancelled(0)
    else:
        bench.close()
    assert ticket.ended
    assert ticket.answer is None
    assert bench.watch.working[ticket.ref].killed
    late = Judged(Allow()) if state == "authorising" else None
    assert bench.finish(ticket, late) == []
    bench.at_rest()


@pytest.mark.parametrize("request_id", ["0", 1, None, [], 0.0, True])
def test_cancelling_what_is_unknown_changes_nothing(request_id: Any) -> None:
    """U12; an id of another type is another id."""
    bench = opened()
    ticket = bench.call(ident=0)
    bench.notify_cancelled(request_id)
    bench.send({"jsonrpc": "2.0", "method": "notifications/cancelled"})
    assert not ticket.ended


def test_only_its_own_connection_can_cancel_a_request() -> None:
    bench = opened()
    bench.open("d", NEWEST)
    ticket = bench.call(ident=0)
    bench.notify_cancelled(0, "d")
    assert not ticket.ended


def test_what_has_ended_can_t_be_cancelled() -> None:
    bench = opened()
    ticket = bench.call(ident=0)
    bench.finish(ticket)
    assert bench.feed(Cancelled(ticket.ref)) == []
    assert bench.feed(Cancelled(Ref(999))) == []
    bench.notify_cancelled(0)
    assert ticket.result


def test_initialize_is_answered_before_it_could_be_cancelled() -> None:
    """L8."""
    bench = opened(None)
    ticket = bench.initialize("c", NEWEST)
    bench.notify_cancelled(ticket.sent["id"])
    assert ticket.result
    assert bench.ask("tools/list").result


def test_an_id_is_free_as_soon_as_its_request_is_cancelled() -> None:
    bench = opened()
    first = bench.call(ident=1)
    bench.cancel(first)
    second = bench.call(ident=1)
    bench.finish(first, Killed())
    bench.finish(second)
    assert second.result


def test_an_id_that_is_in_use_in_both_eras_names_the_handshake_s_request() -> None:
    bench = opened()
    modern = bench.ask("tools/call", describe({"name": "add", "arguments": {"a": 1}}), ident=1)
    legacy = bench.call(ident=1)
    bench.notify_cancelled(1)
    assert (legacy.ended, modern.ended) == (True, False)
    bench.notify_cancelled(1)
    assert modern.ended


def test_a_connection_s_end_leaves_others_alone() -> None:
    bench = opened()
    bench.open("d", NEWEST)
    other = bench.call(connection="d")
    bench.call()
    bench.close()
    bench.finish(other)
    assert other.result


# -- 2025-03-26: batches


def part(ident: int | str, method: str = "tools/call", **params: Any) -> dict[str, Any]:
    params = params or {"name": "add", "arguments": {"a": 1}}
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}


CANCEL = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}


def jobs(bench: Bench) -> list[Ref]:
    return list(bench.watch.working)


def test_a_batch_is_answered_once_with_all_its_answers() -> None:
    bench = opened("2025-03-26")
    ticket = bench.send(
        [part(1), part("1", "ping", x=1), CANCEL | {"method": "x"}, part(2), {"jsonrpc": "2.0", "id": 5}]
    )
    for ref in reversed(jobs(bench)):
        assert not ticket.ended
        bench.finish_ref(ref, Told("x"))
    assert sorted(str(one["id"]) for one in ticket.answer) == ["1", "1", "2", "5"]
    bench.at_rest()


def test_a_batch_of_notifications_is_not_answered() -> None:
    assert opened("2025-03-26").send([CANCEL, CANCEL]).answer is None


def test_a_cancelled_part_is_left_out() -> None:
    bench = opened("2025-03-26")
    ticket = bench.send([part(1), part(2)])
    bench.notify_cancelled(1)
    for ref in jobs(bench):
        bench.finish_ref(ref, Killed())
    assert [one["id"] for one in ticket.answer] == [2]


def test_a_part_can_cancel_another() -> None:
    bench = opened("2025-03-26")
    ticket = bench.send([part(1), CANCEL])
    assert ticket.ended
    assert ticket.answer is None


def test_a_cancelled_batch_ends_whole() -> None:
    bench = opened("2025-03-26")
    listening = part(3, "subscriptions/listen", **describe({"notifications": {}}))
    ticket = bench.send([part(1), part(2), listening])
    effects = bench.cancel(ticket)
    assert [type(effect) for effect in effects if not isinstance(effect, Kill)] == [Reply]
    for ref in jobs(bench):
        bench.finish_ref(ref, Killed())
    bench.at_rest()


def test_initialize_can_t_be_part_of_a_batch() -> None:
    bench = opened("2025-03-26")
    ticket = bench.send([part(1, "initialize", protocolVersion="2025-03-26"), part(2, "ping", x=1)])
    assert ticket.answer[0]["error"]["code"] == -32600
    assert ticket.answer[1]["result"] == {}


@pytest.mark.parametrize("revision", [None, *(one for one in LEGACY if one != "2025-03-26")])
def test_other_revisions_have_no_batches(revision: str | None) -> None:
    bench = opened(revision)
    ticket = bench.send([part(1), part(2)])
    assert ticket.answer["error"]["code"] == -32600
    assert ticket.answer.get("id") is None
    assert not bench.watch.working


@pytest.mark.parametrize("line", [b"[]", b" [ ] "])
def test_an_empty_batch_is_one_error(line: bytes) -> None:
    assert opened("2025-03-26").send(line).answer["error"]["code"] == -32600


# -- F1: what the embedding program calls


def test_a_direct_call_returns_the_value_as_it_is_and_asks_nobody() -> None:
    bench = guarded()
    value = object()
    ticket = bench.direct("tool", "wipe")
    assert bench.job(ticket).raw
    bench.finish(ticket, Value(value))
    assert ticket.end == Return(ticket.ref, value)
    bench.at_rest()


@pytest.mark.parametrize(
    ("what", "outcome", "kind"),
    [
        (("tool", "add", {"a": 1}), Told("sorry"), "tool_error"),
        (("tool", "add", {"a": 1}), Broke("r"), "raised"),
        (("tool", "add", {"a": 1}), Killed(), "killed"),
        (("resource", "file:///a", {}), Missing(), "not_found"),
        (("tool", "add", {"a": "x"}), None, "invalid_arguments"),
        (("prompt", "greet", {}), None, "invalid_arguments"),
        (("tool", "none", {}), None, "unknown"),
        (("resource", "none", {}), None, "unknown"),
        (("prompt", "none", {}), None, "unknown"),
        (("tool", "apart", {"a": 1}), None, "unavailable"),
    ],
)
def test_a_direct_call_that_fails_says_how(
    what: tuple[str, str, dict[str, Any]], outcome: Any, kind: str
) -> None:
    bench = opened()
    ticket = bench.direct(what[0], what[1], **what[2])
    if outcome is not None:
        bench.finish(ticket, outcome)
    assert isinstance(ticket.end, Fail)
    assert ticket.end.kind == kind
    bench.at_rest()


def test_a_direct_call_is_bounded_in_time_and_can_be_cancelled() -> None:
    bench = opened(callback_timeout=5, max_in_flight=4)
    late, cancelled = bench.direct("tool", "add", a=1), bench.direct("tool", "add", a=1)
    bench.cancel(cancelled)
    bench.tick(5)
    assert [one.end.kind for one in (late, cancelled) if isinstance(one.end, Fail)] == [
        "timed_out",
        "cancelled",
    ]


# -- H5: the end


def test_a_server_that_stops_takes_no_more_work() -> None:
    bench = opened()
    running = bench.call()
    bench.stop(5)
    for ticket in (
        bench.call(),
        bench.ask("tools/list"),
        bench.ask("ping"),
        bench.ask("tools/list", describe()),
    ):
        assert (ticket.error["code"], ticket.error["data"]["code"]) == (-32603, "unavailable")
    assert bench.ask("no/such").error["code"] == -32601
    direct = bench.direct("tool", "add", a=1)
    assert isinstance(direct.end, Fail)
    assert direct.end.kind == "unavailable"
    bench.finish(running)
    assert running.result
    bench.at_rest()


def test_what_still_runs_at_the_deadline_is_killed_without_an_answer() -> None:
    bench = opened(kill_grace=1)
    tickets: list[Ticket] = [bench.call(), bench.direct("tool", "add", a=1)]
    bench.stop(5)
    assert bench.kernel.next_deadline == bench.now + 5
    bench.tick(4)
    assert not any(ticket.ended for ticket in tickets)
    bench.tick(1)
    assert all(ticket.ended and ticket.answer is None for ticket in tickets)
    assert all(one.killed for one in bench.watch.working.values())
    assert not bench.kernel.quiet
    bench.tick(1)
    assert bench.kernel.quiet  # what does not end when it is killed is not waited for
    for ticket in tickets:
        bench.finish(ticket, Killed())
    bench.at_rest()


def test_a_stopping_server_is_quiet_as_soon_as_its_work_has_ended() -> None:
    bench = opened(None)
    bench.ask("subscriptions/listen", describe({"notifications": {}}))
    assert not bench.kernel.quiet
    bench.stop(5)
    assert bench.kernel.quiet


def test_a_stalled_loop_is_an_event() -> None:
    bench = Bench()
    bench.feed(LoopStalled(2.0))
    assert bench.events("loop_stalled") == [{"seconds": 2.0}]


def test_a_call_passes_its_states_in_order() -> None:
    bench = guarded()
    ticket = bench.call()
    call = bench.kernel._execution.ledger.get(ticket.ref)
    assert isinstance(call, Call)
    seen = [call.state]
    bench.finish(ticket, Judged(Allow()))
    seen.append(call.state)
    bench.finish(ticket)
    assert [*seen, call.state] == [State.AUTHORISING, State.RUNNING, State.ENDED]
