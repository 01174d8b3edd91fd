"""Validators are compiled once, shared, and never repeat what the caller sent."""

from __future__ import annotations

import builtins
import gc
import http.server
import importlib
import json
import pathlib
import threading
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stanchion.registry import validation
from stanchion.registry.validation import (
    BACKTRACK_LIMIT,
    MAX_FAULTS,
    Compiled,
    Validators,
    admits_null,
    canonical,
    compile_pattern,
    unknown,
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 30, "maxLength": 40, "pattern": "^~+$"},
        "number": {"type": "integer", "minimum": 10, "exclusiveMaximum": 5, "multipleOf": 7},
        "choice": {"enum": ["left", "right"]},
        "fixed": {"const": {"deep": True}},
        "union": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        "objects": {
            "oneOf": [
                {"type": "object", "properties": {"x": {"type": "null"}}, "required": ["x"]},
                {"type": "null"},
            ]
        },
        "items": {
            "type": "array",
            "items": {"type": "null"},
            "minItems": 9,
            "uniqueItems": True,
            "contains": {"const": 1},
        },
        "inner": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"known": {}},
            "maxProperties": 0,
        },
        "never": False,
        "nothing": {"not": {}},
        "names": {"propertyNames": {"pattern": "^never$"}},
        "some": {"type": "array", "prefixItems": [{"type": "null"}], "items": False},
        "unevaluated": {"type": "object", "unevaluatedProperties": False},
        "dependent": {"dependentRequired": {"a": ["b"]}, "if": {"type": "string"}, "then": False},
    },
    "required": ["missing"],
    "additionalProperties": False,
}
SECRET = "zqxj" + "0123456789"
LEAVES = st.one_of(
    st.just(SECRET),
    st.integers(10**6, 10**9).map(lambda n: n * 1000 + 77),
    st.floats(123456.5, 1e9).map(lambda f: f + 0.25),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abx"), inner, max_size=3)
    ),
    max_leaves=6,
)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in leaves(one)]
    if isinstance(value, list):
        return [leaf for one in value for leaf in leaves(one)]
    return [value]


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "strange"]), VALUES))
def test_no_value_of_the_caller_is_in_a_fault(value: dict[str, Any]) -> None:
    told = json.dumps([[fault.path, fault.message] for fault in Compiled(SCHEMA).faults(value)])
    for leaf in leaves(value):
        assert str(leaf) not in told
        assert json.dumps(leaf) not in told


# The other library gives no path for what fails a schema that is just false.
COMMON = sorted(SCHEMA["properties"].keys() - {"never", "some", "dependent"})


@given(st.dictionaries(st.sampled_from([*COMMON, "strange"]), VALUES, max_size=4))
@settings(max_examples=30)
def test_both_libraries_tell_the_same_arguments(value: dict[str, Any]) -> None:
    pytest.importorskip("jsonschema")
    fast = Compiled(SCHEMA)
    slow = Compiled(SCHEMA)
    slow._is_valid, slow._iterate = validation._fallback(SCHEMA)
    assert fast.is_valid(value) == slow.is_valid(value)
    if len(fast.faults(value)) < MAX_FAULTS:
        assert {fault.path for fault in fast.faults(value)} == {fault.path for fault in slow.faults(value)}


@pytest.mark.parametrize(
    ("schema", "value", "path", "message"),
    [
        ({"type": "integer"}, "x", "", "must be an integer"),
        ({"type": ["integer", "null"]}, "x", "", "must be an integer or null"),
        ({"type": "object", "required": ["a"]}, {}, "a", "is required"),
        (
            {"type": "object", "properties": {"order": {}}, "additionalProperties": False},
            {"oder": 1},
            "oder",
            "is unknown: did you mean order?",
        ),
        (
            {"type": "object", "properties": {"a": {"items": {"minimum": 3}}}},
            {"a": [5, 1]},
            "a[1]",
            "must be at least 3",
        ),
        ({"enum": ["a", "b"]}, "c", "", 'must be one of "a", "b"'),
        ({"const": 3}, 4, "", "must be 3"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", "", "must be an integer or null"),
        ({"anyOf": [{"minimum": 3}, {"const": 1}]}, 0, "", "must be at least 3 or 1"),
        (
            {"anyOf": [{"type": "object", "required": ["a"]}, {"type": "null"}]},
            {},
            "",
            "fits none of the allowed forms: a is required",
        ),
        ({"oneOf": [{}, {}]}, 1, "", "must be of exactly one of the allowed forms"),
        ({"pattern": "^a"}, "b", "", 'must match the pattern "^a"'),
        ({"uniqueItems": True}, [1, 1], "", "must not hold the same item twice"),
        (False, 1, "", "must not be given"),
    ],
)
def test_faults_are_sentences(schema: Any, value: Any, path: str, message: str) -> None:
    if schema is False:
        schema, value, path = {"properties": {"a": False}}, {"a": value}, "a"
    (fault,) = Compiled(schema).faults(value)
    assert (fault.path, fault.message) == (path, message)


def test_faults_are_bounded() -> None:
    compiled = Compiled({"items": {"type": "null"}})
    assert len(compiled.faults(list(range(10_000)))) == MAX_FAULTS


@pytest.mark.parametrize("value", ["a\ud800", {1: 2}, object()])
def test_what_is_no_json_fits_nothing(value: Any) -> None:
    compiled = Compiled({"additionalProperties": {"type": "string"}, "maxLength": 9})
    assert not compiled.is_valid(value)
    assert compiled.faults(value)


def test_a_pattern_that_goes_back_and_forth_ends() -> None:
    compiled = Compiled({"pattern": r"^(?=a)(a+)+\1$"})
    assert not compiled.is_valid("a" * 200 + "b")
    assert BACKTRACK_LIMIT


def test_patterns_compile_or_say_so() -> None:
    assert compile_pattern("^[a-z]+$") is None
    assert compile_pattern("(") is not None


def test_equal_schemas_share_one_compiled() -> None:
    validators = Validators()
    one = validators.share(Compiled({"type": "object", "properties": {}}))
    other = validators.share(Compiled({"properties": {}, "type": "object"}))
    assert one is other
    assert validators.knows(canonical({"type": "object", "properties": {}}))
    del one, other
    gc.collect()
    assert len(validators) == 0


def test_a_name_that_is_unknown_gets_a_hint() -> None:
    assert unknown("txet", ["text"]) == "is unknown: did you mean text?"
    assert "nothing is expected" in unknown("a", [])
    assert "…" in unknown("zzz", [f"name{i}" for i in range(50)])


@pytest.mark.parametrize(
    ("schema", "admits"),
    [
        ({}, True),
        (True, True),
        (False, False),
        ({"type": "null"}, True),
        ({"type": "string"}, False),
        ({"type": ["string", "null"]}, True),
        ({"enum": ["a"]}, False),
        ({"enum": ["a", None]}, True),
        ({"const": None}, True),
        ({"const": 1}, False),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, False),
        ({"$ref": "#/x"}, True),
    ],
)
def test_whether_null_is_admitted(schema: Any, admits: bool) -> None:
    assert admits_null(schema) is admits


def test_without_the_compiled_library_the_other_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jsonschema")
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "jsonschema_rs":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    compiled = Compiled(
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "required": ["b"],
            "additionalProperties": False,
        }
    )
    assert {fault.path for fault in compiled.faults({"a": "x", "c": 1})} == {"a", "b", "c"}
    assert validation.misuse({"type": "strin"}, resolve=False)
    assert validation.misuse({"type": "string"}, resolve=True) is None
    assert compile_pattern("(")
    assert importlib.import_module("jsonschema")


class Counting(http.server.BaseHTTPRequestHandler):
    """Answers every request with a schema that admits everything, and counts."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_nothing_is_fetched(tmp_path: pathlib.Path) -> None:
    (tmp_path / "any.json").write_text("{}")
    with http.server.HTTPServer(("127.0.0.1", 0), Counting) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            for target in (
                f"http://127.0.0.1:{server.server_port}/x",
                (tmp_path / "any.json").as_uri(),
                "other",
            ):
                schema = {"$ref": target}
                assert validation.misuse(schema, resolve=True)
                with pytest.raises(ValueError, match=r".+"):
                    Compiled(schema)._compile()
                slow = validation._fallback(schema)[0]
                with pytest.raises(Exception, match=r"(?i)unresolv|unretriev|referenc"):
                    slow({})
        finally:
            server.shutdown()
            thread.join()
    assert Counting.asked == []
