"""Every row whose transport is HTTP, replayed against the probe server."""

from __future__ import annotations

import sys
from typing import Final

import pytest

from tests.cases.http_driver import HttpDriver
from tests.cases.rows import Row, all_rows

COMMAND: Final = (sys.executable, "-m", "stanchion", "run", "examples/probe.py", "--sse")

NEEDS_APPROVALS: Final = frozenset({"F08", "F12"})
"""Rows in which a person is asked through the client before a call may run."""

ROWS: Final = [row for row in all_rows() if row.transport == "http"]


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in ROWS])
def test_row(row: Row) -> None:
    if row.id in NEEDS_APPROVALS:
        pytest.skip("needs asking for approval, which this version does not have")
    with HttpDriver(row, COMMAND) as driver:
        fault = driver.play()
        stderr = driver.stderr()[-2000:]
    assert fault is None, f"{row.expect}\n{fault}\nstderr: {stderr}"
    assert "Traceback" not in stderr


def test_the_rows_left_out_are_exactly_those_that_ask() -> None:
    asking = {
        row.id
        for row in ROWS
        if any("await_request" in step.get("http", {}) for step in row.send if isinstance(step, dict))
    }
    assert asking == NEEDS_APPROVALS


def test_no_row_is_lost() -> None:
    assert len(ROWS) == 22
