"""How the revisions differ, field by field (checklist §1.1, §1.2, §1.3, §1.5)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from stanchion.wire.errors import InternalError, MethodNotFound, ResourceNotFound, UnknownTool
from stanchion.wire.jsonrpc import Failure
from stanchion.wire.model import (
    SERVER_INFO,
    Annotations,
    AudioContent,
    EmbeddedResource,
    Icon,
    ImageContent,
    Implementation,
    PromptArgument,
    PromptDescriptor,
    ResourceDescriptor,
    ResourceLink,
    TemplateDescriptor,
    TextContent,
    TextContents,
    ToolAnnotations,
    ToolDescriptor,
)
from stanchion.wire.revisions import (
    HANDSHAKE,
    MODERN,
    MODERN_REVISIONS,
    NEWEST_HANDSHAKE,
    PROFILES,
    CacheHint,
    Profile,
    complete,
    negotiate,
)
from tests.wire_schema import SchemaChecker

R24, R03, R06, R11, R26 = REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
NOTHING: set[str] = set()

each = pytest.mark.parametrize("revision", REVISIONS)
legacy = pytest.mark.parametrize("revision", REVISIONS[:-1])


def since(first: str) -> set[str]:
    return set(REVISIONS[REVISIONS.index(first) :])


def plain(value: object) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


HINTS = Annotations(audience=("user",), priority=0.5, last_modified="2026-01-01T00:00:00Z")
META = {"example.org/k": 1}
ICONS = (Icon(src="https://example.org/i.png"),)
TOOL = ToolDescriptor(
    name="t",
    title="T",
    description="d",
    icons=ICONS,
    input_schema={"type": "object"},
    output_schema={"type": "object"},
    annotations=ToolAnnotations(title="T", read_only_hint=True),
    meta=META,
)
RESOURCE = ResourceDescriptor(
    uri="a:b", name="r", title="R", mime_type="text/plain", size=1, icons=ICONS, annotations=HINTS, meta=META
)
TEMPLATE = TemplateDescriptor(
    uri_template="a:{b}", name="r", title="R", icons=ICONS, annotations=HINTS, meta=META
)
PROMPT = PromptDescriptor(
    name="p",
    title="P",
    arguments=(PromptArgument(name="a", title="A", required=True),),
    icons=ICONS,
    meta=META,
)
SERVER = Implementation(
    name="s", title="S", version="1", description="d", website_url="https://example.org", icons=ICONS
)


# -- the rows ------------------------------------------------------------------------------------------------------


def test_every_revision_has_a_row_oldest_first() -> None:
    assert tuple(PROFILES) == REVISIONS
    assert all(profile.revision == name for name, profile in PROFILES.items())
    assert tuple(HANDSHAKE) == REVISIONS[:-1]
    assert MODERN_REVISIONS == (R26,)
    assert (MODERN.revision, NEWEST_HANDSHAKE.revision) == (R26, R11)


FLAGS: list[tuple[str, set[str]]] = [
    ("modern", {R26}),
    ("batching", {R03}),
    ("null_id", {R24, R03, R06}),
    ("tool_annotations", since(R03)),
    ("titles", since(R06)),
    ("item_meta", since(R06)),
    ("icons", since(R11)),
    ("last_modified", since(R06)),
    ("audio", since(R03)),
    ("resource_links", since(R06)),
    ("progress_message", since(R03)),
    ("completions_capability", since(R03)),
    ("completion_context", since(R06)),
    ("log_by_request", {R26}),
    ("result_type", {R26}),
    ("cache_hints", {R26}),
    ("primes", {R11}),
    ("listens", {R26}),
]


@pytest.mark.parametrize(("flag", "where"), FLAGS)
def test_what_a_revision_has(flag: str, where: set[str]) -> None:
    assert {name for name, profile in PROFILES.items() if getattr(profile, flag)} == where


def test_this_table_forgets_no_flag() -> None:
    flags = {name for name, kind in Profile.__annotations__.items() if kind == "bool"}
    assert flags == {flag for flag, _ in FLAGS}


BOTH = {
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
}
OLD = {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
NEW = {"server/discover", "subscriptions/listen"}


@each
def test_the_methods_of_a_revision(revision: str) -> None:
    """§1.2."""
    assert PROFILES[revision].methods == BOTH | (NEW if revision == R26 else OLD)


# -- negotiate -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "answer"),
    [*((name, name) for name in REVISIONS[:-1]), (R26, R11), ("2099-01-01", R11), ("", R11), ("1.0", R11)],
)
def test_initialize_is_answered_with_what_was_asked_or_the_newest_with_a_handshake(
    asked: str, answer: str
) -> None:
    """L2: never 2026-07-28, which has none."""
    assert negotiate(asked).revision == answer


# -- trim ----------------------------------------------------------------------------------------------------------

TRIMMED: list[tuple[Any, dict[str, set[str]]]] = [
    (
        TOOL,
        {
            "name": since(R24),
            "description": since(R24),
            "inputSchema": since(R24),
            "annotations": since(R03),
            "title": since(R06),
            "outputSchema": since(R06),
            "_meta": since(R06),
            "icons": since(R11),
        },
    ),
    (
        RESOURCE,
        {
            "uri": since(R24),
            "name": since(R24),
            "mimeType": since(R24),
            "annotations": since(R24),
            "size": since(R24),
            "title": since(R06),
            "_meta": since(R06),
            "icons": since(R11),
        },
    ),
    (
        TEMPLATE,
        {
            "uriTemplate": since(R24),
            "name": since(R24),
            "annotations": since(R24),
            "title": since(R06),
            "_meta": since(R06),
            "icons": since(R11),
        },
    ),
    (
        PROMPT,
        {
            "name": since(R24),
            "arguments": since(R24),
            "title": since(R06),
            "_meta": since(R06),
            "icons": since(R11),
        },
    ),
]


@each
@pytest.mark.parametrize(("item", "fields"), TRIMMED, ids=lambda value: type(value).__name__)
def test_a_descriptor_has_the_fields_of_its_revision(
    revision: str, item: Any, fields: dict[str, set[str]]
) -> None:
    """§1.5."""
    before = plain(item)
    trimmed = plain(PROFILES[revision].trim(item))
    assert set(trimmed) == {name for name, where in fields.items() if revision in where}
    assert plain(item) == before
    for name, value in trimmed.items():
        if name not in {"annotations", "arguments"}:
            assert value == before[name]


@each
def test_hints_lose_only_what_is_newer(revision: str) -> None:
    for item in (RESOURCE, TEMPLATE):
        hints = plain(PROFILES[revision].trim(item))["annotations"]
        assert set(hints) == {"audience", "priority"} | (
            {"lastModified"} if revision in since(R06) else NOTHING
        )


@each
def test_a_prompts_arguments_lose_their_titles_too(revision: str) -> None:
    (argument,) = plain(PROFILES[revision].trim(PROMPT))["arguments"]
    assert set(argument) == {"name", "required"} | ({"title"} if revision in since(R06) else NOTHING)
    bare = PromptDescriptor(name="p")
    assert plain(PROFILES[revision].trim(bare)) == {"name": "p"}


@each
@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"type": "object"}, since(R06)),
        ({"type": "array"}, {R26}),
        ({"type": ["object", "null"]}, {R26}),
        ({}, {R26}),
        (True, {R26}),
    ],
)
def test_an_output_schema_is_told_where_its_results_can_be(
    revision: str, schema: Any, where: set[str]
) -> None:
    profile = PROFILES[revision]
    tool = ToolDescriptor(name="t", input_schema={"type": "object"}, output_schema=schema)
    assert ("outputSchema" in plain(profile.trim(tool))) == (revision in where)
    assert profile.admits_output(schema) == (revision in where)


@each
@pytest.mark.parametrize(
    ("value", "where"), [({"a": 1}, since(R06)), ([1], {R26}), ("x", {R26}), (None, {R26}), (5, {R26})]
)
def test_structured_content_is_what_the_revision_knows(revision: str, value: object, where: set[str]) -> None:
    assert PROFILES[revision].admits_structured(value) == (revision in where)


@each
def test_what_is_trimmed_fits_the_schema(revision: str) -> None:
    profile = PROFILES[revision]
    lists = {
        "tools/list": {"tools": [plain(profile.trim(TOOL))]},
        "resources/list": {"resources": [plain(profile.trim(RESOURCE))]},
        "resources/templates/list": {"resourceTemplates": [plain(profile.trim(TEMPLATE))]},
        "prompts/list": {"prompts": [plain(profile.trim(PROMPT))]},
    }
    checker = SchemaChecker(revision)
    for method, fields in lists.items():
        result = plain(complete(dict(fields), profile, SERVER, CacheHint()))
        assert checker.check_sent({"jsonrpc": "2.0", "id": 1, "result": result}, method) == []


# -- content -------------------------------------------------------------------------------------------------------

AUDIO = AudioContent(data=b"abc", mime_type="audio/wav")
LINK = ResourceLink(uri="a:b", name="n")
BLOCKS: list[tuple[Any, set[str]]] = [
    (TextContent(text="x"), since(R24)),
    (ImageContent(data=b"x", mime_type="image/png"), since(R24)),
    (EmbeddedResource(resource=TextContents(uri="a:b", text="x")), since(R24)),
    (AUDIO, since(R03)),
    (LINK, since(R06)),
]


@each
@pytest.mark.parametrize(("block", "where"), BLOCKS, ids=lambda value: type(value).__name__)
def test_a_kind_of_content_that_is_not_known_becomes_text(revision: str, block: Any, where: set[str]) -> None:
    shown = PROFILES[revision].content(block)
    if revision in where:
        assert shown is block
    else:
        assert isinstance(shown, TextContent)


def test_the_text_names_what_was_left_out() -> None:
    profile = PROFILES[R24]
    assert profile.content(AUDIO) == TextContent(text="[audio, audio/wav, 3 bytes]")
    assert profile.content(LINK) == TextContent(text="n: a:b")


@each
@pytest.mark.parametrize("block", [block for block, _ in BLOCKS], ids=lambda value: type(value).__name__)
def test_content_has_the_fields_of_its_revision(revision: str, block: Any) -> None:
    profile = PROFILES[revision]
    rich = msgspec.structs.replace(block, annotations=HINTS, meta=META)
    shown = plain(profile.content(rich))
    assert ("_meta" in shown) == (revision in since(R06))
    assert ("lastModified" in shown.get("annotations", {})) == (revision in since(R06))
    result = plain(complete({"content": [shown]}, profile, SERVER))
    message = {"jsonrpc": "2.0", "id": 1, "result": result}
    assert SchemaChecker(revision).check_sent(message, "tools/call") == []


# -- whole results -------------------------------------------------------------------------------------------------


@legacy
def test_an_empty_result_stays_empty_where_there_was_a_handshake(revision: str) -> None:
    """§1.1: nothing of the modern revision leaks."""
    assert complete({}, PROFILES[revision], SERVER, CacheHint(5, "public")) == {}


def test_a_modern_result_says_what_it_is_and_whose() -> None:
    """B6, B7."""
    assert plain(complete({}, MODERN, SERVER)) == {
        "resultType": "complete",
        "_meta": {SERVER_INFO: plain(SERVER)},
    }
    fields: dict[str, object] = {"tools": [], "_meta": {"example.org/k": 1}}
    found = complete(fields, MODERN, SERVER, CacheHint(1500, "public"))
    assert found is fields
    assert (found["ttlMs"], found["cacheScope"]) == (1500, "public")
    assert plain(found["_meta"]) == {"example.org/k": 1, SERVER_INFO: plain(SERVER)}


@each
def test_who_the_server_is(revision: str) -> None:
    """L10."""
    shown = set(plain(PROFILES[revision].implementation(SERVER)))
    newer = {"title"} if revision in since(R06) else NOTHING
    newest = {"description", "websiteUrl", "icons"} if revision in since(R11) else NOTHING
    assert shown == {"name", "version"} | newer | newest


# -- errors --------------------------------------------------------------------------------------------------------


@each
def test_the_codes_of_errors(revision: str) -> None:
    """§1.3."""
    profile = PROFILES[revision]
    assert profile.code_of(ResourceNotFound("a:b")) == (-32602 if revision == R26 else -32002)
    assert profile.code_of(MethodNotFound("x")) == -32601
    assert profile.code_of(UnknownTool("x")) == -32602
    assert profile.code_of(InternalError("x")) == -32603


@each
def test_a_failure_without_a_readable_id(revision: str) -> None:
    profile = PROFILES[revision]
    found = profile.failure(None, InternalError("x"))
    assert found.id is (None if revision in {R24, R03, R06} else UNSET)
    for ident in (0, "", "a"):
        assert profile.failure(ident, InternalError("x")) == Failure(ident, found.error)
