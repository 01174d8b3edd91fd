"""The driver is judged too: a peer that only repeats what it hears must fail the rows that ask for an answer."""

from __future__ import annotations

import dataclasses

import pytest

from tests.cases.checks import judge
from tests.cases.driver import Driver
from tests.cases.rows import stdio_rows

REPEATER = ("cat",)
UNMET = {"B04", "C18", "D03", "D10", "E14", "F01", "G01", "G11", "H06", "H07", "I03", "I04"}
"""Rows that ask for answers and nothing slow."""


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in stdio_rows() if row.id in UNMET])
def test_a_peer_that_repeats_what_it_hears_fails(row) -> None:
    with Driver(dataclasses.replace(row, timeout=0.2), REPEATER) as driver:
        assert judge(row.check, driver.play()) is not None


def test_a_peer_that_ends_with_its_input_passes_the_row_about_that() -> None:
    row = next(row for row in stdio_rows() if row.id == "A02")
    quick = [step for step in row.send if not (isinstance(step, dict) and step.get("op") == "await_response")]
    with Driver(dataclasses.replace(row, send=quick), REPEATER) as driver:
        assert judge(row.check, driver.play()) is None


def test_a_check_nobody_knows_is_a_fault() -> None:
    row = next(row for row in stdio_rows() if row.id == "A02")
    with Driver(dataclasses.replace(row, send=[], check={}), REPEATER) as driver:
        assert "unknown check" in (judge({"all": [{"no_such_check": 1}]}, driver.play()) or "")
