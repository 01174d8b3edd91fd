"""The checks of a row, one function each, judged on what was seen.

A function gets the check's own object and returns what is wrong, or None. ``TABLE`` maps the key that names a check to
its function, in the order in which keys are looked for: a check such as ``{"response_to": 1, "is_error": true}`` is one
of ``response_to``, the rest are its conditions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from tests.cases.process import ServerProcess
from tests.cases.responses import response_to, text_of
from tests.cases.tool_rules import broken_rule
from tests.cases.transcript import Message, Transcript, same

Check = dict[str, Any]
HANDSHAKE_IDS: Final = ("init", "alive-check")
EXIT_SLACK: Final = 0.3
"""Seconds allowed beyond a row's limit, for starting the clock late."""


@dataclass(slots=True)
class Seen:
    """All that a check may look at."""

    transcript: Transcript
    server: ServerProcess
    sent: dict[str, float] = field(default_factory=dict)
    """When each id, as JSON, was first sent."""

    server_request: Message | None = None
    """The newest request of the server's that a step waited for."""

    last_step: float = 0.0
    alive: bool = False
    exited_after: float | None = None
    """Seconds from the last step to the end of the process."""


APPEARS: Final = {
    "elicitation_schema", "error_any_id", "error_without_id", "first_line_is_response_to", "sequence_to", "tools_rule",
}  # fmt: skip
"""Checks of something that has yet to come, without an id to wait for."""


def walk(check: Check) -> Iterator[Check]:
    """The check and all checks in it."""
    yield check
    for part in (*check.get("all", ()), *check.get("any", ())):
        yield from walk(part)


def judge(check: Check, seen: Seen) -> str | None:
    """What is wrong, or None."""
    if "all" in check:
        return next((fault for part in check["all"] if (fault := judge(part, seen))), None)
    if "any" in check:
        faults = [judge(part, seen) for part in check["any"]]
        return None if None in faults else " | ".join(filter(None, faults))
    for name, function in TABLE.items():
        if name in check:
            fault = function(check, seen)
            return None if fault is None else f"{json.dumps(check):.120}: {fault}"
    return f"unknown check {json.dumps(check):.120}"


def is_ready(check: Check, seen: Seen) -> bool:
    """Whether everything that the check waits for has come; of alternatives, one that holds is enough."""
    if "all" in check:
        return all(is_ready(part, seen) for part in check["all"])
    if "any" in check:
        waiting = [part for part in check["any"] if not {"alive_after", "exits_within"} & part.keys()]
        return not waiting or any(judge(part, seen) is None for part in waiting)
    if check.get("min") or APPEARS & check.keys():
        return judge(check, seen) is None
    return all(seen.transcript.responses(id_) for id_ in _ids(check))


def _ids(check: Check) -> list[object]:
    """The ids whose responses a check looks at."""
    if "response_to" in check:
        return [check["response_to"]]
    if "every_id_once" in check:
        first, last = check["every_id_once"]
        return list(range(first, last + 1))
    if "capability_consistency" in check:
        return ["init", *check["capability_consistency"].values()]
    if "structured_if_schema" in check:
        listed, _, called = check["structured_if_schema"]
        return [listed, called]
    for name in ("order", "same_result", "text_json_strict"):
        if name in check:
            return list(check[name])
    for name in ("tools_has", "result_lacks"):
        if name in check:
            return [check[name][0]]
    return [check["result_no_nulls"]] if "result_no_nulls" in check else []


def _within(count: int, check: Check) -> str | None:
    return None if check.get("min", 0) <= count <= check.get("max", count) else f"{count} of them"


def _response_to(check: Check, seen: Seen) -> str | None:
    responses = seen.transcript.responses(check["response_to"])
    if not responses:
        return "no response"
    at, message = responses[0]
    if "within" in check:
        took = at - seen.sent.get(json.dumps(check["response_to"]), seen.last_step)
        return None if took <= check["within"] else f"took {took:.2f} s"
    return response_to(check, message)


def _no_response_to(check: Check, seen: Seen) -> str | None:
    responses = seen.transcript.responses(check["no_response_to"])
    return f"answered {responses[0][1]!r:.140}" if responses else None


def _no_response(_: Check, seen: Seen) -> str | None:
    for message in seen.transcript.messages():
        if message.get("id") in HANDSHAKE_IDS or str(message.get("method", "")).startswith("notifications/"):
            continue
        return f"{message!r:.140}"
    return None


def _responses_to(check: Check, seen: Seen) -> str | None:
    return _within(len(seen.transcript.responses(check["responses_to"])), check)


def _sequence_to(check: Check, seen: Seen) -> str | None:
    kinds = []
    for _, message in seen.transcript.responses(check["sequence_to"]):
        result = message.get("result")
        failed = "error" in message or (isinstance(result, dict) and bool(result.get("isError")))
        kinds.append("error" if failed else "result")
    return None if kinds in (check["kinds"], check["or_kinds"]) else f"{kinds}"


def _every_id_once(check: Check, seen: Seen) -> str | None:
    bad = [id_ for id_ in _ids(check) if len(seen.transcript.responses(id_)) != 1]
    return f"{len(bad)} ids without exactly one answer, such as {bad[:3]}" if bad else None


def _order(check: Check, seen: Seen) -> str | None:
    places = [_place_of_response(id_, seen) for id_ in check["order"]]
    return None if -1 not in places and places == sorted(places) else f"lines {places}"


def _place_of_response(id_: object, seen: Seen) -> int:
    responses = seen.transcript.responses(id_)
    if not responses:
        return -1
    return next(n for n, line in enumerate(seen.transcript.lines) if line.value is responses[0][1])


def _error_without_id(check: Check, seen: Seen) -> str | None:
    wanted = check["error_without_id"]
    wanted = wanted if isinstance(wanted, list) else [wanted]
    codes = [message["error"].get("code") for message in seen.transcript.errors_without_id()]
    return None if set(codes) & set(wanted) else f"errors without id: {codes}"


def _error_any_id(check: Check, seen: Seen) -> str | None:
    codes = _error_codes(seen)
    return None if check["error_any_id"] in codes else f"errors: {codes}"


def _error_codes(seen: Seen) -> list[int]:
    return [message["error"]["code"] for message in seen.transcript.messages() if "error" in message]


def _max_idless_errors(check: Check, seen: Seen) -> str | None:
    count = len(seen.transcript.errors_without_id())
    return None if count <= check["max_idless_errors"] else f"{count} of them"


def _error_codes_in(check: Check, seen: Seen) -> str | None:
    low, high = check["error_codes_in"]
    others = [code for code in _error_codes(seen) if not low <= code <= high]
    return f"{others[:3]}" if others else None


def _no_result_for_garbage(_: Check, seen: Seen) -> str | None:
    results = [m for m in seen.transcript.messages() if "result" in m and m["id"] not in HANDSHAKE_IDS]
    return f"{results[0]!r:.140}" if results else None


def _alive_after(_: Check, seen: Seen) -> str | None:
    return None if seen.alive else f"no sign of life, exit code {seen.server.exit_code}"


def _exits_within(check: Check, seen: Seen) -> str | None:
    after = seen.exited_after
    return (
        None if after is not None and after <= check["exits_within"] + EXIT_SLACK else f"ended after {after}"
    )


def _cpu_seconds_max(check: Check, seen: Seen) -> str | None:
    return None if seen.server.cpu <= check["cpu_seconds_max"] else f"{seen.server.cpu:.2f} s"


def _rss_mb_max(check: Check, seen: Seen) -> str | None:
    return None if seen.server.peak_rss <= check["rss_mb_max"] else f"{seen.server.peak_rss:.0f} MB"


def _stdout_only_json(_: Check, seen: Seen) -> str | None:
    for line in seen.transcript.lines:
        if not (isinstance(line.value, dict) and line.value.get("jsonrpc") == "2.0"):
            return f"{line.raw!r:.140}"
    return None


def _no_cr(_: Check, seen: Seen) -> str | None:
    return "a carriage return" if any(b"\r" in line.raw for line in seen.transcript.lines) else None


def _stdout_not_contains(check: Check, seen: Seen) -> str | None:
    needle = check["stdout_not_contains"].encode()
    found = next((line.raw for line in seen.transcript.lines if needle in line.raw), None)
    return f"in {found!r:.140}" if found is not None else None


def _stderr_not_contains(check: Check, seen: Seen) -> str | None:
    text = seen.server.stderr()
    return f"stderr ends {text[-200:]!r}" if check["stderr_not_contains"] in text else None


def _not_executed(check: Check, seen: Seen) -> str | None:
    return "it ran" if f"EXECUTED:{check['not_executed']}" in seen.server.stderr().split() else None


def _not_executed_or_once(check: Check, seen: Seen) -> str | None:
    """Despite its name: the row cancels the call while it waits, so that even once is too often."""
    count = seen.server.stderr().split().count(f"EXECUTED:{check['not_executed_or_once']}")
    return f"it ran {count} times" if count else None


def _notification(check: Check, seen: Seen) -> str | None:
    return _within(len(seen.transcript.with_method(check["notification"])), check)


def _server_request(check: Check, seen: Seen) -> str | None:
    return _within(len(seen.transcript.with_method(check["server_request"])), check)


def _progress_for(check: Check, seen: Seen) -> str | None:
    places: list[int] = []
    values: list[float] = []
    for place, line in enumerate(seen.transcript.lines):
        message = line.value
        if not (isinstance(message, dict) and message.get("method") == "notifications/progress"):
            continue
        if same(message["params"].get("progressToken"), check["progress_for"]):
            places.append(place)
            values.append(message["params"]["progress"])
    if len(values) < check.get("min", 0):
        return f"{len(values)} progress messages"
    if check.get("increasing") and any(b <= a for a, b in pairwise(values)):
        return f"not increasing: {values}"
    if "before_response_to" in check and places:
        answered = _place_of_response(check["before_response_to"], seen)
        if answered < places[-1]:
            return "progress after the response" if answered >= 0 else "no response"
    return None


def _first_line_is_response_to(check: Check, seen: Seen) -> str | None:
    first = seen.transcript.lines[0] if seen.transcript.lines else None
    good = (
        first
        and isinstance(first.value, dict)
        and first.value.get("id") == check["first_line_is_response_to"]
    )
    return None if good else f"{first and first.raw!r:.140}"


def _capability_consistency(check: Check, seen: Seen) -> str | None:
    capabilities = seen.transcript.result("init").get("capabilities", {})
    for name, id_ in check["capability_consistency"].items():
        responses = seen.transcript.responses(id_)
        if not responses:
            return f"{name}: no response"
        missing = responses[0][1].get("error", {}).get("code") == -32601
        if missing and name in capabilities:
            return f"{name} is advertised and answered -32601"
    return None


def _same_result(check: Check, seen: Seen) -> str | None:
    first, second = (seen.transcript.result(id_) for id_ in check["same_result"])
    return None if first and first == second else "the results differ"


def _tools_has(check: Check, seen: Seen) -> str | None:
    id_, name = check["tools_has"]
    names = [tool["name"] for tool in seen.transcript.result(id_).get("tools", [])]
    return None if name in names else f"{len(names)} tools without it"


def _result_no_nulls(check: Check, seen: Seen) -> str | None:
    result = seen.transcript.result(check["result_no_nulls"])
    nulls = [name for name, value in result.items() if value is None]
    return f"null: {nulls}" if nulls or not result else None


def _result_lacks(check: Check, seen: Seen) -> str | None:
    id_, name = check["result_lacks"]
    return f"{name} is there" if name in seen.transcript.result(id_) else None


def _structured_if_schema(check: Check, seen: Seen) -> str | None:
    listed, name, called = check["structured_if_schema"]
    if not (seen.transcript.responses(listed) and seen.transcript.responses(called)):
        return "no response"
    tools = seen.transcript.result(listed).get("tools", [])
    declared = any(tool["name"] == name and "outputSchema" in tool for tool in tools)
    missing = declared and "structuredContent" not in seen.transcript.result(called)
    return "no structuredContent" if missing else None


def _text_json_strict(check: Check, seen: Seen) -> str | None:
    for id_ in check["text_json_strict"]:
        result = seen.transcript.result(id_)
        text = text_of(result)
        if result.get("isError"):
            continue
        if re.search(r'(?<!["\w])(NaN|-?Infinity)(?!["\w])', text):
            return f"{id_}: a bare number that JSON does not have, in {text[:60]!r}"
        if "null" in text:
            return f"{id_}: silently null, in {text[:60]!r}"
    return None


def _elicitation_schema(_: Check, seen: Seen) -> str | None:
    if seen.server_request is None:
        return "nothing was asked"
    schema = seen.server_request["params"].get("requestedSchema", {})
    flat = {"string", "number", "integer", "boolean", "array"}
    bad = [
        name
        for name, part in schema.get("properties", {}).items()
        if part.get("type") not in flat or "$ref" in json.dumps(part)
    ]
    return f"not flat: {bad or schema}" if bad or schema.get("type") != "object" else None


def _tools_rule(check: Check, seen: Seen) -> str | None:
    tools = seen.transcript.last_tools()
    return broken_rule(check["tools_rule"], tools) if tools else "no tools"


TABLE: Final[dict[str, Callable[[Check, Seen], str | None]]] = {
    "response_to": _response_to,
    "no_response_to": _no_response_to,
    "no_response": _no_response,
    "responses_to": _responses_to,
    "sequence_to": _sequence_to,
    "every_id_once": _every_id_once,
    "order": _order,
    "error_without_id": _error_without_id,
    "error_any_id": _error_any_id,
    "max_idless_errors": _max_idless_errors,
    "error_codes_in": _error_codes_in,
    "no_result_for_garbage": _no_result_for_garbage,
    "alive_after": _alive_after,
    "exits_within": _exits_within,
    "cpu_seconds_max": _cpu_seconds_max,
    "rss_mb_max": _rss_mb_max,
    "stdout_only_json": _stdout_only_json,
    "no_cr": _no_cr,
    "stdout_not_contains": _stdout_not_contains,
    "stderr_not_contains": _stderr_not_contains,
    "not_executed": _not_executed,
    "not_executed_or_once": _not_executed_or_once,
    "notification": _notification,
    "server_request": _server_request,
    "progress_for": _progress_for,
    "first_line_is_response_to": _first_line_is_response_to,
    "capability_consistency": _capability_consistency,
    "same_result": _same_result,
    "tools_has": _tools_has,
    "result_no_nulls": _result_no_nulls,
    "result_lacks": _result_lacks,
    "structured_if_schema": _structured_if_schema,
    "text_json_strict": _text_json_strict,
    "elicitation_schema": _elicitation_schema,
    "tools_rule": _tools_rule,
}
