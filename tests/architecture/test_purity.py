"""What the import contracts cannot see: clocks reached through an innocent module, and state that modules share."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

import pytest

from tests.architecture.sources import Module, dotted, modules

IMPURE: Final = re.compile(
    r"""
      (.*\.)?(datetime|date)\.(now|utcnow|today)   # a clock behind a data type
    | time\..*
    | os\.(environ|environb|getenv|urandom|getpid).*
    | sys\.(stdin|stdout|stderr|argv).*
    | (open|input|print|breakpoint|exec|eval)
    | .*\.(read_text|write_text|read_bytes|write_bytes)
    """,
    re.VERBOSE,
)
CLOCKLIKE: Final = re.compile(
    r"(.*\.)?(now|utcnow|today|time|monotonic|perf_counter|uuid\d|random|token_\w+)"
)

MUTABLE_DISPLAYS: Final = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MUTABLE_CALLS: Final = {"list", "dict", "set", "bytearray", "deque", "defaultdict", "Counter", "OrderedDict"}
TYPE_MAKERS: Final = {
    "TypeVar",
    "TypeVarTuple",
    "ParamSpec",
    "NewType",
    "NamedTuple",
    "TypedDict",
    "defstruct",
}

every_module = pytest.mark.parametrize("module", [pytest.param(m, id=m.name) for m in modules()])
pure_module = pytest.mark.parametrize("module", [pytest.param(m, id=m.name) for m in modules() if m.is_pure])


@pure_module
def test_nothing_reaches_outside(module: Module) -> None:
    assert not list(impurities(module.tree, module))


def impurities(tree: ast.Module, module: Module | None = None) -> Iterator[str]:
    """Every expression that reads a clock, the environment or a file, outermost first."""
    for node in ast.walk(tree):
        name = dotted(node) if isinstance(node, ast.Attribute | ast.Name) else ""
        if name and IMPURE.fullmatch(name) and isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
            yield f"{module.where(node) if module else node.lineno} {name}"  # type: ignore[attr-defined]


@every_module
def test_no_default_argument_reads_a_clock(module: Module) -> None:
    assert not list(clock_defaults(module.tree, uncalled_too=module.is_pure))


def clock_defaults(tree: ast.Module, *, uncalled_too: bool = True) -> Iterator[str]:
    """Defaults that call something clock-like: they read it once, at import.

    In the pure floors a clock that is only handed over counts too: it is the way in which clocks creep back.
    """
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        for default in (*function.args.defaults, *filter(None, function.args.kw_defaults)):
            for node in ast.walk(default):
                called = isinstance(node, ast.Call)
                name = dotted(node.func if called else node) if called or uncalled_too else ""
                if name and CLOCKLIKE.fullmatch(name):
                    yield f"line {default.lineno}: {name}"


@every_module
def test_modules_share_no_mutable_state(module: Module) -> None:
    assert not list(shared_state(module.tree, calls_too=module.is_pure))


def shared_state(tree: ast.Module, *, calls_too: bool) -> Iterator[str]:
    """Names at module level bound to something that can change.

    A table is all right when its name is upper case and it is frozen or annotated ``Final``. In the pure floors an
    unknown call must be bound to an upper-case name as well, since what it returns may well keep state.
    """
    for node in tree.body:
        if isinstance(node, ast.Global):
            yield f"line {node.lineno}: global"
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if names in (["__all__"], ["__slots__"]):
            continue
        final = isinstance(node, ast.AnnAssign) and "Final" in ast.unparse(node.annotation)
        constant = all(name == name.upper() for name in names)
        call = dotted(node.value.func).rsplit(".", 1)[-1] if isinstance(node.value, ast.Call) else ""
        mutable = isinstance(node.value, MUTABLE_DISPLAYS) or call in MUTABLE_CALLS
        if mutable and not (final and constant):
            yield f"line {node.lineno}: {names} can change; freeze it or say Final"
        elif calls_too and call and call not in TYPE_MAKERS and not constant:
            yield f"line {node.lineno}: {names} is made by {call}(); name it as the constant it is"


@pytest.mark.parametrize(
    "text",
    [
        "import datetime\ndef f(): return datetime.datetime.now()",
        "from datetime import date\nX = date.today()",
        "import os\nY = os.environ['A']",
        "def f(): return open('x')",
        "import time\ndef f(): return time.monotonic()",
    ],
)
def test_this_test_sees_what_reaches_outside(text: str) -> None:
    assert list(impurities(ast.parse(text)))


def test_this_test_sees_clocks_in_defaults() -> None:
    assert list(clock_defaults(ast.parse("def f(now=time.time()): ...")))
    assert list(clock_defaults(ast.parse("def f(*, clock=time.monotonic): ...")))
    assert not list(clock_defaults(ast.parse("def f(now=None, limit=3.0): ...")))
    assert not list(clock_defaults(ast.parse("def f(clock=time.monotonic): ..."), uncalled_too=False))
    assert list(clock_defaults(ast.parse("def f(now=time.time()): ..."), uncalled_too=False))


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("cache = {}", True),
        ("SEEN = set()", True),
        ("TABLE: Final = {1: 2}", False),
        ("TABLE = MappingProxyType({1: 2})", False),
        ("decoder = Decoder(int)", True),
        ("_DECODER = Decoder(int)", False),
        ("_2025_06_18 = Profile()", False),
        ("CallId = NewType('CallId', str)", False),
        ("Effect = Start | Refuse", False),
        ("names = (1, 2)", False),
    ],
)
def test_this_test_sees_shared_state(text: str, shared) -> None:
    assert bool(list(shared_state(ast.parse(text), calls_too=True))) == shared
