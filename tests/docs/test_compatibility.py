"""The table of revisions and features in docs/compatibility.md is made from the profiles, so that it can't drift.

``python -m tests.docs.test_compatibility`` writes it anew.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from stanchion.wire.revisions import PROFILES, Profile

PAGE: Final = Path(__file__).parents[2] / "docs/compatibility.md"
BEGIN: Final = "<!-- made from the profiles: begin -->\n"
END: Final = "<!-- made from the profiles: end -->\n"

ROWS: Final[tuple[tuple[str, Callable[[Profile], object]], ...]] = (
    ("opens with `initialize`", lambda one: not one.modern),
    ("each request describes itself; `server/discover`", lambda one: one.modern),
    ("batches", lambda one: one.batching),
    ("tool annotations", lambda one: one.tool_annotations),
    ("`title` on entries", lambda one: one.titles),
    ("`icons`", lambda one: one.icons),
    (
        "`structuredContent`",
        lambda one: {"none": False, "object": "objects", "any": "any JSON"}[one.structured],
    ),
    ("audio", lambda one: one.audio),
    ("resource links", lambda one: one.resource_links),
    ("a line of text with progress", lambda one: one.progress_message),
    ("completion declared as a capability", lambda one: one.completions_capability),
    ("`ping`", lambda one: "ping" in one.methods),
    ("log level", lambda one: "each request" if one.log_by_request else "each connection"),
    ("resource subscriptions", lambda one: "by listening" if one.listens else "`resources/subscribe`"),
    ("list changes reach", lambda one: "who listens" if one.listens else "every connection"),
    ("a callback's question", lambda one: "ends the run, sealed" if one.modern else "is a request of ours"),
    ("cache hints", lambda one: one.cache_hints),
    ("a streamed reply can be resumed", lambda one: not one.modern and one.revision > "2024-11-05"),
    ("it begins with a priming event", lambda one: one.primes),
    ("resource not found", lambda one: one.resource_not_found),
    ("error whose id is unknown", lambda one: "`id: null`" if one.null_id else "no `id`"),
)


def table() -> str:
    """The table, in Markdown."""

    def cell(value: object) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        return str(value)

    head = ["| |", *(f" {name} |" for name in PROFILES)]
    rule = ["| --- |", *(" --- |" for _ in PROFILES)]
    rows = [[f"| {what} |", *(f" {cell(of(one))} |" for one in PROFILES.values())] for what, of in ROWS]
    return "".join("".join(row) + "\n" for row in (head, rule, *rows))


def test_the_table_is_what_the_profiles_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.partition(BEGIN)[2].partition(END)[0] == table()


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.partition(END)[2], encoding="utf-8")
