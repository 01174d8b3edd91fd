"""What a loop can't watch gets a thread, and the thread goes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from stanchion.transports.pipe_threads import ThreadReader, ThreadWriter
from stanchion.transports.pipes import Reader, open_reader
from tests.transports.pipe_ends import (
    MIB,
    Seen,
    Told,
    closing,
    on_asyncio,
    pipe,
    posix,
)

pytestmark = posix


def test_a_loop_that_watches_nothing_gets_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise NotImplementedError

    async def main() -> None:
        loop = asyncio.get_running_loop()
        with pipe() as (read, write):
            for name in ("add_reader", "add_writer", "remove_writer"):
                monkeypatch.setattr(loop, name, refuse)
            seen, told = Seen(), Told()
            reader, writer = seen.reader(read), told.writer(write)
            assert isinstance(reader, ThreadReader)
            assert isinstance(writer, ThreadWriter)
            writer.write(b"x" * MIB)
            await seen.until(lambda: len(seen.data) == MIB)
            reader.close()
            writer.close()
        monkeypatch.undo()

    on_asyncio(main)


def test_a_thread_outlived_by_its_loop_ends(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"x" * MIB)
    loop = asyncio.new_event_loop()
    fd = os.open(tmp_path / "in", os.O_RDONLY)
    with closing(fd):

        async def main() -> Reader:
            return open_reader(fd, lambda _: None, lambda: None)

        reader: Any = loop.run_until_complete(main())
        loop.close()
        reader.close()
        reader._thread.join(5)
        assert not reader._thread.is_alive()
