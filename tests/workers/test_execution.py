from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass

import msgspec
import pytest

from stanchion.registry.authorizer import Allow, Ask, Deny, ToolCall, allow, ask, deny
from stanchion.registry.content import ToolResult
from stanchion.registry.errors import Fault, InvalidArguments, ToolError
from stanchion.registry.features import Completer, Prompt, Resource, Template, Tool
from stanchion.server.context import Context, SyncContext
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
    Missing,
    Outcome,
    Progressed,
    ReadResource,
    Rejected,
    RunTool,
    Told,
    Value,
)
from stanchion.workers.execution import deliver, make_context
from tests.workers.carrying import both, context_for, fields_of, raising, raising_with_argument, sync, task
from tests.workers.letterbox import Letterbox, make_job


@dataclass
class Even:
    n: int

    def __post_init__(self) -> None:
        if self.n % 2:
            raise ValueError("must be even")


SECRET = "hunter2"


# -- results


def test_a_tool_result_has_only_the_parts_there_are() -> None:
    for outcome in both(lambda: "hello"):
        assert fields_of(outcome) == {"content": [{"type": "text", "text": "hello"}]}


def test_content_is_encoded_by_the_worker() -> None:
    outcome = sync(make_job(lambda: "hello"))
    assert isinstance(outcome, Completed)
    assert isinstance(outcome.fields["content"], msgspec.Raw)


def test_a_whole_result_keeps_all_its_parts() -> None:
    whole = ToolResult(content=["no"], structured={"n": 1}, is_error=True, meta={"a": 1})
    for outcome in both(lambda: whole):
        fields = fields_of(outcome)
        assert fields["isError"] is True
        assert fields["structuredContent"] == {"n": 1}
        assert fields["_meta"] == {"a": 1}


def test_raw_hands_the_value_back_as_it_is() -> None:
    value = object()
    assert sync(make_job(lambda: value, raw=True)) == Value(value)


def test_a_resource_prompt_and_completion_are_rendered() -> None:
    resource = Resource.of(lambda: "text", uri="a://b", name="b")
    assert fields_of(sync(make_job(ReadResource(resource, "a://b", {}))))["contents"][0]["text"] == "text"

    def page(page: int) -> str:
        return f"page {page + 1}"

    template = Template.of(page, uri_template="a://p/{page}", name="p")
    read = fields_of(sync(make_job(ReadResource(template, "a://p/4", {"page": "4"}))))
    assert read["contents"][0]["text"] == "page 5"
    assert read["contents"][0]["uri"] == "a://p/4"

    def greet(name: str) -> str:
        """Says hello."""
        return f"hello {name}"

    prompt = fields_of(sync(make_job(GetPrompt(Prompt.of(greet), {"name": "you"}))))
    assert prompt["description"] == "Says hello."
    assert prompt["messages"][0]["content"]["text"] == "hello you"
    bare = fields_of(sync(make_job(GetPrompt(Prompt.of(lambda: "x", name="x"), {}))))
    assert "description" not in bare

    completer = Completer.of(lambda value: [value + "a"], kind="prompt", name="greet", argument="name")
    assert fields_of(sync(make_job(Complete(completer, "x", {}))))["completion"]["values"] == ["xa"]


@pytest.mark.parametrize("raw", [False, True])
def test_a_resource_that_returns_none_is_not_there(raw) -> None:
    resource = Resource.of(lambda: None, uri="a://b", name="b")
    assert sync(make_job(ReadResource(resource, "a://b", {}), raw=raw)) == Missing()


def test_a_callback_gets_the_face_it_can_use() -> None:
    def plain(context: SyncContext) -> str:
        return type(context).__name__

    async def coroutine(context: Context) -> str:
        return type(context).__name__

    assert sync(make_job(plain, raw=True)) == Value("SyncContext")
    assert task(make_job(coroutine, raw=True)) == Value("Context")
    assert sync(make_job(coroutine, "thread", raw=True)) == Value("Context")


# -- judging and explaining


def judge(authorizer) -> Outcome:
    call = ToolCall(tool=Tool.of(lambda: "x", name="x"))
    return sync(make_job(Authorize(authorizer, call)))


def test_a_verdict_is_passed_on() -> None:
    assert judge(lambda _: allow()) == Judged(Allow())
    assert judge(lambda _: deny("no", hide=True)) == Judged(Deny("no", True))
    assert judge(lambda _: ask("sure?")) == Judged(Ask("sure?"))


def test_an_async_authorizer_is_awaited() -> None:
    async def authorizer(call):
        await asyncio.sleep(0)
        return allow()

    assert judge(authorizer) == Judged(Allow())
    assert judge(functools.partial(authorizer)) == Judged(Allow())
    call = ToolCall(tool=Tool.of(lambda: "x", name="x"))
    assert task(make_job(Authorize(authorizer, call), "task")) == Judged(Allow())


@pytest.mark.parametrize("word", [None, True, "allow", Deny(5), Ask(None), Deny("x", hide=1), Allow])  # type: ignore[arg-type]
def test_what_is_no_verdict_is_a_fault(word, caplog) -> None:
    assert isinstance(judge(lambda _: word), Broke)
    assert "the authorizer (tool 'x')" in caplog.text


@pytest.mark.parametrize("error", [ValueError(SECRET), ToolError("no"), InvalidArguments([Fault("a", "b")])])
def test_an_authorizer_that_raises_is_a_fault_whatever_it_raises(error) -> None:
    assert isinstance(judge(raising_with_argument(error)), Broke)


def explain(reply) -> Outcome:
    return sync(make_job(ExplainUnknownTool(reply, "gone")))


def test_the_word_about_an_unknown_tool_is_a_text_or_nothing() -> None:
    assert explain(lambda name: f"{name} has stopped") == Explained("gone has stopped")
    assert explain(lambda _: None) == Explained(None)
    assert explain(lambda _: 7) == Explained(None)
    assert isinstance(explain(raising_with_argument(ToolError("no"))), Broke)


def test_texts_for_the_protocol_loop_can_be_encoded() -> None:
    class Loud(str):
        __slots__ = ()

        def encode(self, *_):
            raise RuntimeError

    assert explain(lambda _: "a\ud800b") == Explained("a?b")
    explained = explain(lambda _: Loud("hey"))
    assert isinstance(explained, Explained)
    assert type(explained.text) is str
    assert judge(lambda _: deny("\udfff")) == Judged(Deny("?"))
    assert sync(make_job(raising(ToolError("\ud800")))) == Told("?", True)


# -- what an author says on purpose


def test_a_tool_error_is_told() -> None:
    for outcome in both(raising(ToolError("no such order"))):
        assert outcome == Told("no such order", True)


@pytest.mark.parametrize(("verdict", "fault"), [(True, True), (False, False), (0, False), ("yes", True)])
def test_is_fault_decides(verdict, fault) -> None:
    tool = Tool.of(raising(ToolError("x")), is_fault=lambda _: verdict)
    assert sync(make_job(RunTool(tool, {}))) == Told("x", fault)


@pytest.mark.parametrize("error", [ValueError(SECRET), SystemExit(), asyncio.CancelledError()])
def test_an_is_fault_that_raises_counts(error, caplog) -> None:
    tool = Tool.of(raising(ToolError("x")), is_fault=raising_with_argument(error))
    assert sync(make_job(RunTool(tool, {}))) == Told("x", True)
    assert "is_fault failed" in caplog.text


def test_a_tool_error_made_badly_is_still_told() -> None:
    class Bare(ToolError):
        def __init__(self) -> None:
            Exception.__init__(self, "bare")

    assert sync(make_job(raising(Bare()))) == Told("bare", True)
    assert sync(make_job(raising(ToolError(5)))) == Told("5", True)  # type: ignore[arg-type]


def test_arguments_that_do_not_fit_the_types_are_rejected() -> None:
    def halve(even: Even) -> int:
        return even.n // 2

    outcome = sync(make_job(halve, arguments={"even": {"n": 3}}))
    assert isinstance(outcome, Rejected)
    assert outcome.faults


# -- reporting


def test_the_last_progress_comes_before_the_end() -> None:
    box = Letterbox()
    job = make_job(lambda: "x", wants_progress=True)
    context = make_context(job, box, lambda: 0.0, rate=1.0, lifespan=None)
    assert isinstance(context, SyncContext)
    for step in range(1, 6):
        context.progress(step)
    deliver(box, job.ref, Killed(), context)
    assert [type(report).__name__ for report in box.reports] == ["Progressed", "Progressed", "Finished"]
    assert box.reports[1] == Progressed(job.ref, 5)


def test_a_mailbox_that_raises_does_not_end_the_worker(caplog) -> None:
    class Full:
        def post(self, report):
            raise RuntimeError("full")

    job = make_job(lambda: "x", wants_progress=True)
    deliver(Full(), job.ref, Killed(), context_for(job))
    assert "could not be reported" in caplog.text
