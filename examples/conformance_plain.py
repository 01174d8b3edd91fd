"""What the official conformance suite wants to see of a server that asks nothing: results, notices, schemas, lists.

The first half of the server in `conformance.py`, which adds the fixtures that ask the client; serve that one. Names,
URIs and texts are the suite's (`@modelcontextprotocol/conformance`).
"""

from __future__ import annotations

import asyncio
import json
from typing import NoReturn

from stanchion import Context, Stanchion, ToolError, allow
from stanchion.content import Audio, EmbeddedResource, Image, Message, Text

# The smallest PNG (one transparent pixel) and the smallest WAV (a header and no samples).
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000b49444154789c6360000200000500017a5eab3f0000000049454e44ae426082"
)
SILENCE = bytes.fromhex(
    "524946462400000057415645666d74201000000001000100401f0000401f0000010008006461746100000000"
)

app = Stanchion("conformance", server_version="1.0", authorizer=lambda _: allow())


# -- results. The suite calls the first tool without arguments, so that one takes none.


@app.tool
async def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@app.tool
async def test_image_content() -> list[Image]:
    """Return a picture."""
    return [Image(PIXEL, "image/png")]


@app.tool
async def test_audio_content() -> list[Audio]:
    """Return a sound."""
    return [Audio(SILENCE, "audio/wav")]


@app.tool
async def test_embedded_resource() -> list[EmbeddedResource]:
    """Return a resource within the result."""
    text = "This is an embedded resource content."
    return [EmbeddedResource("test://embedded-resource", text=text, mime_type="text/plain")]


@app.tool
async def test_multiple_content_types() -> list[Text | Image | EmbeddedResource]:
    """Return a text, a picture and a resource at once."""
    return [
        Text("Multiple content types test:"),
        Image(PIXEL, "image/png"),
        EmbeddedResource(
            "test://mixed-content-resource",
            text=json.dumps({"test": "data", "value": 123}),
            mime_type="application/json",
        ),
    ]


@app.tool
async def test_error_handling() -> NoReturn:
    """Fail, with a text for the model."""
    raise ToolError("This tool intentionally returns an error for testing")


# -- what a call says while it runs


@app.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Send three log messages."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(text)
        await asyncio.sleep(0.05)
    return "Tool with logging executed successfully"


@app.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times."""
    for done in (0, 50, 100):
        await ctx.progress(done, total=100, message=f"Completed step {done} of 100")
        await asyncio.sleep(0.05)
    return "Tool with progress executed successfully"


@app.tool
async def test_logging_tool(ctx: Context) -> str:
    """Send a log message, which only clients that asked for one may see."""
    await ctx.info("Diagnostic trace logging activated")
    return "Logging evaluated"


@app.tool
async def test_reconnection(ctx: Context) -> str:
    """Take long enough that a client may lose its stream and come back for the rest."""
    await ctx.info("Reconnection test started")
    await asyncio.sleep(0.1)
    return "Reconnection test completed successfully."


# -- schemas as their authors wrote them


@app.tool(
    input_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }
)
async def json_schema_2020_12_tool(
    name: str | None = None,
    address: dict[str, str] | None = None,
    contactMethod: str | None = None,  # noqa: N803  wire name
    phone: str | None = None,
    email: str | None = None,
) -> str:
    """Take arguments whose schema uses most of JSON Schema 2020-12."""
    told = {"name": name, "address": address, "by": contactMethod, "phone": phone, "email": email}
    return f"Called with {json.dumps(told)}"


@app.tool(
    input_schema={
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
        "additionalProperties": False,
    }
)
async def test_header_parameter(region: str) -> str:
    """Take an argument that HTTP clients repeat as a header."""
    return f"In {region}"


# -- lists that change


@app.tool
async def test_trigger_tool_change() -> str:
    """Add a tool, or take it away again."""
    name = "test_passing_tool"
    if name in app.registry.snapshot().tools:
        app.registry.unregister_tools([name])
        return f"{name} is gone"
    app.tool(name=name, description="Comes and goes.", replace=True)(passing)
    return f"{name} is there"


@app.tool
async def test_trigger_prompt_change() -> str:
    """Add a prompt, or take it away again."""
    name = "test_passing_prompt"
    if name in app.registry.snapshot().prompts:
        app.registry.unregister_prompts([name])
        return f"{name} is gone"
    app.prompt(name=name, description="Comes and goes.", replace=True)(passing)
    return f"{name} is there"


async def passing() -> str:
    """Be there for a while."""
    return "still here"


# -- resources


@app.resource("test://static-text", name="static-text", mime_type="text/plain")
async def static_text() -> str:
    """Return a text that never changes."""
    return "This is the content of the static text resource."


@app.resource("test://static-binary", name="static-binary", mime_type="image/png")
async def static_binary() -> bytes:
    """Return a picture that never changes."""
    return PIXEL


@app.resource("test://template/{id}/data", name="template", mime_type="application/json")
async def template(id: str) -> str:  # noqa: A002  wire name
    """Return the data of one id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@app.resource("test://watched-resource", name="watched-resource", mime_type="text/plain")
async def watched() -> str:
    """Return something that clients subscribe to."""
    return "Watched resource content"


# -- prompts


@app.prompt
async def test_simple_prompt() -> str:
    """Make a prompt of one message."""
    return "This is a simple prompt for testing."


@app.prompt
async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Make a prompt of two arguments.

    Args:
        arg1: First test argument.
        arg2: Second test argument.
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@app.completion("test_prompt_with_arguments", "arg1")
async def first_arguments(value: str, context: dict[str, str]) -> list[str]:
    """Complete the first argument."""
    return [known for known in ("paris", "park", "party") if known.startswith(value)]


@app.prompt
async def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803  wire name
    """Make a prompt about a resource that it brings along.

    Args:
        resourceUri: Which resource.
    """
    embedded = EmbeddedResource(
        resourceUri, text="Embedded resource content for testing.", mime_type="text/plain"
    )
    return [Message("user", embedded), Message("user", "Please process the embedded resource above.")]


@app.prompt
async def test_prompt_with_image() -> list[Message]:
    """Make a prompt about a picture."""
    return [Message("user", Image(PIXEL, "image/png")), Message("user", "Please analyze the image above.")]
