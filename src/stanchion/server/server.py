"""The server as its users hold it: a thin face over the runner, usable from any thread and any loop.

Owns the life of the protocol loop (a thread of its own, or the host's loop), the names of connections and the handles of
requests. Decides nothing: ``kernel`` does.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw

from stanchion._version import __version__
from stanchion.machines.clients import ANONYMOUS, DEFAULT
from stanchion.registry.authorizer import Authorizer, Principal
from stanchion.registry.registry import Registry
from stanchion.registry.signature import is_async
from stanchion.server.config import Config
from stanchion.server.errands import Policy
from stanchion.server.errors import CannotStart, ConnectionTaken
from stanchion.server.events import (
    Called,
    Cancelled,
    Changed,
    Closed,
    Notified,
    Opened,
    Received,
    Stopping,
    Updated,
)
from stanchion.server.kernel import Kernel, Statistics
from stanchion.server.observers import Observers
from stanchion.server.owners import RequestOwners, current_task
from stanchion.server.pending import Pending
from stanchion.server.ports import (
    Channel,
    Clock,
    CrewFactory,
    Lifespan,
    Observer,
    Outlet,
    UnknownToolReply,
)
from stanchion.server.protocol_loop import ProtocolLoop
from stanchion.server.runner import Runner, Sink
from stanchion.server.sealing import Sealing
from stanchion.wire.jsonrpc import Answer, Inbound, Ref, undecoded
from stanchion.wire.model import Implementation
from stanchion.wire.revisions import PROFILES


class BaseServer:
    """An MCP server over a registry, without a transport of its own.

    The subclass that the package exports brings the workers. Methods that take a message or a connection raise
    ``ServerClosed`` once the server has ended.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        crews: CrewFactory,
        state_keys: Mapping[str, bytes],
        name: str = "stanchion",
        title: str | None = None,
        version: str | None = None,
        instructions: str | None = None,
        authorizer: Authorizer | None = None,
        authorizer_source: Literal["configured", "default"] = "default",
        unknown_tool_reply: UnknownToolReply | None = None,
        config: Config | None = None,
        lifespan: Lifespan | None = None,
        observer: Observer | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        """Set up; nothing runs yet.

        Args:
            registry: What is on offer. It may change at any time, from any thread.
            crews: Makes the workers.
            state_keys: See ``wire.seal``.
            name: The server's name, as clients see it.
            title: A name for people.
            version: The server's version. Default: this package's.
            instructions: How to use this server, for the model.
            authorizer: Judges each ``tools/call``; sync or async, run in a worker.
            authorizer_source: ``configured`` only if somebody chose that authorizer (behaviour B4).
            unknown_tool_reply: What to say of a tool that is not there; None of its words keep the protocol's error.
            config: Options.
            lifespan: What callbacks need while they run; see ``Lifespan``.
            observer: Is told of each event, off the protocol loop.
            clock: Seconds on a clock that never goes back.
        """
        self.registry = registry
        self.config = config or Config()
        self._crews = crews
        self._clock = clock
        self._lifespan = lifespan
        self._authorizer = authorizer
        self._source = authorizer_source
        self._observers = Observers(() if observer is None else (observer,))
        policy = Policy(
            authorizer=authorizer,
            authorizer_isolation="task" if authorizer is not None and is_async(authorizer) else "thread",
            unknown_tool_reply=unknown_tool_reply,
        )
        server = Implementation(
            name=name, version=version or __version__, title=UNSET if title is None else title
        )
        sealing = Sealing.of(self.config, state_keys, time.time() - clock())
        kernel = Kernel(
            registry, self.config, server, instructions=instructions, policy=policy, sealing=sealing
        )
        self._runner = Runner(kernel, clock, self._observers)
        self._refs = itertools.count(1)
        self._names = threading.Lock()
        self._life = ProtocolLoop(self._check, self._attach, self._runner.drain, self._finish)
        self._unlisten: Callable[[], None] | None = None
        self._owners = RequestOwners(self.cancel)

    # -- life

    def start(self) -> None:
        """Run on a thread of its own. The first message does this by itself; once running it does nothing.

        Raises:
            CannotStart: A sensitive tool is registered and nothing authorises calls.
            ServerClosed: It was closed.
        """
        self._life.start()

    def host(self) -> None:
        """Run on the loop that is running now, in this thread, until ``aclose``.

        Raises:
            CannotStart: As for ``start``.
            ServerClosed: It was closed.
            RuntimeError: It runs already, or there is no loop.
        """
        self._life.host()

    async def aclose(self, drain: float | None = None) -> None:
        """End: running work has *drain* seconds (default: the option), what is left is killed. Again: no effect."""
        await self._life.aclose(self.config.drain if drain is None else drain)

    def close(self, drain: float | None = None) -> None:
        """``aclose`` for threads. Again, or at once from several: no effect.

        Raises:
            RuntimeError: Called on the server's own loop.
        """
        self._life.close(self.config.drain if drain is None else drain)

    async def prepare(self) -> None:
        """Make ready what callbacks need, if there is something that can be; messages are taken meanwhile."""

    def hurry(self) -> None:
        """For transports, on the protocol loop, once it is closing: wait for nobody any more."""
        self._runner.feed([Stopping(0.0)])

    def _check(self) -> None:
        if self._authorizer is not None:
            return
        sensitive = [
            tool.name for tool in self.registry.snapshot().tools if tool.sensitive and not tool.derived
        ]
        if sensitive:
            raise CannotStart(
                f"tool {sensitive[0]!r} is sensitive (declared so, or destructive) and nothing authorises calls: "
                "give an authorizer (@app.authorizer, or Server(authorizer=…))"
            )

    def _attach(self) -> None:
        self._runner.attach(self._crews(self._runner, self.config, self._lifespan, self._clock))
        self._unlisten = self.registry.listen(lambda kinds: self._runner.post(Changed(kinds)))

    def _finish(self) -> None:
        if self._unlisten is not None:
            self._unlisten()
        self._runner.close()
        self._observers.close()

    @property
    def authorization_configured(self) -> bool:
        """Whether somebody chose the authorizer; false when the server has been closed (behaviour B4)."""
        return self._authorizer is not None and self._source == "configured" and not self._life.is_closed

    def statistics(self) -> Statistics:
        """How much is in each table. Exact on the protocol loop, a glance from elsewhere."""
        return self._runner.kernel.statistics()

    def observe(self, observer: Observer) -> None:
        """Tell *observer* of each event from now on, off the protocol loop."""
        self._observers.add(observer)

    # -- connections

    def connect(self, conn_id: Hashable, channel: Channel, **facts: Any) -> None:
        """Open a connection: pushes for it go to *channel* until ``disconnect``.

        Args:
            conn_id: Its name; any hashable value.
            channel: Called on the protocol loop; must not block. Raising closes the connection.
            **facts: As for ``attach``.

        Raises:
            ConnectionTaken: The name has a live channel, or is ``ANONYMOUS``, which can't have one.
            ValueError: The revision is not one that this server speaks.
        """
        self.attach(conn_id, lambda message, _: channel(message), **facts)

    def attach(
        self,
        conn_id: Hashable,
        outlet: Outlet,
        *,
        transport: str = "unknown",
        principal: Principal | None = None,
        holder: Hashable | None = None,
        revision: str | None = None,
        handshake: bool = False,
    ) -> None:
        """``connect`` for transports with several streams, who must know which request a message is for.

        Args:
            conn_id: As for ``connect``.
            outlet: As a channel, with the ref too.
            transport: What carries it.
            principal: Who the transport proved the client to be.
            holder: Whose share its calls use without a principal. Default: its own.
            revision: Speak this revision without a handshake.
            handshake: Refuse requests before a handshake, as transports do.
        """
        if revision is not None and revision not in PROFILES:
            raise ValueError(f"revision must be one of {', '.join(PROFILES)}, not {revision!r}")
        if conn_id is ANONYMOUS:
            raise ConnectionTaken("anonymous clients share a connection, so it can't have a channel")
        with self._names:
            if conn_id in self._runner.channels:
                raise ConnectionTaken(f"connection {conn_id!r} has a channel already")
            self._runner.channels[conn_id] = outlet
        profile = PROFILES.get(revision or "")
        self._post(Opened(conn_id, transport, principal, profile, holder, handshake))

    def disconnect(self, conn_id: Hashable) -> None:
        """Close a connection: all it waits for ends without an answer. Of an unknown one: no effect."""
        with self._names:
            known = self._runner.channels.pop(conn_id, None) is not None
        if known:
            self._post(Closed(conn_id))

    # -- requests

    def receive(self, conn_id: Hashable, messages: list[Inbound], sink: Sink) -> None:
        """For transports, on the protocol loop: take messages, give each end to *sink*."""
        events = []
        for message in messages:
            ref = Ref(next(self._refs))
            self._runner.sinks[ref] = sink
            events.append(Received(ref, conn_id, message))
        self._runner.feed(events)

    def submit(
        self,
        message: Inbound | Mapping[str, object],
        conn_id: Hashable,
        sink: Sink,
        owner: asyncio.Task[Any] | None = None,
    ) -> Ref:
        """Take a message, from any thread, and give its end to *sink*, on the protocol loop.

        Args:
            message: What ``wire.codec`` decodes to. A mapping is answered -32600 if it has an id, else ignored.
            conn_id: Whose it is.
            sink: Takes the answer; must not block.
            owner: When this task ends, the request is cancelled.

        Returns:
            What ``cancel`` takes.
        """
        inbound = undecoded(message) if isinstance(message, Mapping) else message
        ref = Ref(next(self._refs))
        self._runner.sinks[ref] = self._owners.bind(ref, owner, sink)
        self._post(Received(ref, conn_id, inbound))
        return ref

    def request(
        self,
        message: Inbound | Mapping[str, object],
        conn_id: Hashable = DEFAULT,
        *,
        owner: asyncio.Task[Any] | None = None,
    ) -> Pending[Answer | tuple[Answer, ...] | None]:
        """Take a message, from any thread, and return at once.

        Args:
            message: As for ``submit``.
            conn_id: Whose it is.
            owner: When this task ends, the request is cancelled. Default: the current task, if there is one.

        Returns:
            The answer to come; None for a notification, and once cancelled.
        """
        pending: Pending[Answer | tuple[Answer, ...] | None] = Pending()
        pending.ref = self.submit(message, conn_id, pending.answered, owner or current_task())
        return pending

    async def handle(
        self,
        message: Inbound | Mapping[str, object],
        conn_id: Hashable = DEFAULT,
        timeout: float | None = None,  # noqa: ASYNC109 - its end cancels the work, which a caller's could not
    ) -> Answer | tuple[Answer, ...] | None:
        """Take a message and wait for its answer.

        Args:
            message: As for ``request``.
            conn_id: Whose it is.
            timeout: Seconds to wait; then the work is cancelled.

        Returns:
            The answer; None for a notification or a cancelled request.

        Raises:
            TimeoutError: *timeout* is over.
        """
        pending = self.request(message, conn_id)
        try:
            async with asyncio.timeout(timeout):
                return await pending
        except BaseException:
            self.cancel(pending.ref)
            raise

    def cancel(self, ref: Ref) -> None:
        """End a request's work wherever it is; it gets no answer. Of a finished or unknown one: no effect."""
        if self._life.is_running:
            self._runner.post(Cancelled(ref))

    def notify(self, method: str, params: Mapping[str, object] | None = None) -> None:
        """Send a notification to every connection that has a channel.

        Raises:
            TypeError: The params are not JSON.
        """
        self._post(Notified(method, Raw(msgspec.json.encode(dict(params or {})))))

    def resource_updated(self, uri: str) -> None:
        """Tell those who subscribed to a resource that its contents changed."""
        self._post(Updated(uri))

    # -- the embedding program's direct way (behaviour F1)

    def call_tool(self, name: str, arguments: Mapping[str, object] | None = None) -> Pending[Any]:
        """Call a tool: same worker and time limit as for a client, no authorizer.

        Returns:
            What the callback will return, as it is. Waiting for it raises ``CallFailed`` if it comes to nothing.

        Raises:
            ServerClosed: The server has ended.
        """
        return self._call("tool", name, arguments)

    def read_resource(self, uri: str) -> Pending[Any]:
        """Read a resource, as ``call_tool`` calls a tool."""
        return self._call("resource", uri, None)

    def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Pending[Any]:
        """Render a prompt, as ``call_tool`` calls a tool.

        Raises:
            TypeError: An argument is not text.
        """
        for key, value in (arguments or {}).items():
            if not isinstance(value, str):
                raise TypeError(
                    f"argument {key!r} of prompt {name!r} is a {type(value).__name__}; prompts take text"
                )
        return self._call("prompt", name, arguments)

    def _call(self, kind: str, key: str, arguments: Mapping[str, Any] | None) -> Pending[Any]:
        pending: Pending[Any] = Pending()
        ref = pending.ref = Ref(next(self._refs))
        self._runner.sinks[ref] = self._owners.bind(ref, current_task(), pending.returned)
        self._post(Called(ref, kind, key, dict(arguments or {})))
        return pending

    def _post(self, event: Opened | Closed | Received | Called | Notified | Updated) -> None:
        self._life.require()
        self._runner.post(event)
