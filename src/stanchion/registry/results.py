"""What callbacks return, as the wire has it: tool results, resource contents, prompt messages, completions.

Owns the rendering, which runs in the worker (behaviour E1: serialisers are the author's code). Does not own what a
revision can carry (``wire.revisions``), the strictness of the JSON (``registry.strict``), or the reply around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, structs

from stanchion.registry import strict
from stanchion.registry.content import (
    Audio,
    EmbeddedResource,
    Image,
    Message,
    Text,
    ToolResult,
    contents_of,
    from_mapping,
    is_content,
    to_wire,
)
from stanchion.registry.errors import Fault, Unrenderable
from stanchion.registry.tools import Tool
from stanchion.wire import model
from stanchion.wire.revisions import Profile

MAX_COMPLETIONS: Final = 100
"""Values of one completion (server/utilities/completion)."""

_JSON: Final = "application/json"
_OCTETS: Final = "application/octet-stream"


class ToolOutcome(Struct, frozen=True):
    """A tool result, ready to be put into a reply."""

    content: Raw
    """A JSON array of blocks; always there (checklist T17)."""
    structured: Raw | None = None
    """``structuredContent``, where the revision has it."""
    is_error: bool = False
    meta: dict[str, Any] | None = None


# -- tools ---------------------------------------------------------------------------------------------------------


def render_tool(value: object, tool: Tool, profile: Profile, max_bytes: int | None = None) -> ToolOutcome:
    """The result of a tool call.

    A ``ToolResult`` is taken as it is; a block, or a list with blocks in it, becomes the content; a text becomes one
    block, None becomes none, and anything else becomes one block of JSON. With an output schema the value must fit it
    and is sent as ``structuredContent`` too (checklist T19, T20); an error is exempt.

    Args:
        value: What the callback returned.
        tool: Whose call it was.
        profile: The revision to render for.
        max_bytes: Bytes of text that all blocks may have together; what is over is cut, with a note saying how much.
            None for no bound.

    Raises:
        Unrenderable: It cannot be sent, or does not fit the output schema.
    """
    result = value if isinstance(value, ToolResult) else None
    is_error = result is not None and bool(result.is_error)
    structured = value if result is None else result.structured
    if result is not None:
        blocks = _blocks(result.content)
    elif tool.result is not None and not _is_made_of_content(value):
        blocks = []
    else:
        blocks = _blocks_of(value)
        structured = None
    packed = _structured(structured, tool, is_error=is_error, blocks=bool(blocks), max_bytes=max_bytes)
    if packed is not None and not blocks:
        # Clients that do not read structuredContent read this (checklist T20).
        blocks = [model.TextContent(text=packed.decode())]
    shown = [_shown(block, profile) for block in blocks]
    meta = None
    if result is not None and result.meta is not None:
        meta = _object(result.meta)
    return ToolOutcome(
        content=Raw(msgspec.json.encode(shown if max_bytes is None else _cut(shown, max_bytes))),
        structured=_admitted(packed, tool, profile),
        is_error=is_error,
        meta=meta,
    )


def _structured(
    value: object, tool: Tool, *, is_error: bool, blocks: bool, max_bytes: int | None
) -> bytes | None:
    """The structured part as JSON, checked against the output schema; None if there is none."""
    if tool.result is None and value is None:
        return None
    if value is None and is_error:
        return None
    if value is None and blocks:
        raise Unrenderable(
            "The tool has an output schema, and its result has content but no structured value."
        )
    packed = strict.encode(value)
    if tool.result is not None:
        decoded = msgspec.json.decode(packed)
        if not tool.result.is_valid(decoded):
            if is_error:
                # Clients would report the schema and hide the error (case I03).
                return None
            fault = next(iter(tool.result.faults(decoded)), Fault("", "does not fit"))
            raise Unrenderable(
                f"The result does not fit the output schema: {fault.path or 'it'} {fault.message}."
            )
    if max_bytes is not None and len(packed) > max_bytes:
        raise Unrenderable(f"The structured result has {len(packed)} bytes and may have {max_bytes}.")
    return packed


def _admitted(packed: bytes | None, tool: Tool, profile: Profile) -> Raw | None:
    """The structured part, if this revision has a place for it (checklist T21)."""
    if packed is None:
        return None
    if tool.output_schema is not None and not profile.admits_output(tool.output_schema):
        return None
    # Whether it is an object shows in its first byte; no need to decode it.
    sample: object = {} if packed.startswith(b"{") else None
    return Raw(packed) if profile.admits_structured(sample) else None


def _is_made_of_content(value: object) -> bool:
    return is_content(value) or (isinstance(value, list | tuple) and any(map(is_content, value)))


def _blocks_of(value: object) -> list[model.Content]:
    if value is None:
        return []
    if isinstance(value, str) or is_content(value):
        return [to_wire(value)]
    if isinstance(value, list | tuple) and any(map(is_content, value)):
        return _blocks(value)
    return [model.TextContent(text=strict.encode(value).decode())]


def _blocks(items: object) -> list[model.Content]:
    """Several values as blocks: texts and blocks as they are, anything else as JSON."""
    if isinstance(items, str) or is_content(items):
        return [to_wire(items)]
    if not isinstance(items, list | tuple):
        raise Unrenderable(f"ToolResult.content must be a list of content, not {type(items).__name__}.")
    return [
        to_wire(item)
        if isinstance(item, str) or is_content(item)
        else model.TextContent(text=strict.encode(item).decode())
        for item in items
    ]


def _shown(block: model.Content, profile: Profile) -> model.Content:
    """*block* as this revision has it, with text that can be sent."""
    block = profile.content(block)
    if isinstance(block, model.TextContent):
        text = strict.clean(block.text)
        return block if text is block.text else structs.replace(block, text=text)
    try:
        msgspec.json.encode(block)
    except (UnicodeEncodeError, TypeError, ValueError):
        return _repaired(block)
    return block


def _repaired(block: model.Content) -> model.Content:
    """A block whose other texts hold surrogates, or whose fields are not of their types."""
    # Through JSON, where the slow way cleans every text; bytes are base64 on both sides.
    decoded: dict[str, Any] = msgspec.json.decode(strict.encode(block))
    return from_mapping(decoded)


def _cut(blocks: list[model.Content], limit: int) -> list[model.Content]:
    """*blocks* within *limit* bytes together. The first that is over is cut, and later ones are left out."""
    kept: list[model.Content] = []
    left = limit
    for block in blocks:
        size = (
            len(block.text.encode())
            if isinstance(block, model.TextContent)
            else len(msgspec.json.encode(block))
        )
        if size <= left:
            kept.append(block)
            left -= size
            continue
        if isinstance(block, model.TextContent):
            start = block.text.encode()[:left].decode(errors="ignore")
            note = f"\n[cut: {size - len(start.encode())} of {size} bytes left out, the limit is {limit}]"
            kept.append(structs.replace(block, text=start + note))
        else:
            kept.append(model.TextContent(text=f"[left out: {size} bytes, the limit is {limit}]"))
        left = 0
    return kept


def _object(value: Mapping[str, object]) -> dict[str, Any]:
    made = strict.plain(value)
    if not isinstance(made, dict):
        raise Unrenderable("ToolResult.meta is not a dict.")
    return made


# -- resources -----------------------------------------------------------------------------------------------------


def render_resource(value: object, uri: str, mime_type: str | None, profile: Profile) -> Raw:
    """The ``contents`` of a ``resources/read``: a JSON array, never empty (checklist RS3, RS6).

    Args:
        value: A text, bytes, contents of ours or the wire's, a list of contents, or anything with a JSON form.
        uri: What was read; contents that name their own URI keep it.
        mime_type: What the registration says; by default ``application/json`` for JSON and
            ``application/octet-stream`` for bytes.
        profile: The revision to render for.

    Raises:
        Unrenderable: It cannot be sent.
    """
    if value is None:
        raise Unrenderable("The resource returned None; return a text, bytes, or raise what is wrong.")
    if isinstance(value, list | tuple) and value and all(map(_is_contents, value)):
        items = [_contents(item, uri, mime_type) for item in value]
    else:
        items = [_contents(value, uri, mime_type)]
    if not profile.item_meta:
        items = [item if item.meta is UNSET else structs.replace(item, meta=UNSET) for item in items]
    return Raw(strict.encode(items))


def _is_contents(value: object) -> bool:
    return isinstance(
        value, model.TextContents | model.BlobContents | EmbeddedResource | model.EmbeddedResource
    )


def _contents(value: object, uri: str, mime_type: str | None) -> model.TextContents | model.BlobContents:
    said = UNSET if mime_type is None else mime_type
    match value:
        case model.TextContents() | model.BlobContents():
            return value
        case model.EmbeddedResource():
            return value.resource
        case EmbeddedResource():
            return contents_of(value)
        case str():
            return model.TextContents(uri=uri, mime_type=said, text=value)
        case Text():
            return model.TextContents(uri=uri, mime_type=said, text=value.text)
        case bytes() | bytearray() | memoryview():
            return model.BlobContents(uri=uri, mime_type=mime_type or _OCTETS, blob=bytes(value))
        case Image() | Audio() | model.ImageContent() | model.AudioContent():
            return model.BlobContents(uri=uri, mime_type=value.mime_type, blob=value.data)
        case _:
            pass
    return model.TextContents(uri=uri, mime_type=mime_type or _JSON, text=strict.encode(value).decode())


# -- prompts -------------------------------------------------------------------------------------------------------


def render_prompt(value: object, profile: Profile) -> Raw:
    """The ``messages`` of a ``prompts/get``: a JSON array (checklist P3).

    Args:
        value: A text or a block (said by the user), a ``Message``, a mapping with ``role`` and ``content``, or a list
            of these.
        profile: The revision to render for.

    Raises:
        Unrenderable: It is nothing of that.
    """
    items = value if isinstance(value, list | tuple) else [value]
    messages = [_message(item) for item in items]
    shown = [structs.replace(one, content=_shown(one.content, profile)) for one in messages]
    return Raw(msgspec.json.encode(shown))


def _message(value: object) -> model.PromptMessage:
    if isinstance(value, model.PromptMessage):
        return value
    if isinstance(value, str) or is_content(value):
        return model.PromptMessage(role="user", content=to_wire(value))
    role: object
    content: object
    if isinstance(value, Message):
        role, content = value.role, value.content
    elif isinstance(value, Mapping):
        role, content = value.get("role"), value.get("content")
    else:
        raise Unrenderable(f"The prompt returned a {type(value).__name__} where a message is expected.")
    if role not in {"user", "assistant"}:
        raise Unrenderable('The role of a message is "user" or "assistant".')
    if isinstance(content, Mapping):
        content = from_mapping(content)
    return model.PromptMessage(role="user" if role == "user" else "assistant", content=to_wire(content))


# -- completions ---------------------------------------------------------------------------------------------------


def render_completion(value: object) -> dict[str, Any]:
    """The ``completion`` of a ``completion/complete``: at most 100 values, with ``total`` and ``hasMore`` if known.

    Args:
        value: Texts, best first; or an object or mapping with ``values`` and perhaps ``total`` and ``has_more``. No more
            than 101 values of an iterator are taken. None is none.

    Raises:
        Unrenderable: The values are not texts.
    """
    values, total, more = value, None, None
    if isinstance(value, Mapping):
        values, total = value.get("values", ()), value.get("total")
        more = value.get("has_more", value.get("hasMore"))
    elif hasattr(value, "values") and not callable(value.values):
        values, total, more = value.values, getattr(value, "total", None), getattr(value, "has_more", None)
    if values is None:
        values = ()
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise Unrenderable(
            f"The completion returned a {type(values).__name__} and must return a list of texts."
        )
    taken = list(islice(values, MAX_COMPLETIONS + 1))
    if not all(isinstance(one, str) for one in taken):
        raise Unrenderable("The completion returned a value that is not a text.")
    if total is None and isinstance(values, list | tuple):
        total = len(values)
    completion: dict[str, Any] = {"values": [strict.clean(one) for one in taken[:MAX_COMPLETIONS]]}
    if isinstance(total, int):
        completion["total"] = int(total)
    if more is not None or len(taken) > MAX_COMPLETIONS:
        completion["hasMore"] = bool(more) or len(taken) > MAX_COMPLETIONS
    return completion
