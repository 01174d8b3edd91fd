"""Which arguments headers repeat."""

from __future__ import annotations

from typing import Any

from stanchion.registry.features import Tool
from stanchion.registry.headers import Mirrored, mirrored


def of(**properties: Any) -> tuple[Mirrored, ...]:
    def function(**_: Any) -> str:
        return ""

    schema = {"type": "object", "properties": properties}
    return mirrored(Tool.of(lambda: "", name="t", input_schema=schema))


def text(header: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": header, **more}


def test_properties_at_any_depth_in_the_schema_s_order() -> None:
    found = of(
        region=text("Region"),
        plain={"type": "string"},
        deep={"type": "object", "properties": {"inner": {"properties": {"n": text("N", "integer")}}}},
        dry=text("Dry", "boolean"),
    )
    assert found == (
        Mirrored("Region", ("region",), "string"),
        Mirrored("N", ("deep", "inner", "n"), "integer"),
        Mirrored("Dry", ("dry",), "boolean"),
    )


def test_what_clients_leave_out_is_left_out() -> None:
    assert (
        of(a=text("A", "number"), b={"items": text("B")}, c={"anyOf": [text("C")]}, d=True, e=text("")) == ()
    )
    assert of() == ()
    assert mirrored(Tool.of(lambda: "", name="t")) == ()
