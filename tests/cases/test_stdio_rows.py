"""Every reported failure on stdio, replayed against the probe server."""

from __future__ import annotations

import sys
from typing import Final

import pytest

from tests.cases.checks import judge
from tests.cases.driver import Driver
from tests.cases.rows import NEEDS_ASKING, Row, all_rows, stdio_rows

COMMAND: Final = (sys.executable, "-m", "stanchion", "run", "examples/probe.py")


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in stdio_rows()])
def test_row(row: Row) -> None:
    if row.id in NEEDS_ASKING:
        pytest.skip("needs asking the client, which this version does not have")
    with Driver(row, COMMAND) as driver:
        seen = driver.play()
        fault = judge(row.check, seen)
        faults = driver.schema_faults()
        stderr = driver.server.stderr()[-2000:]
    assert fault is None, f"{row.expect}\n{fault}\nstderr: {stderr}"
    assert not faults, "\n".join(faults[:10])


def test_the_rows_left_out_are_exactly_those_that_answer_the_server() -> None:
    known = {row.id for row in all_rows()}
    assert known >= NEEDS_ASKING
    assert {row.id for row in stdio_rows() if row.awaits_a_server_request} == NEEDS_ASKING


def test_no_row_is_lost() -> None:
    ids = [row.id for row in all_rows()]
    assert len(ids) == len(set(ids)) == 120
    assert len(stdio_rows()) == 98
