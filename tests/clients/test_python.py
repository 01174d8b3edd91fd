"""The official Python client, in both eras, against the probe on stdio and over HTTP."""

import base64
import json

import anyio
import mcp_types as types
import pytest
from mcp import MCPError
from mcp.client.subscriptions import ToolsListChanged
from mcp.shared.exceptions import MCPDeprecationWarning

from tests.clients.peer import LEGACY, MODERN, connected, text, within
from tests.clients.serving import Where

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("mode", ["legacy", "auto"])


@pytest.mark.parametrize(
    ("mode", "revision"),
    [("legacy", LEGACY), ("auto", MODERN), (MODERN, MODERN)],
    ids=["legacy", "auto", "pinned"],
)
async def test_the_client_connects_in_its_mode(probe: Where, mode: str, revision: str) -> None:
    async with connected(probe, mode) as peer:
        client = peer.client
        assert client.protocol_version == revision
        assert text(await client.call_tool("echo", {"text": "héllo ☃"})) == "héllo ☃"
        if mode == MODERN:  # nothing was asked for yet, so nothing is known
            return
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("probe", "1.0")
        assert client.instructions is not None
        assert client.instructions.startswith("Every tool here")
        offered = client.server_capabilities
        assert offered.tools is not None
        assert offered.tools.list_changed is True
        assert offered.resources is not None
        assert offered.prompts is not None
        assert offered.completions is not None


@both
async def test_tools_are_listed_and_called(probe: Where, mode: str) -> None:
    async with connected(probe, mode) as peer:
        tools = {tool.name: tool for tool in (await peer.client.list_tools()).tools}
        assert list(tools)[:3] == ["noop", "echo", "add"], "tools are listed as they were registered"
        assert tools["echo"].title == "Echo"
        assert tools["echo"].description == "Return the text that was sent."
        assert tools["echo"].annotations is not None
        assert tools["echo"].annotations.read_only_hint is True
        assert tools["guarded"].annotations is not None
        assert tools["guarded"].annotations.destructive_hint is True
        assert tools["add"].input_schema["required"] == ["a", "b"]
        assert tools["progress"].input_schema["properties"].keys() == {"steps"}
        assert text(await peer.client.call_tool("noop")) == "ok"
        assert text(await peer.client.call_tool("add", {"a": 2, "b": 3})) == "5"
        assert text(await peer.client.call_tool("block", {"seconds": 0.01})) == "blocked 0.01 s"


@both
async def test_a_declared_result_is_structured_and_told_as_text(probe: Where, mode: str) -> None:
    async with connected(probe, mode) as peer:
        await peer.client.list_tools()  # the client checks results against the schemas it has seen
        result = await peer.client.call_tool("typed")
        assert result.structured_content == {"name": "typed", "total": 3, "tags": ["a", "b"]}
        assert json.loads(text(result)) == result.structured_content
        failed = await peer.client.call_tool("typed", {"fail": True})
        assert failed.is_error
        assert failed.structured_content is None


@both
async def test_every_kind_of_content_arrives(probe: Where, mode: str) -> None:
    async with connected(probe, mode) as peer:
        kinds = {}
        for kind in ("image", "audio", "link", "embedded", "blob"):
            (kinds[kind],) = (await peer.client.call_tool("return_value", {"kind": kind})).content
        assert isinstance(kinds["image"], types.ImageContent)
        assert base64.b64decode(kinds["image"].data).startswith(b"\x89PNG")
        assert isinstance(kinds["audio"], types.AudioContent)
        assert kinds["audio"].mime_type == "audio/wav"
        assert isinstance(kinds["link"], types.ResourceLink)
        assert str(kinds["link"].uri) == "config://settings"
        assert isinstance(kinds["embedded"], types.EmbeddedResource)
        assert isinstance(kinds["embedded"].resource, types.TextResourceContents)
        assert isinstance(kinds["blob"], types.EmbeddedResource)
        assert isinstance(kinds["blob"].resource, types.BlobResourceContents)


@both
async def test_errors_say_what_kind_they_are(probe: Where, mode: str) -> None:
    async with connected(probe, mode) as peer:
        with pytest.raises(MCPError) as unknown:
            await peer.client.call_tool("no_such_tool", {})
        assert unknown.value.code == types.INVALID_PARAMS
        assert unknown.value.data["tool"] == "no_such_tool"

        wrong = await peer.client.call_tool("add", {"a": "one", "b": 2})
        assert wrong.is_error
        assert "a" in text(wrong)

        told = await peer.client.call_tool("fail_tool_error", {"message": "no such element"})
        assert told.is_error
        assert "no such element" in text(told)

        crashed = await peer.client.call_tool("fail", {"message": "SECRET"})
        assert crashed.is_error
        assert "SECRET" not in text(crashed)

        refused = await peer.client.call_tool("guarded")
        assert refused.is_error
        assert refused.structured_content is not None
        assert refused.structured_content["code"] == "authorization_required"


@both
async def test_resources_are_listed_and_read(probe: Where, mode: str) -> None:
    async with connected(probe, mode) as peer:
        assert [str(one.uri) for one in (await peer.client.list_resources()).resources] == [
            "config://settings"
        ]
        templates = (await peer.client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == ["notes://{name}"]
        for uri, expected in (("config://settings", "theme = dark"), ("notes://today", "buy milk")):
            (content,) = (await peer.client.read_resource(uri)).contents
            assert isinstance(content, types.TextResourceContents)
            assert (str(content.uri), content.text, content.mime_type) == (uri, expected, "text/plain")
        with pytest.raises(MCPError) as unknown:
            await peer.client.read_resource("nowhere://at/all")
        assert unknown.value.code == (-32002 if mode == "legacy" else types.INVALID_PARAMS)


@both
async def test_a_prompt_is_listed_filled_in_and_completed(probe: Where, mode: str) -> None:
    async with connected(probe, mode) as peer:
        (prompt,) = (await peer.client.list_prompts()).prompts
        assert prompt.name == "greet"
        assert [(one.name, bool(one.required)) for one in prompt.arguments or []] == [
            ("name", True),
            ("style", False),
        ]
        got = await peer.client.get_prompt("greet", {"name": "Ada", "style": "formal"})
        assert [message.role for message in got.messages] == ["user", "assistant"]
        assert isinstance(got.messages[0].content, types.TextContent)
        assert got.messages[0].content.text == "Greet Ada in a formal way."

        greet = types.PromptReference(name="greet")
        plain = await peer.client.complete(greet, {"name": "style", "value": "c"})
        assert plain.completion.values == ["casual", "ceremonial"]
        narrowed = await peer.client.complete(greet, {"name": "style", "value": ""}, {"name": "Majesty"})
        assert narrowed.completion.values == ["ceremonial"]
        note = types.ResourceTemplateReference(uri="notes://{name}")
        assert (await peer.client.complete(note, {"name": "name", "value": "tom"})).completion.values == [
            "tomorrow"
        ]


@both
async def test_progress_arrives_in_order_and_before_the_result(probe: Where, mode: str) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def show(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with connected(probe, mode) as peer:
        result = await peer.client.call_tool("progress", {"steps": 3}, progress_callback=show)
        assert text(result) == "3 steps"
        assert seen == [(step, 3, f"step {step} of 3") for step in (1, 2, 3)]


@both
async def test_log_messages_arrive_when_asked_for(probe: Where, mode: str) -> None:
    async with connected(probe, mode, log_level="warning") as peer:
        if mode == "legacy":
            with pytest.warns(MCPDeprecationWarning):
                await peer.client.set_logging_level("warning")
        await peer.client.call_tool("logmsg", {"level": "info", "text": "too quiet"})
        await peer.client.call_tool("logmsg", {"level": "error", "text": "loud"})
        notice = await peer.notice(types.LoggingMessageNotification)
        assert (notice.params.level, notice.params.data, notice.params.logger) == ("error", "loud", "probe")


@both
async def test_cancelled_calls_end_and_make_room_for_others(probe: Where, mode: str) -> None:
    async with connected(probe, mode) as peer:
        for _ in range(4):  # together more than one connection may have at once
            async with anyio.create_task_group() as group:
                for _ in range(10):
                    group.start_soon(peer.client.call_tool, "hold")
                assert text(await peer.client.call_tool("held", {"count": 10})) == "10 held"
                group.cancel_scope.cancel()
            assert text(await peer.client.call_tool("held", {"count": 0})) == "0 held"


@both
async def test_list_changed_reaches_the_client(probe: Where, mode: str) -> None:
    async with connected(probe, mode) as peer:
        await peer.client.list_tools()
        toggle = {"name": "came_later", "on": True}
        if mode == "legacy":
            await peer.client.call_tool("toggle", toggle)
            await peer.notice(types.ToolListChangedNotification)
        else:
            async with peer.client.listen(tools_list_changed=True) as events:
                assert events.honored.tools_list_changed
                await peer.client.call_tool("toggle", toggle)
                with within("the event on the subscription"):
                    assert await anext(events) == ToolsListChanged()
        assert "came_later" in {tool.name for tool in (await peer.client.list_tools()).tools}
        assert text(await peer.client.call_tool("came_later", {"text": "here"})) == "here"
        await peer.client.call_tool("toggle", toggle | {"on": False})
        with pytest.raises(MCPError, match="came_later"):
            await peer.client.call_tool("came_later", {"text": "gone"})
