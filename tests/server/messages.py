"""What clients may send: every method, rightly and wrongly, in both forms, with ids that repeat."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.server.bench import CAPABILITIES_KEY, LOG_KEY
from tests.server.watch import MODERN, VERSION_KEY

IDS = st.sampled_from([0, 1, 2, 3, 4, "", "1", "a", "b", "c", 2**70, -5])
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN, "1999-01-01"]

_GREET = {"type": "ref/prompt", "name": "greet"}
_ITEM = {"type": "ref/resource", "uri": "item:///{key}"}

PARAMS: dict[str, list[Any]] = {
    "initialize": [
        *({"protocolVersion": name, "capabilities": {}, "clientInfo": {"name": "t"}} for name in REVISIONS),
        {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}, "roots": {}}},
        {},
        {"protocolVersion": 5},
    ],
    "server/discover": [{}, {"extra": 1}],
    "ping": [{}, None],
    "tools/list": [{}, None, {"cursor": ""}, {"cursor": "WzAsImFkZCJd"}, {"cursor": 5}],
    "tools/call": [
        *({"name": "add", "arguments": {"a": 1}} for _ in range(4)),
        {"name": "sum"},
        {"name": "many", "arguments": {}},
        {"name": "brief", "arguments": {"a": 1, "b": 2}},
        {"name": "apart", "arguments": {"a": 1}},
        {"name": "wipe"},
        {"name": "later", "arguments": {"text": "x"}},
        {"name": "extra"},
        {"name": "add", "arguments": {"a": "x"}},
        {"name": "add"},
        {"name": "nowhere"},
        {"name": "add", "arguments": [1]},
        {},
    ],
    "resources/list": [{}, {"cursor": "x"}],
    "resources/templates/list": [{}],
    "resources/read": [{"uri": "file:///a"}, {"uri": "item:///1"}, {"uri": "file:///none"}, {"uri": ""}, {}],
    "resources/subscribe": [{"uri": "file:///a"}, {"uri": "item:///1"}, {"uri": "file:///none"}, {"uri": 1}],
    "resources/unsubscribe": [{"uri": "file:///a"}, {"uri": "never:///"}],
    "prompts/list": [{}, {"cursor": None}],
    "prompts/get": [
        {"name": "greet", "arguments": {"name": "x"}},
        {"name": "greet"},
        {"name": "none"},
        {"name": "greet", "arguments": {"name": 1}},
    ],
    "completion/complete": [
        {"ref": _GREET, "argument": {"name": "name", "value": ""}},
        {"ref": _GREET, "argument": {"name": "tone", "value": "x"}, "context": {"arguments": {"name": "y"}}},
        {"ref": _ITEM, "argument": {"name": "key", "value": ""}},
        {"ref": {"type": "ref/prompt", "name": "none"}, "argument": {"name": "a", "value": ""}},
        {"ref": {"type": "ref/none"}, "argument": {}},
    ],
    "logging/setLevel": [{"level": "debug"}, {"level": "error"}, {"level": "loud"}],
    "subscriptions/listen": [
        {
            "notifications": {
                "toolsListChanged": True,
                "resourceSubscriptions": ["file:///a", "file:///a", "no"],
            }
        },
        {"notifications": {"promptsListChanged": True, "resourcesListChanged": True}},
        {"notifications": {}},
        {},
    ],
    "tasks/list": [{}],
    "": [{}],
}
GOOD: dict[str, list[Any]] = {
    "server/discover": [{}],
    "tools/call": [
        *({"name": "add", "arguments": {"a": 1}} for _ in range(6)),
        {"name": "sum"},
        {"name": "brief", "arguments": {"a": 1, "b": 2}},
        {"name": "later", "arguments": {"text": "x"}},
        {"name": "wipe"},
        {"name": "extra"},
        {"name": "nowhere"},
    ],
    "resources/read": [{"uri": "file:///a"}, {"uri": "item:///1"}],
    "resources/subscribe": [{"uri": "file:///a"}, {"uri": "item:///1"}],
    "resources/unsubscribe": [{"uri": "file:///a"}],
    "prompts/get": [{"name": "greet", "arguments": {"name": "x"}}],
    "completion/complete": [
        {"ref": _GREET, "argument": {"name": "name", "value": ""}},
        {"ref": _ITEM, "argument": {"name": "key", "value": ""}},
    ],
    "logging/setLevel": [{"level": "debug"}, {"level": "error"}],
    "subscriptions/listen": [
        {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["file:///a", "item:///1"]}},
        {"notifications": {"promptsListChanged": True, "resourcesListChanged": True}},
    ],
}
"""What is served, if the revision has it, and mostly by a worker."""
_MODERN_ONLY = {"server/discover", "subscriptions/listen"}
_HANDSHAKE_ONLY = {"resources/subscribe", "resources/unsubscribe", "logging/setLevel"}
_OFTEN = [*["tools/call"] * 8, *GOOD]

_GOOD_TOKENS = st.sampled_from([0, "", 7, "t"])
_TOKENS = _GOOD_TOKENS | st.sampled_from([None, []])
_LEVELS = st.sampled_from(["debug", "error", "loud"])
_FORMS = ["plain", "plain", "modern", "modern", "no capabilities", "strange version", "no version", "no meta"]


@st.composite
def good_requests(draw: st.DrawFn) -> dict[str, Any]:
    """A request that means something, in the form that has its method."""
    method = draw(st.sampled_from(_OFTEN))
    params = dict(draw(st.sampled_from(GOOD[method])))
    modern = method in _MODERN_ONLY or (method not in _HANDSHAKE_ONLY and draw(st.integers(0, 2)) == 0)
    meta: dict[str, Any] = {}
    if draw(st.booleans()):
        meta["progressToken"] = draw(_GOOD_TOKENS)
    if modern:
        meta |= {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}
        if draw(st.booleans()):
            meta |= {LOG_KEY: "notice", "io.modelcontextprotocol/clientInfo": {"name": "m", "version": "1"}}
    if meta:
        params["_meta"] = meta
    return {"jsonrpc": "2.0", "id": draw(IDS), "method": method, "params": params}


@st.composite
def any_requests(draw: st.DrawFn) -> dict[str, Any]:
    """A request, seldom a good one."""
    method = draw(st.sampled_from(sorted(PARAMS)))
    params = draw(st.sampled_from(PARAMS[method]))
    form = draw(st.sampled_from(_FORMS))
    meta: dict[str, Any] = {}
    if draw(st.integers(0, 2)) == 0:
        meta["progressToken"] = draw(_TOKENS)
    if draw(st.integers(0, 3)) == 0:
        meta[LOG_KEY] = draw(_LEVELS)
    if form in {"modern", "no capabilities", "strange version"}:
        meta[VERSION_KEY] = MODERN if form != "strange version" else "v9"
    if form in {"modern", "strange version", "no version"}:
        meta[CAPABILITIES_KEY] = {}
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": draw(IDS), "method": method}
    if form == "no meta" or (form == "plain" and not meta):
        if params is not None:
            message["params"] = params
    else:
        message["params"] = {**(params or {}), "_meta": meta}
    return message


def _notice(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


cancellations = IDS.map(lambda ident: _notice("notifications/cancelled", {"requestId": ident}))
notifications = st.sampled_from(
    [
        _notice("notifications/initialized", {}),
        _notice("notifications/roots/list_changed", {}),
        _notice("notifications/cancelled", {"requestId": None}),
        _notice("notifications/cancelled", {}),
        _notice("notifications/unknown", {"x": 1}),
        {"jsonrpc": "2.0", "method": "tools/call"},
    ]
)
oddities = st.sampled_from(
    [
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": ""}},
        b"{",
        b"5",
        b'"x"',
        b"[]",
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":5}',
        b'{"jsonrpc":"2.0","method":5}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}',
        b"\xff",
    ]
)
batches = st.lists(
    good_requests() | good_requests() | any_requests() | notifications | cancellations, min_size=1, max_size=5
)
