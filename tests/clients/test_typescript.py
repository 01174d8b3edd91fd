"""Both generations of the official TypeScript client: each runs through `drive.mjs`, its report is judged here."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients.serving import Where

HERE = Path(__file__).parent
PATIENCE = 90.0
LEGACY, MODERN = "2025-11-25", "2026-07-28"

Report = dict[str, Any]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((["sdk1.mjs"], LEGACY), id="sdk-1"),
        pytest.param((["client2.mjs", "legacy"], LEGACY), id="client-2-legacy"),
        pytest.param((["client2.mjs", "auto"], MODERN), id="client-2-auto"),
        pytest.param((["client2.mjs", MODERN], MODERN), id="client-2-pinned"),
    ],
)
def driven(
    request: pytest.FixtureRequest, probe: Where, node_environment: Mapping[str, str]
) -> tuple[Report, str]:
    """The report of one client, and the revision it should have agreed on."""
    script, revision = request.param
    try:
        done = subprocess.run(
            ["node", *script, *([probe] if isinstance(probe, str) else probe)],
            cwd=HERE,
            env=node_environment,
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        pytest.fail(f"{script} did not end within {PATIENCE:g} s; on stderr: {late.stderr!r}")
    assert done.returncode == 0, f"{script} failed:\n{done.stderr}"
    return json.loads(done.stdout), revision


def text(result: Report) -> str:
    (content,) = result["content"]
    return content["text"]


def test_it_connects_and_lists_tools(driven: tuple[Report, str]) -> None:
    report, revision = driven
    assert report["revision"] == revision
    assert report["server"]["name"] == "probe"
    tools = {tool["name"]: tool for tool in report["tools"]["tools"]}
    assert tools["echo"]["annotations"]["readOnlyHint"] is True
    assert tools["guarded"]["annotations"]["destructiveHint"] is True
    assert tools["add"]["inputSchema"]["required"] == ["a", "b"]
    assert tools["typed"]["outputSchema"]["type"] == "object"


def test_it_calls_tools_and_reads_every_kind_of_answer(driven: tuple[Report, str]) -> None:
    report, _ = driven
    assert text(report["echo"]) == "héllo"
    assert report["typed"]["structuredContent"] == {"name": "typed", "total": 3, "tags": ["a", "b"]}
    assert json.loads(text(report["typed"])) == report["typed"]["structuredContent"]
    (image,) = report["image"]["content"]
    assert (image["type"], image["mimeType"]) == ("image", "image/png")
    assert report["wrong"]["isError"] is True
    assert report["refused"]["isError"] is True
    assert report["refused"]["structuredContent"]["code"] == "authorization_required"
    assert report["unknown"]["code"] == -32602
    assert report["unknown"]["data"]["tool"] == "no_such_tool"


def test_it_reads_resources(driven: tuple[Report, str]) -> None:
    report, _ = driven
    assert [one["uri"] for one in report["resources"]["resources"]] == ["config://settings"]
    assert [one["uriTemplate"] for one in report["templates"]["resourceTemplates"]] == ["notes://{name}"]
    assert [one["text"] for one in report["settings"]["contents"]] == ["theme = dark"]
    assert [one["text"] for one in report["note"]["contents"]] == ["buy milk"]


def test_it_gets_and_completes_a_prompt(driven: tuple[Report, str]) -> None:
    report, _ = driven
    (prompt,) = report["prompts"]["prompts"]
    assert [one["name"] for one in prompt["arguments"]] == ["name", "style"]
    messages = report["prompt"]["messages"]
    assert [one["role"] for one in messages] == ["user", "assistant"]
    assert messages[0]["content"]["text"] == "Greet Ada in a formal way."
    assert report["completion"]["completion"]["values"] == ["casual", "ceremonial"]


def test_it_sees_progress(driven: tuple[Report, str]) -> None:
    report, _ = driven
    assert text(report["progressed"]) == "3 steps"
    assert [(one["progress"], one["total"]) for one in report["progress"]] == [(1, 3), (2, 3), (3, 3)]


def test_it_cancels_a_call_and_goes_on(driven: tuple[Report, str]) -> None:
    report, _ = driven
    assert text(report["beside"]) == "meanwhile"
    assert "changed my mind" in report["cancelled"]["message"]
    assert text(report["released"]) == "0 held"
    assert text(report["after"]) == "still here"


def test_it_hears_that_the_tools_changed(driven: tuple[Report, str]) -> None:
    report, revision = driven
    if revision == MODERN:
        assert report["honoured"] == {"toolsListChanged": True}
    assert report["changed"] is True
    assert "later" in {tool["name"] for tool in report["relisted"]["tools"]}
