"""How one job is carried out, whoever does it: the call, the rendering of what it returns, and all that can go wrong.

Owns the way from a ``Job`` to an ``Outcome``, and what is logged on it. Where and when that happens is the crews'.

Nothing that a callback does comes out of here but an outcome, and nothing that it raises is in the outcome but the texts
an author wrote for the model: the rest is logged under a reference (behaviour E5).
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import secrets
from collections.abc import Awaitable
from typing import Any, Final, assert_never

from stanchion.registry.authorizer import Allow, Ask, Deny, Verdict
from stanchion.registry.errors import InvalidArguments, ToolError, Unrenderable
from stanchion.registry.features import IsFault
from stanchion.registry.results import render_completion, render_prompt, render_resource, render_tool
from stanchion.registry.signature import is_async as gives_coroutine
from stanchion.server.asking import InputNeeded
from stanchion.server.context import CallContext, Context, SyncContext
from stanchion.server.ports import (
    Authorize,
    Broke,
    Clock,
    Complete,
    Completed,
    Explained,
    ExplainUnknownTool,
    Finished,
    GetPrompt,
    Job,
    Judged,
    Killed,
    Mailbox,
    Missing,
    NeedsInput,
    Outcome,
    ReadResource,
    Rejected,
    RunTool,
    Told,
    Unaskable,
    Value,
    Work,
)
from stanchion.server.questions import CannotAsk
from stanchion.wire.jsonrpc import Ref
from stanchion.wire.revisions import Profile
from stanchion.wire.seal import NONCE_BYTES
from stanchion.workers.failures import Log, note, trace_of, write_log
from stanchion.workers.injection import WorkerKilled

KILLED: Final = Killed()

PULSE: Final = 0.05
"""Seconds between two looks of a coroutine's own thread at whether it is to end."""

_Rendered = RunTool | ReadResource | GetPrompt | Complete
"""Work whose value is made into a result."""

_LOG: Final = logging.getLogger("stanchion.workers")


class LifespanFailed(Exception):
    """There is no lifespan to run a job in.

    Args:
        reference: Under which the log has the reason.
        cause: What it raised; None if the crew was closed.
    """

    def __init__(self, reference: str, cause: BaseException | None = None) -> None:
        super().__init__(f"the lifespan failed (reference {reference})")
        self.reference = reference
        self.__cause__ = cause


async def carry_out_async(
    job: Job, context: CallContext, max_result_bytes: int | None, log: Log | None = None
) -> Outcome:
    """Carry out a job on the running loop, awaiting what its callback returns.

    Args:
        job: What to do.
        context: For a callback that wants one. If it is ``cancelled``, the task's cancellation is the job's.
        max_result_bytes: Longest text of a tool's result; None for no limit.
        log: Takes what is to be logged; by default the log itself.

    Returns:
        What became of it. Raises nothing, unless the task is cancelled before its first step.
    """
    try:
        value = _call(job.work, context)
        if isinstance(value, Awaitable):
            value = await value
        return _outcome(job, value, max_result_bytes)
    except BaseException as error:  # noqa: BLE001 - whatever a callback raises ends here
        return _failed(error, job, context, log or write_log)


def carry_out_sync(
    job: Job, context: CallContext, max_result_bytes: int | None, log: Log | None = None
) -> Outcome:
    """Carry out a job on this thread.

    A callback registered as a coroutine function gets a loop of its own. A plain function that returns an awaitable all the
    same is at fault: nobody said that this is what it does.

    Args:
        job: What to do.
        context: For a callback that wants one.
        max_result_bytes: Longest text of a tool's result; None for no limit.
        log: Takes what is to be logged; by default the log itself.

    Returns:
        What became of it. Only a ``WorkerKilled`` that comes up late gets out.
    """
    log = log or write_log
    try:
        if is_async(job.work):
            with asyncio.Runner() as runner:
                return runner.run(_pulse(job, context, max_result_bytes, log))
        value = _call(job.work, context)
        if isinstance(value, Awaitable):
            _discard(value)
            raise Unrenderable(
                "It returned an awaitable, and nothing awaits it there: declare the function with async def."
            )
        return _outcome(job, value, max_result_bytes)
    except BaseException as error:  # noqa: BLE001 - as above
        return _failed(error, job, context, log)


async def _pulse(job: Job, context: CallContext, max_result_bytes: int | None, log: Log) -> Outcome:
    """Carry out a job on a loop of its thread's own, and see from time to time whether it is to end.

    A loop that waits for nothing but its callback would not notice: it stands in the system's call.
    """
    task = asyncio.ensure_future(carry_out_async(job, context, max_result_bytes, log))
    while not task.done():
        with contextlib.suppress(WorkerKilled):
            await asyncio.wait([task], timeout=PULSE)
            if context.cancelled:
                task.cancel()
    return task.result()


def make_context(job: Job, mailbox: Mailbox, clock: Clock, *, rate: float, lifespan: Any) -> CallContext:
    """The context for a job: the awaitable face for what runs as a task, the blocking one for the rest.

    Args:
        job: Whose it is.
        mailbox: Takes progress and log messages.
        clock: Seconds, for the limit.
        rate: Messages let through a second.
        lifespan: What the app's lifespan yielded.
    """
    face = Context if job.isolation == "task" or is_async(job.work) else SyncContext
    return face(job.ref, job.facts, mailbox, clock, rate=rate, lifespan=lifespan)


def is_async(work: Work) -> bool:
    """Whether the callback was registered as a coroutine function."""
    match work:
        case RunTool(tool):
            return tool.is_async
        case ReadResource(entry):
            return entry.is_async
        case GetPrompt(prompt):
            return prompt.is_async
        case Complete(completer):
            return completer.is_async
        case Authorize(authorizer):
            return gives_coroutine(authorizer)
        case ExplainUnknownTool(reply):
            return gives_coroutine(reply)
        case _:
            assert_never(work)


def deliver(mailbox: Mailbox, ref: Ref, outcome: Outcome, context: CallContext | None = None) -> None:
    """Make the one report on a job, after the progress that its context still holds."""
    try:
        if context is not None:
            context.flush()
    except Exception:  # noqa: BLE001 - an unheard progress must not keep the end from being heard
        _LOG.exception("the last progress of call %s could not be reported", ref)
    try:
        mailbox.post(Finished(ref, outcome))
    except Exception:  # noqa: BLE001 - a worker goes on also when the server does not
        _LOG.exception("the end of call %s could not be reported", ref)


def broken(error: BaseException, work: Work, log: Log) -> Broke:
    """Log what a job's callback raised; the outcome that says no more than the reference."""
    return Broke(note(f"{_subject(work)} failed", trace_of(error), log))


def log_failure(error: BaseException, what: str) -> str:
    """Log what other code of the user's raised, such as the lifespan. Returns the reference."""
    return note(f"{what} failed", trace_of(error), write_log)


# -- the call


def _call(work: Work, context: CallContext) -> object:
    """Call the callback; its value or its awaitable."""
    match work:
        case RunTool(tool, arguments):
            return tool.call(arguments, context)
        case ReadResource(entry, _, variables):
            return entry.call(dict(variables), context)
        case GetPrompt(prompt, texts):
            return prompt.call(dict(texts), context)
        case Complete(completer, value, settled):
            return completer.call(value, settled, context)
        case Authorize(authorizer, call):
            return authorizer(call)
        case ExplainUnknownTool(reply, name):
            return reply(name)
        case _:
            assert_never(work)


def _outcome(job: Job, value: object, max_result_bytes: int | None) -> Outcome:
    """What a callback's value means for its job."""
    work = job.work
    match work:
        case Authorize():
            return Judged(_verdict(value))
        case ExplainUnknownTool():
            return Explained(_sendable(value) if isinstance(value, str) else None)
        case ReadResource() if value is None:
            return Missing()
        case _:
            if job.raw:
                return Value(value)
            try:
                return Completed(_fields(work, value, job.facts.profile, max_result_bytes))
            except Unrenderable:
                _discard(value)
                raise


def _fields(
    work: _Rendered, value: object, profile: Profile, max_result_bytes: int | None
) -> dict[str, object]:
    """The result as the protocol has it. Runs serialisers that users wrote."""
    match work:
        case RunTool(tool):
            made = render_tool(value, tool, profile, max_result_bytes)
            fields: dict[str, object] = {"content": made.content}
            if made.structured is not None:
                fields["structuredContent"] = made.structured
            if made.is_error:
                fields["isError"] = True
            if made.meta:
                fields["_meta"] = made.meta
            return fields
        case ReadResource(entry, uri):
            return {"contents": render_resource(value, uri, entry.mime_type, profile)}
        case GetPrompt(prompt):
            described = {} if prompt.description is None else {"description": prompt.description}
            return {**described, "messages": render_prompt(value, profile)}
        case Complete():
            return {"completion": render_completion(value)}
        case _:
            assert_never(work)


def _verdict(value: object) -> Verdict:
    match value:
        case Allow():
            return value
        case Deny(reason=str(reason), hide=bool(hide)):
            return Deny(_sendable(reason), hide)
        case Ask(prompt=str(prompt)):
            return Ask(_sendable(prompt))
        case _:
            raise Unrenderable("An authorizer returns allow(), deny(reason) or ask(prompt).")


def _sendable(text: str) -> str:
    """A text that can be encoded: a plain ``str`` without lone surrogates, which whoever answers must not trip over."""
    return str.encode(text, "utf-8", "replace").decode()


def _discard(value: object) -> None:
    """Let go of a coroutine that nobody will await, without a warning about what is in the log already."""
    if inspect.iscoroutine(value):
        value.close()


# -- what went wrong


def _failed(error: BaseException, job: Job, context: CallContext, log: Log) -> Outcome:
    """What a raised exception means for its job."""
    try:
        if context.cancelled and isinstance(error, asyncio.CancelledError | WorkerKilled | GeneratorExit):
            return KILLED
        if isinstance(error, InputNeeded):
            return NeedsInput(error.requests, error.kept, secrets.token_bytes(NONCE_BYTES))
        if isinstance(error, CannotAsk):
            return Unaskable(error.required, _sendable(error.text))
        if not isinstance(job.work, Authorize | ExplainUnknownTool):
            if isinstance(error, ToolError):
                return _told(error, _is_fault_of(job.work), log)
            if isinstance(error, InvalidArguments):
                return Rejected(error.faults)
        if isinstance(error, Unrenderable):
            return Broke(note(f"{_subject(job.work)} returned what cannot be sent", str(error), log))
    except BaseException as second:  # noqa: BLE001 - exotic exceptions raise when they are looked at
        error = second
    return broken(error, job.work, log)


def _is_fault_of(work: _Rendered) -> IsFault | None:
    match work:
        case RunTool(tool):
            return tool.is_fault
        case ReadResource(entry):
            return entry.is_fault
        case GetPrompt(prompt):
            return prompt.is_fault
        case Complete(completer):
            return completer.is_fault
        case _:
            assert_never(work)


def _told(error: ToolError, is_fault: IsFault | None, log: Log) -> Told:
    """The author's words, and whether they speak of a failure that the breaker should count (behaviour F2)."""
    # A subclass may have left it out, or put something else there.
    text: object = getattr(error, "text", None)
    if not isinstance(text, str):
        text = str(error)
    fault = True
    if is_fault is not None:
        try:
            fault = bool(is_fault(error))
        except BaseException as second:  # noqa: BLE001 - then the error counts
            note("is_fault failed", trace_of(second), log)
    return Told(_sendable(text), fault)


def _subject(work: Work) -> str:
    """What the log calls a callback: by what its author registered, never by what a client sent."""
    match work:
        case RunTool(tool):
            return f"tool {tool.name!r}"
        case ReadResource(entry):
            return f"resource {entry.name!r}"
        case GetPrompt(prompt):
            return f"prompt {prompt.name!r}"
        case Complete(completer):
            return f"completion of {completer.argument!r} of {completer.name!r}"
        case Authorize(_, call):
            return f"the authorizer (tool {call.tool.name!r})"
        case ExplainUnknownTool():
            return "unknown_tool_reply"
        case _:
            assert_never(work)
