"""The probe, and the few tools more that clients are tested with."""

import asyncio
import sys
from pathlib import Path

from stanchion import Context

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from probe import app


@app.tool
async def unhurried_progress(steps: int, ctx: Context) -> str:
    """Report progress from 1 to `steps`, and pause before the result.

    The TypeScript clients lose progress that they read in one chunk with the result.
    """
    for step in range(1, steps + 1):
        await ctx.progress(step, total=steps, message=f"step {step} of {steps}")
    await asyncio.sleep(0.05)
    return f"{steps} steps"


class Holds:
    """Counts the calls of `hold` at work, and tells when that changes."""

    def __init__(self) -> None:
        self.count = 0
        self.changed = asyncio.Event()

    def add(self, number: int) -> None:
        self.count += number
        self.changed.set()
        self.changed = asyncio.Event()


holds = Holds()


@app.tool
async def hold() -> None:
    """Go on until cancelled."""
    holds.add(1)
    try:
        await asyncio.Event().wait()
    finally:
        holds.add(-1)


@app.tool
async def held(count: int) -> str:
    """Wait until that many calls of `hold` are at work, whoever made them."""
    while holds.count != count:
        await holds.changed.wait()
    return f"{count} held"
