"""What the documents say is what the code does: programs run, tables match."""

from __future__ import annotations

import ast
import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stanchion import Config
from stanchion.server import config

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PATIENCE = 30.0


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_readme_opens_with_its_two_commands() -> None:
    first = blocks(README, "sh")[0]
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make run", "make test"]


def test_the_readmes_server_is_the_example() -> None:
    assert blocks(README, "python")[0] == (ROOT / "examples/quickstart.py").read_text(encoding="utf-8")


def test_the_readmes_embedding_program_runs_and_prints_what_it_says() -> None:
    program = blocks(README, "python")[1]
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "pong\n", "")


def described() -> dict[str, str]:
    tree = ast.parse(Path(config.__file__).read_text(encoding="utf-8"))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Config")
    return {
        node.target.id: " ".join(ast.literal_eval(after.value).split()).replace("``", "`")
        for node, after in itertools.pairwise(body)
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(after, ast.Expr)
    }


@pytest.mark.parametrize("name", Config.__struct_fields__)
def test_each_option_is_in_the_table_with_its_meaning(name: str) -> None:
    table = (ROOT / "docs/options.md").read_text(encoding="utf-8")
    row = next(line for line in table.splitlines() if line.startswith(f"| `{name}` |"))
    assert row.endswith(f"| {described()[name]} |")


@pytest.mark.parametrize(
    "path", [*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md"], ids=lambda path: path.name
)
def test_every_link_leads_somewhere(path: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text(encoding="utf-8"))
    assert not [link for link in links if not (path.parent / link).exists()]
