from __future__ import annotations

import asyncio
import functools
import logging
import re
import threading
import time
from dataclasses import dataclass
from typing import Any

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
    Job,
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
from stanchion.workers import execution
from stanchion.workers.execution import carry_out_async, carry_out_sync, deliver, make_context
from tests.workers.letterbox import Letterbox, make_job

SECRET = "hunter2"


@dataclass
class Even:
    n: int

    def __post_init__(self) -> None:
        if self.n % 2:
            raise ValueError("must be even")


def context_for(job: Job) -> Any:
    return make_context(job, Letterbox(), time.monotonic, rate=50.0, lifespan=None)


def sync(job: Job, limit: int | None = None) -> Outcome:
    return carry_out_sync(job, context_for(job), limit)


def task(job: Job, limit: int | None = None) -> Outcome:
    return asyncio.run(carry_out_async(job, context_for(job), limit))


def as_coroutine(function):
    async def tool():
        return function()

    return tool


def both(function) -> list[Outcome]:
    """The function's outcome in a thread and, as a coroutine, on a loop."""
    return [sync(make_job(function)), task(make_job(as_coroutine(function)))]


def fields_of(outcome: Outcome) -> dict[str, Any]:
    """A result as a client reads it."""
    assert isinstance(outcome, Completed)
    return msgspec.json.decode(msgspec.json.encode(outcome.fields))


def raising(error: BaseException):
    def tool():
        raise error

    return tool


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
    assert judge(lambda call: allow()) == Judged(Allow())
    assert judge(lambda call: deny("no", hide=True)) == Judged(Deny("no", True))
    assert judge(lambda call: ask("sure?")) == Judged(Ask("sure?"))


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
    assert isinstance(judge(lambda call: word), Broke)
    assert "the authorizer (tool 'x')" in caplog.text


@pytest.mark.parametrize("error", [ValueError(SECRET), ToolError("no"), InvalidArguments([Fault("a", "b")])])
def test_an_authorizer_that_raises_is_a_fault_whatever_it_raises(error) -> None:
    assert isinstance(judge(raising_with_argument(error)), Broke)


def raising_with_argument(error: BaseException):
    def function(argument):
        raise error

    return function


def explain(reply) -> Outcome:
    return sync(make_job(ExplainUnknownTool(reply, "gone")))


def test_the_word_about_an_unknown_tool_is_a_text_or_nothing() -> None:
    assert explain(lambda name: f"{name} has stopped") == Explained("gone has stopped")
    assert explain(lambda name: None) == Explained(None)
    assert explain(lambda name: 7) == Explained(None)
    assert isinstance(explain(raising_with_argument(ToolError("no"))), Broke)


def test_texts_for_the_protocol_loop_can_be_encoded() -> None:
    class Loud(str):
        def encode(self, *_):
            raise RuntimeError

    assert explain(lambda name: "a\ud800b") == Explained("a?b")
    explained = explain(lambda name: Loud("hey"))
    assert isinstance(explained, Explained)
    assert type(explained.text) is str
    assert judge(lambda call: deny("\udfff")) == Judged(Deny("?"))
    assert sync(make_job(raising(ToolError("\ud800")))) == Told("?", True)


# -- what an author says on purpose


def test_a_tool_error_is_told() -> None:
    for outcome in both(raising(ToolError("no such order"))):
        assert outcome == Told("no such order", True)


@pytest.mark.parametrize(("verdict", "fault"), [(True, True), (False, False), (0, False), ("yes", True)])
def test_is_fault_decides(verdict, fault) -> None:
    tool = Tool.of(raising(ToolError("x")), is_fault=lambda error: verdict)
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


# -- what goes wrong


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError(SECRET)

    __repr__ = __str__


class Hostile(Exception):
    @property
    def __class__(self):
        raise KeyError(SECRET)

    @property
    def __cause__(self):
        raise KeyError(SECRET)

    def __getattribute__(self, name):
        raise KeyError(SECRET)


EXOTIC = {
    "ValueError": lambda: ValueError(SECRET),
    "SystemExit": lambda: SystemExit(SECRET),
    "KeyboardInterrupt": lambda: KeyboardInterrupt(SECRET),
    "GeneratorExit": lambda: GeneratorExit(SECRET),
    "CancelledError": lambda: asyncio.CancelledError(SECRET),
    "ExceptionGroup": lambda: ExceptionGroup(SECRET, [ValueError(SECRET), ToolError(SECRET)]),
    "BaseExceptionGroup": lambda: BaseExceptionGroup(SECRET, [SystemExit(SECRET)]),
    "StopIteration": lambda: StopIteration(SECRET),
    "StopAsyncIteration": lambda: StopAsyncIteration(SECRET),
    "RecursionError": lambda: RecursionError(SECRET),
    "MemoryError": lambda: MemoryError(SECRET),
    "BaseException": lambda: BaseException(SECRET),
    "mute": lambda: Mute(SECRET),
    "hostile": lambda: Hostile(SECRET),
}


@pytest.mark.parametrize("kind", EXOTIC)
def test_whatever_is_raised_is_logged_and_not_told(kind, caplog) -> None:
    def tool():
        raise EXOTIC[kind]()

    for outcome in both(tool):
        assert isinstance(outcome, Broke)
        assert re.fullmatch(r"[0-9a-f]{8}", outcome.reference)
        assert outcome.reference in caplog.text
        assert SECRET not in repr(outcome)
    assert {record.name for record in caplog.records} == {"stanchion.callbacks"}


def test_the_log_has_the_traceback_and_the_name(caplog) -> None:
    def cancel_order():
        raise ValueError("the reason")

    sync(make_job(cancel_order))
    assert "tool 'cancel_order'" in caplog.text
    assert "the reason" in caplog.text
    assert "in cancel_order" in caplog.text


def test_a_runaway_recursion_is_contained() -> None:
    def tool():
        return tool()

    for outcome in both(tool):
        assert isinstance(outcome, Broke)


def test_a_long_traceback_is_cut(caplog) -> None:
    assert isinstance(sync(make_job(raising(ValueError("x" * 10_000_000)))), Broke)
    assert len(caplog.text) < 2 * execution.MAX_TRACE


def test_an_exception_that_can_not_be_shown_is_logged_by_its_class(caplog, monkeypatch) -> None:
    monkeypatch.setattr("traceback.format_exception", raising_with_argument(SystemExit()))
    assert isinstance(sync(make_job(raising(ValueError(SECRET)))), Broke)
    assert "ValueError, which raised SystemExit" in caplog.text


def test_a_log_handler_that_raises_changes_nothing() -> None:
    class Raises(logging.Handler):
        def handle(self, record):
            raise RuntimeError

    handler = Raises()
    logging.getLogger("stanchion.callbacks").addHandler(handler)
    try:
        assert isinstance(sync(make_job(raising(ValueError()))), Broke)
    finally:
        logging.getLogger("stanchion.callbacks").removeHandler(handler)


async def stream():
    yield 1


async def coroutine():
    return 1


UNSENDABLE = {
    "object": object,
    "generator": lambda: (n for n in range(3)),
    "async generator": stream,
    "coroutine": coroutine,
    "lock": threading.Lock,
}


@pytest.mark.parametrize("kind", UNSENDABLE)
def test_what_can_not_be_sent_is_a_fault(kind, caplog) -> None:
    async def tool():
        return UNSENDABLE[kind]()

    assert isinstance(task(make_job(tool)), Broke)
    assert "returned what cannot be sent" in caplog.text


def test_a_value_that_raises_when_it_is_written_tells_nothing() -> None:
    class Settings(dict):
        def items(self):
            raise KeyError(SECRET)

        __iter__ = keys = __len__ = items

    outcome = sync(make_job(lambda: Settings(a=1)))
    assert SECRET not in repr(outcome)


# -- awaiting


def test_a_plain_function_that_returns_an_awaitable_is_at_fault(caplog) -> None:
    ran = []

    async def inner() -> str:
        ran.append(1)
        return "x"

    assert isinstance(sync(make_job(lambda: inner())), Broke)  # noqa: PLW0108
    assert "declare the function with async def" in caplog.text
    assert not ran


def test_on_a_loop_an_awaitable_is_awaited_however_it_came_about() -> None:
    async def inner() -> str:
        return "x"

    assert task(make_job(lambda: inner(), "task", raw=True)) == Value("x")  # noqa: PLW0108


def test_a_coroutine_function_in_a_thread_gets_a_loop() -> None:
    async def tool() -> str:
        await asyncio.sleep(0)
        return "x"

    assert sync(make_job(tool, "thread", raw=True)) == Value("x")


# -- cancellation


@pytest.mark.parametrize("told", [True, False])
def test_a_cancellation_is_a_kill_only_if_it_was_ordered(told) -> None:
    async def main() -> Outcome:
        started = asyncio.Event()

        async def tool():
            started.set()
            await asyncio.Event().wait()

        job = make_job(tool)
        context = context_for(job)
        running = asyncio.create_task(carry_out_async(job, context, None))
        await started.wait()
        if told:
            context.mark_cancelled()
        running.cancel()
        return await running

    assert isinstance(asyncio.run(main()), Killed if told else Broke)


def test_work_that_returns_in_spite_of_its_cancellation_has_returned() -> None:
    async def main() -> Outcome:
        started = asyncio.Event()

        async def tool() -> str:
            try:
                started.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return "saved"
            return "never"

        job = make_job(tool, raw=True)
        context = context_for(job)
        running = asyncio.create_task(carry_out_async(job, context, None))
        await started.wait()
        context.mark_cancelled()
        running.cancel()
        return await running

    assert asyncio.run(main()) == Value("saved")


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
