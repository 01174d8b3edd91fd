"""The token bucket beside the obvious bound: no stretch of time lets more through than its length allows."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stanchion.machines.throttle import Throttle

# Powers of two and eighths of a second, so that the machine's arithmetic is exact.
RATES = st.sampled_from([0.25, 0.5, 1.0, 2.0, 4.0, 64.0])
STEPS = st.lists(st.integers(-8, 40).map(lambda eighths: eighths / 8), max_size=120)


@given(RATES, STEPS)
def test_no_stretch_lets_more_through_than_it_may(rate: float, steps: list[float]) -> None:
    throttle, now, latest = Throttle(rate, 100.0), 100.0, 100.0
    passed: list[float] = []
    burst = max(1.0, rate)
    for step in steps:
        now += step
        latest = max(latest, now)  # a clock that is set back counts as one that stands
        if throttle.take(now):
            passed.append(latest)
    for first, start in enumerate(passed):
        for last in range(first, len(passed)):
            assert last - first + 1 <= burst + rate * (passed[last] - start)


@given(RATES, STEPS)
def test_it_holds_back_nothing_that_may_pass(rate: float, steps: list[float]) -> None:
    throttle, now = Throttle(rate, 0.0), 0.0
    burst = Fraction(max(1.0, rate))
    tokens = burst
    for step in steps:
        if step > 0:
            now += step
            tokens = min(burst, tokens + Fraction(rate) * Fraction(step))
        may = tokens >= 1
        assert throttle.take(now) == may
        tokens -= may


@pytest.mark.parametrize("rate", [0.1, 1.0, 50.0])
def test_after_a_rest_one_passes(rate: float) -> None:
    throttle = Throttle(rate, 0.0)
    for _ in range(1000):
        throttle.take(0.0)
    assert not throttle.take(0.0)
    assert throttle.take(1.01 / rate)
    assert not throttle.take(1.01 / rate)


def test_a_second_s_worth_passes_at_once_and_no_more() -> None:
    throttle = Throttle(50.0, 7.0)
    assert sum(throttle.take(7.0) for _ in range(500)) == 50
    assert sum(throttle.take(1000.0) for _ in range(500)) == 50
