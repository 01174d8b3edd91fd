"""``Stanchion``: decorators register and hand the function back unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stanchion import Config, Context, Stanchion, SyncContext, ToolCall, Verdict, allow, deny
from stanchion.app import DuplicateName
from stanchion.registry.errors import NameCollision

PATIENCE = 10.0


def test_a_decorator_returns_the_function_unchanged() -> None:
    app = Stanchion("x")

    def plain() -> str:
        return "plain"

    assert app.tool(plain) is plain
    assert app.tool(name="other")(plain) is plain
    assert app.resource("config://a")(plain) is plain
    assert app.prompt(plain) is plain
    assert [tool.name for tool in app.registry.snapshot().tools] == ["plain", "other"]


def test_two_functions_under_one_name_are_told_apart_by_their_places() -> None:
    app = Stanchion("x")

    @app.tool
    def twin() -> str:
        return "first"

    with pytest.raises(DuplicateName) as caught:

        @app.tool(name="twin")
        def second() -> str:
            return "second"

    assert str(caught.value).count("test_app.py:") == 2

    @app.tool(name="twin", replace=True)
    def third() -> str:
        return "third"

    assert app.registry.snapshot().tools.get("twin").callback is third


def test_a_name_that_a_client_could_not_tell_apart_is_refused() -> None:
    app = Stanchion("x")
    app.tool(name="a_b")(lambda: "x")
    with pytest.raises(NameCollision, match="a-b"):
        app.tool(name="a-b")(lambda: "x")


def test_a_name_is_free_again_once_it_was_unregistered() -> None:
    app = Stanchion("x")
    app.tool(name="a")(lambda: "x")
    app.registry.unregister_tools(["a"])
    app.tool(name="a")(lambda: "y")
    assert app.registry.snapshot().tools.get("a").callback() == "y"


def test_one_app_has_one_authorizer_and_one_lifespan() -> None:
    app = Stanchion("x", authorizer=lambda _: allow())
    with pytest.raises(DuplicateName, match="authorizer"):
        app.authorizer(lambda _: allow())

    @app.lifespan
    async def life(app: Stanchion) -> AsyncIterator[None]:
        yield

    with pytest.raises(DuplicateName, match="lifespan"):
        app.lifespan(life)


@pytest.mark.parametrize("kind", ["generator", "manager"])
async def test_callbacks_of_every_kind_see_what_the_lifespan_yielded(kind: str) -> None:
    app = Stanchion("x")
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def life(given: Stanchion) -> AsyncIterator[dict[str, Any]]:
        yield {"app": given}
        loop.call_soon_threadsafe(ended.set)

    app.lifespan(life if kind == "generator" else asynccontextmanager(life))

    @app.tool
    async def on_the_loop(context: Context) -> bool:
        return context.lifespan["app"] is app

    @app.tool
    def on_a_thread(context: SyncContext) -> bool:
        return context.lifespan["app"] is app

    server = app.server()
    assert await server.call_tool("on_a_thread") is True
    assert await server.call_tool("on_the_loop") is True
    await server.aclose()
    await asyncio.wait_for(ended.wait(), PATIENCE)


@pytest.mark.parametrize("is_async", [True, False])
async def test_the_authorizer_judges_each_call(is_async: bool) -> None:
    app = Stanchion("x")
    seen: list[ToolCall] = []

    def judge(call: ToolCall) -> Verdict:
        seen.append(call)
        return deny("not you") if call.arguments["n"] > 1 else allow()

    async def judge_later(call: ToolCall) -> Verdict:
        return judge(call)

    app.authorizer(judge_later if is_async else judge)

    @app.tool(destructive=True)
    def erase(n: int) -> str:
        return f"erased {n}"

    server = app.server()
    assert server.authorization_configured
    from stanchion.wire.codec import Codec

    codec = Codec()

    async def call(n: int) -> bytes:
        line = (
            b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"erase","arguments":{"n":%d}}}'
            % (n, n)
        )
        answer = await server.handle(codec.decode(line))
        assert answer is not None
        return codec.encode(answer)

    assert b"erased 1" in await call(1)
    refused = await call(2)
    assert b'"isError":true' in refused
    assert b'"structuredContent":{"code":"denied","tool":"erase","reason":"not you"}' in refused
    assert [(one.tool.name, one.tool.destructive, dict(one.arguments)) for one in seen] == [
        ("erase", True, {"n": 1}),
        ("erase", True, {"n": 2}),
    ]
    await server.aclose()


def test_options_reach_the_server() -> None:
    app = Stanchion("x", title="X", config=Config(max_in_flight=3))
    assert app.server().config.max_in_flight == 3
    assert app.server(config=Config(max_in_flight=4)).config.max_in_flight == 4
