"""Writing to pipes, sockets, files and terminals: never blocks, loses nothing, breaks quietly (A11, A12)."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from stanchion.transports.pipe_threads import ThreadWriter
from tests.transports.pipe_ends import (
    MIB,
    Told,
    closing,
    each_kind,
    each_loop,
    pair,
    pipe,
    posix,
    read_slowly,
    terminal,
)

pytestmark = [posix, each_loop]


@pytest.mark.parametrize("kind", [pipe, pair])
def test_two_megabytes_do_not_block(run, kind) -> None:
    """A12."""
    content = os.urandom(2 * MIB)

    async def main() -> None:
        with kind() as (read, write):
            told = Told()
            writer = told.writer(write)
            started = time.perf_counter()
            writer.write(content)
            writer.write(b"small")
            writer.write(content)
            assert time.perf_counter() - started < 0.1
            assert MIB < writer.pending <= 2 * len(content) + 5
            got = bytearray()
            thread = read_slowly(read, got, 2 * len(content) + 5)
            await asyncio.gather(writer.drain(), writer.drain())
            assert writer.pending == 0
            assert told.drained == 1
            await asyncio.to_thread(thread.join)
            assert got == content + b"small" + content
            writer.close()
        await asyncio.get_running_loop().shutdown_default_executor()

    run(main)


@each_kind
def test_many_small_pieces_arrive_in_order(run, kind) -> None:
    pieces = [b"%d\n" % number for number in range(40_000)]
    size = sum(map(len, pieces))

    async def main() -> None:
        with kind() as ends:
            read, write = reversed(ends) if kind is terminal else ends
            told = Told()
            writer = told.writer(write)
            for piece in pieces:
                writer.write(piece)
            writer.write(b"")
            assert writer.pending
            got = bytearray()
            thread = read_slowly(read, got, size)
            await writer.drain()
            thread.join()
            assert got == b"".join(pieces)
            writer.close()

    run(main)


def test_a_small_piece_is_written_at_once(run) -> None:
    async def main() -> None:
        with pipe() as (read, write):
            told = Told()
            writer = told.writer(write)
            writer.write(b"one")
            assert writer.pending == 0
            assert os.read(read, 10) == b"one"
            await writer.drain()
            assert not told.drained
            writer.close()
            writer.close()
            writer.write(b"dropped")
            await writer.drain()

    run(main)


@pytest.mark.parametrize("kind", [pipe, pair])
@pytest.mark.parametrize("size", [1, 2 * MIB])
def test_a_broken_pipe_is_told_once_and_quietly(run, kind, size: int, capfd) -> None:
    """A11."""

    async def main() -> None:
        with kind() as (read, write):
            told = Told()
            writer = told.writer(write)
            if size > 1:
                writer.write(b"x" * size)
                assert writer.pending
            os.close(read)
            writer.write(b"y")
            assert not told.broken
            await writer.drain()
            for _ in range(3):
                writer.write(b"y")
                await asyncio.sleep(0.01)
            assert (told.broken, told.drained, writer.pending) == (1, 0, 0)
            writer.close()

    run(main)
    assert capfd.readouterr() == ("", "")


def test_closing_drops_what_is_pending(run) -> None:
    async def main() -> None:
        with pipe() as (_, write):
            told = Told()
            writer = told.writer(write)
            writer.write(b"x" * MIB)
            waiting = asyncio.ensure_future(writer.drain())
            given_up = asyncio.ensure_future(writer.drain())
            await asyncio.sleep(0)
            given_up.cancel()
            writer.close()
            await waiting
            assert (told.broken, told.drained, writer.pending) == (0, 0, 0)

    run(main)


def test_a_file_takes_everything(run, tmp_path: Path) -> None:
    async def main() -> None:
        fd = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
        with closing(fd):
            told = Told()
            writer = told.writer(fd)
            assert isinstance(writer, ThreadWriter)
            for number in range(1000):
                writer.write(b"%d\n" % number)
            await writer.drain()
            assert told.drained >= 1
            writer.close()
            writer.close()
        assert (tmp_path / "out").read_bytes() == b"".join(b"%d\n" % number for number in range(1000))

    run(main)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_file_that_takes_nothing_is_broken(run) -> None:
    async def main() -> None:
        fd = os.open("/dev/full", os.O_WRONLY)
        with closing(fd):
            told = Told()
            writer = told.writer(fd)
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)
            writer.write(b"y")
            await writer.drain()
            assert (told.broken, told.drained) == (1, 0)
            writer.close()

    run(main)
