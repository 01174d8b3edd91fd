"""What an author returns: text, pictures, links, whole results.

Owns the author-facing values and their translation into the wire's own blocks. Does not own how results are encoded or
cut (``registry.results``), nor what a revision can carry (``wire.revisions``). Wherever one of these is accepted, the
wire's own struct is accepted too, so that a proxy can pass blocks through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from stanchion.registry.errors import Unrenderable
from stanchion.wire import model


class Text(Struct, frozen=True):
    """Plain text for the model."""

    text: str


class Image(Struct, frozen=True):
    """A picture: its bytes (not base64) and their type, such as ``image/png``."""

    data: bytes
    mime_type: str


class Audio(Struct, frozen=True):
    """A sound: its bytes (not base64) and their type, such as ``audio/wav``. Clients of 2024-11-05 get a note instead."""

    data: bytes
    mime_type: str


class ResourceLink(Struct, frozen=True):
    """A pointer to a resource, which the client may read later (2025-06-18, server/tools)."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    """Bytes."""


class EmbeddedResource(Struct, frozen=True):
    """A resource's contents inside a result: either ``text`` or ``blob`` (bytes, not base64)."""

    uri: str
    text: str | None = None
    blob: bytes | None = None
    mime_type: str | None = None


Content = Text | Image | Audio | ResourceLink | EmbeddedResource | model.Content
"""One block of a result: ours, or the wire's."""

_BLOCKS: Final = (
    Text,
    Image,
    Audio,
    ResourceLink,
    EmbeddedResource,
    model.TextContent,
    model.ImageContent,
    model.AudioContent,
    model.ResourceLink,
    model.EmbeddedResource,
)
_BY_TYPE: Final[
    Mapping[str, type[model.TextContent | model.ImageContent | model.AudioContent | model.ResourceLink]]
] = MappingProxyType(
    {
        "text": model.TextContent,
        "image": model.ImageContent,
        "audio": model.AudioContent,
        "resource_link": model.ResourceLink,
    }
)


class ToolResult(Struct, frozen=True):
    """A whole tool result, for authors who want to say every part of it."""

    content: Sequence[Content | str] = ()
    structured: object = None
    """JSON-able; sent where the revision has ``structuredContent``. None sends none."""
    is_error: bool = False
    """A failure the model should see. It counts for the breaker as a ``ToolError`` does (behaviour F2)."""
    meta: Mapping[str, object] | None = None
    """The result's ``_meta``."""


class Message(Struct, frozen=True):
    """One turn of a prompt."""

    role: model.Role
    content: Content | str


def is_content(value: object) -> bool:
    """Whether *value* is one block, ours or the wire's."""
    return isinstance(value, _BLOCKS)


def to_wire(value: object) -> model.Content:
    """The wire's block for an author's.

    Args:
        value: Anything ``is_content`` accepts, or a text.

    Raises:
        Unrenderable: Its fields are not of the declared types.
    """
    match value:
        case str():
            return model.TextContent(text=value)
        case Text(text):
            return model.TextContent(text=_text(text, "Text.text"))
        case Image(data, mime_type):
            return model.ImageContent(
                data=_bytes(data, "Image.data"), mime_type=_text(mime_type, "Image.mime_type")
            )
        case Audio(data, mime_type):
            return model.AudioContent(
                data=_bytes(data, "Audio.data"), mime_type=_text(mime_type, "Audio.mime_type")
            )
        case ResourceLink():
            return model.ResourceLink(
                uri=_text(value.uri, "ResourceLink.uri"),
                name=_text(value.name, "ResourceLink.name"),
                title=_optional(value.title, "ResourceLink.title"),
                description=_optional(value.description, "ResourceLink.description"),
                mime_type=_optional(value.mime_type, "ResourceLink.mime_type"),
                size=_size(value.size),
            )
        case EmbeddedResource():
            return model.EmbeddedResource(resource=contents_of(value))
        case (
            model.TextContent()
            | model.ImageContent()
            | model.AudioContent()
            | model.ResourceLink()
            | model.EmbeddedResource()
        ):
            return value
        case _:
            pass
    raise Unrenderable(f"A {type(value).__name__} stands where a block of content is expected.")


def contents_of(value: EmbeddedResource) -> model.TextContents | model.BlobContents:
    """The wire's resource contents for an author's.

    Raises:
        Unrenderable: It has both a text and a blob, or neither.
    """
    uri = _text(value.uri, "EmbeddedResource.uri")
    mime_type = _optional(value.mime_type, "EmbeddedResource.mime_type")
    if value.blob is not None and value.text is None:
        return model.BlobContents(
            uri=uri, mime_type=mime_type, blob=_bytes(value.blob, "EmbeddedResource.blob")
        )
    if value.text is not None and value.blob is None:
        return model.TextContents(
            uri=uri, mime_type=mime_type, text=_text(value.text, "EmbeddedResource.text")
        )
    raise Unrenderable("An EmbeddedResource needs a text or a blob, and not both.")


def from_mapping(block: Mapping[str, Any]) -> model.Content:
    """The wire's block that *block* spells out, as in the reference's callbacks: ``{"type": "text", "text": …}``.

    Raises:
        Unrenderable: It spells out none.
    """
    kind = _BY_TYPE.get(str(block.get("type")))
    try:
        if kind is not None:
            return msgspec.convert({**block}, kind)
        if block.get("type") == "resource":
            inner = block["resource"]
            rest = {key: value for key, value in block.items() if key in {"annotations", "_meta"}}
            outer = msgspec.convert(rest | {"type": "text", "text": ""}, model.TextContent)
            if "blob" in inner:
                blob = msgspec.convert({**inner}, model.BlobContents)
                return model.EmbeddedResource(resource=blob, annotations=outer.annotations, meta=outer.meta)
            text = msgspec.convert({**inner}, model.TextContents)
            return model.EmbeddedResource(resource=text, annotations=outer.annotations, meta=outer.meta)
    except (msgspec.ValidationError, KeyError, TypeError):
        raise Unrenderable("A block of content has a field that is missing or of the wrong type.") from None
    raise Unrenderable("A block of content is of no known type.")


def _text(value: object, field: str) -> str:
    if isinstance(value, str):
        return value
    raise Unrenderable(f"{field} is a {type(value).__name__} and must be a str.")


def _optional(value: object, field: str) -> str | UnsetType:
    return UNSET if value is None else _text(value, field)


def _size(value: object) -> int | UnsetType:
    if value is None:
        return UNSET
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise Unrenderable(f"ResourceLink.size is a {type(value).__name__} and must be an int.")


def _bytes(value: object, field: str) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise Unrenderable(f"{field} is a {type(value).__name__} and must be bytes.")


def is_presentation(kind: object) -> bool:
    """Whether a class is one of those that say what a result looks like, and so promises no data of its own."""
    shown = (*_BLOCKS, ToolResult, Message, model.TextContents, model.BlobContents, model.PromptMessage)
    return isinstance(kind, type) and issubclass(kind, shown)
