"""How a refusal looks: readable text for the model, and a block for programs (behaviour B6, E3, E4).

Owns the texts and the block's shape. For ``tools/call`` a refusal is an ordinary result with ``isError``; elsewhere it is a
-32603 with the block as ``data``.
"""

from __future__ import annotations

from typing import Final, Literal, assert_never

from msgspec import Struct

from stanchion.machines.admission import Busy
from stanchion.server.ports import (
    Authorize,
    Complete,
    ExplainUnknownTool,
    GetPrompt,
    ReadResource,
    RunTool,
    Work,
)
from stanchion.wire.errors import McpError, Refused
from stanchion.wire.model import TextContent
from stanchion.wire.revisions import Profile

BLOCK: Final = "stanchion/refusal"
"""The ``_meta`` key of the block, where it can't be ``structuredContent``."""

Code = Literal["denied", "authorization_required", "busy", "unavailable", "timed_out", "killed"]


class Refusal(Struct, frozen=True):
    """Why a request was not carried out."""

    code: Code
    text: str
    """For a person, or a model."""
    fields: dict[str, object]
    """What the block says beside its code."""

    def block(self, subject: dict[str, object]) -> dict[str, object]:
        """The machine-readable form; *subject* names what was refused."""
        return {"code": self.code, **subject, **self.fields}

    def result(self, tool: str, profile: Profile, *, typed: bool) -> dict[str, object]:
        """The answer to a ``tools/call``.

        Args:
            tool: The tool's name.
            profile: The revision of the call.
            typed: Whether this client was told an output schema for the tool. Real clients hold ``structuredContent``
                against it even in an error, and would show a schema violation in place of the text: the block then goes
                to ``_meta``.
        """
        block = self.block({"tool": tool})
        fields: dict[str, object] = {"content": [TextContent(text=self.text)], "isError": True}
        if profile.structured != "none" and not typed:
            fields["structuredContent"] = block
        else:
            fields["_meta"] = {BLOCK: block}
        return fields

    def error(self) -> McpError:
        """The answer to any other request."""
        return Refused(self.text, self.block({}))


def busy(reason: Busy, retry_after: float) -> Refusal:
    """No slot is free (E3)."""
    whose = (
        "this client's share of the server is in use"
        if reason.scope == "share"
        else "the server is fully in use"
    )
    fields: dict[str, object] = {"scope": reason.scope, "limit": reason.limit, "retry_after": retry_after}
    return Refusal("busy", f"Busy: {whose} ({reason.limit} at once). Try again in {retry_after:g} s.", fields)


def timed_out(seconds: float) -> Refusal:
    """The callback ran longer than it may (E4)."""
    return Refusal("timed_out", f"Timed out after {seconds:g} s; the work was stopped.", {"timeout": seconds})


def killed() -> Refusal:
    """The work was ended from outside."""
    return Refusal("killed", "The work was stopped before it was done.", {})


def no_worker(isolation: str) -> Refusal:
    """There are no workers of the kind that the callback asks for."""
    reason = f"no worker of kind {isolation!r} here"
    return Refusal("unavailable", f"Unavailable: {reason}.", {"reason": reason})


def denied(reason: str) -> Refusal:
    """The authorizer said no (B6)."""
    text = f"Denied: {reason}" if reason else "Denied."
    return Refusal("denied", text, {"reason": reason or "denied by policy"})


def authorization_required(detail: str) -> Refusal:
    """What was to be asked was not approved (B6)."""
    return Refusal(
        "authorization_required",
        f"Not run: this call needs an approval ({detail}).",
        {"reason": "authorization required", "detail": detail},
    )


NOT_ASKABLE: Final = "client cannot be asked"
NO_AUTHORIZER: Final = "no authorizer configured"


def subject_of(work: Work | None) -> str:
    """What a text for the client calls the thing that was to be run."""
    match work:
        case RunTool(tool):
            return f"tool {tool.name!r}"
        case ReadResource():
            return "the resource"
        case ExplainUnknownTool() | None:
            return "the server"
        case Authorize():
            return "the authorizer"
        case GetPrompt():
            return "the prompt"
        case Complete():
            return "the completion"
        case _:
            assert_never(work)
