"""Ours: the same echo in each isolation. Run by ``stanchion run benchmarks/servers/ours.py --max-in-flight 128``."""

from __future__ import annotations

from stanchion import Stanchion

app = Stanchion("ours")


@app.tool(read_only=True)
async def echo_task(text: str) -> str:
    """Return the text that was sent, from a callback loop."""
    return text


@app.tool(read_only=True, isolation="thread")
def echo_thread(text: str) -> str:
    """Return the text that was sent, from a thread."""
    return text


@app.tool(read_only=True, isolation="inline")
def echo_inline(text: str) -> str:
    """Return the text that was sent, on the protocol's own loop."""
    return text
