"""The conditions a check may set on one response."""

from __future__ import annotations

from typing import Any

from tests.cases.transcript import Message, same


def text_of(result: object) -> str:
    """The texts in a result's content, joined."""
    if not isinstance(result, dict):
        return ""
    return "".join(block.get("text", "") for block in result.get("content", []))


def response_to(check: dict[str, Any], message: Message) -> str | None:
    """What is wrong with *message* as the answer that *check* describes, or None."""
    error, result = message.get("error"), message.get("result")
    shown = f"{message!r:.140}"
    if "error_code" in check:
        wanted = check["error_code"]
        wanted = wanted if isinstance(wanted, list) else [wanted]
        return None if error and error.get("code") in wanted else shown
    if check.get("error"):
        return None if error else shown
    if check.get("result"):
        return None if result is not None else shown
    if "is_error" in check:
        return (
            None if isinstance(result, dict) and bool(result.get("isError")) == check["is_error"] else shown
        )
    if "result_path" in check:
        return _result_path(check, result)
    return _text(check, text_of(result), shown)


def _result_path(check: dict[str, Any], value: object) -> str | None:
    for key in check["result_path"].split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if "equals" in check:
        return None if same(value, check["equals"]) else f"{value!r:.140}"
    if "in" in check:
        return None if value in check["in"] else f"{value!r:.140}"
    return None if isinstance(value, list) == (check.get("type") == "array") else f"{value!r:.140}"


def _text(check: dict[str, Any], text: str, shown: str) -> str | None:
    if "text_equals" in check:
        return None if text == check["text_equals"] else f"{text!r:.140}"
    if "text_contains" in check:
        return None if check["text_contains"] in text else f"{text!r:.140}"
    if "text_length" in check:
        return None if len(text) == check["text_length"] else f"length {len(text)}, {shown}"
    return None
