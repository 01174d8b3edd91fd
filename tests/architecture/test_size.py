"""Small enough to read: lines a module, lines a function, names that say something, words on everything public."""

from __future__ import annotations

import ast
from typing import Final

import pytest

from tests.architecture.sources import ROOT, SOURCE, Module, modules, python_files

MODULE_LINES: Final = 400
FUNCTION_LINES: Final = 60
SAYS_NOTHING: Final = {"common", "helper", "helpers", "misc", "util", "utilities", "utils"}
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)

each_module = pytest.mark.parametrize(
    "module", [pytest.param(module, id=module.name) for module in modules()]
)


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=str(path.relative_to(ROOT))) for path in python_files()]
)
def test_a_module_fits_its_budget(path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MODULE_LINES, "split it along its own headings"


@each_module
def test_a_function_fits_its_budget(module: Module) -> None:
    long = [
        f"{module.where(node)} {node.name}: {length} lines"
        for node in ast.walk(module.tree)
        if isinstance(node, FUNCTIONS)
        and (length := (node.end_lineno or 0) - node.lineno + 1 - docstring_lines(node)) > FUNCTION_LINES
    ]
    assert not long


def docstring_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """What is said about a function does not make it long."""
    first = function.body[0]
    said = ast.get_docstring(function, clean=False)
    return 0 if said is None else (first.end_lineno or 0) - first.lineno + 1


def test_no_module_is_called_after_nothing() -> None:
    assert not [
        path for path in python_files() if path.stem in SAYS_NOTHING or path.parent.name in SAYS_NOTHING
    ]


@each_module
def test_everything_public_is_described(module: Module) -> None:
    assert ast.get_docstring(module.tree), f"{module.path} has no docstring"
    bare = [
        f"{module.where(node)} {name}" for name, node in _public(module.tree) if not ast.get_docstring(node)
    ]
    assert not bare


def _public(tree: ast.Module | ast.ClassDef):
    """Public functions and classes, and those in public classes; overrides keep their parent's description."""
    for node in tree.body:
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)) or node.name.startswith("_"):
            continue
        marks = {ast.unparse(mark).rsplit(".", 1)[-1] for mark in node.decorator_list}
        if not marks & {"override", "overload", "setter"}:
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _public(node)


def test_every_package_folder_explains_itself() -> None:
    folders = {module.path.parent for module in modules()} - {SOURCE / "stanchion"}
    assert not [str(folder.relative_to(ROOT)) for folder in folders if not (folder / "README.md").is_file()]
