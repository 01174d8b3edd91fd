"""The handshake, the eras, and what a request is answered before anything runs: as sentences, by the kernel's one seam."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from stanchion.machines.clients import ANONYMOUS, DEFAULT
from stanchion.server.config import FEATURES
from stanchion.server.methods import METHODS
from stanchion.wire.revisions import HANDSHAKE, PROFILES
from tests.server.bench import CAPABILITIES_KEY, Bench, describe
from tests.server.watch import MODERN, NEWEST, VERSION_KEY

LEGACY = sorted(HANDSHAKE)
SERVER_KEY = "io.modelcontextprotocol/serverInfo"


# -- L2, L5, L7, A6, C8: the handshake


@pytest.mark.parametrize("revision", LEGACY)
def test_initialize_settles_on_the_revision_proposed(revision: str) -> None:
    bench = Bench(instructions="Be brief.")
    bench.open()
    result = bench.initialize("c", revision).result
    assert result["protocolVersion"] == revision
    assert result["instructions"] == "Be brief."
    info = {"name": "bench", "version": "1.2.3"}
    if revision >= "2025-06-18":
        info["title"] = "Bench"
    if revision >= "2025-11-25":
        info["description"] = "For tests"
    assert result["serverInfo"] == info


@pytest.mark.parametrize("proposed", [MODERN, "2099-01-01", "", "latest"])
def test_what_has_no_handshake_settles_on_the_newest_that_has_one(proposed: str) -> None:
    bench = Bench()
    bench.open()
    assert bench.initialize("c", proposed).result["protocolVersion"] == NEWEST


def test_before_the_handshake_only_initialize_and_ping_are_served() -> None:
    bench = Bench()
    bench.open()
    assert bench.ask("ping").result == {}
    assert bench.ask("tools/list").error["code"] == -32600
    assert bench.call().error["code"] == -32600
    assert bench.ask("no/such").error["code"] == -32600
    assert not bench.watch.working


def test_requests_are_served_as_soon_as_initialize_was_answered() -> None:
    """With or without ``notifications/initialized`` (L9)."""
    bench = Bench()
    bench.open()
    bench.initialize("c", "2025-06-18")
    assert bench.ask("tools/list").result["tools"]


def test_a_direct_caller_need_not_shake_hands() -> None:
    bench = Bench()
    for connection in ("never opened", DEFAULT, ANONYMOUS):
        assert "icons" in next(
            t for t in bench.ask("tools/list", None, connection).result["tools"] if t["name"] == "sum"
        )


@pytest.mark.parametrize("revision", sorted(PROFILES))
def test_a_direct_caller_is_served_as_the_revision_given_to_connect(revision: str) -> None:
    bench = Bench()
    bench.open_direct("c", revision)
    ticket = bench.ask("tools/list")
    ticket.revision = revision
    assert ("resultType" in ticket.result) == (revision == MODERN)
    assert bench.ask("ping").answer.get("result") == (None if revision == MODERN else {})


def test_a_repeated_initialize_is_answered_again_and_changes_nothing_else() -> None:
    bench = Bench()
    bench.open("c", "2025-06-18")
    bench.ask("logging/setLevel", {"level": "error"})
    again = bench.initialize("c", "2025-06-18", capabilities={"elicitation": {}})
    assert again.result["protocolVersion"] == "2025-06-18"
    client = bench.kernel._clients.get("c")
    assert client is not None
    assert client.abilities == {"elicitation": {}}
    assert client.session.log_level == "error"


def test_an_initialize_with_another_version_than_the_one_in_use_is_refused() -> None:
    bench = Bench()
    bench.open("c", "2025-06-18")
    assert bench.initialize("c", "2025-03-26", capabilities={"roots": {}}).error["code"] == -32600
    client = bench.kernel._clients.get("c")
    assert client is not None
    assert client.abilities == {}
    assert client.session.profile is PROFILES["2025-06-18"]


def test_a_forgotten_client_keeps_working_and_the_event_says_who() -> None:
    """C8: at most so many are remembered."""
    bench = Bench(max_client_capabilities=1)
    bench.open("c", "2025-03-26")
    bench.open("d", "2025-03-26")
    assert bench.events("client_capabilities_evicted") == [{"connection": "c"}]
    call = bench.call(connection="c")
    bench.finish(call)
    assert call.revision == "2025-03-26"
    assert call.result["content"]


# -- A6, B16, L11: capabilities are exactly what is served

CAPABILITY = {
    "tools": {"tools": {"listChanged": True}},
    "resources": {"resources": {"subscribe": True, "listChanged": True}},
    "prompts": {"prompts": {"listChanged": True}},
    "completions": {"completions": {}},
    "logging": {"logging": {}},
}
PARAMS: dict[str, dict[str, Any]] = {
    "tools/call": {"name": "add", "arguments": {"a": 1}},
    "resources/read": {"uri": "file:///a"},
    "resources/subscribe": {"uri": "file:///a"},
    "resources/unsubscribe": {"uri": "file:///a"},
    "prompts/get": {"name": "greet", "arguments": {"name": "x"}},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "tone", "value": ""},
    },
    "logging/setLevel": {"level": "debug"},
    "subscriptions/listen": {"notifications": {}},
    "initialize": {"protocolVersion": NEWEST, "capabilities": {}},
}
SUBSETS = [subset for size in range(6) for subset in itertools.combinations(FEATURES, size)]


@pytest.mark.parametrize("offers", SUBSETS, ids="+".join)
def test_what_is_declared_is_what_is_served(offers: tuple[str, ...]) -> None:
    """Every method of an undeclared feature is -32601, in every revision; every other method is not."""
    for revision, profile in PROFILES.items():
        bench = Bench(offers=offers)
        if profile.modern:
            bench.open()
            declared = bench.ask("server/discover", describe()).result["capabilities"]
        else:
            bench.open("c", revision)
            declared = bench.initialize("c", revision).result["capabilities"]
        expected: dict[str, Any] = {}
        for feature in offers:
            if feature != "completions" or revision != "2024-11-05":  # it has no such capability
                expected |= CAPABILITY[feature]
        assert declared == expected
        for method, row in METHODS.items():
            params = PARAMS.get(method, {})
            if method == "initialize":
                params = params | {"protocolVersion": revision}
            ticket = bench.ask(method, describe(params) if profile.modern else params)
            there = method in profile.methods and (row.feature is None or row.feature in offers)
            code = None if ticket.answer is None else ticket.answer.get("error", {}).get("code")
            assert (code != -32601) == there, (revision, method)
            assert code in {None, -32601}


# -- §1.2, §1.4: the era is the message's


def test_a_request_that_describes_itself_needs_no_handshake_and_leaves_none() -> None:
    bench = Bench()
    bench.open()
    listed = bench.ask("tools/list", describe())
    assert listed.result["resultType"] == "complete"
    assert listed.result["_meta"][SERVER_KEY]["name"] == "bench"
    assert bench.ask("tools/list").error["code"] == -32600


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]
)
def test_methods_of_the_handshake_are_unknown_to_modern_requests(method: str) -> None:
    """Also on a connection that shook hands."""
    bench = Bench()
    bench.open("c", "2025-11-25")
    assert bench.ask(method, describe(PARAMS.get(method))).error["code"] == -32601


@pytest.mark.parametrize("method", ["server/discover", "subscriptions/listen"])
@pytest.mark.parametrize("revision", LEGACY)
def test_modern_methods_are_unknown_to_handshake_clients(method: str, revision: str) -> None:
    bench = Bench()
    bench.open("c", revision)
    assert bench.ask(method, PARAMS.get(method, {})).error["code"] == -32601


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({VERSION_KEY: MODERN}, -32602),
        ({CAPABILITIES_KEY: {}}, -32602),
        ({VERSION_KEY: MODERN, CAPABILITIES_KEY: None}, -32602),
        ({VERSION_KEY: 5, CAPABILITIES_KEY: {}}, -32602),
        ({VERSION_KEY: "v9", CAPABILITIES_KEY: {}}, -32022),
        ({VERSION_KEY: "2025-11-25", CAPABILITIES_KEY: {}}, -32022),
        ({}, -32600),
    ],
)
def test_modern_metadata_is_whole_or_refused(meta: dict[str, Any], code: int) -> None:
    """B8, B14; without any of it the request is one before the handshake."""
    bench = Bench()
    bench.open()
    error = bench.ask("tools/list", {"_meta": meta}, ident=0).error
    assert error["code"] == code
    if code == -32022:
        assert error["data"] == {"supported": [MODERN], "requested": meta[VERSION_KEY]}


def test_discover_without_metadata_is_a_malformed_modern_request() -> None:
    bench = Bench()
    bench.open()
    assert bench.ask("server/discover").error["code"] == -32602


def test_discover_says_what_initialize_does_not() -> None:
    bench = Bench(instructions="Be brief.")
    bench.open()
    result = bench.ask("server/discover", describe()).result
    assert result["supportedVersions"] == [MODERN]
    assert result["instructions"] == "Be brief."
    assert "serverInfo" not in result
    assert result["_meta"][SERVER_KEY] == {
        "name": "bench",
        "title": "Bench",
        "version": "1.2.3",
        "description": "For tests",
    }
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


# -- A2, A3, B4: messages


@pytest.mark.parametrize("ident", [0, 1, -1, 2**70, "", "0", "a b"])
def test_an_id_comes_back_with_its_type(ident: int | str) -> None:
    bench = Bench()
    bench.open("c", NEWEST)
    assert bench.ask("ping", ident=ident).answer == {"jsonrpc": "2.0", "id": ident, "result": {}}


def test_the_same_id_in_another_type_or_era_is_another_request() -> None:
    bench = Bench()
    bench.open("c", NEWEST)
    first, second = bench.call(ident=1), bench.call(ident="1")
    third = bench.ask("tools/call", describe({"name": "add", "arguments": {"a": 1}}), ident=1)
    assert len(bench.watch.working) == 3
    for one in (third, first, second):
        bench.finish(one)
    assert [one.answer["id"] for one in (first, second, third)] == [1, "1", 1]


@pytest.mark.parametrize("again", ["tools/call", "ping"])
def test_an_id_in_use_is_refused_and_free_again_after_its_answer(again: str) -> None:
    bench = Bench()
    bench.open("c", NEWEST)
    first = bench.call(ident=0)
    assert bench.ask(again, PARAMS.get(again, {}), ident=0).error["code"] == -32600
    assert not first.ended
    bench.finish(first)
    assert "content" in first.result
    second = bench.ask(again, PARAMS.get(again, {}), ident=0)
    assert second.answer is None or second.result == {}


def test_anonymous_clients_may_use_the_same_id_at_once() -> None:
    bench = Bench()
    calls = [bench.call(connection=ANONYMOUS, ident=1) for _ in range(3)]
    bench.notify_cancelled(1, ANONYMOUS)
    for call in calls:
        bench.finish(call)
        assert call.result["content"] == [{"type": "text", "text": "done"}]


@pytest.mark.parametrize(
    "method", ["notifications/unknown", "tools/call", "ping", "notifications/roots/list_changed"]
)
def test_a_notification_is_never_answered(method: str) -> None:
    bench = Bench()
    bench.open("c", NEWEST)
    assert bench.send({"jsonrpc": "2.0", "method": method}).answer is None
    assert not bench.watch.working


@pytest.mark.parametrize(
    "message", [{"id": 1, "result": {}}, {"id": "x", "error": {"code": -1, "message": "no"}}]
)
def test_an_answer_to_nothing_changes_nothing(message: dict[str, Any]) -> None:
    bench = Bench()
    bench.open("c", NEWEST)
    assert bench.send({"jsonrpc": "2.0", **message}).answer is None
    assert len(bench.events("stray_response")) == 1


@pytest.mark.parametrize("revision", [None, *LEGACY])
def test_an_error_without_a_readable_id_has_null_where_the_schema_wants_one(revision: str | None) -> None:
    """Checklist §2.0: only established sessions up to 2025-06-18."""
    bench = Bench()
    bench.open("c", revision)
    for line in (b"{", b'{"jsonrpc":"2.0","id":null,"method":"ping"}'):
        answer = bench.send(line).answer
        if revision is not None and revision <= "2025-06-18":
            assert answer["id"] is None
        else:
            assert "id" not in answer
    assert bench.send(b'{"jsonrpc":"1.0","id":7,"method":"ping"}').answer["id"] == 7
    assert bench.send(b'{"jsonrpc":"2.0","method":5}').answer is None
    assert [one["reason"] for one in bench.events("malformed_message")]


@pytest.mark.parametrize("params", [b"[]", b'"x"', b"5"])
def test_params_that_are_no_object_are_refused_before_the_method_is_looked_at(params: bytes) -> None:
    bench = Bench()
    bench.open()
    line = b'{"jsonrpc":"2.0","id":1,"method":"no/such","params":' + params + b"}"
    assert bench.send(line).answer["error"]["code"] == -32602


def test_null_params_count_as_none() -> None:
    bench = Bench()
    bench.open("c", NEWEST)
    assert bench.send(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}').answer["result"] == {}


def test_what_is_wrong_with_metadata_is_said_of_metadata() -> None:
    bench = Bench()
    bench.open("c", NEWEST)
    error = bench.ask("ping", {"_meta": {"progressToken": []}}).error
    assert error["code"] == -32602
    assert error["message"].startswith("params._meta.progressToken ")
