"""Errors are told to a model in words, and cross process borders whole."""

from __future__ import annotations

import pickle

import pytest

from stanchion.registry.errors import (
    MAX_FAULTS_TOLD,
    Fault,
    InvalidArguments,
    InvalidDefinitions,
    NameCollision,
    ToolError,
    UnderivableSignature,
    Unrenderable,
    describe_faults,
    path_of,
    tell_name,
)


@pytest.mark.parametrize(
    "error",
    [
        ToolError("no such order", fault=True),
        InvalidDefinitions([(2, ["bad name"])]),
        NameCollision([("a.b", "a_b")]),
        InvalidArguments([Fault("a", "is required")]),
        Unrenderable("It cannot."),
        UnderivableSignature("f (x.py:1): no; yes."),
    ],
)
def test_errors_survive_pickling(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__


def test_a_tool_error_is_no_fault_unless_it_says_so() -> None:
    assert not ToolError("x").fault
    assert ToolError("x").text == "x"


def test_every_fault_is_listed_with_its_index() -> None:
    error = InvalidDefinitions([(0, ["one", "two"]), (3, ["three"])])
    assert error.faults == ((0, ("one", "two")), (3, ("three",)))
    assert "definition 3: three" in str(error)
    assert str(NameCollision([("a.b", "a_b")])).count("a_b") == 1


def test_a_description_names_each_argument_and_is_bounded() -> None:
    text = describe_faults("add", [Fault("a", "is required"), Fault("", "do not fit")])
    assert text == "Invalid arguments for add:\n- a is required\n- do not fit"
    many = describe_faults("add", [Fault(f"a{i}", "is required") for i in range(100)])
    assert many.count("\n") == MAX_FAULTS_TOLD + 1
    assert many.endswith("and 80 more")


def test_names_of_the_caller_are_cut_and_printable() -> None:
    assert path_of(["order", "items", 2, "count"]) == "order.items[2].count"
    assert len(tell_name("x" * 1000)) < 100
    assert tell_name("a\x1b[31m\n").isprintable()
