"""What authors return becomes the wire's blocks."""

from __future__ import annotations

import pytest

import stanchion.content
from stanchion.registry import content
from stanchion.registry.errors import Unrenderable
from stanchion.wire import model


def test_the_public_module_is_the_same() -> None:
    assert all(
        getattr(stanchion.content, name) is getattr(content, name) for name in stanchion.content.__all__
    )


def test_author_values_become_blocks() -> None:
    link = content.ResourceLink("a://b", "n", title="t", description="d", mime_type="x/y", size=3)
    assert content.to_wire(link) == model.ResourceLink(
        uri="a://b", name="n", title="t", description="d", mime_type="x/y", size=3
    )
    assert content.to_wire(content.Image(bytearray(b"x"), "image/png")) == model.ImageContent(
        data=b"x", mime_type="image/png"
    )  # type: ignore[arg-type]
    assert content.to_wire(content.Audio(b"x", "audio/wav")) == model.AudioContent(
        data=b"x", mime_type="audio/wav"
    )
    assert content.to_wire("x") == content.to_wire(content.Text("x")) == model.TextContent(text="x")
    block = model.TextContent(text="x")
    assert content.to_wire(block) is block
    with pytest.raises(Unrenderable, match="int"):
        content.to_wire(3)


@pytest.mark.parametrize("size", ["3", 1.5, True])
def test_sizes_are_whole_numbers(size: object) -> None:
    with pytest.raises(Unrenderable, match="size"):
        content.to_wire(content.ResourceLink("a://b", "n", size=size))  # type: ignore[arg-type]


def test_mappings_spell_blocks_out() -> None:
    assert content.from_mapping({"type": "text", "text": "x", "unknown": 1}) == model.TextContent(text="x")
    resource = content.from_mapping(
        {"type": "resource", "resource": {"uri": "a://b", "blob": "AA=="}, "_meta": {"a": 1}}
    )
    assert resource == model.EmbeddedResource(
        resource=model.BlobContents(uri="a://b", blob=b"\x00"), meta={"a": 1}
    )
    for bad in (
        {},
        {"type": "video"},
        {"type": "text"},
        {"type": "resource"},
        {"type": "image", "data": "?", "mimeType": "x"},
    ):
        with pytest.raises(Unrenderable):
            content.from_mapping(bad)
