"""The five protocol revisions as data: one ``Profile`` row each, and the shaping that follows from a row.

Owns every difference between revisions that shows on the wire. Code elsewhere asks the profile; nothing anywhere
compares version strings. "Handshake" revisions open with ``initialize``; the modern one describes itself on each request.

What it does not own: which message has which profile (``machines.classify``), and when a feature is offered at all
(``server.methods``).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, Literal, TypeVar

from msgspec import UNSET, Struct, UnsetType, structs

from stanchion.wire.errors import McpError, ResourceNotFound
from stanchion.wire.jsonrpc import ErrorObject, Failure, Id
from stanchion.wire.model import (
    SERVER_INFO,
    Annotations,
    AudioContent,
    Content,
    Implementation,
    PromptDescriptor,
    ResourceDescriptor,
    ResourceLink,
    TemplateDescriptor,
    TextContent,
    ToolDescriptor,
)

_SHARED: Final = frozenset(
    {
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "completion/complete",
    }
)
_HANDSHAKE: Final = _SHARED | {
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
}


class Profile(Struct, frozen=True, kw_only=True):
    """What one revision has and how it looks. Each field is a difference that some client can see."""

    revision: str
    modern: bool = False
    """Every request describes itself; there is no handshake (2026-07-28)."""
    methods: frozenset[str] = _HANDSHAKE
    """Requests a client may send (checklist §1.2)."""
    batching: bool = False
    """Several messages may come in one array (2025-03-26 only)."""
    null_id: bool = False
    """An error whose request had no readable id says ``"id": null``: these schemas require the member."""
    tool_annotations: bool = True
    titles: bool = True
    item_meta: bool = True
    """``_meta`` on descriptors and content."""
    icons: bool = True
    last_modified: bool = True
    structured: Literal["none", "object", "any"] = "object"
    """What ``structuredContent`` may be, and with it the root of an ``outputSchema``."""
    audio: bool = True
    resource_links: bool = True
    progress_message: bool = True
    completions_capability: bool = True
    completion_context: bool = True
    log_by_request: bool = False
    """Log messages only to requests that name a level (2026-07-28); else to connections from a level up."""
    result_type: bool = False
    cache_hints: bool = False
    primes: bool = False
    """A streamed response begins with an event that only has an id, for resuming (2025-11-25; older clients may try to
    read its empty data as a message)."""
    listens: bool = False
    """Changes reach only those who listen for them; else every connection."""
    resource_not_found: int = -32002

    def code_of(self, error: McpError) -> int:
        """The error's code in this revision."""
        return self.resource_not_found if isinstance(error, ResourceNotFound) else error.code

    def failure(self, request: Id | None, error: McpError) -> Failure:
        """The answer that tells *error* for the request named, or for one whose id could not be read (None)."""
        told = ErrorObject(self.code_of(error), str(error), error.data)
        return Failure(UNSET if request is None and not self.null_id else request, told)

    def trim(self, item: Descriptor) -> Descriptor:
        """*item* without the fields that this revision does not have."""
        drop: dict[str, UnsetType] = {}
        if not self.titles:
            drop["title"] = UNSET
        if not self.icons:
            drop["icons"] = UNSET
        if not self.item_meta:
            drop["meta"] = UNSET
        if isinstance(item, ToolDescriptor):
            if not self.tool_annotations:
                drop["annotations"] = UNSET
            if not self.admits_output(item.output_schema):
                drop["output_schema"] = UNSET
        elif isinstance(item, PromptDescriptor) and not self.titles and item.arguments is not UNSET:
            bare = tuple(structs.replace(argument, title=UNSET) for argument in item.arguments)
            return structs.replace(item, arguments=bare, **drop)
        elif isinstance(item, ResourceDescriptor | TemplateDescriptor):
            return structs.replace(item, annotations=self._annotations(item.annotations), **drop)
        return structs.replace(item, **drop) if drop else item

    def admits_output(self, schema: object) -> bool:
        """Whether an output schema (and its structured results) can be told to a client of this revision."""
        if self.structured == "any":
            return True
        return self.structured == "object" and isinstance(schema, dict) and schema.get("type") == "object"

    def admits_structured(self, value: object) -> bool:
        """Whether *value* can be ``structuredContent``."""
        return self.structured == "any" or (self.structured == "object" and isinstance(value, dict))

    def content(self, block: Content) -> Content:
        """*block* as this revision can carry it: kinds it lacks become text that names what was left out."""
        if isinstance(block, AudioContent) and not self.audio:
            return TextContent(text=f"[audio, {block.mime_type}, {len(block.data)} bytes]")
        if isinstance(block, ResourceLink) and not self.resource_links:
            return TextContent(text=f"{block.name}: {block.uri}")
        if block.annotations is UNSET and (self.item_meta or block.meta is UNSET):
            return block
        meta = block.meta if self.item_meta else UNSET
        return structs.replace(block, meta=meta, annotations=self._annotations(block.annotations))

    def implementation(self, server: Implementation) -> Implementation:
        """Who the server is, with the fields this revision has (L10)."""
        if self.icons:
            return server
        title = server.title if self.titles else UNSET
        return Implementation(name=server.name, version=server.version, title=title)

    def _annotations(self, hints: Annotations | UnsetType) -> Annotations | UnsetType:
        if hints is UNSET or self.last_modified:
            return hints
        return structs.replace(hints, last_modified=UNSET)


Descriptor = TypeVar(
    "Descriptor", bound=ToolDescriptor | ResourceDescriptor | TemplateDescriptor | PromptDescriptor
)

_2024_11_05: Final = Profile(
    revision="2024-11-05",
    null_id=True,
    tool_annotations=False,
    titles=False,
    item_meta=False,
    icons=False,
    last_modified=False,
    structured="none",
    audio=False,
    resource_links=False,
    progress_message=False,
    completions_capability=False,
    completion_context=False,
)
_2025_03_26: Final = structs.replace(
    _2024_11_05,
    revision="2025-03-26",
    batching=True,
    tool_annotations=True,
    audio=True,
    progress_message=True,
    completions_capability=True,
)
_2025_06_18: Final = structs.replace(
    _2025_03_26,
    revision="2025-06-18",
    batching=False,
    titles=True,
    item_meta=True,
    last_modified=True,
    structured="object",
    resource_links=True,
    completion_context=True,
)
_2025_11_25: Final = structs.replace(
    _2025_06_18, revision="2025-11-25", null_id=False, icons=True, primes=True
)
_2026_07_28: Final = structs.replace(
    _2025_11_25,
    revision="2026-07-28",
    modern=True,
    primes=False,
    methods=_SHARED | {"server/discover", "subscriptions/listen"},
    structured="any",
    log_by_request=True,
    result_type=True,
    cache_hints=True,
    listens=True,
    resource_not_found=-32602,
)

PROFILES: Final = MappingProxyType(
    {row.revision: row for row in (_2024_11_05, _2025_03_26, _2025_06_18, _2025_11_25, _2026_07_28)}
)
"""Every revision this server speaks, oldest first."""

MODERN: Final = _2026_07_28
NEWEST_HANDSHAKE: Final = _2025_11_25
HANDSHAKE: Final = MappingProxyType({name: row for name, row in PROFILES.items() if not row.modern})
MODERN_REVISIONS: Final = tuple(name for name, row in PROFILES.items() if row.modern)


def negotiate(requested: str) -> Profile:
    """The profile to answer ``initialize`` with: the one asked for, else our newest that has a handshake (L2)."""
    return HANDSHAKE.get(requested, NEWEST_HANDSHAKE)


class CacheHint(Struct, frozen=True):
    """How long and by whom a result may be kept (2026-07-28, server/utilities/caching)."""

    ttl_ms: int = 0
    """Milliseconds."""
    scope: Literal["public", "private"] = "private"


def interim(fields: dict[str, object], server: Implementation) -> dict[str, object]:
    """*fields* as a result that asks for input (2026-07-28): never to be kept, so without cache hints (K2)."""
    return {**fields, "resultType": "input_required", "_meta": {SERVER_INFO: server}}


def complete(
    fields: dict[str, object], profile: Profile, server: Implementation, cache: CacheHint | None = None
) -> dict[str, object]:
    """*fields* as a whole result of this revision: type, cache hints and server identity where it has them.

    The dict given is used and returned. A handshake revision adds nothing, so that an empty result stays ``{}``.
    """
    if not profile.modern:
        return fields
    fields["resultType"] = "complete"
    if cache is not None and profile.cache_hints:
        fields["ttlMs"] = cache.ttl_ms
        fields["cacheScope"] = cache.scope
    meta = fields.get("_meta")
    fields["_meta"] = {**meta, SERVER_INFO: server} if isinstance(meta, dict) else {SERVER_INFO: server}
    return fields
