"""Judges what a server sent by the JSON Schema of the revision it speaks.

The schema's own union types are of little use for that: ``ServerResult`` allows every object. So the envelope is
judged first, then the part that the message's kind asks for: the result type of the request's method, the parameters
of the notification's or request's method, the shape that an error code prescribes.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema_rs

SCHEMAS: Final = Path(__file__).parent / "data" / "schema"
REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
BATCHING: Final = "2025-03-26"
"""The one revision in which several messages may travel as an array."""

IDLESS_BY_SCHEMA: Final = "2025-11-25"
"""From this revision on an error may leave its id out. Before, the schema demands an id, so that nothing valid exists
for a request whose id could not be read: an absent or null id is let pass there, as JSON-RPC has it."""


class SchemaChecker:
    """The judge for one revision; cheap to make, each part of the schema is compiled once a process."""

    def __init__(self, revision: str) -> None:
        if revision not in REVISIONS:
            msg = f"no schema for revision {revision!r}; known are {', '.join(REVISIONS)}"
            raise ValueError(msg)
        self.revision = revision
        self._definitions = _definitions(revision)
        self._results = _table(revision, "ClientRequest")
        self._requests = _table(revision, "ServerRequest")
        self._notifications = _table(revision, "ServerNotification")
        self._errors = _error_table(revision)

    def check_sent(self, message: object, request_method: str | None = None) -> list[str]:
        """What is wrong with a message the server sent.

        Args:
            message: The decoded JSON, a batch included.
            request_method: For a response, the method that was asked, if known. Without it only the envelope of a
                result is judged.

        Returns:
            One sentence a fault; empty when the message is valid.
        """
        if isinstance(message, list):
            if self.revision != BATCHING:
                return ["an array, in a revision without batches"]
            if not message:
                return ["an empty batch"]
            return [fault for part in message for fault in self.check_sent(part, request_method)]
        if not isinstance(message, dict):
            return [f"not an object: {message!r:.80}"]
        if "method" in message:
            if "id" in message:
                return self._check_method(message, self._requests, "JSONRPCRequest", "request")
            return self._check_method(message, self._notifications, "JSONRPCNotification", "notification")
        if ("result" in message) == ("error" in message):
            return ["neither a request, a notification nor exactly one of result and error"]
        return (
            self._check_error(message) if "error" in message else self._check_result(message, request_method)
        )

    def _check_method(
        self, message: dict[str, Any], table: Mapping[str, str], envelope: str, kind: str
    ) -> list[str]:
        definition = table.get(message["method"]) if isinstance(message["method"], str) else None
        if definition is None:
            return [f"a {kind} that this revision's servers do not send: {message['method']!r:.80}"]
        return self._faults(envelope, message) + self._faults(definition, message)

    def _check_error(self, message: dict[str, Any]) -> list[str]:
        if message.get("id") is None and self.revision < IDLESS_BY_SCHEMA:
            message = message | {"id": "unreadable"}
        envelope = "JSONRPCErrorResponse" if "JSONRPCErrorResponse" in self._definitions else "JSONRPCError"
        faults = self._faults(envelope, message)
        code = message["error"].get("code") if isinstance(message["error"], dict) else None
        if not faults and code in self._errors:
            faults += self._faults(self._errors[code], message)
        return faults

    def _check_result(self, message: dict[str, Any], request_method: str | None) -> list[str]:
        envelope = (
            "JSONRPCResultResponse" if "JSONRPCResultResponse" in self._definitions else "JSONRPCResponse"
        )
        faults = self._faults(envelope, message)
        if faults or request_method is None:
            return faults
        request = self._results.get(request_method)
        if request is None:
            return [f"a result for {request_method!r}, a method this revision does not have"]
        return self._faults(self._result_type(request, message["result"]), message["result"])

    def _result_type(self, request: str, result: Mapping[str, Any]) -> str:
        stem = request.removesuffix("Request")
        if result.get("resultType") == "input_required" and self._may_require_input(stem):
            return "InputRequiredResult"
        return f"{stem}Result" if f"{stem}Result" in self._definitions else "EmptyResult"

    def _may_require_input(self, stem: str) -> bool:
        response = self._definitions.get(f"{stem}ResultResponse", {})
        return "InputRequiredResult" in json.dumps(response)

    def _faults(self, definition: str, value: object) -> list[str]:
        try:
            return [
                f"{definition}: {'/'.join(map(str, error.instance_path)) or '(root)'}: {error.message:.200}"
                for error in _validator(self.revision, definition).iter_errors(value)
            ]
        except ValueError as error:  # what JSON itself cannot carry, such as a lone surrogate
            return [f"{definition}: not representable: {error}"]


@cache
def _schema(revision: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((SCHEMAS / f"{revision}.json").read_text(encoding="utf-8"))
    return document


def _keyword(revision: str) -> str:
    return "$defs" if "$defs" in _schema(revision) else "definitions"


def _definitions(revision: str) -> dict[str, Any]:
    definitions: dict[str, Any] = _schema(revision)[_keyword(revision)]
    return definitions


@cache
def _table(revision: str, union: str) -> dict[str, str]:
    """Method → the name of its definition, for the members of one of the schema's unions."""
    definitions = _definitions(revision)
    names = [part["$ref"].rsplit("/", 1)[1] for part in definitions.get(union, {}).get("anyOf", ())]
    return {definitions[name]["properties"]["method"]["const"]: name for name in names}


@cache
def _error_table(revision: str) -> dict[int, str]:
    """Error code → the definition that prescribes its ``data``, for whole error responses."""
    table: dict[int, str] = {}
    for name, definition in _definitions(revision).items():
        for part in definition.get("properties", {}).get("error", {}).get("allOf", ()):
            code = part.get("properties", {}).get("code", {}).get("const")
            if code is not None:
                table[code] = name
    return table


@cache
def _validator(revision: str, definition: str) -> jsonschema_rs.Validator:
    keyword = _keyword(revision)
    schema = {
        "$schema": _schema(revision)["$schema"],
        "allOf": [{"$ref": f"#/{keyword}/{definition}"}],
        keyword: _definitions(revision),
    }
    formats: dict[str, Callable[[str], bool]] = {"byte": _is_base64}
    return jsonschema_rs.validator_for(schema, formats=formats, validate_formats=True, offline=True)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        return False
    return True
