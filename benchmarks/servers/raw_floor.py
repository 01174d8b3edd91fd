"""The floor: the least a Python process can do to answer an echo. No checks, no concurrency, one tool.

What this reaches is what reading lines, decoding, encoding and writing cost; it is also the proof that the driver is
faster than any server measured.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec

decode = msgspec.json.Decoder(dict[str, Any]).decode
encode = msgspec.json.Encoder().encode

INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "floor", "version": "0"},
}


def answer(message: dict[str, Any]) -> dict[str, Any]:
    """Answer one request."""
    if message["method"] == "tools/call":
        text = message["params"]["arguments"]["text"]
        result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": False}
    else:
        result = INITIALIZED
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def main() -> None:
    """Answer line by line until the input ends."""
    pending = b""
    while data := os.read(0, 1 << 16):
        *lines, pending = (pending + data).split(b"\n")
        out = [encode(answer(message)) for line in lines if "id" in (message := decode(line))]
        if out:
            os.write(1, b"\n".join(out) + b"\n")


if __name__ == "__main__":
    main()
