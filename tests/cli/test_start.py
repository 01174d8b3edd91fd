"""Starting as a user does: a failed start is exit code 2 and one sentence, never a traceback, unless asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stanchion import __version__

PATIENCE = 30.0
"""Seconds that tell an end from a hang."""

HEAD = "from stanchion import Stanchion, Config\napp = Stanchion('x')\n"


def run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "stanchion", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=PATIENCE, check=False)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("import nothing_of_the_kind\n", "does not import: line 3: ModuleNotFoundError"),
        ("@app.tool\ndef a(): ...\n@app.tool(name='a')\ndef b(): ...\n", "tool 'a' is registered by b ("),
        ("@app.tool\ndef a(*things: int): ...\n", "*things"),
        (
            "@app.tool(destructive=True)\ndef a(): ...\n",
            "tool 'a' is sensitive (declared so, or destructive)",
        ),
        ("@app.tool(isolation='process')\ndef a(): ...\n", "isolation='process'"),
        ("app.config = Config(max_in_flight=0)\n", "max_in_flight must be at least 1, not 0"),
        (
            "@app.lifespan\nasync def life(app):\n    raise OSError('no disk')\n    yield\n",
            "the lifespan raised OSError",
        ),
    ],
)
def test_a_failed_start_is_one_sentence(tmp_path: Path, body: str, sentence: str) -> None:
    file = tmp_path / "server.py"
    file.write_text(HEAD + body)
    ended = run("run", str(file))
    told = ended.stderr.decode()
    assert ended.returncode == 2, told
    assert ended.stdout == b""
    last = told.strip().splitlines()[-1]
    assert last.startswith("stanchion: ")
    assert sentence in last, told
    assert "Traceback" not in told or "lifespan" in sentence


def test_debug_shows_where_a_failed_start_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(HEAD + "raise RuntimeError('deep')\n")
    ended = run("run", "--debug", str(file))
    assert ended.returncode == 2
    assert b"Traceback" in ended.stderr
    assert b"RuntimeError: deep" in ended.stderr


def test_an_option_out_of_range_is_named(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(HEAD)
    ended = run("run", "--max-in-flight", "0", str(file))
    assert ended.returncode == 2
    assert b"max_in_flight must be at least 1, not 0" in ended.stderr


def test_both_ways_to_the_version() -> None:
    assert run("--version").stdout.decode().strip() == f"stanchion {__version__}"


def test_the_end_of_stdin_is_a_clean_end(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(HEAD + "app.run()\n")
    for command in (["-m", "stanchion", "run", str(file)], [str(file)]):
        ended = subprocess.run(
            [sys.executable, *command],
            input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (0, b"")
        assert ended.stdout == b'{"jsonrpc":"2.0","id":1,"result":{}}\n'


def test_what_a_file_prints_while_it_is_loaded_never_reaches_the_wire(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text("print('banner')\n" + HEAD + "print('more')\napp.run()\n")
    for command in (["-m", "stanchion", "run", str(file)], [str(file)]):
        ended = subprocess.run(
            [sys.executable, *command],
            input=b"",
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            # Unbuffered, a script's own prints are out before it ever gets to app.run().
            env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        )
        assert (ended.returncode, ended.stdout) == (0, b"")
        assert ended.stderr.split() == [b"banner", b"more"]


def test_a_stdio_start_imports_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(HEAD + "@app.tool\ndef a() -> str: return 'x'\n")
    code = (
        "import sys, atexit\n"
        "atexit.register(lambda: sys.stderr.write(' '.join(sorted(sys.modules))))\n"
        f"sys.argv = ['stanchion', 'run', {str(file)!r}]\n"
        "from stanchion.cli import main\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], input=b"", capture_output=True, timeout=PATIENCE, check=False
    )
    loaded = set(ended.stderr.decode().split())
    assert "stanchion.app" in loaded
    assert not loaded & {"uvicorn", "cryptography", "starlette", "typer", "pydantic", "mcp"}
