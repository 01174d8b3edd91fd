"""Each option's range, told in one sentence, all faults at once."""

from __future__ import annotations

import math
from typing import Any

import pytest

from stanchion.server.config import FEATURES, Config, InvalidConfig

COUNTS = [
    "max_in_flight",
    "max_in_flight_per_connection",
    "max_in_flight_per_principal",
    "max_message_bytes",
    "max_depth",
    "max_batch",
    "max_outbox_bytes",
    "max_result_bytes",
    "max_body_bytes",
    "max_header_bytes",
    "max_headers",
    "max_sessions",
    "event_store_messages",
    "event_store_bytes",
    "event_store_streams",
    "page_size",
    "max_client_capabilities",
    "max_listeners",
    "max_subscriptions",
]
SPANS = [
    "callback_timeout",
    "kill_grace",
    "stall_limit",
    "body_timeout",
    "head_timeout",
    "keep_alive",
    "reader_timeout",
    "session_idle",
    "event_store_seconds",
    "list_changed_window",
]
WAITS = ["drain", "busy_retry_after", "reconnect_after"]


def faults(**options: Any) -> list[str]:
    with pytest.raises(InvalidConfig) as caught:
        Config(**options)
    return str(caught.value).split("\n")


@pytest.mark.parametrize("value", [0, -1])
@pytest.mark.parametrize("name", COUNTS)
def test_a_count_is_at_least_one(name: str, value: int) -> None:
    assert f"{name} must be at least 1, not {value}" in faults(**{name: value})


@pytest.mark.parametrize("value", [0, -0.5, math.nan])
@pytest.mark.parametrize("name", SPANS)
def test_a_span_is_more_than_nothing(name: str, value: float) -> None:
    assert faults(**{name: value}) == [f"{name} must be more than 0 seconds, not {value}"]


@pytest.mark.parametrize("value", [0, -1, math.nan])
def test_a_rate_is_more_than_nothing(value: float) -> None:
    (fault,) = faults(notices_per_second=value)
    assert fault.startswith("notices_per_second must be more than 0")
    assert "seconds," not in fault


@pytest.mark.parametrize("value", [-0.1, math.nan])
@pytest.mark.parametrize("name", WAITS)
def test_a_wait_may_be_nothing_but_no_less(name: str, value: float) -> None:
    (fault,) = faults(**{name: value})
    assert fault.startswith(f"{name} must ")
    assert str(value) in fault
    assert getattr(Config(**{name: 0}), name) == 0


@pytest.mark.parametrize("name", ["max_in_flight_per_connection", "max_in_flight_per_principal"])
def test_a_share_is_part_of_the_whole(name: str) -> None:
    assert faults(max_in_flight=4, **{name: 5}) == [f"{name} (5) may not exceed max_in_flight (4)"]
    Config(max_in_flight=4, **{name: 4})


def test_words_are_of_the_vocabulary() -> None:
    (fault,) = faults(log_level="loud")
    assert fault.startswith("log_level must be one of debug, info, ")
    assert fault.endswith("not 'loud'")
    assert faults(offers=("tools", "magic", "x")) == [
        f"offers must name only {', '.join(FEATURES)}, not 'magic', 'x'"
    ]


@pytest.mark.parametrize("name", ["allowed_hosts", "allowed_origins"])
def test_several_names_are_no_single_text(name: str) -> None:
    assert faults(**{name: "localhost"}) == [f"{name} must be a tuple of texts, not one text"]


def test_all_faults_are_told_at_once() -> None:
    told = faults(
        max_in_flight=0,
        max_in_flight_per_connection=3,
        page_size=-1,
        kill_grace=0,
        drain=-1,
        busy_retry_after=-1,
        log_level="loud",
        offers=("x",),
    )
    assert [one.split()[0] for one in told] == [
        "max_in_flight",
        "page_size",
        "kill_grace",
        "max_in_flight_per_connection",
        "drain",
        "busy_retry_after",
        "log_level",
        "offers",
    ]


@pytest.mark.parametrize(("total", "share"), [(1, 1), (2, 1), (3, 1), (32, 16)])
def test_a_connection_s_share_is_half_and_at_least_one(total: int, share: int) -> None:
    config = Config(max_in_flight=total)
    assert (config.connection_share, config.principal_share) == (share, share)


def test_a_principal_s_share_is_its_connection_s_unless_given() -> None:
    assert Config(max_in_flight_per_connection=3).principal_share == 3
    assert Config(max_in_flight_per_connection=3, max_in_flight_per_principal=5).principal_share == 5


def test_the_defaults_are_those_that_are_promised() -> None:
    """A10, E3, E4, C8."""
    config = Config()
    assert (config.max_in_flight, config.callback_timeout, config.kill_grace, config.stall_limit) == (
        32,
        300,
        0.1,
        1,
    )
    assert (config.drain, config.max_message_bytes, config.max_depth, config.max_batch) == (
        5,
        16 * 2**20,
        128,
        100,
    )
    assert (config.page_size, config.list_changed_window, config.max_client_capabilities) == (1000, 0.1, 1024)
    assert config.max_result_bytes is None
    assert config.offers == FEATURES
