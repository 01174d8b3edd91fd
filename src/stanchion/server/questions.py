"""What a callback can ask its client, and what an answer to it must be.

Owns the kinds of question (a form, a page to open, a completion by the client's model, its roots), how each is put on the
wire, what a client must have declared to be asked it, and the reading of answers: whatever a client sends is held against
what was asked. It does not own how a question travels (``asking``, ``asks``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct

from stanchion.registry.arguments import converter
from stanchion.registry.errors import ToolError
from stanchion.registry.schema import type_schema
from stanchion.registry.validation import Compiled
from stanchion.wire.model import JsonObject

Answer_co = TypeVar("Answer_co", covariant=True)

Action = Literal["accept", "decline", "cancel"]

_FLAT: Final = frozenset({"string", "number", "integer", "boolean"})
_ACTIONS: Final = ("accept", "decline", "cancel")


class AskFailed(ToolError):
    """The client was asked and there is no answer: it failed, took too long, or sent what was not asked for.

    Uncaught, the model is told so.
    """


class CannotAsk(ToolError):
    """The client did not declare that it can be asked this."""

    def __init__(self, required: JsonObject) -> None:
        """Set up.

        Args:
            required: The capability that is missing, as clients declare it.
        """
        super().__init__(f"This client can't be asked: it did not declare {', '.join(required)}.")
        self.required = required


class Question(ABC, Generic[Answer_co]):
    """Something to ask a client."""

    method: str
    """The request that asks it."""
    params: JsonObject
    """The request's params."""
    needs: JsonObject
    """The capability that a client must have declared."""

    @abstractmethod
    def read(self, answer: JsonObject) -> Answer_co:
        """What a client's answer says.

        Raises:
            Unfit: It is none to this question.
        """


class Unfit(Exception):
    """An answer that is none to what was asked. The text is safe to show."""


class Elicited(Struct, frozen=True):
    """A person's answer to a form, or to the wish that a page be opened."""

    action: Action
    content: Any = None
    """An instance of the form's class, or a dict for a form given as a schema; None unless accepted."""

    @property
    def accepted(self) -> bool:
        """Whether the person said yes."""
        return self.action == "accept"


class Sampled(Struct, frozen=True):
    """What the client's model made of some messages."""

    content: list[JsonObject]
    model: str
    role: str = "assistant"
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        """All text in it."""
        return "".join(str(block.get("text", "")) for block in self.content if block.get("type") == "text")


class Root(Struct, frozen=True):
    """A place that the client works in. Guidance, not access control."""

    uri: str
    name: str | None = None


class Elicit(Question[Elicited]):
    """A form for a person to fill in (client/elicitation): flat fields only, and no secrets."""

    method = "elicitation/create"

    def __init__(self, message: str, form: Any) -> None:
        """Make a form.

        Args:
            message: What is asked, and why.
            form: A class with fields (dataclass, TypedDict, Struct, pydantic model), or a JSON schema.

        Raises:
            TypeError: The form has a field that clients can't show.
        """
        self.needs = {"elicitation": {"form": {}}}
        self._convert = None if isinstance(form, Mapping) else converter(form)
        schema = dict(form) if isinstance(form, Mapping) else type_schema(form, "input")
        self._schema = _flattened(schema)
        self.params = {"message": message, "requestedSchema": self._schema}

    def read(self, answer: JsonObject) -> Elicited:
        """What a client's answer says.

        Raises:
            Unfit: It is none to this question.
        """
        action = _action(answer)
        if action != "accept":
            return Elicited(action)
        content = answer.get("content")
        # A person who leaves everything out may have nothing to say; the schema knows.
        values = {} if content is None else content
        if not isinstance(values, dict):
            raise Unfit("its content is no object")
        faults = Compiled(self._schema).faults(values)
        if faults:
            raise Unfit("; ".join(f"{fault.path} {fault.message}".strip() for fault in faults))
        return Elicited(action, values if self._convert is None else self._convert(values))


class ElicitUrl(Question[Elicited]):
    """A page for a person to open (client/elicitation, url mode). A yes means opened, not done."""

    method = "elicitation/create"

    def __init__(self, message: str, url: str) -> None:
        """Make a wish.

        Args:
            message: Why the page is to be opened.
            url: Where; without a person's data, and no link that is already logged in.
        """
        self.needs = {"elicitation": {"url": {}}}
        self.params = {"mode": "url", "message": message, "url": url}

    def read(self, answer: JsonObject) -> Elicited:
        """What a client's answer says.

        Raises:
            Unfit: It is none to this question.
        """
        return Elicited(_action(answer))


class Sample(Question[Sampled]):
    """Something for the client's model to complete (client/sampling)."""

    method = "sampling/createMessage"

    def __init__(
        self,
        messages: str | Sequence[Mapping[str, Any]],
        *,
        max_tokens: int = 1000,
        system_prompt: str | None = None,
        temperature: float | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **others: Any,
    ) -> None:
        """Make a request.

        Args:
            messages: What to complete, in the protocol's shape; a text is one message of the user.
            max_tokens: At most so many.
            system_prompt: What the model is to be.
            temperature: How free it may be.
            tools: Tools that the model may use; the client must have declared ``sampling.tools``.
            **others: More members, as the protocol has them.
        """
        if isinstance(messages, str):
            messages = [{"role": "user", "content": {"type": "text", "text": messages}}]
        self.needs = {"sampling": {"tools": {}} if tools is not None else {}}
        given = {"systemPrompt": system_prompt, "temperature": temperature, "tools": tools, **others}
        self.params = {
            "messages": list(messages),
            "maxTokens": max_tokens,
            **{name: value for name, value in given.items() if value is not None},
        }

    def read(self, answer: JsonObject) -> Sampled:
        """What a client's answer says.

        Raises:
            Unfit: It is none to this question.
        """
        content = answer.get("content")
        blocks = [content] if isinstance(content, dict) else content
        if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
            raise Unfit("its content is neither a block nor a list of blocks")
        if answer.get("role") not in {"user", "assistant"} or not isinstance(answer.get("model"), str):
            raise Unfit("it lacks a role or a model")
        reason = answer.get("stopReason")
        return Sampled(
            blocks, str(answer["model"]), str(answer["role"]), reason if isinstance(reason, str) else None
        )


class Roots(Question[list[Root]]):
    """The places that the client works in (client/roots)."""

    method = "roots/list"

    def __init__(self) -> None:
        """Make the question; there is nothing to choose."""
        self.needs = {"roots": {}}
        self.params = {}

    def read(self, answer: JsonObject) -> list[Root]:
        """What a client's answer says.

        Raises:
            Unfit: It is none to this question.
        """
        try:
            return msgspec.convert(answer.get("roots"), list[Root])
        except msgspec.ValidationError:
            raise Unfit("its roots are no list of roots") from None


def lacking(needs: JsonObject, abilities: Mapping[str, Any] | None) -> JsonObject:
    """What of *needs* a client did not declare; empty if it can be asked.

    ``elicitation: {}`` means forms (2025-11-25, client/elicitation).
    """
    missing: JsonObject = {}
    for name, parts in needs.items():
        declared = (abilities or {}).get(name)
        wanted = parts if isinstance(parts, dict) else {}
        if not isinstance(declared, dict):
            missing[name] = wanted
        elif name == "elicitation" and not declared:
            if "form" not in wanted:
                missing[name] = wanted
        elif any(not isinstance(declared.get(part), dict) for part in wanted):
            missing[name] = wanted
    return missing


def _action(answer: JsonObject) -> Action:
    action = answer.get("action")
    if action not in _ACTIONS:
        raise Unfit("its action is none of accept, decline and cancel")
    return action


def _flattened(schema: JsonObject) -> JsonObject:
    """The schema as clients can show it as a form (EL3): an object of plain fields."""
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict):
        raise TypeError("a form is a class with fields, or a schema of an object with properties")
    fields: JsonObject = {name: _field(name, field) for name, field in properties.items()}
    form: JsonObject = {"type": "object", "properties": fields}
    required = schema.get("required")
    if required:
        form["required"] = required
    return form


def _field(name: str, schema: Any) -> JsonObject:
    """One field; that it may be left out is said by ``required``, not by admitting null."""
    field: JsonObject = dict(schema) if isinstance(schema, dict) else {}
    union = field.get("anyOf")
    arms = [arm for arm in union if arm != {"type": "null"}] if isinstance(union, list) else []
    if len(arms) == 1:
        field = {**{key: value for key, value in field.items() if key != "anyOf"}, **arms[0]}
    kind = field.get("type")
    if isinstance(kind, list):
        kinds = [one for one in kind if one != "null"]
        kind = field["type"] = kinds[0] if len(kinds) == 1 else kind
    if kind is None and isinstance(field.get("enum"), list):
        kind = field["type"] = "string"
    if kind == "array" and isinstance(field.get("items"), dict):
        return field
    if not isinstance(kind, str) or kind not in _FLAT:
        raise TypeError(
            f"clients can't show field {name!r} of a form: texts, numbers, booleans and choices only"
        )
    return field
