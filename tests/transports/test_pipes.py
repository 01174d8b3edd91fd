"""Reading from pipes, sockets, files and terminals under asyncio's own loop and uvloop, and what is left behind."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from pathlib import Path

from stanchion.transports.pipe_threads import ThreadReader
from stanchion.transports.pipes import open_reader
from tests.transports.pipe_ends import (
    MIB,
    Seen,
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


@each_kind
def test_what_is_written_is_handed_over(run, kind) -> None:
    async def main() -> None:
        with kind() as (read, write):
            seen = Seen()
            reader = seen.reader(read)
            os.write(write, b"one")
            await seen.until(lambda: seen.data == b"one")
            os.write(write, b"two")
            await seen.until(lambda: seen.data == b"onetwo")
            assert not seen.ends
            reader.close()
            reader.close()
            os.write(write, b"three")
            await asyncio.sleep(0.05)
            assert seen.data == b"onetwo"
            assert os.read(read, 10) == b"three"

    run(main)


@each_kind
def test_the_end_is_told_once(run, kind) -> None:
    async def main() -> None:
        with kind() as (read, write):
            seen = Seen()
            os.write(write, b"last")
            reader = seen.reader(read)
            await seen.until(lambda: seen.data == b"last")
            os.close(write)
            await seen.until(lambda: seen.ends > 0)
            reader.resume()
            await asyncio.sleep(0.05)
            assert seen.ends == 1
            reader.close()

    run(main)


def test_a_socket_that_is_reset_has_ended(run) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            client = socket.create_connection(server.getsockname())
            ours, _ = server.accept()
            with ours:
                seen, told = Seen(), Told()
                reader, writer = seen.reader(ours.fileno()), told.writer(ours.fileno())
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                client.close()
                await seen.until(lambda: seen.ends > 0)
                writer.write(b"x")
                writer.write(b"x")
                await asyncio.sleep(0.05)
                assert told.broken == 1
                reader.close()
                writer.close()

    run(main)


@each_kind
def test_nothing_comes_while_paused(run, kind) -> None:
    async def main() -> None:
        with kind() as (read, write):
            seen = Seen()
            reader = seen.reader(read)
            reader.pause()
            reader.pause()
            os.write(write, b"one")
            await asyncio.sleep(0.05)
            assert not seen.data
            reader.resume()
            reader.resume()
            await seen.until(lambda: seen.data == b"one")
            reader.pause()
            os.close(write)
            await asyncio.sleep(0.05)
            assert not seen.ends
            reader.resume()
            await seen.until(lambda: seen.ends == 1)
            reader.close()

    run(main)


@each_kind
def test_a_callback_may_pause_and_close(run, kind) -> None:
    async def main() -> None:
        with kind() as (read, write):
            seen = Seen()

            def once(data: bytes) -> None:
                seen.on_data(data)
                reader.close()

            reader = open_reader(read, once, seen.on_end)
            os.write(write, b"one")
            await seen.until(lambda: seen.data == b"one")
            os.write(write, b"two")
            await asyncio.sleep(0.05)
            assert (seen.data, seen.ends) == (b"one", 0)

    run(main)


def test_a_file_is_read_to_its_end_no_faster_than_it_is_used(run, tmp_path: Path) -> None:
    content = os.urandom(3 * MIB)
    (tmp_path / "in").write_bytes(content)

    async def main() -> None:
        fd = os.open(tmp_path / "in", os.O_RDONLY)
        with closing(fd):
            seen = Seen()
            reader = seen.reader(fd)
            assert isinstance(reader, ThreadReader)
            await seen.until(lambda: seen.pieces == 1)
            reader.pause()
            held = len(seen.data)
            await asyncio.sleep(0.05)
            assert len(seen.data) == held
            assert os.lseek(fd, 0, os.SEEK_CUR) <= held + 512 * 1024
            reader.resume()
            await seen.until(lambda: seen.ends == 1)
            assert seen.data == content
            reader.close()

    run(main)


def test_a_reader_may_be_closed_before_anything_comes(run, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"x")

    async def main() -> None:
        for _ in range(30):
            fd = os.open(tmp_path / "in", os.O_RDONLY)
            with closing(fd), terminal() as (read, _):
                seen = Seen()
                readers = [seen.reader(fd), seen.reader(read)]
                for reader in readers:
                    reader.close()
            await asyncio.sleep(0)
            assert not seen.data

    run(main)


def test_a_pipe_blocks_again_afterwards(run) -> None:
    async def main() -> None:
        with pipe() as (read, write):
            reader, writer = Seen().reader(read), Told().writer(write)
            assert not os.get_blocking(read)
            reader.close()
            writer.close()
            assert os.get_blocking(read)
            assert os.get_blocking(write)
            os.set_blocking(read, False)
            Seen().reader(read).close()
            assert not os.get_blocking(read)

    run(main)


def test_one_socket_may_be_both_ends(run) -> None:
    async def main() -> None:
        with pair() as (ours, theirs):
            seen, told = Seen(), Told()
            reader, writer = seen.reader(ours), told.writer(ours)
            os.write(theirs, b"question")
            await seen.until(lambda: seen.data == b"question")
            reader.close()
            started = time.perf_counter()
            writer.write(b"x" * 4 * MIB)
            assert time.perf_counter() - started < 0.5
            got = bytearray()
            thread = read_slowly(theirs, got, 4 * MIB)
            await writer.drain()
            thread.join()
            assert len(got) == 4 * MIB
            writer.close()
            assert os.get_blocking(ours)

    run(main)
