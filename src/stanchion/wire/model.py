"""The protocol's own shapes: what params hold, what results look like, one struct per concept.

Owns field names and types on the wire. A struct has every field that any revision has; a field that a revision lacks is
left ``UNSET`` by whoever shapes the value for that revision (``revisions``), and an unset field is not sent. Objects are
open on the way in: unknown members are ignored (B18).
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Raw, Struct, UnsetType, field

Role = Literal["user", "assistant"]
LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LOG_LEVELS: tuple[LogLevel, ...] = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
"""Least to most severe (server/utilities/logging, all revisions)."""

PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"

JsonObject = dict[str, object]


class _Wire(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all shapes: camelCase on the wire, unset fields left out."""


# -- what requests carry -------------------------------------------------------------------------------------------


class Meta(Struct, frozen=True, kw_only=True):
    """The parts of ``params._meta`` that the server itself reads."""

    progress_token: int | str | None = field(default=None, name="progressToken")
    protocol_version: str | UnsetType = field(default=UNSET, name=PROTOCOL_VERSION)
    client_capabilities: JsonObject | UnsetType = field(default=UNSET, name=CLIENT_CAPABILITIES)
    client_info: JsonObject | UnsetType = field(default=UNSET, name=CLIENT_INFO)
    log_level: LogLevel | UnsetType = field(default=UNSET, name=LOG_LEVEL)


class Params(Struct, frozen=True, kw_only=True, rename="camel"):
    """Params of a method that takes none of its own, and the base of all others."""

    meta: Raw | UnsetType = field(default=UNSET, name="_meta")


class InitializeParams(Params, frozen=True, kw_only=True):
    """``initialize`` (basic/lifecycle, handshake revisions). Absent abilities are taken as none."""

    protocol_version: str
    capabilities: JsonObject | None = None
    client_info: JsonObject | None = None


class ListParams(Params, frozen=True, kw_only=True):
    """The four ``*/list`` methods (server/utilities/pagination)."""

    cursor: str | None = None


class Retried(Params, frozen=True, kw_only=True):
    """Params of the methods that may be answered ``input_required`` (2026-07-28, basic/patterns/mrtr)."""

    input_responses: dict[str, object] | None = None
    request_state: str | None = None


class CallToolParams(Retried, frozen=True, kw_only=True):
    """``tools/call`` (server/tools)."""

    name: str
    arguments: JsonObject | None = None


class ReadResourceParams(Retried, frozen=True, kw_only=True):
    """``resources/read``, ``resources/subscribe`` and ``resources/unsubscribe`` (server/resources)."""

    uri: str


class GetPromptParams(Retried, frozen=True, kw_only=True):
    """``prompts/get`` (server/prompts)."""

    name: str
    arguments: dict[str, str] | None = None


class PromptReference(Struct, frozen=True, tag_field="type", tag="ref/prompt"):
    """Names the prompt whose argument is to be completed."""

    name: str


class ResourceReference(Struct, frozen=True, tag_field="type", tag="ref/resource"):
    """Names the resource template (or the URI) whose variable is to be completed."""

    uri: str


class CompletionArgument(Struct, frozen=True):
    """The argument being typed, and what stands there so far."""

    name: str
    value: str


class CompletionContext(Struct, frozen=True):
    """Arguments already settled (2025-06-18 on)."""

    arguments: dict[str, str] | None = None


class CompleteParams(Params, frozen=True, kw_only=True):
    """``completion/complete`` (server/utilities/completion)."""

    ref: PromptReference | ResourceReference
    argument: CompletionArgument
    context: CompletionContext | None = None


class SetLevelParams(Params, frozen=True, kw_only=True):
    """``logging/setLevel`` (server/utilities/logging, handshake revisions)."""

    level: LogLevel


class ListenFilter(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Which changes a listener wants, and in the acknowledgement which it will get."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: tuple[str, ...] = ()


class ListenParams(Params, frozen=True, kw_only=True):
    """``subscriptions/listen`` (2026-07-28, basic/patterns/subscriptions)."""

    notifications: ListenFilter


class CancelledParams(Params, frozen=True, kw_only=True):
    """``notifications/cancelled`` (basic/utilities/cancellation)."""

    request_id: int | str
    reason: str | None = None


# -- content -------------------------------------------------------------------------------------------------------


class Annotations(_Wire, frozen=True, kw_only=True):
    """Hints for the client about a piece of content or a resource (server/resources)."""

    audience: tuple[Role, ...] | UnsetType = UNSET
    priority: float | UnsetType = UNSET
    last_modified: str | UnsetType = UNSET


class Icon(_Wire, frozen=True, kw_only=True):
    """A picture for a listing (2025-11-25 on, basic/index)."""

    src: str
    mime_type: str | UnsetType = UNSET
    sizes: tuple[str, ...] | UnsetType = UNSET
    theme: Literal["light", "dark"] | UnsetType = UNSET


class TextContents(_Wire, frozen=True, kw_only=True):
    """A resource's contents as text."""

    uri: str
    mime_type: str | UnsetType = UNSET
    text: str
    meta: JsonObject | UnsetType = field(default=UNSET, name="_meta")


class BlobContents(_Wire, frozen=True, kw_only=True):
    """A resource's contents as bytes; ``blob`` is sent in base64."""

    uri: str
    mime_type: str | UnsetType = UNSET
    blob: bytes
    meta: JsonObject | UnsetType = field(default=UNSET, name="_meta")


class TextContent(_Wire, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Plain text for the model."""

    text: str
    annotations: Annotations | UnsetType = UNSET
    meta: JsonObject | UnsetType = field(default=UNSET, name="_meta")


class ImageContent(_Wire, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """A picture; ``data`` is sent in base64."""

    data: bytes
    mime_type: str
    annotations: Annotations | UnsetType = UNSET
    meta: JsonObject | UnsetType = field(default=UNSET, name="_meta")


class AudioContent(_Wire, frozen=True, kw_only=True, tag_field="type", tag="audio"):
    """A sound (2025-03-26 on); ``data`` is sent in base64."""

    data: bytes
    mime_type: str
    annotations: Annotations | UnsetType = UNSET
    meta: JsonObject | UnsetType = field(default=UNSET, name="_meta")


class ResourceLink(_Wire, frozen=True, kw_only=True, tag_field="type", tag="resource_link"):
    """A pointer to a resource (2025-06-18 on)."""

    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    size: int | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET
    meta: JsonObject | UnsetType = field(default=UNSET, name="_meta")


class EmbeddedResource(_Wire, frozen=True, kw_only=True, tag_field="type", tag="resource"):
    """A resource's contents inside a result."""

    resource: TextContents | BlobContents
    annotations: Annotations | UnsetType = UNSET
    meta: JsonObject | UnsetType = field(default=UNSET, name="_meta")


Content = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


class PromptMessage(_Wire, frozen=True, kw_only=True):
    """One turn of a prompt: exactly one block of content."""

    role: Role
    content: Content


# -- what lists hold -----------------------------------------------------------------------------------------------


class ToolAnnotations(_Wire, frozen=True, kw_only=True):
    """Hints about a tool (2025-03-26 on, server/tools). A client must not trust them; see behaviour B7 for what we do."""

    title: str | UnsetType = UNSET
    read_only_hint: bool | UnsetType = UNSET
    destructive_hint: bool | UnsetType = UNSET
    idempotent_hint: bool | UnsetType = UNSET
    open_world_hint: bool | UnsetType = UNSET


class ToolDescriptor(_Wire, frozen=True, kw_only=True):
    """A tool in ``tools/list``."""

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    icons: tuple[Icon, ...] | UnsetType = UNSET
    input_schema: JsonObject
    output_schema: JsonObject | bool | UnsetType = UNSET
    annotations: ToolAnnotations | UnsetType = UNSET
    meta: JsonObject | UnsetType = field(default=UNSET, name="_meta")


class ResourceDescriptor(_Wire, frozen=True, kw_only=True):
    """A resource in ``resources/list``."""

    uri: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    size: int | UnsetType = UNSET
    icons: tuple[Icon, ...] | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET
    meta: JsonObject | UnsetType = field(default=UNSET, name="_meta")


class TemplateDescriptor(_Wire, frozen=True, kw_only=True):
    """A resource template in ``resources/templates/list``."""

    uri_template: str
    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    icons: tuple[Icon, ...] | UnsetType = UNSET
    annotations: Annotations | UnsetType = UNSET
    meta: JsonObject | UnsetType = field(default=UNSET, name="_meta")


class PromptArgument(_Wire, frozen=True, kw_only=True):
    """One argument of a prompt; its value is always a string."""

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    required: bool | UnsetType = UNSET


class PromptDescriptor(_Wire, frozen=True, kw_only=True):
    """A prompt in ``prompts/list``."""

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    arguments: tuple[PromptArgument, ...] | UnsetType = UNSET
    icons: tuple[Icon, ...] | UnsetType = UNSET
    meta: JsonObject | UnsetType = field(default=UNSET, name="_meta")


class Implementation(_Wire, frozen=True, kw_only=True):
    """Who a peer says it is. For display only (B12)."""

    name: str
    title: str | UnsetType = UNSET
    version: str
    description: str | UnsetType = UNSET
    website_url: str | UnsetType = UNSET
    icons: tuple[Icon, ...] | UnsetType = UNSET
