"""What the kernel's shell needs of the outside, and what the outside must keep to.

Owns the protocols by which transports, workers and stores meet the server, and the values that cross: a ``Job`` goes to a
crew, an ``Outcome`` comes back. Nothing here does anything.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol

from msgspec import Raw, Struct

from stanchion.registry.authorizer import Authorizer, Principal, ToolCall, Verdict
from stanchion.registry.errors import Fault
from stanchion.registry.features import Completer, Prompt, Resource, Template, Tool
from stanchion.server.config import Config
from stanchion.wire.jsonrpc import Id, Outbound, Ref
from stanchion.wire.model import JsonObject, LogLevel
from stanchion.wire.revisions import Profile

Clock = Callable[[], float]
"""Seconds on a clock that never goes back."""

Channel = Callable[[Outbound], None]
"""Takes one message for a connection. Called from the protocol loop; must not block; raising closes the connection."""

Outlet = Callable[[Outbound, Ref | None], None]
"""A channel for transports that have several streams: is told which request a message belongs to, if any."""

Observer = Callable[[str, Mapping[str, object]], None]
"""Is told of events (name, fields). Runs off the protocol loop; one that raises is dropped."""

Isolation = Literal["task", "thread", "process", "inline"]
UnknownToolReply = Callable[[str], str | None]


class Kept(Struct):
    """What travels with the client from one round of a request to the next, sealed (2026-07-28)."""

    answers: dict[str, JsonObject] = {}
    """By the keys of the questions."""
    once: dict[str, Any] = {}
    """Results of effects that were done, by their keys."""


class Facts(Struct, frozen=True, kw_only=True):
    """What a callback may know about the request it serves."""

    request_id: Id | None
    """The client's id; None for a call that the embedding program made."""
    profile: Profile
    principal: Principal | None = None
    transport: str = "unknown"
    connection: Hashable | None = None
    client_info: JsonObject | None = None
    meta: Raw | None = None
    """``params._meta`` as the client sent it."""
    wants_progress: bool = False
    abilities: JsonObject | None = None
    """What the client declared that it can do; None if nothing is known, or it has no channel."""
    kept: Kept | None = None
    """What earlier rounds of this request left (2026-07-28)."""
    log_floor: int = 0
    """Index in ``LOG_LEVELS`` below which log messages are not wanted; past its end, none are."""


class RunTool(Struct, frozen=True):
    """Call a tool and render its result. The arguments have passed its schema."""

    tool: Tool
    arguments: JsonObject


class ReadResource(Struct, frozen=True):
    """Read a resource, or what a template makes of the variables."""

    entry: Resource | Template
    uri: str
    variables: Mapping[str, str]


class GetPrompt(Struct, frozen=True):
    """Render a prompt."""

    prompt: Prompt
    arguments: JsonObject


class Complete(Struct, frozen=True):
    """Suggest values for an argument."""

    completer: Completer
    value: str
    context: dict[str, str]


class Authorize(Struct, frozen=True):
    """Have the user's authorizer judge a call."""

    authorizer: Authorizer
    call: ToolCall


class ExplainUnknownTool(Struct, frozen=True):
    """Have the program say what became of a tool (behaviour A7)."""

    reply: UnknownToolReply
    name: str


Work = RunTool | ReadResource | GetPrompt | Complete | Authorize | ExplainUnknownTool


class Job(Struct, frozen=True):
    """One callback to run."""

    ref: Ref
    work: Work
    facts: Facts
    isolation: Isolation
    raw: bool = False
    """Hand the callback's value back as it is (``Value``) instead of rendering it: the embedding program asked."""


class Completed(Struct, frozen=True):
    """The callback returned; *fields* are its result as the protocol has it, with costly parts encoded already."""

    fields: dict[str, object]


class Value(Struct, frozen=True):
    """The callback returned *value*, wanted as it is."""

    value: object


class Missing(Struct, frozen=True):
    """A resource callback returned None: there is nothing at that URI."""


class Judged(Struct, frozen=True):
    """The authorizer's word."""

    verdict: Verdict


class Explained(Struct, frozen=True):
    """What became of an unknown tool, or None."""

    text: str | None


class NeedsInput(Struct, frozen=True):
    """The callback has questions that the client must answer before it can go on (2026-07-28)."""

    requests: dict[str, JsonObject]
    kept: bytes
    """To be sealed, and given back with the answers."""
    nonce: bytes
    """Random, for the sealing."""


class Unaskable(Struct, frozen=True):
    """The callback wants to ask what the client did not declare it can be asked."""

    required: JsonObject
    text: str


class Told(Struct, frozen=True):
    """The author's own words for the model (``ToolError``)."""

    text: str
    fault: bool = False


class Rejected(Struct, frozen=True):
    """The arguments could not be made into what the callback takes."""

    faults: tuple[Fault, ...]


class Broke(Struct, frozen=True):
    """The callback raised something, or returned what can't be sent. The log has the rest under *reference*."""

    reference: str


class Killed(Struct, frozen=True):
    """The work ended because it was told to."""


Outcome = (
    Completed
    | Value
    | Missing
    | Judged
    | Explained
    | NeedsInput
    | Unaskable
    | Told
    | Rejected
    | Broke
    | Killed
)


class Finished(Struct, frozen=True):
    """The one report on a job. After it, nothing of the job runs any more."""

    ref: Ref
    outcome: Outcome


class Progressed(Struct, frozen=True):
    """A callback got further."""

    ref: Ref
    progress: float
    total: float | None = None
    message: str | None = None


class Logged(Struct, frozen=True):
    """A callback said something for the client's log."""

    ref: Ref
    level: LogLevel
    data: object
    """Something that encodes to JSON; made sure of before it is posted."""
    logger: str | None = None


class Said(Struct, frozen=True):
    """A client's answer to a question."""

    result: Raw


class Unsaid(Struct, frozen=True):
    """A question got no answer."""

    why: str


class Questioned(Struct, frozen=True):
    """A callback asks its client something, and waits (handshake revisions)."""

    ref: Ref
    id: str
    """The request's id; unguessable."""
    method: str
    params: Raw
    deliver: Callable[[str, Said | Unsaid], None]
    """Takes the id and the answer; must not block."""


class LoopStalled(Struct, frozen=True):
    """A callback loop stood still for *seconds* and was replaced."""

    seconds: float


Report = Finished | Progressed | Logged | Questioned | LoopStalled


class Mailbox(Protocol):
    """Where workers put their reports."""

    def post(self, report: Report) -> None:
        """Hand over one report, from any thread. Reports of one call arrive in the order of posting."""


class Crew(Protocol):
    """Runs jobs of one isolation.

    Obligations: each job started is reported by ``Finished`` exactly once, when and only when it has really ended, also
    after ``kill``; nothing raised by user code gets past the crew; no method blocks.
    """

    def start(self, jobs: Sequence[Job]) -> None:
        """Begin the jobs. Called from the protocol loop."""

    def kill(self, refs: Sequence[Ref]) -> None:
        """Make these jobs end as soon as the isolation allows; unknown refs are ignored."""

    def close(self) -> None:
        """Kill what runs and let every thread go. May be called twice, and from any thread."""


Lifespan = Callable[[], AbstractAsyncContextManager[Any]]
"""Opened on each callback loop before its first callback, closed after its last."""

CrewFactory = Callable[[Mailbox, Config, Lifespan | None, Clock], Mapping[Isolation, Crew]]
"""Makes the crews; called on the protocol loop."""
