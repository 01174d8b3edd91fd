"""What becomes of a call: run, refused, judged, busy, timed out (behaviour A7, B3, B6, E3-E5, F6)."""

from __future__ import annotations

from typing import Any

import pytest

from stanchion.machines.clients import ANONYMOUS
from stanchion.registry.authorizer import Allow, Ask, Deny, Principal
from stanchion.registry.errors import Fault
from stanchion.registry.features import Tool
from stanchion.server.errands import Policy
from stanchion.server.ports import (
    Authorize,
    Broke,
    Completed,
    Explained,
    ExplainUnknownTool,
    Judged,
    Killed,
    Missing,
    Outcome,
    ReadResource,
    Rejected,
    RunTool,
    Told,
)
from stanchion.wire.revisions import PROFILES
from tests.server import offered
from tests.server.bench import Bench, describe, never_told
from tests.server.watch import MODERN, NEWEST, Ticket

REVISIONS = sorted(PROFILES)
READ = "resources/read", {"uri": "file:///a"}


def opened(revision: str = NEWEST, **options: Any) -> Bench:
    bench = Bench(**options)
    bench.open("c", None if revision == MODERN else revision)
    return bench


def call(bench: Bench, revision: str, tool: str = "add", **arguments: Any) -> Ticket:
    params = {"name": tool, "arguments": arguments}
    return bench.ask("tools/call", describe(params) if revision == MODERN else params)


def block(result: dict[str, Any], revision: str) -> dict[str, Any]:
    """The machine-readable part of a refusal (B6), where the revision has it."""
    assert result["isError"] is True
    assert result["content"][0]["type"] == "text"
    if revision >= "2025-06-18":
        assert set(result.get("_meta", {})) <= {"io.modelcontextprotocol/serverInfo"}
        return result["structuredContent"]
    assert "structuredContent" not in result
    return result["_meta"]["stanchion/refusal"]


# -- run


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_call_is_answered_with_what_its_worker_reports(revision: str) -> None:
    bench = opened(revision)
    ticket = call(bench, revision, a=1)
    job = bench.job(ticket)
    assert isinstance(job.work, RunTool)
    assert job.work.arguments == {"a": 1}
    assert (job.isolation, job.facts.profile.revision) == ("thread", revision)
    assert ticket.answer is None
    bench.finish(ticket)
    assert ticket.result["content"] == [{"type": "text", "text": "done"}]
    bench.at_rest()


def test_facts_are_those_of_the_request() -> None:
    bench = Bench()
    who = Principal("p")
    bench.open("c", NEWEST, principal=who)
    ticket = bench.call(ident="7", _meta={"progressToken": 0, "traceparent": "00-1"})
    facts = bench.job(ticket).facts
    assert (facts.request_id, facts.principal, facts.transport, facts.connection) == ("7", who, "stdio", "c")
    assert facts.client_info == {"name": "t", "version": "0"}
    assert facts.wants_progress
    assert bytes(facts.meta or b"") == b'{"progressToken": 0, "traceparent": "00-1"}'


# -- F6, A7: what can't be run


@pytest.mark.parametrize("revision", REVISIONS)
def test_bad_arguments_are_told_to_the_model(revision: str) -> None:
    """F6: a result, in every revision; nothing runs."""
    bench = opened(revision)
    for arguments in ({"a": "secret"}, {}, {"a": 1, "c": 1}):
        result = call(bench, revision, **arguments).result
        assert result["isError"] is True
        assert "tool 'add'" in result["content"][0]["text"]
        assert "secret" not in result["content"][0]["text"]
    assert not bench.watch.working


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_unknown_tool_is_an_error_that_names_it(revision: str) -> None:
    error = call(opened(revision), revision, "nowhere").error
    assert (error["code"], error["data"]) == (-32602, {"tool": "nowhere"})


def explaining() -> Bench:
    bench = Bench(policy=Policy(unknown_tool_reply=never_told), callback_timeout=5, max_in_flight=1)
    bench.open("c", NEWEST)
    return bench


def test_the_program_may_say_what_became_of_a_tool() -> None:
    bench = explaining()
    ticket = bench.call("gone")
    work = bench.job(ticket).work
    assert isinstance(work, ExplainUnknownTool)
    assert work.name == "gone"
    bench.finish(ticket, Explained("That app was closed."))
    assert ticket.result == {"content": [{"type": "text", "text": "That app was closed."}], "isError": True}


@pytest.mark.parametrize("outcome", [Explained(None), Broke("r"), Killed(), None])
def test_whatever_else_comes_of_it_keeps_the_error(outcome: Outcome | None) -> None:
    """No text, an exception, a kill, a time-out (None)."""
    bench = explaining()
    ticket = bench.call("gone")
    if outcome is None:
        bench.tick(5)
        bench.finish(ticket, Killed())
    else:
        bench.finish(ticket, outcome)
    assert (ticket.error["code"], ticket.error["data"]) == (-32602, {"tool": "gone"})
    bench.at_rest()


def test_an_unknown_tool_on_a_full_server_is_not_an_internal_error() -> None:
    bench = explaining()
    bench.call("add")
    answer = bench.call("gone").answer
    assert (
        answer.get("error", {}).get("code") == -32602
        or answer["result"]["structuredContent"]["code"] == "busy"
    )


@pytest.mark.parametrize(
    ("revision", "code"), [(one, -32602 if one == MODERN else -32002) for one in REVISIONS]
)
def test_a_resource_that_is_not_there_has_the_code_of_its_revision(revision: str, code: int) -> None:
    """RS5: found or not before its callback ran."""
    bench = opened(revision)

    def read(uri: str) -> Ticket:
        params = {"uri": uri}
        return bench.ask("resources/read", describe(params) if revision == MODERN else params)

    early, late, odd = read("file:///none"), read("file:///a"), read("item:///x")
    bench.finish(late, Missing())
    bench.finish(odd, Rejected((Fault("key", "must be an integer"),)))
    for ticket, uri in ((early, "file:///none"), (late, "file:///a"), (odd, "item:///x")):
        assert (ticket.error["code"], ticket.error["data"]) == (code, {"uri": uri})


def test_a_template_s_variables_reach_its_callback() -> None:
    bench = opened()
    work = bench.job(bench.ask("resources/read", {"uri": "item:///42"})).work
    assert isinstance(work, ReadResource)
    assert work.variables == {"key": "42"}


@pytest.mark.parametrize(
    "params", [{"name": "none"}, {"name": "greet"}, {"name": "greet", "arguments": {"x": "1"}}]
)
def test_a_prompt_that_can_t_be_got_is_invalid(params: dict[str, Any]) -> None:
    """P4."""
    assert opened().ask("prompts/get", params).error["code"] == -32602


def test_an_argument_without_completer_has_no_values() -> None:
    """C6."""
    ref, argument = {"type": "ref/prompt", "name": "greet"}, {"name": "tone", "value": ""}
    result = opened().ask("completion/complete", {"ref": ref, "argument": argument}).result
    assert result == {"completion": {"values": [], "total": 0, "hasMore": False}}


# -- B3, B1, B6: who may


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_sensitive_tool_can_t_be_called_while_nobody_authorises(revision: str) -> None:
    bench = opened(revision)
    bench.registry.register_tools(
        [Tool.of(offered.wipe, destructive=True), Tool.of(offered.wipe, name="w", sensitive=True)]
    )
    for name in ("wipe", "w"):
        told = block(call(bench, revision, name).result, revision)
        assert (told["code"], told["tool"], told["detail"]) == (
            "authorization_required",
            name,
            "no authorizer configured",
        )
    assert not bench.watch.working


def guarded(revision: str = NEWEST, **options: Any) -> Bench:
    return opened(revision, registry=offered.registry(sensitive=True), guarded=True, **options)


def test_an_allowed_call_runs_in_the_slot_it_has() -> None:
    bench = guarded(max_in_flight=1)
    ticket = bench.call("wipe")
    work = bench.job(ticket).work
    assert isinstance(work, Authorize)
    assert (work.call.tool.name, work.call.connection, work.call.transport, work.call.revision) == (
        "wipe",
        "c",
        "stdio",
        NEWEST,
    )
    assert work.call.tool.destructive
    bench.finish(ticket, Judged(Allow()))
    assert isinstance(bench.job(ticket).work, RunTool)
    bench.finish(ticket)
    assert "isError" not in ticket.result
    bench.at_rest()


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_denial_is_told(revision: str) -> None:
    bench = guarded(revision)
    ticket = call(bench, revision, "add", a=1)
    bench.finish(ticket, Judged(Deny("not on Sundays")))
    told = block(ticket.result, revision)
    assert (told["code"], told["tool"], told["reason"]) == ("denied", "add", "not on Sundays")
    assert "not on Sundays" in ticket.result["content"][0]["text"]
    assert len(bench.events("call_denied")) == 1
    bench.at_rest()


def test_a_hidden_denial_looks_like_an_unknown_tool() -> None:
    bench = guarded()
    hidden, unknown = bench.call(ident=1), bench.call("nowhere", ident=2)
    bench.finish(hidden, Judged(Deny("secret", hide=True)))
    assert hidden.error["code"] == unknown.error["code"]
    assert hidden.error["message"] == unknown.error["message"].replace("nowhere", "add")
    assert hidden.error["data"] == {"tool": "add"}


@pytest.mark.parametrize("outcome", [Broke("ref-1"), Killed(), None])
def test_an_authorizer_that_fails_denies_and_tells_nothing(outcome: Outcome | None) -> None:
    """It raised, was killed, or timed out (None)."""
    bench = guarded(callback_timeout=3)
    ticket = bench.call()
    if outcome is None:
        bench.tick(3)
        assert bench.watch.working[ticket.ref].killed
        bench.finish(ticket, Judged(Allow()))
    else:
        bench.finish(ticket, outcome)
    assert block(ticket.result, NEWEST)["code"] == "denied"
    assert "ref-1" not in str(ticket.answer)
    bench.at_rest()


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_nobody_can_be_asked_about_needs_an_approval(revision: str) -> None:
    bench = guarded(revision)
    ticket = call(bench, revision, "add", a=1)
    bench.finish(ticket, Judged(Ask("Really?")))
    told = block(ticket.result, revision)
    assert (told["code"], told["detail"]) == ("authorization_required", "client cannot be asked")
    assert "Really?" not in str(ticket.answer)
    bench.at_rest()


def test_arguments_are_checked_before_the_authorizer_sees_them() -> None:
    bench = guarded()
    assert bench.call(arguments={"a": "x"}).result["isError"]
    assert not bench.watch.working


# -- what a callback may say


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Told("No such order"), "No such order"),
        (Broke("ref-1"), "Something went wrong inside tool 'add' (reference ref-1)."),
        (Rejected((Fault("a", "is odd"),)), "Invalid arguments for tool 'add':\n- a is odd"),
    ],
)
def test_a_tool_that_fails_is_a_result(outcome: Outcome, text: str) -> None:
    bench = opened()
    ticket = bench.call()
    bench.finish(ticket, outcome)
    assert ticket.result == {"content": [{"type": "text", "text": text}], "isError": True}


@pytest.mark.parametrize(
    ("outcome", "code"), [(Told("Closed today"), -32603), (Broke("r"), -32603), (Killed(), -32603)]
)
def test_anything_else_that_fails_is_an_error(outcome: Outcome, code: int) -> None:
    bench = opened()
    for method, params in (READ, ("prompts/get", {"name": "greet", "arguments": {"name": "x"}})):
        ticket = bench.ask(method, params)
        bench.finish(ticket, outcome)
        assert ticket.error["code"] == code


def test_a_refusal_of_a_tool_with_an_output_schema_keeps_its_block_out_of_the_structured_content() -> None:
    """Clients hold what stands there against the schema, even in an error."""
    bench = guarded()
    ticket = bench.call("sum")
    bench.finish(ticket, Judged(Deny("no")))
    assert "structuredContent" not in ticket.result
    assert ticket.result["_meta"]["stanchion/refusal"]["code"] == "denied"


def test_a_result_keeps_what_the_worker_made_of_it() -> None:
    bench = opened()
    ticket = bench.call("sum")
    fields = {"content": [], "structuredContent": {"sum": 3}, "_meta": {"example.test/x": 1}}
    bench.finish(ticket, Completed(dict(fields)))
    assert ticket.result == fields
    modern = bench.ask("tools/call", describe({"name": "sum"}))
    bench.finish(modern, Completed(dict(fields)))
    assert modern.result["_meta"].keys() == {"example.test/x", "io.modelcontextprotocol/serverInfo"}


def test_a_tool_without_a_worker_of_its_kind_is_unavailable() -> None:
    told = block(opened().call("apart").result, NEWEST)
    assert (told["code"], told["tool"]) == ("unavailable", "apart")


def test_the_anonymous_are_served() -> None:
    """A8."""
    bench = Bench()
    ticket = bench.call(connection=ANONYMOUS, _meta={"progressToken": 1})
    bench.progress(ticket, 1)
    bench.finish(ticket)
    assert ticket.result
    assert not ticket.notices
