"""What every test shares: the hypothesis profiles, a printed seed, the asyncio backend, and who is slow.

``STANCHION_TEST_PROFILE`` chooses the profile; nothing else reads it. ``quick`` (the default) draws a fresh seed and
prints it, so that a failure can be repeated with ``--hypothesis-seed``. ``ci`` is long and draws the same examples
every time, and it also runs the tests marked ``slow``.
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import HealthCheck, settings

PROFILE = os.environ.get("STANCHION_TEST_PROFILE", "quick")

settings.register_profile("quick", deadline=None, max_examples=60, stateful_step_count=30)
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=400,
    stateful_step_count=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(PROFILE)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Fix the seed before hypothesis' own plugin looks; workers of a parallel run get it with the options."""
    if PROFILE == "quick" and getattr(config.option, "hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def pytest_report_header(config: pytest.Config) -> str:
    seed = getattr(config.option, "hypothesis_seed", None)
    return f"hypothesis profile {PROFILE}, " + (f"seed {seed}" if seed else "examples derived from the tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if PROFILE == "ci":
        return
    skip = pytest.mark.skip(reason="slow: runs with STANCHION_TEST_PROFILE=ci")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
