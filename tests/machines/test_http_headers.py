"""The gate and the ladder, rung by rung and all rungs against each other."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from stanchion.machines.http_headers import (
    Expected,
    Gate,
    check_method,
    check_name,
    check_notification,
    check_params,
    check_version,
    decode_value,
    is_loopback,
    named_by,
)
from stanchion.wire.errors import HeaderMismatch, InvalidParams, McpError, MethodNotFound, UnsupportedVersion
from stanchion.wire.model import Meta

MODERN = "2026-07-28"
HERE, ELSEWHERE = "127.0.0.1", "10.0.0.5"

# -- the gate


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "::ffff:127.0.0.1"]
)
def test_loopback(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize(
    "address", ["", "0.0.0.0", "10.0.0.1", "::", "127.0.0.1.evil", "localhost.evil", "fe80::1"]
)
def test_not_loopback(address: str) -> None:
    assert not is_loopback(address)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:65535", "[::1]", "[::1]:1"]
)
def test_local_names_are_taken_on_a_local_address(host: str) -> None:
    assert Gate().refuse(host, None, HERE) is None


TRICKS = [
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example:80",
    "localhost@evil.example",
    "evil.example#localhost",
    "localhost:80.evil.example",
    "localhost:",
    "localhost:x",
    "localhost:123456",
    " localhost",
    "localhost ",
    "localhost\n",
    "localhost, localhost",
    "127.0.0.1%00.evil.example",
    "::1",
    "",
    "2130706433",
    "localhost/",
]


@pytest.mark.parametrize("host", [None, *TRICKS])
def test_no_other_name_is(host: str | None) -> None:
    assert Gate().refuse(host, None, HERE)


@pytest.mark.parametrize(
    "origin", ["null", "localhost", "file://", "ws://localhost", *(f"http://{trick}" for trick in TRICKS)]
)
def test_no_foreign_origin_is_taken(origin: str) -> None:
    assert Gate().refuse("localhost", origin, HERE)
    assert Gate().refuse("api.example", origin, ELSEWHERE)
    assert Gate(hosts=("localhost",)).refuse("localhost", origin, ELSEWHERE)


@pytest.mark.parametrize(
    "origin", ["http://localhost", "https://LOCALHOST:6274", "http://127.0.0.1:1", "http://[::1]:3"]
)
def test_local_origins_are_taken_on_a_local_address_alone(origin: str) -> None:
    assert Gate().refuse("localhost:80", origin, HERE) is None
    assert Gate().refuse("10.0.0.5", origin, ELSEWHERE)


def test_elsewhere_any_host_is_taken_and_no_origin_that_is_not_listed() -> None:
    gate = Gate()
    assert gate.refuse("anything", None, ELSEWHERE) is None
    assert gate.refuse("evil.example", "http://evil.example", ELSEWHERE), "a rebound name is its own origin"
    assert Gate(origins=("https://App.example/",)).refuse("x", "https://app.example", ELSEWHERE) is None


def test_named_hosts_hold_everywhere() -> None:
    gate = Gate(hosts=("mcp.example", "other.example:8443"))
    for address in (HERE, ELSEWHERE, ""):
        assert gate.refuse("mcp.example:99", None, address) is None
        assert gate.refuse("other.example:8443", None, address) is None
        assert gate.refuse("other.example", None, address)
        assert gate.refuse("localhost", None, address)
        assert gate.refuse("mcp.example", "https://mcp.example", address) is None
        assert gate.refuse("mcp.example", "https://other.example:8443", address) is None
        assert gate.refuse("mcp.example", "https://other.example", address)
    tls = Gate(hosts=("mcp.example:443",))
    assert tls.refuse("mcp.example:443", "https://mcp.example", ELSEWHERE) is None
    assert tls.refuse("mcp.example:443", "http://mcp.example", ELSEWHERE)


def test_stars_open_what_they_stand_for() -> None:
    assert Gate(hosts=("*",)).refuse("evil.example", None, HERE) is None
    assert Gate(hosts=("*",)).refuse("evil.example", "http://evil.example", HERE)
    assert Gate(origins=("*",)).refuse("localhost", "null", HERE) is None


# -- the ladder


def meta(version: Any = MODERN, capabilities: Any = None) -> Meta:
    return Meta(protocol_version=version, client_capabilities={} if capabilities is None else capabilities)


def fault(check: Any, *arguments: Any, **options: Any) -> type[McpError] | None:
    try:
        check(*arguments, **options)
    except McpError as error:
        return type(error)
    return None


V = "mcp-protocol-version"


@pytest.mark.parametrize(
    ("headers", "found", "expected"),
    [
        ({V: MODERN}, meta(), None),
        ({}, meta(), HeaderMismatch),
        ({}, None, HeaderMismatch),
        ({}, meta("v999"), HeaderMismatch),
        ({V: MODERN}, None, InvalidParams),
        ({V: MODERN}, InvalidParams("x"), InvalidParams),
        ({V: MODERN}, meta(UNSET), InvalidParams),
        ({V: MODERN}, meta(MODERN, UNSET), InvalidParams),
        ({V: "v999"}, meta("v998", UNSET), InvalidParams),
        ({V: MODERN}, meta("v999"), HeaderMismatch),
        ({V: "v999"}, meta(), HeaderMismatch),
        ({V: f"{MODERN}, {MODERN}"}, meta(), HeaderMismatch),
        ({V: "v999"}, meta("v999"), UnsupportedVersion),
        ({V: "2025-11-25"}, meta("2025-11-25"), UnsupportedVersion),
    ],
)
def test_versions(headers: dict[str, str], found: Any, expected: type[McpError] | None) -> None:
    assert fault(check_version, headers, found) is expected


@pytest.mark.parametrize(
    ("headers", "known", "expected"),
    [
        ({"mcp-method": "a/b"}, True, None),
        ({}, True, HeaderMismatch),
        ({"mcp-method": "A/b"}, True, HeaderMismatch),
        ({"mcp-method": "x"}, False, HeaderMismatch),
        ({"mcp-method": "a/b"}, False, MethodNotFound),
    ],
)
def test_methods(headers: dict[str, str], known: bool, expected: type[McpError] | None) -> None:
    assert fault(check_method, headers, "a/b", known=known) is expected


def test_three_methods_are_named() -> None:
    named = {
        method: named_by(method) for method in ("tools/call", "prompts/get", "resources/read", "tools/list")
    }
    assert named == {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tools/list": None}


def wrapped(text: str) -> str:
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@given(st.text())
def test_an_encoded_name_is_the_name(name: str) -> None:
    if name.isprintable() or name.isascii():
        check_name({"mcp-name": wrapped(name)}, name)
    assert fault(check_name, {"mcp-name": wrapped(name)}, name + "x") is HeaderMismatch


@given(st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), min_size=1))
def test_a_plain_name_is_itself(name: str) -> None:
    if not name.startswith("=?base64?"):
        assert decode_value(name, "x") == name
        assert decode_value(f" \t{name} ", "x") == name


@given(st.text())
def test_any_value_is_read_or_refused(value: str) -> None:
    assert fault(check_name, {"mcp-name": value}, object()) is HeaderMismatch


@pytest.mark.parametrize(
    "value",
    [
        "=?base64?ZWNobw?=",
        "=?base64?ZWNobw=?=",
        "=?base64?ZWNobw===?=",
        "=?base64?ZWNo bw==?=",
        "=?base64?ZWNo\nbw==?=",
        "=?base64?ZWNobx==?=",
        "=?base64?ZWNv!w==?=",
        "=?base64?_-==?=",
        "=?base64?//8=?=",
        "=?base64?é?=",
        "é",
        "a\0b",
    ],
)
def test_what_is_badly_encoded_is_refused(value: str) -> None:
    assert fault(check_name, {"mcp-name": value}, "echo") is HeaderMismatch


@pytest.mark.parametrize(
    "value", ["=?BASE64?ZWNobw==?=", "=?base64?ZWNobw==", "=?utf-8?ZWNobw==?=", "ZWNobw=="]
)
def test_other_forms_mean_what_they_say(value: str) -> None:
    check_name({"mcp-name": value}, value)


def test_a_name_must_be_there() -> None:
    assert fault(check_name, {}, "echo") is HeaderMismatch
    assert fault(check_name, {"mcp-name": "echo"}, None) is HeaderMismatch
    assert fault(check_name, {"mcp-name": "5"}, 5) is HeaderMismatch


@pytest.mark.parametrize(
    ("kind", "value", "given_", "agrees"),
    [
        ("string", "a", "a", True),
        ("string", "a", "A", False),
        ("string", "é", wrapped("é"), True),
        ("string", "", wrapped(""), True),
        ("string", "a", None, False),
        ("string", None, None, True),
        ("string", None, "", False),
        ("integer", 42, "42", True),
        ("integer", 42, "42.0", True),
        ("integer", 42.0, "42", True),
        ("integer", -1, "-1", True),
        ("integer", 42, "42.5", False),
        ("integer", 42, "4e1", False),
        ("integer", 42, "0x2a", False),
        ("integer", 42, "٤٢", False),
        ("integer", 42, "9" * 5000, False),
        ("integer", True, "1", False),
        ("integer", "42", "42", False),
        ("boolean", True, "true", True),
        ("boolean", False, "false", True),
        ("boolean", True, "True", False),
        ("boolean", 1, "true", False),
    ],
)
def test_arguments(kind: Any, value: Any, given_: str | None, agrees: bool) -> None:
    headers = {} if given_ is None else {"mcp-param-my-arg": given_}
    expected = None if agrees else HeaderMismatch
    assert fault(check_params, headers, [Expected("My-Arg", kind, value)]) is expected


def test_headers_that_nothing_asks_for_are_ignored() -> None:
    check_params({"mcp-param-other": "\0"}, [])


def test_a_notification_may_say_nothing_but_nothing_wrong() -> None:
    for headers in ({}, {V: MODERN}, {"mcp-method": "n"}):
        check_notification(headers, "n", meta())
    check_notification({V: "other"}, "n", None)
    check_notification({V: "other"}, "n", InvalidParams("x"))
    assert fault(check_notification, {"mcp-method": "m"}, "n", meta()) is HeaderMismatch
    assert fault(check_notification, {V: "other"}, "n", meta()) is HeaderMismatch
