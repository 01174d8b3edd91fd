"""Every error that a peer can see, as a closed tree.

    McpError
    ├── ParseError            -32700  not JSON
    ├── InvalidRequest        -32600  JSON, but not a message
    │   └── AlreadyInitialized
    ├── MethodNotFound        -32601  unknown here, or its capability is not offered
    ├── InvalidParams         -32602  params of the wrong shape
    │   ├── UnknownTool               names no tool
    │   ├── UnknownPrompt
    │   ├── ResourceNotFound          -32002 for the handshake revisions
    │   └── BadState                  a requestState that is not taken (``seal``)
    ├── InternalError         -32603  our fault, told without detail
    │   └── Refused                   a block of B6's form: busy, unavailable, timed out
    ├── HeaderMismatch        -32020  2026-07-28 only, over HTTP
    ├── MissingCapability     -32021  2026-07-28 only
    └── UnsupportedVersion    -32022  2026-07-28 only

The code stands on the class; where revisions differ the ``Profile`` says so (``revisions.Profile.code_of``), never an
``if`` here. ``str(error)`` is what the client reads, so it never holds text from an exception that we did not raise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from msgspec import UNSET, UnsetType


class McpError(Exception):
    """Base of every error that may reach a client as a JSON-RPC error."""

    code: ClassVar[int] = -32603
    data: object | UnsetType

    def __init__(self, message: str, *, data: object | UnsetType = UNSET) -> None:
        super().__init__(message)
        self.data = data


class ParseError(McpError):
    """The line is not JSON (JSON-RPC 2.0, section 5.1)."""

    code = -32700


class InvalidRequest(McpError):
    """JSON, but no JSON-RPC message of ours (JSON-RPC 2.0, section 4)."""

    code = -32600


class AlreadyInitialized(InvalidRequest):
    """A second ``initialize`` asked for another revision than the one in use (behaviour C8)."""

    def __init__(self, revision: str) -> None:
        super().__init__(
            f"This connection already speaks revision {revision}", data={"protocolVersion": revision}
        )


class MethodNotFound(McpError):
    """No such method in this revision, or the server does not offer what it belongs to."""

    code = -32601

    def __init__(self, method: str) -> None:
        # An endless method name is not worth reflecting.
        super().__init__(f"Method not found: {method[:128]}")


class InvalidParams(McpError):
    """The params do not fit the method."""

    code = -32602


class UnknownTool(InvalidParams):
    """``tools/call`` names no registered tool, or one that the caller may not know of (behaviour A7)."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown tool: {name[:128]}", data={"tool": name[:128]})


class UnknownPrompt(InvalidParams):
    """``prompts/get`` or a completion names no registered prompt."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown prompt: {name[:128]}", data={"prompt": name[:128]})


class ResourceNotFound(InvalidParams):
    """No resource and no template answers to the URI."""

    def __init__(self, uri: str) -> None:
        super().__init__("Resource not found", data={"uri": uri[:2048]})


class InternalError(McpError):
    """Something of ours failed. The text never says what; the log does."""

    code = -32603


class Refused(InternalError):
    """A request that was not carried out, with the machine-readable reason as ``data`` (behaviour B6, E3)."""

    def __init__(self, message: str, block: Mapping[str, object]) -> None:
        super().__init__(message, data=dict(block))


class HeaderMismatch(McpError):
    """A header that mirrors the body is missing, malformed or says something else (2026-07-28, basic/transports)."""

    code = -32020


class MissingCapability(McpError):
    """The request needs something that the client did not declare on it (2026-07-28, basic/index)."""

    code = -32021

    def __init__(self, required: Mapping[str, object]) -> None:
        super().__init__(
            "The client did not declare a capability this needs",
            data={"requiredCapabilities": dict(required)},
        )


class UnsupportedVersion(McpError):
    """The request names a revision that this server does not speak (2026-07-28, basic/versioning)."""

    code = -32022

    def __init__(self, requested: str, supported: Sequence[str]) -> None:
        super().__init__(
            "Unsupported protocol version", data={"supported": list(supported), "requested": requested[:64]}
        )
