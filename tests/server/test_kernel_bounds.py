"""How much runs at once, and for how long (behaviour E2-E4)."""

from __future__ import annotations

from typing import Any

import pytest

from stanchion.registry.authorizer import Allow, Principal
from stanchion.server.ports import Judged, Killed
from stanchion.wire.revisions import PROFILES
from tests.server.bench import Bench, describe, done
from tests.server.test_kernel_calls import READ, block, call, guarded, opened
from tests.server.watch import MODERN, NEWEST

REVISIONS = sorted(PROFILES)


@pytest.mark.parametrize("revision", REVISIONS)
def test_beyond_the_bound_a_call_is_busy_at_once(revision: str) -> None:
    bench = opened(revision, max_in_flight=1, busy_retry_after=2.5)
    first = call(bench, revision, a=1)
    told = block(call(bench, revision, a=1).result, revision)
    assert told == {"code": "busy", "tool": "add", "scope": "share", "limit": 1, "retry_after": 2.5}
    bench.finish(first)
    assert call(bench, revision, a=1).answer is None


def test_other_methods_are_told_by_an_error_with_the_block() -> None:
    bench = opened(max_in_flight=1)
    bench.call()
    error = bench.ask(*READ).error
    assert error["code"] == -32603
    assert error["data"] == {"code": "busy", "scope": "share", "limit": 1, "retry_after": 1.0}


def test_a_connection_has_half_of_the_server_and_no_more() -> None:
    bench = opened(max_in_flight=4)
    for _ in range(2):
        assert bench.call().answer is None
    assert block(bench.call().result, NEWEST)["scope"] == "share"
    bench.open("d", NEWEST)
    for _ in range(2):
        assert bench.call(connection="d").answer is None
    bench.open("e", NEWEST)
    told = block(bench.call(connection="e").result, NEWEST)
    assert (told["scope"], told["limit"]) == ("server", 4)


def test_a_principal_s_connections_share_one_share() -> None:
    bench = Bench(max_in_flight=8, max_in_flight_per_principal=2)
    for name in "ab":
        bench.open(name, NEWEST, principal=Principal("p"))
    bench.call(connection="a")
    bench.call(connection="b")
    assert block(bench.call(connection="a").result, NEWEST)["limit"] == 2
    bench.open("x", NEWEST)
    for _ in range(4):
        assert bench.call(connection="x").answer is None


def test_a_call_holds_its_slot_while_it_is_judged() -> None:
    bench = guarded(max_in_flight=1)
    first = bench.call()
    assert block(bench.call().result, NEWEST)["code"] == "busy"
    bench.finish(first, Judged(Allow()))
    assert block(bench.call().result, NEWEST)["code"] == "busy"
    bench.finish(first)
    assert bench.call().answer is None


def test_what_needs_no_worker_is_never_busy() -> None:
    """U16: a ping is answered also on a full server."""
    bench = opened(max_in_flight=1)
    bench.call()
    assert bench.ask("ping").result == {}
    assert bench.ask("tools/list").result


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_call_that_takes_too_long_is_answered_and_killed(revision: str) -> None:
    bench = opened(revision, callback_timeout=5)
    ticket = call(bench, revision, a=1)
    bench.tick(4.9)
    assert not ticket.ended
    assert bench.kernel.next_deadline == pytest.approx(1005)
    bench.tick(0.2)
    told = block(ticket.result, revision)
    assert (told["code"], told["timeout"]) == ("timed_out", 5)
    assert bench.watch.working[ticket.ref].killed
    bench.finish(ticket, Killed())
    bench.at_rest()


def test_a_registration_s_own_time_goes_before_the_server_s() -> None:
    bench = opened(callback_timeout=5)
    brief, other = bench.call("brief"), bench.call()
    bench.tick(2)
    assert brief.result["isError"]
    assert not other.ended


def test_other_methods_that_take_too_long_are_errors() -> None:
    bench = opened(callback_timeout=5)
    ticket = bench.ask(*READ)
    bench.tick(5)
    assert ticket.error["code"] == -32603
    assert ticket.error["data"] == {"code": "timed_out", "timeout": 5}


def test_the_authorizer_s_time_is_not_the_tool_s() -> None:
    bench = guarded(callback_timeout=5)
    ticket = bench.call()
    bench.tick(4)
    bench.finish(ticket, Judged(Allow()))
    bench.tick(4)
    assert not ticket.ended
    bench.tick(1)
    assert block(ticket.result, NEWEST)["code"] == "timed_out"


def test_an_answer_that_comes_before_the_look_at_the_clock_counts() -> None:
    bench = opened(callback_timeout=5)
    ticket = bench.call()
    bench.now += 50
    bench.finish(ticket)
    assert "isError" not in ticket.result
    bench.tick()
    bench.at_rest()


def test_a_killed_call_s_slot_is_taken_until_it_ends() -> None:
    bench = opened(max_in_flight=1, callback_timeout=5, kill_grace=2)
    ticket = bench.call()
    bench.tick(5)
    assert block(bench.call().result, NEWEST)["code"] == "busy"
    bench.tick(1.9)
    bench.finish(ticket, Killed())
    assert bench.call().answer is None


def test_work_that_does_not_end_is_written_off_and_stays_charged() -> None:
    """E2: its slot returns to everybody, its charge stays on its owner."""
    bench = opened(max_in_flight=2, max_in_flight_per_connection=1, callback_timeout=5, kill_grace=2)
    ticket = bench.call()
    bench.tick(5)
    bench.tick(2)
    assert bench.events("work_written_off") == [{"ref": ticket.ref}]
    figures = bench.kernel.statistics()
    assert (figures.running, figures.written_off, figures.ending) == (0, 1, 0)
    assert bench.kernel.quiet  # a shutdown can't wait for it
    assert block(bench.call().result, NEWEST)["scope"] == "share"
    for name in "de":
        bench.open(name, NEWEST)
        assert bench.call(connection=name).answer is None
    bench.finish(ticket, done())
    assert bench.kernel.statistics().written_off == 0
    assert block(bench.call().result, NEWEST)["scope"] == "server"


def test_modern_requests_of_one_connection_share_like_any_other() -> None:
    bench = opened(MODERN, max_in_flight=2)
    first: dict[str, Any] = describe({"name": "add", "arguments": {"a": 1}})
    bench.ask("tools/call", first)
    assert block(bench.ask("tools/call", first).result, MODERN)["code"] == "busy"


def test_requests_without_a_principal_share_by_where_they_come_from() -> None:
    """Over modern HTTP each request is a connection of its own: a client would else have as many shares as calls."""
    bench = Bench(max_in_flight=8, max_in_flight_per_connection=2)
    for name in "abc":
        bench.open(name, NEWEST, holder=("peer", "192.0.2.1"))
    assert bench.call(connection="a").answer is None
    assert bench.call(connection="b").answer is None
    assert block(bench.call(connection="c").result, NEWEST)["scope"] == "share"
    bench.open("d", NEWEST, holder=("peer", "192.0.2.2"))
    assert bench.call(connection="d").answer is None
