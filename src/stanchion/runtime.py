"""``Server``, complete: the server with the workers that this version has.

Owns the choice of crews and nothing else; it is here because a server may not know its workers, nor workers each other.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any

from stanchion.machines.clients import ANONYMOUS, DEFAULT
from stanchion.registry.registry import Registry
from stanchion.server.config import Config
from stanchion.server.errors import CannotStart
from stanchion.server.ports import Clock, Crew, Isolation, Lifespan, Mailbox
from stanchion.server.server import BaseServer
from stanchion.wire.seal import KEY_BYTES
from stanchion.workers.execution import LifespanFailed
from stanchion.workers.inline import InlineCrew
from stanchion.workers.loop import LoopCrew
from stanchion.workers.threads import ThreadCrew

__all__ = ["ANONYMOUS", "DEFAULT", "Server"]


class Server(BaseServer):
    """An MCP server over a registry, for programs that embed one. See ``BaseServer`` for all of its names."""

    def __init__(
        self,
        registry: Registry,
        *,
        use_uvloop: bool = False,
        state_keys: Mapping[str, bytes] | None = None,
        **options: Any,
    ) -> None:
        """Set up; nothing runs yet.

        Args:
            registry: What is on offer.
            use_uvloop: Run the callback loop on uvloop, if it is installed.
            state_keys: Keys of 32 bytes by their ids, newest first, that seal what a client carries between the rounds of
                a request (2026-07-28). Default: one made now, so that a restart voids what is under way.
            **options: As for ``BaseServer``, but for the crews.

        Raises:
            ValueError: A key is none; the text says which.
        """
        self._use_uvloop = use_uvloop
        self._tasks: LoopCrew | None = None
        keys = {"start": secrets.token_bytes(KEY_BYTES)} if state_keys is None else state_keys
        super().__init__(registry, crews=self._make_crews, state_keys=keys, **options)

    async def prepare(self) -> None:
        """Enter the lifespan now and not with the first callback. Call it on the protocol loop, once running.

        Raises:
            CannotStart: The lifespan raised; the log has the rest.
        """
        if self._tasks is None:
            return
        try:
            await asyncio.to_thread(self._tasks.lifespan_value)
        except LifespanFailed as error:
            cause = error.__cause__
            what = "did not open" if cause is None else f"raised {type(cause).__name__}"
            raise CannotStart(f"the lifespan {what}; the log has the rest under {error.reference}") from error

    def _make_crews(
        self, mailbox: Mailbox, config: Config, lifespan: Lifespan | None, clock: Clock
    ) -> Mapping[Isolation, Crew]:
        limits: dict[str, Any] = {
            "max_result_bytes": config.max_result_bytes,
            "notices_per_second": config.notices_per_second,
        }
        tasks = LoopCrew(
            mailbox,
            clock,
            stall_limit=config.stall_limit,
            kill_grace=config.kill_grace,
            lifespan=lifespan,
            use_uvloop=self._use_uvloop,
            **limits,
        )
        self._tasks = tasks if lifespan is not None else None
        value = tasks.lifespan_value if lifespan is not None else None
        threads = ThreadCrew(mailbox, clock, kill_grace=config.kill_grace, lifespan_value=value, **limits)
        return {"task": tasks, "thread": threads, "inline": InlineCrew(mailbox, clock, **limits)}
