"""The official conformance suite, one test a scenario. There is no list of failures that are expected.

Scored and unscored scenarios alike must pass, but for those about tasks. A warning is a recommendation not followed, and
fails too; a scenario that found nothing to check has not passed.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.conformance.suite import PACKAGE, Requirements, Run, requirements, run

SETS = {"2025-11-25": 30, "2026-07-28": 37}
"""Scored scenarios of each set, as released."""
BAD = {"FAILURE", "WARNING"}
NOTHING_OF_OURS = "tasks-"
"""How the scenarios of an extension begin that this server does not offer."""
DETAILS = 1500
"""Characters of a check's details that are shown."""

INSTALLED = PACKAGE.is_dir()
REQUIRED = {revision: requirements(revision) if INSTALLED else Requirements() for revision in SETS}
SCENARIOS = [
    pytest.param(revision, scenario, id=f"{revision}-{scenario}")
    for revision, required in REQUIRED.items()
    for scenario in [*required.scored, *required.unscored]
    if not scenario.startswith(NOTHING_OF_OURS)
]


class Runs(dict[str, Run]):
    """A run of each set, made when its first scenario is asked for."""

    def __init__(self, url: str, folders: pytest.TempPathFactory) -> None:
        super().__init__()
        self.url = url
        self.folders = folders

    def __missing__(self, revision: str) -> Run:
        try:
            self[revision] = run(revision, self.url, self.folders.mktemp(revision))
        except subprocess.TimeoutExpired as late:
            pytest.fail(f"the suite did not end within {late.timeout:g} s; it said:\n{late.output!r}")
        return self[revision]


@pytest.fixture(scope="session")
def runs(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(server_url, tmp_path_factory)


def told(check: dict[str, Any]) -> str:
    """A check in words: which, what it wants, what was wrong, what it saw."""
    lines = [f"{check['status']} {check['id']}: {check['description']}"]
    lines += [check["errorMessage"]] if "errorMessage" in check else []
    lines += [json.dumps(check["details"])[:DETAILS]] if check.get("details") else []
    return "\n    ".join(lines)


@pytest.mark.parametrize("revision", SETS)
def test_the_whole_set_is_known(revision: str) -> None:
    assert INSTALLED, "tests/conformance/node_modules lacks the suite: run `make node` to install it"
    assert len(REQUIRED[revision].scored) == SETS[revision]


@pytest.mark.parametrize(("revision", "scenario"), SCENARIOS)
def test_a_scenario_passes(runs: Runs, revision: str, scenario: str) -> None:
    checks = runs[revision].checks.get(scenario, [])
    bad = [told(check) for check in checks if check["status"] in BAD]
    if bad:
        pytest.fail(f"{scenario} at {revision}:\n" + "\n".join(bad), pytrace=False)
    if not any(check["status"] == "SUCCESS" for check in checks):
        pytest.fail(f"{scenario} checked nothing; the suite said:\n{runs[revision].output}", pytrace=False)


@pytest.mark.parametrize("revision", SETS)
def test_the_suite_says_so_itself(runs: Runs, revision: str) -> None:
    done = runs[revision]
    if done.status:
        pytest.fail(f"the suite ended with {done.status}:\n{done.output}", pytrace=False)
