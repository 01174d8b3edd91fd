"""FILE[:OBJECT]: what is found, and the one sentence for each way in which nothing is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stanchion.cli.loading import CannotLoad, load


@pytest.fixture(autouse=True)
def _clean_imports() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if "stanchion_main" in name or name == "beside":
            del sys.modules[name]


def write(folder: Path, text: str, name: str = "server.py") -> Path:
    file = folder / name
    file.write_text(text)
    return file


APP = 'from stanchion import Stanchion\n{name} = Stanchion("{name}")\n'


def test_the_app_called_app_is_found(tmp_path: Path) -> None:
    file = write(tmp_path, APP.format(name="app") + 'other = Stanchion("other")\n')
    assert load(str(file)).name == "app"


def test_the_only_app_is_found_whatever_it_is_called(tmp_path: Path) -> None:
    file = write(tmp_path, APP.format(name="shop") + "alias = shop\n")
    assert load(str(file)).name == "shop"


def test_an_app_can_be_named(tmp_path: Path) -> None:
    file = write(tmp_path, APP.format(name="app") + 'other = Stanchion("other")\n')
    assert load(f"{file}:other").name == "other"


def test_a_file_that_runs_its_app_at_the_end_can_be_loaded(tmp_path: Path) -> None:
    file = write(tmp_path, APP.format(name="app") + "app.run()\n")
    assert load(str(file)).name == "app"


def test_what_lies_beside_the_file_can_be_imported(tmp_path: Path) -> None:
    write(tmp_path, "NAME = 'beside'\n", "beside.py")
    file = write(tmp_path, "from stanchion import Stanchion\nimport beside\napp = Stanchion(beside.NAME)\n")
    assert load(str(file)).name == "beside"


@pytest.mark.parametrize(
    ("text", "target", "sentence"),
    [
        (None, "missing.py", r"there is no file .*missing\.py"),
        (None, ".", r"is a folder; name the file that has the app"),
        ("x = 1\n", "server.py", r'has no Stanchion app at its top level; write app = Stanchion\("name"\)'),
        ("x = 1\n", "server.py:app", r"server\.py has no 'app' at its top level"),
        ("x = 1\n", "server.py:x", r"'x' in .*server\.py is a int, not a Stanchion app"),
        (
            APP.format(name="a") + 'b = Stanchion("b")\n',
            "server.py",
            r"has several apps \(a, b\); name one: .*server\.py:a",
        ),
        ("x = (\n", "server.py", r"server\.py does not import: line 1: '\(' was never closed"),
        (
            "x = 1\nraise RuntimeError('no database')\n",
            "server.py",
            r"does not import: line 2: RuntimeError: no database",
        ),
        ("import nothing_of_the_kind\n", "server.py", r"line 1: ModuleNotFoundError: No module named"),
        ("raise SystemExit(3)\n", "server.py", r"does not import: line 1: SystemExit: 3"),
    ],
)
def test_each_way_to_find_nothing_has_its_sentence(
    tmp_path: Path, text: str | None, target: str, sentence: str
) -> None:
    if text is not None:
        write(tmp_path, text)
    with pytest.raises(CannotLoad, match=sentence) as caught:
        load(str(tmp_path / target))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_python_is_named(tmp_path: Path) -> None:
    write(tmp_path, "app", "server.txt")
    with pytest.raises(CannotLoad, match=r"is not a Python file; its name must end in \.py"):
        load(str(tmp_path / "server.txt"))
