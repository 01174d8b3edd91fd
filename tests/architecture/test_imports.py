"""No module needs another that needs it, and nothing hides an import of ours inside a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from tests.architecture.sources import Module, modules

MAY_IMPORT_LATE: Final = {
    "stanchion": "resolves its public names lazily, so that importing it costs nothing",
    "stanchion.cli": "each command imports what it runs, so that --version does not import a server",
}
"""Modules (and what is below them) that may import ours inside a function, and why."""


def _late_allowed(name: str) -> bool:
    return name == "stanchion" or any(
        name == allowed or name.startswith(f"{allowed}.")
        for allowed in MAY_IMPORT_LATE
        if allowed != "stanchion"
    )


def _targets(node: ast.Import | ast.ImportFrom, module: Module, known: frozenset[str]) -> Iterator[str]:
    """The modules of ours that an import statement names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
        return
    base = node.module or ""
    if node.level:
        package = module.name if module.path.name == "__init__.py" else module.name.rpartition(".")[0]
        parents = package.split(".")
        kept = parents[: len(parents) - node.level + 1]
        base = ".".join([*kept, base] if base else kept)
    for alias in node.names:
        name = f"{base}.{alias.name}"
        if name in known:
            yield name
        elif base in known:
            yield base


def _imports(tree: ast.AST, *, late: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements at module level (also in ``if`` and ``try``), or those inside functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            if late:
                yield from (n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            if not late:
                yield node
        else:
            yield from _imports(node, late=late)


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The strongly connected groups of more than one node (Tarjan), and nodes that point at themselves."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for follower in sorted(graph.get(node, ())):
            if follower not in index:
                visit(follower)
                low[node] = min(low[node], low[follower])
            elif follower in stack:
                low[node] = min(low[node], index[follower])
        if low[node] == index[node]:
            at = stack.index(node)
            group = stack[at:]
            del stack[at:]
            if len(group) > 1 or node in graph.get(node, ()):
                groups.append(sorted(group))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return groups


def test_imports_have_no_cycle() -> None:
    known = frozenset(module.name for module in modules())
    graph = {
        module.name: {
            target for node in _imports(module.tree, late=False) for target in _targets(node, module, known)
        }
        for module in modules()
    }
    assert cycles(graph) == []


@pytest.mark.parametrize("module", [pytest.param(m, id=m.name) for m in modules()])
def test_no_import_of_ours_hides_in_a_function(module: Module) -> None:
    if _late_allowed(module.name):
        return
    known = frozenset(other.name for other in modules())
    hidden = [
        f"{module.where(node)} {target}"
        for node in _imports(module.tree, late=True)
        for target in _targets(node, module, known)
    ]
    assert not hidden


def test_this_test_sees_cycles() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert cycles({"a": {"a"}}) == [["a"]]
    assert cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_this_test_sees_hidden_imports() -> None:
    tree = ast.parse("class A:\n    def f(self):\n        if x:\n            from stanchion import wire\n")
    assert len(list(_imports(tree, late=True))) == 1
    assert not list(_imports(tree, late=False))
