"""The probe, and one tool more: what the client tests serve."""

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
