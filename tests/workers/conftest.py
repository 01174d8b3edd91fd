from __future__ import annotations

import pytest

from tests.workers.crews import MADE
from tests.workers.letterbox import Letterbox, await_no_thread


@pytest.fixture
def box() -> Letterbox:
    return Letterbox()


@pytest.fixture(autouse=True)
def _no_crew_outlives_its_test():
    yield
    while MADE:
        MADE.pop().close()
    await_no_thread()
