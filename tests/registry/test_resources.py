"""Resources and templates: listed, matched, called with typed variables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stanchion.registry.errors import InvalidArguments, UnderivableSignature
from stanchion.registry.features import Resource, Template
from stanchion.registry.signature import ContextParameter
from stanchion.registry.uri import TemplateError
from stanchion.wire.revisions import PROFILES


class Ctx(ContextParameter):
    pass


def settings(ctx: Ctx) -> str:
    """How it is set up."""
    return f"settings for {ctx}"


async def note(name: str, page: int = 1) -> str:
    """Read one."""
    return f"{name} {page}"


def listed(entry: Resource | Template, revision: str = "2026-07-28") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(entry.describe(PROFILES[revision])))
    return found


def test_a_resource_describes_itself() -> None:
    resource = Resource.of(
        settings,
        uri="config://settings",
        title="Settings",
        mime_type="text/plain",
        size=3,
        annotations={"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01"},
        icons=[{"src": "x"}],
        meta={"a/b": 1},
        timeout=2,
    )
    assert listed(resource) == {
        "uri": "config://settings",
        "name": "settings",
        "title": "Settings",
        "description": "How it is set up.",
        "mimeType": "text/plain",
        "size": 3,
        "icons": [{"src": "x"}],
        "annotations": {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01"},
        "_meta": {"a/b": 1},
    }
    assert listed(resource, "2024-11-05").keys() == {
        "uri",
        "name",
        "description",
        "mimeType",
        "size",
        "annotations",
    }
    assert (resource.key, resource.wants_context, resource.is_async, resource.isolation) == (
        "config://settings",
        True,
        False,
        "thread",
    )
    assert resource.timeout == 2.0
    assert resource.call({}, "me") == "settings for me"


def test_a_resource_takes_no_arguments() -> None:
    with pytest.raises(UnderivableSignature, match="a template such as"):
        Resource.of(note, uri="a://b")


@pytest.mark.parametrize("annotations", [{"priority": 2}, {"audience": ["robot"]}])
def test_bad_annotations_are_refused(annotations: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="annotations"):
        Resource.of(settings, uri="a://b", annotations=annotations)


def test_a_template_matches_and_converts() -> None:
    template = Template.of(note, uri_template="notes://{name}{?page}", mime_type="text/plain")
    assert listed(template)["uriTemplate"] == "notes://{name}{?page}"
    assert template.match("notes://x?page=2") == {"name": "x", "page": "2"}
    coroutine = template.call({"name": "x", "page": "2"}, None)
    with pytest.raises(StopIteration) as done:
        coroutine.send(None)  # type: ignore[attr-defined]
    assert done.value.value == "x 2"
    assert template.is_async
    assert not template.wants_context
    with pytest.raises(InvalidArguments):
        template.call({"name": "x", "page": "two"}, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("notes://{name}/{other}", "add other: str"),
        ("notes://{page}", "no variable name"),
        ("notes://x{?name}", "give name a default"),
    ],
)
def test_variables_and_parameters_must_be_the_same(text: str, words: str) -> None:
    with pytest.raises(UnderivableSignature, match=words):
        Template.of(note, uri_template=text)


def test_a_bad_template_is_refused() -> None:
    with pytest.raises(TemplateError):
        Template.of(note, uri_template="notes://{name")
