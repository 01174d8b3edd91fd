"""Nobody but the protocol reaches stdout while the guard is in force (A08, A09, E7), and afterwards all is as before (M06)."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from stanchion.transports.guard import StdoutGuard

posix = pytest.mark.skipif(sys.platform == "win32", reason="descriptors as POSIX has them")

PROGRAM = """
import io, os, subprocess, sys
from stanchion.transports.guard import StdoutGuard
guard = StdoutGuard()
"""


def run(body: str, *, stdin: bytes = b"", flags: tuple[str, ...] = (), shell: str = "") -> tuple[str, str]:
    """Run *body* as a program; return what it wrote to stdout and stderr."""
    command = [sys.executable, *flags, "-c", PROGRAM + textwrap.dedent(body)]
    if shell:
        command = ["sh", "-c", f'exec "$@" {shell}', "sh", *command]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(command, env=environ, input=stdin, capture_output=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


def test_print_goes_to_stderr_at_once() -> None:
    out, err = run("""
        with guard:
            print("during")
            os.write(guard.stdout, b"wire\\n")
            print("no newline", end="")
    """)
    assert out == "wire\n"
    assert err == "during\nno newline"


def test_a_line_is_not_held_back() -> None:
    out, err = run("""
        guard.__enter__()
        print("line")
        os._exit(0)
    """)
    assert (out, err) == ("", "line\n")


def test_what_was_printed_before_and_still_waits_goes_to_stderr() -> None:
    out, err = run("""
        print("banner")
        with guard:
            os.write(guard.stdout, b"wire\\n")
    """)
    assert (out, err) == ("wire\n", "banner\n")


def test_c_code_cannot_reach_the_wire() -> None:
    out, err = run("""
        with guard:
            os.write(1, b"from C\\n")
            os.write(guard.stdout, b"wire\\n")
    """)
    assert (out, err) == ("wire\n", "from C\n")


def test_a_child_neither_writes_to_the_wire_nor_reads_from_it() -> None:
    child = "import sys; print('child read', repr(sys.stdin.read()))"
    out, err = run(
        f"""
        with guard:
            subprocess.run([sys.executable, "-c", {child!r}], check=True)
            subprocess.run([sys.executable, "-c", {child!r}], check=True, close_fds=False)
            os.write(guard.stdout, os.read(guard.stdin, 100))
        """,
        stdin=b"message\n",
    )
    assert out == "message\n"
    assert err == "child read ''\n" * 2


@posix
def test_a_child_does_not_inherit_the_private_descriptors() -> None:
    child = "import os, sys; sys.exit(sum(os.path.exists(f'/dev/fd/{fd}') for fd in map(int, sys.argv[1:])))"
    run(f"""
        with guard:
            fds = [str(guard.stdin), str(guard.stdout)]
            done = subprocess.run([sys.executable, "-c", {child!r}, *fds], close_fds=False)
            assert done.returncode == 0, done.returncode
    """)


def test_reading_stdin_finds_it_empty() -> None:
    out, _ = run(
        """
        with guard:
            assert sys.stdin.read() == ""
            os.write(guard.stdout, os.read(guard.stdin, 100))
        """,
        stdin=b"message\n",
    )
    assert out == "message\n"


def test_afterwards_all_is_as_before() -> None:
    out, err = run(
        """
        def look():
            facts = [os.fstat(fd).st_ino for fd in (0, 1, 2)]
            facts += [os.get_inheritable(fd) for fd in (0, 1, 2)]
            facts += [sys.stdout.line_buffering, sys.stdout is sys.__stdout__, set(os.listdir("/dev/fd"))]
            return facts

        before = look()
        for _ in range(50):
            with guard:
                assert look() != before
                print("x", end="")
            guard.restore()
            assert look() == before
        assert guard.stdin == guard.stdout == -1
        print("after")
        print(sys.stdin.readline(), end="")
        """,
        stdin=b"still there\n",
    )
    assert out == "after\nstill there\n"
    assert err == "x" * 50


def test_the_guard_goes_when_the_program_fails() -> None:
    out, _ = run("""
        try:
            with guard:
                raise KeyError
        except KeyError:
            print("back")
    """)
    assert out == "back\n"


@pytest.mark.parametrize("stand_in", ["io.StringIO()", "None", "io.TextIOWrapper(io.BytesIO())", "object()"])
def test_a_replaced_stdout_is_left_alone(stand_in: str) -> None:
    out, err = run(f"""
        print("banner")
        mine = sys.stdout = {stand_in}
        with guard:
            assert sys.stdout is mine
            os.write(1, b"from C\\n")
            os.write(guard.stdout, b"wire\\n")
        assert sys.stdout is mine
        sys.stdout = None
    """)
    assert (out, err) == ("wire\n", "banner\nfrom C\n")


def test_a_closed_stdout_object_does_no_harm() -> None:
    out, _ = run("""
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False))
        with guard:
            sys.stdout.close()
            os.write(guard.stdout, b"wire\\n")
        sys.stdout = None
    """)
    assert out == "wire\n"


@posix
def test_without_stderr_the_null_device_takes_it() -> None:
    out, err = run(
        """
        with guard:
            assert guard.stdin > 2 and guard.stdout > 2
            print("lost")
            os.write(1, b"lost")
            os.write(guard.stdout, os.read(guard.stdin, 100))
        """,
        stdin=b"message\n",
        shell="2>&-",
    )
    assert (out, err) == ("message\n", "")


@posix
@pytest.mark.parametrize("flags", [(), ("-u",)])
def test_without_stdin_and_stdout_there_is_nobody(flags: tuple[str, ...]) -> None:
    _, err = run(
        """
        with guard:
            assert guard.stdin > 2 and guard.stdout > 2
            assert os.read(guard.stdin, 100) == b""
            os.write(guard.stdout, b"nobody")
            os.write(1, b"from C\\n")
        for fd in (0, 1):
            try:
                os.fstat(fd)
            except OSError:
                continue
            raise AssertionError(fd)
        """,
        shell="<&- >&-",
        flags=flags,
    )
    assert err == "from C\n"


def test_under_a_capturing_test_runner(capfd: pytest.CaptureFixture[str]) -> None:
    printer, before = sys.stdout, os.fstat(1).st_ino
    with StdoutGuard() as guard:
        assert sys.stdout is printer
        os.write(1, b"from C\n")
        os.write(guard.stdout, b"wire\n")
    assert os.fstat(1).st_ino == before
    out, err = capfd.readouterr()
    assert (out, err) == ("wire\n", "from C\n")
