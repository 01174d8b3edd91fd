"""What people hand to the registry, as records, with everything that is wrong with it.

Owns the accepted shapes (a record, or the reference's mapping) and the checks at registration (behaviour F5). Does not
own names held by others (``registry.registry``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import structs

from stanchion.registry import names, uri
from stanchion.registry.bounds import HEADER, check_schema
from stanchion.registry.callbacks import raw
from stanchion.registry.errors import InvalidDefinitions
from stanchion.registry.prompts import Completer, Prompt
from stanchion.registry.resources import Resource, Template
from stanchion.registry.shelf import owned
from stanchion.registry.tools import Tool
from stanchion.registry.validation import Compiled

T = TypeVar("T", Tool, Resource, Template, Prompt, Completer)
Given = tuple[T, ...]
Reasons = list[str]

# The reference's member names beside ours: what the constructor calls them.
_ALIASES: Final[Mapping[str, str]] = {
    "inputSchema": "input_schema",
    "outputSchema": "output_schema",
    "mimeType": "mime_type",
    "uriTemplate": "uri_template",
    "_meta": "meta",
    "fault?": "is_fault",
    "isFault": "is_fault",
}
_COMMON: Final = frozenset(
    {"name", "title", "description", "icons", "meta", "isolation", "timeout", "is_fault", "callback"}
)
_TOOL: Final = _COMMON | {"input_schema", "output_schema", "annotations", "sensitive"}
_RESOURCE: Final = _COMMON | {"uri", "mime_type", "size", "annotations"}
_PROMPT: Final = _COMMON | {"arguments"}


class Checker:
    """Turns one batch into records. Knows which schemas it has already seen, since many tools share one.

    Args:
        strict: Names that some client renames are refused, not warned about.
        knows: Whether a schema, by its canonical form, was checked for an earlier batch.
    """

    def __init__(self, *, strict: bool, knows: Callable[[bytes], bool]) -> None:
        self._strict = strict
        self._knows = knows
        self._checked: set[bytes] = set()
        self._parsed: dict[bytes, Compiled] = {}
        self.warnings: list[str] = []
        """For the log."""

    def tools(self, given: Iterable[object], owner: Hashable | None, *, derived: bool) -> list[Tool]:
        """The tools of a batch.

        Raises:
            InvalidDefinitions: Some are none; all faults are listed.
        """

        def make(item: object) -> Tool:
            tool = item if isinstance(item, Tool) else self._raw_tool(item)
            return tool if tool.derived == derived else structs.replace(tool, derived=derived)

        return self._batch(given, owner, make, self._tool)

    def resources(self, given: Iterable[object], owner: Hashable | None) -> list[Resource]:
        """The resources of a batch; raises as ``tools`` does."""
        return self._batch(given, owner, _resource, _check_resource)

    def templates(self, given: Iterable[object], owner: Hashable | None) -> list[Template]:
        """The templates of a batch; raises as ``tools`` does."""
        return self._batch(given, owner, lambda item: _record(item, Template), _check_named)

    def prompts(self, given: Iterable[object], owner: Hashable | None) -> list[Prompt]:
        """The prompts of a batch; raises as ``tools`` does."""

        def make(item: object) -> Prompt:
            return (
                item
                if isinstance(item, Prompt)
                else Prompt.raw(**_members(item, _PROMPT, ("name", "callback")))
            )

        return self._batch(given, owner, make, _check_named)

    def completers(self, given: Iterable[object], owner: Hashable | None) -> list[Completer]:
        """The completers of a batch; raises as ``tools`` does."""
        return self._batch(given, owner, lambda item: _record(item, Completer), _check_named)

    def _batch(
        self,
        given: Iterable[object],
        owner: Hashable | None,
        make: Callable[[object], T],
        check: Callable[[T], Reasons],
    ) -> list[T]:
        hash(owner)  # likewise
        taken: list[T] = []
        faults: list[tuple[int, Reasons]] = []
        for index, item in enumerate(given):
            try:
                entry = make(item)
                reasons = check(entry)
            except (TypeError, ValueError, RecursionError) as error:
                faults.append((index, [str(error)]))
                continue
            if reasons:
                faults.append((index, reasons))
            else:
                taken.append(owned(entry, owner))
        if faults:
            raise InvalidDefinitions(faults)
        return taken

    def _raw_tool(self, item: object) -> Tool:
        members = _members(item, _TOOL, ("name", "input_schema", "callback"))
        given = members["input_schema"]
        if not isinstance(given, dict):
            return Tool.raw(**members)
        # Many tools of one batch have the same schema, often the same object.
        text = msgspec.json.encode(given)
        members["input_schema"] = self._parsed.get(text, given)
        tool = Tool.raw(**members)
        self._parsed.setdefault(text, tool.arguments)
        return tool

    def _tool(self, tool: Tool) -> Reasons:
        reasons = _check_named(tool)
        if not reasons:
            refusal, warnings = names.check(tool.name, strict=self._strict)
            reasons = [refusal] if refusal else []
            self.warnings.extend(warnings)
        # The lock is no place to find out that a schema cannot be written.
        written = tool.arguments.key and (tool.result is None or tool.result.key)
        if tool.given and written:
            reasons.extend(self._schema(tool.arguments, "input schema", arguments=True))
            if tool.result is not None:
                reasons.extend(self._schema(tool.result, "output schema", arguments=False))
        return reasons

    def _schema(self, compiled: Compiled, what: str, *, arguments: bool) -> Reasons:
        schema, key = compiled.schema, compiled.key
        # An input schema has rules of its own, which one seen as an output schema has not shown to keep.
        plain_root = not arguments or (schema.get("type") == "object" and HEADER.encode() not in key)
        if key in self._checked or (plain_root and self._knows(key)):
            return []
        faults = check_schema(schema, arguments=arguments)
        if not faults and arguments:
            self._checked.add(key)
        return [f"{what}: {fault}" for fault in faults]


def _members(item: object, known: frozenset[str], needed: tuple[str, ...]) -> dict[str, Any]:
    """The reference's mapping as keyword arguments. Members that we do not know are ignored ("derived" among them)."""
    if not isinstance(item, Mapping):
        raise TypeError(f"it is a {type(item).__name__}, neither a record nor a mapping")
    found = {name: value for key, value in item.items() if (name := _ALIASES.get(key, key)) in known}
    missing = [name for name in needed if name not in found]
    if missing:
        raise TypeError(f"it lacks {', '.join(missing)}")
    return found


def _record(item: object, kind: type[T]) -> T:
    if isinstance(item, kind):
        return item
    raise TypeError(f"it is a {type(item).__name__}: make it with {kind.__name__}.of")


def _resource(item: object) -> Resource:
    if isinstance(item, Resource):
        return item
    members = _members(item, _RESOURCE, ("uri", "name", "callback"))
    function = members.pop("callback")
    raw(function, takes_arguments=False)
    return Resource.of(function, **members)


def _check_named(entry: Tool | Resource | Template | Prompt | Completer) -> Reasons:
    reasons: Reasons = []
    if not isinstance(entry.name, str):
        return [f"the name is a {type(entry.name).__name__} and must be a str"]
    if not entry.name:
        reasons.append("the name is empty")
    for field in ("name", "title", "description"):
        text = getattr(entry, field, None)
        if text is not None and not isinstance(text, str):
            reasons.append(f"the {field} is a {type(text).__name__} and must be a str")
        elif text is not None and not _is_unicode(text):
            reasons.append(f"the {field} is not valid Unicode")
    return reasons


def _check_resource(resource: Resource) -> Reasons:
    reasons = _check_named(resource)
    if not isinstance(resource.uri, str):
        reasons.append(f"the URI is a {type(resource.uri).__name__} and must be a str")
    elif problem := uri.problem(resource.uri):
        reasons.append(problem)
    return reasons


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
