"""The server as a program that embeds it sees it: any thread, any loop, and an end that leaves nothing."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stanchion import CallFailed, Config, Context, Registry, Server, ToolError
from stanchion.machines.clients import ANONYMOUS
from stanchion.registry.features import Prompt, Resource, Tool
from stanchion.server.errors import CannotStart, ConnectionTaken, ServerClosed
from stanchion.wire.codec import Codec
from stanchion.wire.jsonrpc import Failure, Inbound, Outbound, Response

CODEC = Codec()
PATIENCE = 10.0
"""Seconds that tell an answer from a hang."""


def asked(method: str, ident: int | str = 1, **params: Any) -> Inbound:
    return CODEC.decode(
        json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}).encode()
    )


def called(tool: str, ident: int | str = 1, **arguments: Any) -> Inbound:
    return asked("tools/call", ident, name=tool, arguments=arguments)


def result_of(answer: object) -> dict[str, Any]:
    assert isinstance(answer, Response), answer
    told: dict[str, Any] = json.loads(CODEC.encode(answer))["result"]
    return told


def text_of(answer: object) -> str:
    return "".join(block["text"] for block in result_of(answer)["content"])


class Gates:
    """Things tools wait on, so that a test knows where a tool is."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.cancelled = threading.Event()


async def echo(text: str) -> str:
    return text


def shout(text: str) -> str:
    return text.upper()


async def fail() -> str:
    raise RuntimeError("secret")


async def refuse() -> str:
    raise ToolError("not today")


@pytest.fixture
def gates() -> Gates:
    return Gates()


@pytest.fixture
def registry(gates: Gates) -> Registry:
    async def wait() -> str:
        gates.entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            gates.cancelled.set()
            raise
        return "never"

    async def steps(count: int, context: Context) -> str:
        for step in range(count):
            await context.progress(step + 1, count)
        return "done"

    def settings() -> str:
        return "dark"

    def greet(name: str) -> str:
        return f"Hello {name}"

    registry = Registry()
    registry.register_tools([Tool.of(one) for one in (echo, shout, fail, refuse, wait, steps)])
    registry.register_resources([Resource.of(settings, uri="config://settings")])
    registry.register_prompts([Prompt.of(greet)])
    return registry


@pytest.fixture
def server(registry: Registry) -> Iterator[Server]:
    server = Server(registry)
    yield server
    server.close(0.0)


async def test_a_message_is_handled_from_any_loop(server: Server) -> None:
    assert text_of(await server.handle(called("echo", text="hi"))) == "hi"
    assert text_of(await server.handle(called("shout", text="hi"))) == "HI"


def test_a_message_is_handled_from_a_thread_without_a_loop(server: Server) -> None:
    assert text_of(server.request(called("echo", text="hi")).result(PATIENCE)) == "hi"


def test_a_direct_caller_need_not_shake_hands_and_speaks_the_newest_handshake_revision(
    server: Server,
) -> None:
    tools = result_of(server.request(asked("tools/list")).result(PATIENCE))["tools"]
    assert [tool["name"] for tool in tools] == ["echo", "shout", "fail", "refuse", "wait", "steps"]
    assert "resultType" not in tools


async def test_many_threads_and_loops_at_once_each_get_their_own_answer(server: Server) -> None:
    def work(number: int) -> list[str]:
        async def ask() -> list[str]:
            answers = await asyncio.gather(
                *(server.handle(called("echo", n, text=f"{number}-{n}"), conn_id=number) for n in range(5))
            )
            return [text_of(answer) for answer in answers]

        return asyncio.run(ask())

    told = await asyncio.gather(*(asyncio.to_thread(work, number) for number in range(3)))
    assert told == [[f"{number}-{n}" for n in range(5)] for number in range(3)]


async def test_a_notification_has_no_answer(server: Server) -> None:
    message = CODEC.decode(b'{"jsonrpc":"2.0","method":"notifications/whatever"}')
    assert await server.handle(message) is None


async def test_an_undecoded_mapping_is_refused_if_it_wants_an_answer(server: Server) -> None:
    answer = await server.handle({"jsonrpc": "2.0", "id": 7, "method": "ping"})
    assert isinstance(answer, Failure)
    assert (answer.id, answer.error.code) == (7, -32600)
    assert await server.handle({"jsonrpc": "2.0", "method": "ping"}) is None


async def test_a_cancelled_request_has_no_answer_and_its_work_ends(server: Server, gates: Gates) -> None:
    pending = server.request(called("wait"))
    assert await asyncio.to_thread(gates.entered.wait, PATIENCE)
    server.cancel(pending.ref)
    assert await pending is None
    assert await asyncio.to_thread(gates.cancelled.wait, PATIENCE)
    server.cancel(pending.ref)


async def test_the_end_of_handles_timeout_cancels_the_work(server: Server, gates: Gates) -> None:
    with pytest.raises(TimeoutError):
        await server.handle(called("wait"), timeout=0.2)
    assert await asyncio.to_thread(gates.cancelled.wait, PATIENCE)


async def test_the_end_of_the_requesting_task_cancels_its_requests(server: Server, gates: Gates) -> None:
    async def ask() -> object:
        return server.request(called("wait"))

    pending: Any = await asyncio.create_task(ask())
    assert await asyncio.wait_for(pending, PATIENCE) is None


async def test_a_waiter_that_is_cancelled_leaves_the_other_waiters_alone(
    server: Server, gates: Gates
) -> None:
    pending = server.request(called("wait"))

    async def wait() -> object:
        return await pending

    first, second = asyncio.create_task(wait()), asyncio.create_task(wait())
    await asyncio.to_thread(gates.entered.wait, PATIENCE)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    server.cancel(pending.ref)
    assert await asyncio.wait_for(second, PATIENCE) is None


async def test_pushes_reach_the_channel_and_only_the_callers(server: Server) -> None:
    mine: list[Outbound] = []
    others: list[Outbound] = []
    server.connect("me", mine.append)
    server.connect("you", others.append)
    message = asked("tools/call", name="steps", arguments={"count": 3}, _meta={"progressToken": 0})
    assert text_of(await server.handle(message, "me")) == "done"
    told = [json.loads(CODEC.encode(one))["params"] for one in mine]
    assert [one["progress"] for one in told] == [1, 2, 3]
    assert {one["progressToken"] for one in told} == {0}
    assert not others


async def test_a_second_channel_for_a_live_connection_is_refused(server: Server) -> None:
    server.connect("me", lambda _: None)
    with pytest.raises(ConnectionTaken):
        server.connect("me", lambda _: None)
    server.disconnect("me")
    server.connect("me", lambda _: None)
    with pytest.raises(ConnectionTaken):
        server.connect(ANONYMOUS, lambda _: None)


async def test_a_channel_that_raises_closes_its_connection(server: Server, gates: Gates) -> None:
    def broken(_: Outbound) -> None:
        raise OSError("gone")

    server.connect("me", broken)
    pending = server.request(called("wait"), "me")
    await asyncio.to_thread(gates.entered.wait, PATIENCE)
    server.notify("notifications/custom", {"a": 1})
    assert await asyncio.wait_for(pending, PATIENCE) is None


async def test_notify_reaches_every_channel(server: Server) -> None:
    heard: asyncio.Queue[Outbound] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for name in ("a", "b"):
        server.connect(name, lambda message: loop.call_soon_threadsafe(heard.put_nowait, message))
    server.notify("notifications/custom", {"a": 1})
    told = [json.loads(CODEC.encode(await asyncio.wait_for(heard.get(), PATIENCE))) for _ in range(2)]
    assert told == [{"jsonrpc": "2.0", "method": "notifications/custom", "params": {"a": 1}}] * 2


async def test_anonymous_requests_may_share_ids(server: Server) -> None:
    answers = await asyncio.gather(
        *(server.handle(called("echo", 1, text=str(n)), ANONYMOUS) for n in range(5))
    )
    assert sorted(text_of(answer) for answer in answers) == ["0", "1", "2", "3", "4"]


async def test_direct_calls_hand_back_the_callbacks_own_value(server: Server) -> None:
    assert await server.call_tool("echo", {"text": "hi"}) == "hi"
    assert await server.read_resource("config://settings") == "dark"
    assert await server.get_prompt("greet", {"name": "Ada"}) == "Hello Ada"


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("nothing", {}, "unknown"),
        ("echo", {}, "invalid_arguments"),
        ("refuse", {}, "tool_error"),
        ("fail", {}, "raised"),
    ],
)
async def test_a_direct_call_that_fails_says_of_which_kind(
    server: Server, name: str, arguments: dict[str, object], kind: str
) -> None:
    with pytest.raises(CallFailed) as caught:
        await server.call_tool(name, arguments)
    assert caught.value.kind == kind
    assert "secret" not in str(caught.value)


def test_a_sensitive_tool_without_an_authorizer_keeps_the_server_from_starting() -> None:
    registry = Registry()
    registry.register_tools([Tool.of(echo, destructive=True)])
    with pytest.raises(CannotStart, match="'echo' is sensitive"):
        Server(registry).start()


def test_authorization_counts_as_configured_only_when_somebody_chose_it(registry: Registry) -> None:
    assert not Server(registry).authorization_configured
    assert not Server(registry, authorizer=lambda _: None).authorization_configured
    chosen = Server(registry, authorizer=lambda _: None, authorizer_source="configured")
    assert chosen.authorization_configured
    chosen.close()
    assert not chosen.authorization_configured


def test_a_closed_server_takes_nothing_more(server: Server) -> None:
    server.start()
    server.close()
    server.close()
    with pytest.raises(ServerClosed):
        server.request(called("echo", text="x"))
    with pytest.raises(ServerClosed):
        server.start()


def test_closing_answers_nobody_twice_and_leaves_nobody_waiting(server: Server, gates: Gates) -> None:
    pending = server.request(called("wait"))
    assert gates.entered.wait(PATIENCE)
    closers = [threading.Thread(target=server.close, args=(0.0,)) for _ in range(4)]
    for closer in closers:
        closer.start()
    for closer in closers:
        closer.join(PATIENCE)
    assert not any(closer.is_alive() for closer in closers)
    assert pending.result(PATIENCE) is None


def test_running_work_may_end_within_the_drain(registry: Registry) -> None:
    release = threading.Event()
    entered = threading.Event()

    def slow() -> str:
        entered.set()
        assert release.wait(PATIENCE)
        return "in time"

    registry.register_tools([Tool.of(slow)])
    server = Server(registry, config=Config(drain=PATIENCE))
    pending = server.request(called("slow"))
    assert entered.wait(PATIENCE)
    closer = threading.Thread(target=server.close)
    closer.start()
    release.set()
    assert text_of(pending.result(PATIENCE)) == "in time"
    closer.join(PATIENCE)
    assert not closer.is_alive()


def test_fifty_lives_leave_no_thread_and_no_descriptor(registry: Registry) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    threads, files = set(threading.enumerate()), descriptors()
    for _ in range(50):
        server = Server(registry)
        assert text_of(server.request(called("echo", text="x")).result(PATIENCE)) == "x"
        assert text_of(server.request(called("shout", text="x")).result(PATIENCE)) == "X"
        server.close()
    assert set(threading.enumerate()) <= threads
    assert descriptors() <= files


async def test_on_the_hosts_loop_it_leaves_no_task(registry: Registry) -> None:
    before = asyncio.all_tasks()
    server = Server(registry)
    server.host()
    assert text_of(await server.handle(called("echo", text="x"))) == "x"
    await server.aclose()
    await server.aclose()
    assert asyncio.all_tasks() == before


async def test_an_observer_that_raises_is_dropped_and_nobody_notices(server: Server) -> None:
    heard: list[str] = []
    told = threading.Event()

    def bad(name: str, fields: object) -> None:
        raise KeyboardInterrupt

    def good(name: str, fields: object) -> None:
        heard.append(name)
        told.set()

    server.observe(bad)
    server.observe(good)
    for ident in range(2):
        told.clear()
        await server.handle(CODEC.decode(b"nonsense"))
        assert await asyncio.to_thread(told.wait, PATIENCE), ident
    assert heard == ["malformed_message", "malformed_message"]
