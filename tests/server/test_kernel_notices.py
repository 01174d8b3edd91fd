"""What clients are told unasked: progress, log messages, changes (U3, U4, U10, F7, S10, SU1-SU8, RS10-RS12, A9)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from stanchion.server.events import Changed, Notified, Updated
from stanchion.server.ports import Logged, Progressed
from stanchion.wire.jsonrpc import Ref
from stanchion.wire.revisions import HANDSHAKE
from tests.server.bench import LOG_KEY, Bench, describe
from tests.server.watch import MODERN, NEWEST, OWN_PREFIX, SUBSCRIPTION_KEY, Ticket

LEGACY = sorted(HANDSHAKE)
ALL_KINDS = frozenset({"tools", "resources", "prompts"})
ACK = "notifications/subscriptions/acknowledged"


def opened(revision: str | None = NEWEST, **options: Any) -> Bench:
    bench = Bench(**options)
    bench.open("c", revision)
    return bench


def listen(bench: Bench, ident: Any = None, connection: str = "c", **wanted: Any) -> Ticket:
    return bench.ask("subscriptions/listen", describe({"notifications": wanted}), connection, ident)


# -- U10: progress


@pytest.mark.parametrize("token", [0, "", 7, "7"])
def test_progress_bears_the_caller_s_token(token: int | str) -> None:
    bench = opened()
    ticket = bench.call(_meta={"progressToken": token})
    bench.feed(Progressed(ticket.ref, 1.5, 3, "half"))
    assert [one["params"] for one in ticket.notices] == [
        {"progressToken": token, "progress": 1.5, "total": 3, "message": "half"}
    ]


@pytest.mark.parametrize("meta", [{}, {"progressToken": None}])
def test_nobody_is_told_of_progress_without_a_token(meta: dict[str, Any]) -> None:
    bench = opened()
    ticket = bench.call(_meta=meta)
    assert not bench.job(ticket).facts.wants_progress
    bench.progress(ticket, 1)
    assert not ticket.notices


@pytest.mark.parametrize("revision", LEGACY)
def test_progress_has_a_message_from_2025_03_26_on(revision: str) -> None:
    bench = opened(revision)
    ticket = bench.call(_meta={"progressToken": 1})
    bench.progress(ticket, 1, "half")
    assert ("message" in ticket.notices[0]["params"]) == (revision > "2024-11-05")


def test_nothing_is_told_of_a_call_that_has_ended() -> None:
    bench = opened()
    ended, cancelled = (bench.call(_meta={"progressToken": n}) for n in (1, 2))
    bench.finish(ended)
    bench.cancel(cancelled)
    bench.watch.pushed.clear()
    for ref in (ended.ref, cancelled.ref, Ref(999)):
        bench.feed(Progressed(ref, 9.0))
        bench.feed(Logged(ref, "emergency", "x"))
    assert not bench.watch.pushed


@pytest.mark.parametrize("text", ["\ud800", "x\udfff"])
def test_odd_text_hurts_nobody(text: str) -> None:
    bench = opened()
    ticket = bench.call(_meta={"progressToken": 1})
    bench.progress(ticket, 1, text)
    bench.feed(Logged(ticket.ref, "error", "x", text))
    bench.finish(ticket)
    assert ticket.result


# -- U3, U4: log messages


@pytest.mark.parametrize("revision", LEGACY)
def test_a_handshake_client_is_told_from_its_level_up(revision: str) -> None:
    bench = opened(revision, log_level="notice")
    ticket = bench.call()
    for level in ("debug", "info", "notice", "error"):
        bench.log(ticket, level)
    assert [one["params"]["level"] for one in ticket.notices] == ["notice", "error"]
    assert bench.ask("logging/setLevel", {"level": "error"}).result == {}
    for level in ("info", "warning", "error", "emergency"):
        bench.log(ticket, level)
    assert [one["params"]["level"] for one in ticket.notices[2:]] == ["error", "emergency"]


def test_a_level_holds_for_its_connection_alone() -> None:
    bench = opened()
    bench.open("d", NEWEST)
    bench.ask("logging/setLevel", {"level": "error"})
    ticket = bench.call(connection="d")
    bench.log(ticket, "info")
    assert len(ticket.notices) == 1


def test_an_unknown_level_is_refused() -> None:
    assert opened().ask("logging/setLevel", {"level": "loud"}).error["code"] == -32602
    assert opened().ask("tools/list", describe(**{LOG_KEY: "loud"})).error["code"] == -32602


def test_a_modern_request_is_told_only_what_it_asked_for() -> None:
    bench = opened(log_level="debug")
    params = {"name": "add", "arguments": {"a": 1}}
    silent = bench.ask("tools/call", describe(params))
    some = bench.ask("tools/call", describe(params, **{LOG_KEY: "warning"}))
    for level in ("debug", "warning", "alert"):
        bench.log(silent, level)
        bench.log(some, level)
    assert not silent.notices
    assert [one["params"]["level"] for one in some.notices] == ["warning", "alert"]


def test_without_the_capability_nothing_is_logged() -> None:
    bench = opened(offers=("tools",))
    ticket = bench.call()
    bench.log(ticket, "emergency")
    assert not ticket.notices


def test_a_log_message_may_be_any_json() -> None:
    bench = opened()
    ticket = bench.call()
    bench.feed(Logged(ticket.ref, "error", Raw(b'{"a":[1,null]}'), "app"))
    assert ticket.notices[0]["params"] == {"level": "error", "data": {"a": [1, None]}, "logger": "app"}


# -- F7: lists changed


def test_ten_thousand_changes_are_a_few_notices() -> None:
    bench = opened(list_changed_window=0.1)
    for _ in range(10_000):
        bench.now += 0.0001
        bench.feed(Changed(frozenset({"tools"})))
        due = bench.kernel.next_deadline
        if due is not None and due <= bench.now:
            bench.tick()
    bench.tick(0.1)
    assert 2 <= len(bench.notices("notifications/tools/list_changed")) <= 12
    assert bench.kernel.next_deadline is None
    assert not bench.notices("notifications/prompts/list_changed")


def test_the_last_change_is_told() -> None:
    bench = opened(list_changed_window=1)
    for _ in range(3):
        bench.feed(Changed(ALL_KINDS))
    for kind in ALL_KINDS:
        assert len(bench.notices(f"notifications/{kind}/list_changed")) == 1
    bench.tick(1)
    for kind in ALL_KINDS:
        assert len(bench.notices(f"notifications/{kind}/list_changed")) == 2
    assert bench.tick(10) == []


def test_who_has_not_heard_our_answer_is_told_nothing() -> None:
    bench = opened(None)
    bench.open("d")
    bench.initialize("d", NEWEST)
    bench.feed(Changed(ALL_KINDS))
    assert not bench.watch.pushed
    bench.ask("ping", connection="d")
    bench.tick(1)
    bench.feed(Changed(ALL_KINDS))
    assert {to for to, _, _ in bench.watch.pushed} == {"d"}


def test_what_is_not_offered_does_not_change() -> None:
    bench = opened(offers=("tools",))
    bench.feed(Changed(ALL_KINDS))
    assert [notice["method"] for _, notice, _ in bench.watch.pushed] == ["notifications/tools/list_changed"]


def test_a_modern_connection_is_told_only_by_what_it_listens_with() -> None:
    """Also when the revision was given to ``connect``."""
    bench = Bench()
    bench.open_direct("c", MODERN, transport="memory")
    bench.feed(Changed(ALL_KINDS))
    assert not bench.watch.pushed


# -- RS10, A9


def test_a_subscriber_is_told_of_its_resource_until_it_unsubscribes() -> None:
    bench = opened()
    bench.open("d", NEWEST)
    assert bench.ask("resources/subscribe", {"uri": "file:///a"}).result == {}
    bench.feed(Updated("file:///b"))
    bench.feed(Updated("file:///a"))
    assert bench.notices("notifications/resources/updated") == [{"uri": "file:///a"}]
    assert bench.ask("resources/unsubscribe", {"uri": "file:///a"}).result == {}
    assert bench.ask("resources/unsubscribe", {"uri": "never:///"}).result == {}
    bench.feed(Updated("file:///a"))
    assert len(bench.watch.pushed) == 1


def test_what_is_not_there_can_t_be_subscribed_to() -> None:
    assert opened().ask("resources/subscribe", {"uri": "none:///"}).error["code"] == -32002


def test_subscriptions_are_bounded() -> None:
    bench = opened(max_subscriptions=1)
    bench.ask("resources/subscribe", {"uri": "file:///a"})
    assert bench.ask("resources/subscribe", {"uri": "file:///b"}).error["code"] == -32602
    assert bench.ask("resources/subscribe", {"uri": "file:///a"}).result == {}


def test_the_program_s_own_notice_goes_to_every_channel() -> None:
    bench = opened()
    bench.open("d")
    bench.ask("ping", connection="nobody")
    bench.feed(Notified(OWN_PREFIX + "y", Raw(b'{"a":1}')))
    assert [to for to, _, _ in bench.watch.pushed] == ["c", "d"]


# -- SU1-SU8, S10: listening


def test_the_acknowledgement_comes_first_and_says_what_is_honoured() -> None:
    bench = opened(None, offers=("tools", "resources"))
    ticket = listen(
        bench,
        "s",
        toolsListChanged=True,
        promptsListChanged=True,
        resourceSubscriptions=["file:///a", "none:///", "item:///1", "file:///a"],
    )
    (first,) = ticket.notices
    assert first["method"] == ACK
    assert first["params"]["notifications"] == {
        "toolsListChanged": True,
        "resourceSubscriptions": ["file:///a", "item:///1"],
    }
    assert first["params"]["_meta"] == {SUBSCRIPTION_KEY: "s"}
    assert not ticket.ended


@pytest.mark.parametrize("ident", [0, "", 12, "12"])
def test_each_notice_names_its_subscription_with_its_type(ident: int | str) -> None:
    bench = opened(None)
    ticket = listen(bench, ident, toolsListChanged=True, resourceSubscriptions=["file:///a"])
    bench.feed(Changed(ALL_KINDS))
    bench.feed(Updated("file:///a"))
    bench.feed(Updated("file:///b"))
    assert [one["method"] for one in ticket.notices] == [
        ACK,
        "notifications/tools/list_changed",
        "notifications/resources/updated",
    ]
    for one in ticket.notices:
        told = one["params"]["_meta"][SUBSCRIPTION_KEY]
        assert (type(told), told) == (type(ident), ident)


def test_each_listener_has_its_own_filter_and_copy() -> None:
    bench = opened(None)
    tools, both, nothing = (
        listen(bench, toolsListChanged=True),
        listen(bench, toolsListChanged=True, promptsListChanged=True),
        listen(bench, toolsListChanged=False),
    )
    bench.feed(Changed(frozenset({"tools", "prompts"})))
    assert [len(one.notices) for one in (tools, both, nothing)] == [2, 3, 1]


def test_a_handshake_client_that_also_listens_is_told_both_ways() -> None:
    bench = opened()
    ticket = listen(bench, toolsListChanged=True)
    bench.feed(Changed(frozenset({"tools"})))
    assert len(bench.notices("notifications/tools/list_changed")) == 2
    assert len(ticket.notices) == 2


def test_a_listener_ends_when_its_client_cancels_it() -> None:
    bench = opened(None)
    ticket = listen(bench, 0, toolsListChanged=True)
    bench.notify_cancelled(0)
    assert ticket.ended
    bench.feed(Changed(ALL_KINDS))
    assert len(ticket.notices) == 1
    bench.at_rest()


def test_a_listener_holds_no_slot_and_has_no_deadline() -> None:
    bench = opened(None, max_in_flight=1)
    listen(bench)
    assert bench.kernel.next_deadline is None
    assert bench.kernel.statistics().running == 0


@pytest.mark.parametrize("params", [{}, {"notifications": None}, {"notifications": {"toolsListChanged": 1}}])
def test_a_malformed_filter_is_refused(params: dict[str, Any]) -> None:
    bench = opened(None)
    assert bench.ask("subscriptions/listen", describe(params)).error["code"] == -32602
    bench.at_rest()


def test_listeners_are_bounded() -> None:
    bench = opened(None, max_listeners=1, max_subscriptions=1)
    assert listen(bench, resourceSubscriptions=["file:///a", "file:///b"]).error["code"] == -32602
    first = listen(bench)
    assert listen(bench).error["code"] == -32602
    bench.cancel(first)
    assert listen(bench).answer is None


@pytest.mark.parametrize(
    ("transport", "cancelled"), [("stdio", True), ("unix", True), ("memory", True), ("http", False)]
)
def test_at_the_end_a_listener_gets_its_result_and_then_a_notice(transport: str, cancelled: bool) -> None:
    """SU8; the notice only where everything shares one stream (checklist §5)."""
    bench = Bench()
    bench.open("c", transport=transport)
    ticket = listen(bench, 0, toolsListChanged=True)
    kinds = [type(effect).__name__ for effect in bench.stop(5)]
    assert kinds == (["Reply", "Push"] if cancelled else ["Reply"])
    assert ticket.result["resultType"] == "complete"
    assert ticket.result["_meta"][SUBSCRIPTION_KEY] == 0
    assert bench.notices("notifications/cancelled") == ([{"requestId": 0}] if cancelled else [])
    bench.at_rest()
