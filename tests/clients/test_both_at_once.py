"""One process, one port: a client of the handshake era and one of 2026-07-28, side by side."""

import anyio
import mcp_types as types
import pytest
from mcp.client.subscriptions import ToolsListChanged

from tests.clients.peer import MODERN, connected, text, within

pytestmark = pytest.mark.anyio

OLD = "2025-06-18"


async def test_an_old_and_a_new_client_are_served_at_the_same_time(
    probe_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp.client.session.LATEST_HANDSHAKE_VERSION", OLD)
    async with connected(probe_url, "legacy") as old, connected(probe_url, MODERN) as new:
        assert (old.client.protocol_version, new.client.protocol_version) == (OLD, MODERN)

        async with anyio.create_task_group() as calls:
            cancelled = anyio.CancelScope()

            async def hold_old() -> None:
                with cancelled:
                    await old.client.call_tool("hold")

            calls.start_soon(hold_old)
            calls.start_soon(new.client.call_tool, "hold")
            for peer in (old, new):
                assert text(await peer.client.call_tool("held", {"count": 2})) == "2 held"
                assert text(await peer.client.call_tool("echo", {"text": "me"})) == "me"
            cancelled.cancel()  # ends the old client's call and leaves the new one's
            assert text(await new.client.call_tool("held", {"count": 1})) == "1 held"
            calls.cancel_scope.cancel()
        assert text(await old.client.call_tool("held", {"count": 0})) == "0 held"

        async with new.client.listen(tools_list_changed=True) as events:
            await old.client.call_tool("toggle", {"name": "shared", "on": True})
            await old.notice(types.ToolListChangedNotification)
            with within("the event on the new client's subscription"):
                assert await anext(events) == ToolsListChanged()
            assert text(await new.client.call_tool("shared", {"text": "both see it"})) == "both see it"
            await new.client.call_tool("toggle", {"name": "shared", "on": False})
        for peer in (old, new):
            assert "shared" not in {tool.name for tool in (await peer.client.list_tools()).tools}
