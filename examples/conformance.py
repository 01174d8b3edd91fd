"""The server that the official conformance suite asks for: one fixture for each thing it checks, but for tasks.

The fixtures here ask the client; those that don't are in `conformance_plain.py`. Names, keys and texts are the suite's
(`@modelcontextprotocol/conformance`), which `make test` runs against this file. Serve it with
`stanchion run examples/conformance.py --http 127.0.0.1:8000`.

A callback that asks is written once. Clients that began with a handshake are asked while it waits; in 2026-07-28 the answer
comes with a new request and the callback runs again from its top, with the answers so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from conformance_plain import app as plain  # type: ignore[import-not-found]  # beside this file

from stanchion import Context, Stanchion
from stanchion.asking import Elicit, Roots, Sample

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"

app: Stanchion = plain


# -- asking the client


@dataclass
class User:
    """Who the person is and how to reach them."""

    username: str
    email: str


@dataclass
class Profile:
    """A form whose every field is filled in already."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


@dataclass
class Name:
    """Who somebody is."""

    name: str


@dataclass
class Color:
    """What somebody likes."""

    color: str


@dataclass
class Confirmation:
    """A yes or a no."""

    ok: bool


@dataclass
class Surroundings:
    """What a prompt should be about."""

    context: str


def options(*values: str) -> list[dict[str, str]]:
    """Write values that have titles."""
    return [{"const": value, "title": f"Option {value}"} for value in values]


CHOICES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": options("value1", "value2", "value3")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        "titledMulti": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {"anyOf": options("value1", "value2", "value3")},
        },
    },
}


@app.tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Have the client's model answer a prompt."""
    answer = await ctx.sample(prompt, max_tokens=100, key="answer")
    return f"LLM response: {answer.text}"


@app.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the person who they are."""
    answer = await ctx.elicit(message, User, key="user")
    return f"User response: {answer.action}, {answer.content}"


@app.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask with a form that has a default for each kind of field."""
    answer = await ctx.elicit("Please review the form", Profile, key="profile")
    return f"Elicitation completed: {answer.action}, {answer.content}"


@app.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask with a form that has each kind of choice."""
    answer = await ctx.elicit("Please choose", CHOICES, key="choices")
    return f"Elicitation completed: {answer.action}, {answer.content}"


@app.tool
async def test_missing_capability(ctx: Context) -> str:
    """Need sampling, whether or not the client has it."""
    answer = await ctx.sample("Say hello", max_tokens=10, key="hello")
    return answer.text


@app.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Report progress, then ask."""
    await ctx.progress(50, total=100)
    answer = await ctx.elicit("What is your name?", Name, key="user_name")
    return f"Streaming complete: {answer.action}"


@app.tool
async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Ask for a name and greet it."""
    answer = await ctx.elicit("What is your name?", Name, key="user_name")
    return f"Hello, {answer.content.name}!" if answer.content else f"No name: {answer.action}"


@app.tool
async def test_input_required_result_sampling(ctx: Context) -> str:
    """Have the client's model name a capital."""
    answer = await ctx.sample("What is the capital of France?", max_tokens=100, key="capital_question")
    return answer.text


@app.tool
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Name the client's roots."""
    roots = await ctx.roots(key="client_roots")
    return f"Roots: {', '.join(str(root.uri) for root in roots) or 'none'}"


@app.tool
async def test_input_required_result_request_state(ctx: Context) -> str:
    """Ask, and go on only with the state that came back."""
    answer = await ctx.elicit("Please confirm", Confirmation, key="confirm")
    return f"state-ok: {answer.action}"


@app.tool
async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Ask, so that the suite has a state to spoil."""
    answer = await ctx.elicit("Please confirm", Confirmation, key="confirm")
    return f"integrity-ok: {answer.action}"


@app.tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Ask for three things at once."""
    answers = await ctx.ask(
        {
            "user_name": Elicit("What is your name?", Name),
            "greeting": Sample("Generate a greeting", max_tokens=50),
            "client_roots": Roots(),
        }
    )
    return f"Received {', '.join(answers)}"


@app.tool
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask one thing after the other."""
    name = await ctx.elicit("Step 1: What is your name?", Name, key="step1")
    color = await ctx.elicit("Step 2: What is your favorite color?", Color, key="step2")
    who = name.content.name if name.content else "somebody"
    what = color.content.color if color.content else "no color"
    return f"Multi-round complete for {who} who likes {what}"


@app.tool
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Ask for whatever the client says it can give."""
    declared = ctx.meta.get(CAPABILITIES, {})
    asks: dict[str, Elicit | Sample] = {}
    if "elicitation" in declared:
        asks["elicit_input"] = Elicit("What is your name?", Name)
    if "sampling" in declared:
        asks["sample_input"] = Sample("Say hello", max_tokens=50)
    if not asks:
        return "No supported capabilities declared"
    answers = await ctx.ask(asks)
    return f"capabilities-ok: received {', '.join(answers)}"


@app.prompt
async def test_input_required_result_prompt(ctx: Context) -> str:
    """Ask what the prompt should be about."""
    answer = await ctx.elicit("What context should the prompt use?", Surroundings, key="user_context")
    about = answer.content.context if answer.content else "nothing in particular"
    return f"Talk about {about}."


if __name__ == "__main__":
    app.run()
