"""What a browser is told about who may read our responses (the Fetch standard, CORS).

Owns the headers of preflights and of responses to other origins. Whether an origin may ask at all was decided before
(``machines.http_headers.Gate``): only those that may get any of these.
"""

from __future__ import annotations

from typing import Final

from stanchion.machines.http_headers import PARAM
from stanchion.transports.http_io import Header, Http

VERBS: Final = "POST, GET, DELETE, OPTIONS"

_REQUEST_HEADERS: Final = (
    "accept",
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
)
_MOST: Final = 64
_SECONDS: Final = b"600"


def response_headers(http: Http) -> list[Header]:
    """What each response to this request says; nothing to who is no browser."""
    origin = http.headers.get("origin")
    if origin is None:
        return []
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", b"Mcp-Session-Id, WWW-Authenticate"),
        (b"vary", b"Origin"),
    ]


async def preflight(http: Http) -> None:
    """Answer ``OPTIONS``."""
    headers: list[Header] = [(b"allow", VERBS.encode())]
    if "origin" in http.headers and "access-control-request-method" in http.headers:
        wanted = http.headers.get("access-control-request-headers", "").lower().split(",")
        params = [name for one in wanted[:_MOST] if (name := one.strip()).startswith(PARAM)]
        headers += [
            (b"access-control-allow-methods", VERBS.encode()),
            (b"access-control-allow-headers", ", ".join([*_REQUEST_HEADERS, *params]).encode("latin-1")),
            (b"access-control-max-age", _SECONDS),
        ]
    await http.reply(204, b"", headers)
