"""The Inspector's command line: what a person types to look at a server must work on ours."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.clients.serving import Where

LAUNCHER = (
    Path(__file__).parent / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
)
PATIENCE = 60.0
TOOL_IS_ERROR = 5


class Inspector:
    """Runs one request of the Inspector's command line against the probe."""

    def __init__(self, probe: Where, environment: Mapping[str, str], home: Path) -> None:
        self.where = ["--server-url", probe] if isinstance(probe, str) else ["--", *probe]
        self.environment = dict(environment) | {"HOME": str(home), "USERPROFILE": str(home)}

    def asking(self, method: str, *options: str, era: str) -> list[str]:
        """The command line of one request."""
        asked = ["--method", method, *options, "--protocol-era", era, "--format", "json", "--quiet"]
        return ["node", str(LAUNCHER), "--cli", *asked, *self.where]

    def __call__(self, method: str, *options: str, era: str = "legacy", status: int = 0) -> dict[str, Any]:
        asked = self.asking(method, *options, era=era)
        try:
            done = subprocess.run(
                asked,
                env=self.environment,
                capture_output=True,
                encoding="utf-8",
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            pytest.fail(f"{method} did not end within {PATIENCE:g} s; on stderr: {late.stderr!r}")
        assert done.returncode == status, (
            f"{method} ended with {done.returncode}:\n{done.stderr}{done.stdout}"
        )
        return json.loads(done.stdout)["result"]


@pytest.fixture
def inspect(probe: Where, node_environment: Mapping[str, str], tmp_path: Path) -> Inspector:
    return Inspector(probe, node_environment, tmp_path)


eras = pytest.mark.parametrize("era", ["legacy", "modern"])


@eras
def test_tools_are_listed_and_their_schemas_are_portable(inspect: Inspector, era: str) -> None:
    tools = inspect("tools/list", "--strict", era=era)["tools"]
    assert {"noop", "echo", "typed", "guarded"} <= {tool["name"] for tool in tools}


@eras
def test_a_tool_is_called(inspect: Inspector, era: str) -> None:
    result = inspect("tools/call", "--tool-name", "add", "--tool-arg", "a=2", "b=3", era=era)
    assert result["content"] == [{"type": "text", "text": "5"}]
    assert not result.get("isError")


def test_a_structured_result_is_shown(inspect: Inspector) -> None:
    result = inspect("tools/call", "--tool-name", "typed", "--tool-args-json", "{}")
    assert result["structuredContent"] == {"name": "typed", "total": 3, "tags": ["a", "b"]}


def test_a_failed_call_is_an_error_of_the_tool(inspect: Inspector) -> None:
    told = ("--tool-name", "fail_tool_error", "--tool-arg", "message=nothing found")
    result = inspect("tools/call", *told, status=TOOL_IS_ERROR)
    assert result["isError"] is True
    assert "nothing found" in result["content"][0]["text"]


@eras
def test_resources_are_listed_and_read(inspect: Inspector, era: str) -> None:
    assert [one["uri"] for one in inspect("resources/list", era=era)["resources"]] == ["config://settings"]
    (content,) = inspect("resources/read", "--uri", "notes://today", era=era)["contents"]
    assert content["text"] == "buy milk"


def test_templates_are_listed(inspect: Inspector) -> None:
    (template,) = inspect("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "notes://{name}"


def test_prompts_are_listed_and_filled_in(inspect: Inspector) -> None:
    assert [one["name"] for one in inspect("prompts/list")["prompts"]] == ["greet"]
    got = inspect("prompts/get", "--prompt-name", "greet", "--prompt-args", "name=Ada", "style=formal")
    assert got["messages"][0]["content"]["text"] == "Greet Ada in a formal way."


def test_the_log_level_can_be_set(inspect: Inspector) -> None:
    assert inspect("logging/setLevel", "--log-level", "warning") is not None


@eras
def test_a_call_that_reports_progress_ends_with_its_result(inspect: Inspector, era: str) -> None:
    result = inspect("tools/call", "--tool-name", "unhurried_progress", "--tool-arg", "steps=3", era=era)
    assert result["content"] == [{"type": "text", "text": "3 steps"}]


def test_an_interrupted_call_is_cancelled(
    probe_url: str, node_environment: Mapping[str, str], tmp_path: Path
) -> None:
    """Where one command's call can be seen by another: over HTTP, in the revision where to leave is to cancel."""
    inspect = Inspector(probe_url, node_environment, tmp_path)
    held = ("--tool-name", "held", "--tool-arg")
    asked = inspect.asking("tools/call", "--tool-name", "hold", era="modern")
    with subprocess.Popen(asked, env=inspect.environment, stdout=subprocess.DEVNULL) as process:
        try:
            inspect("tools/call", *held, "count=1", era="modern")
        finally:
            process.terminate()
        process.wait(PATIENCE)
    assert inspect("tools/call", *held, "count=0", era="modern")["content"][0]["text"] == "0 held"
