"""A server whose tools ask their client: what the tests of elicitation serve."""

import itertools
from dataclasses import dataclass
from typing import Literal

from stanchion import Context, Stanchion

app = Stanchion("asker", server_version="1.0")


@dataclass
class Cup:
    """What is asked for."""

    size: Literal["small", "large"]
    sugar: bool = False


@dataclass
class Name:
    """Whom it is for."""

    name: str


tickets = itertools.count()


@app.tool
async def brew(context: Context) -> str:
    """Ask one question."""
    said = await context.elicit("Which cup?", Cup)
    if not said.accepted:
        return said.action
    return f"{said.content.size}, {'sugar' if said.content.sugar else 'no sugar'}"


@app.tool
async def serve(context: Context) -> list[int | str]:
    """Ask two questions, and do between them what must be done once."""
    cup = await context.elicit("Which cup?", Cup)
    ticket = await context.once("ticket", lambda: next(tickets))
    name = await context.elicit("For whom?", Name)
    return [cup.content.size, name.content.name, next(tickets) - ticket]
