"""JSON Schemas at work: compiled on first use, shared by equal schemas, faults without values.

Owns compiling and asking. Does not own which schemas are allowed (``registry.bounds``) nor where they come from
(``registry.schema``). ``jsonschema-rs`` does the work; where it cannot be imported ``jsonschema`` does. Neither ever
fetches anything: a ``$ref`` that leads out of the schema does not resolve (behaviour F5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from itertools import islice
from typing import Any, Final
from weakref import WeakValueDictionary

import msgspec

from stanchion.registry.errors import MAX_FAULTS_TOLD, Fault, path_of, tell_name

Schema = dict[str, Any]

DIALECTS: Final = frozenset(
    {
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-06/schema",
        "http://json-schema.org/draft-04/schema",
    }
)
"""Supported values of ``$schema``, without a final ``#``; the first is the default (2025-11-25, basic/index)."""

BACKTRACK_LIMIT: Final = 10_000
"""Steps that a pattern with look-around or back-references may go back; past it the text does not match. Patterns
without those are matched in linear time."""

MAX_FAULTS: Final = 4 * MAX_FAULTS_TOLD
"""Faults looked for in one value. More are possible only for values with very many parts."""

MAX_OPTIONS_TOLD: Final = 12
"""Allowed values listed in one fault."""

MAX_LITERAL_TOLD: Final = 200
"""Characters of a schema's own value that are repeated in a fault."""


class Compiled:
    """One schema, compiled when it is first asked. Two threads that ask first may both compile; either serves.

    Args:
        schema: A schema that ``registry.bounds`` accepts or ``registry.schema`` made.
    """

    __slots__ = ("__weakref__", "_is_valid", "_iterate", "_key", "_optional", "schema")

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._is_valid: Callable[[object], bool] | None = None
        self._iterate: Callable[[object], Iterator[Any]] | None = None
        self._key: bytes | None = None
        self._optional: frozenset[str] | None = None

    @property
    def key(self) -> bytes:
        """Equal for equal schemas, whatever the order of members."""
        if self._key is None:
            self._key = canonical(self.schema)
        return self._key

    @property
    def optional(self) -> frozenset[str]:
        """Properties for which null means "not given": not required, and null is not of their type (case H06)."""
        if self._optional is None:
            self._optional = _optional(self.schema)
        return self._optional

    def is_valid(self, value: object) -> bool:
        """Whether *value*, made of JSON's types, fits."""
        ask = self._is_valid
        if ask is None:
            ask = self._compile()
        try:
            return ask(value)
        except (UnicodeEncodeError, ValueError):
            return False

    def faults(self, value: object) -> tuple[Fault, ...]:
        """What is wrong with *value*: nothing if it fits, never a part of it, at most ``MAX_FAULTS``."""
        if self._iterate is None:
            self._compile()
        assert self._iterate is not None
        try:
            found = [
                fault
                for error in islice(self._iterate(value), MAX_FAULTS)
                for fault in _faults(error, self.schema)
            ]
        except (UnicodeEncodeError, ValueError):
            return (Fault("", "holds something that is not JSON, such as text that is not valid Unicode"),)
        return tuple(dict.fromkeys(found))

    def _compile(self) -> Callable[[object], bool]:
        self._is_valid, self._iterate = _validator(self.schema)
        return self._is_valid


class Validators:
    """Compiled schemas, one for all equal ones, kept while somebody uses them.

    Not thread-safe: its registry asks under the writers' lock.
    """

    def __init__(self) -> None:
        self._compiled: WeakValueDictionary[bytes, Compiled] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._compiled)

    def knows(self, key: bytes) -> bool:
        """Whether a schema with that ``canonical`` form is in use. May be asked without the lock."""
        return key in self._compiled

    def share(self, compiled: Compiled) -> Compiled:
        """The one to use in place of *compiled*: an earlier one of an equal schema, else itself."""
        return self._compiled.setdefault(compiled.key, compiled)


def canonical(schema: object) -> bytes:
    """*schema* as bytes that are equal for equal schemas, whatever the order of members."""
    return msgspec.json.encode(schema, order="sorted")


def admits_null(schema: object) -> bool:
    """Whether null may fit *schema*; True if that is not plain to see."""
    if not isinstance(schema, Mapping):
        return schema is not False
    if "const" in schema:
        return schema["const"] is None
    if isinstance(schema.get("enum"), list):
        return None in schema["enum"]
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind == "null"
    if isinstance(kind, list):
        return "null" in kind
    arms = schema.get("anyOf")
    return any(map(admits_null, arms)) if isinstance(arms, list) else True


def _optional(schema: Schema) -> frozenset[str]:
    properties = schema.get("properties")
    required = schema.get("required")
    if not isinstance(properties, Mapping):
        return frozenset()
    needed = required if isinstance(required, list) else []
    return frozenset(
        name for name, inner in properties.items() if name not in needed and not admits_null(inner)
    )


def compile_pattern(pattern: str) -> str | None:
    """Why *pattern* does not compile, or None. The dialect is the validator's: ECMA 262 with look-around."""
    try:
        _validator({"pattern": pattern})
    except ValueError:
        return "is not a regular expression"
    return None


def misuse(schema: Schema, *, resolve: bool) -> str | None:
    """What is wrong with *schema* as a schema, or None.

    Args:
        schema: Bounded, and of a supported dialect (``registry.bounds`` has seen to both).
        resolve: Also resolve its references, which costs three times as much.
    """
    try:
        import jsonschema_rs  # as in _validator
    except ImportError:
        try:
            _fallback(schema)
        except ValueError as error:
            return str(error)
        return None
    try:
        if resolve:
            _validator(schema)
        else:
            jsonschema_rs.meta.validate(dict(schema))
    except jsonschema_rs.ValidationError as error:
        path = path_of(error.instance_path)
        return f"{path or 'the schema'}: {error.message}"
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        return str(error)
    return None


def _validator(schema: Schema) -> tuple[Callable[[object], bool], Callable[[object], Iterator[Any]]]:
    try:
        # Its import costs 28 ms, which a server without a call need not pay.
        import jsonschema_rs
    except ImportError:
        return _fallback(schema)
    options = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACK_LIMIT)
    made = jsonschema_rs.validator_for(
        dict(schema), offline=True, validate_formats=False, pattern_options=options
    )
    return made.is_valid, made.iter_errors


def _fallback(schema: Schema) -> tuple[Callable[[object], bool], Callable[[object], Iterator[Any]]]:
    # The pure library, on platforms that the compiled one has no wheel for.
    jsonschema = import_module("jsonschema")
    referencing = import_module("referencing")
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ValueError(error.message) from None
    # An empty registry resolves nothing beyond the schema itself; the default one would fetch.
    made = kind(schema, registry=referencing.Registry())
    return made.is_valid, lambda value: map(_adapted, made.iter_errors(value))


class _Adapted:
    """An error of ``jsonschema`` in the shape of ``jsonschema_rs``'s."""

    def __init__(self, error: Any) -> None:
        self.instance_path = list(error.absolute_path)
        self.schema_path = list(error.absolute_schema_path)
        self.kind = self
        self.name = "falseSchema" if error.validator is None else str(error.validator)
        self.value = error.validator_value
        self.context = [[_Adapted(inner)] for inner in error.context or ()]
        if self.name == "required":
            self.value = next((name for name in error.validator_value if name not in error.instance), "")
        elif self.name in {"additionalProperties", "unevaluatedProperties"} and isinstance(
            error.instance, dict
        ):
            known = error.schema.get("properties", {})
            self.value = [name for name in error.instance if name not in known]


def _adapted(error: Any) -> _Adapted:
    return _Adapted(error)


# -- words ---------------------------------------------------------------------------------------------------------

_TYPE_WORDS: Final[Mapping[str, str]] = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}

_LIMIT_WORDS: Final[Mapping[str, str]] = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "exclusiveMinimum": "must be greater than {}",
    "exclusiveMaximum": "must be less than {}",
    "multipleOf": "must be a multiple of {}",
    "minLength": "must have at least {} characters",
    "maxLength": "must have at most {} characters",
    "minItems": "must have at least {} items",
    "maxItems": "must have at most {} items",
    "minProperties": "must have at least {} members",
    "maxProperties": "must have at most {} members",
    "pattern": "must match the pattern {}",
    "format": "must be a {}",
    "contentEncoding": "must be encoded as {}",
}

_PLAIN_WORDS: Final[Mapping[str, str]] = {
    "uniqueItems": "must not hold the same item twice",
    "contains": "lacks an item that it must have",
    "not": "must not be of that form",
    "falseSchema": "must not be given",
    "propertyNames": "has a member with a name that is not allowed",
    "unevaluatedItems": "has more items than are allowed",
    "additionalItems": "has more items than are allowed",
}


def _faults(error: Any, schema: Schema) -> Iterator[Fault]:
    """*error* in words. The schema's own values may appear in them, the instance's never."""
    path: list[str | int] = list(error.instance_path)
    kind = error.kind
    name: str = kind.name
    if name == "required":
        yield Fault(path_of([*path, str(kind.value)]), "is required")
    elif name in {"additionalProperties", "unevaluatedProperties"}:
        known = _known(schema, error.schema_path)
        for unexpected in kind.value:
            yield Fault(path_of([*path, str(unexpected)]), unknown(str(unexpected), known))
    else:
        yield Fault(path_of(path), _message(kind, schema, error))


def unknown(name: str, known: Iterable[str]) -> str:
    """What to say of a name that is not among *known*: which was meant, or which there are."""
    names = list(known)
    close = get_close_matches(tell_name(name), names, n=1)
    if close:
        return f"is unknown: did you mean {close[0]}?"
    if not names:
        return "is unknown: nothing is expected here"
    told = ", ".join(names[:MAX_OPTIONS_TOLD]) + (", …" if len(names) > MAX_OPTIONS_TOLD else "")
    return f"is unknown: the known names are {told}"


def _message(kind: Any, schema: Schema, error: Any) -> str:
    name: str = kind.name
    if name == "type":
        types = [str(one) for one in (kind.value if isinstance(kind.value, list) else [kind.value])]
        # Neither library keeps the schema's order.
        types.sort(key=lambda one: (one == "null", one))
        return "must be " + _either(_TYPE_WORDS.get(one, one) for one in types)
    if name == "enum":
        told = [_told(option) for option in kind.value[:MAX_OPTIONS_TOLD]]
        more = ", …" if len(kind.value) > MAX_OPTIONS_TOLD else ""
        return f"must be one of {', '.join(told)}{more}"
    if name == "const":
        return f"must be {_told(kind.value)}"
    if name in {"anyOf", "oneOf"}:
        return _alternatives(kind, schema, list(error.instance_path))
    if name in _LIMIT_WORDS:
        return _LIMIT_WORDS[name].format(
            _told(kind.value) if name != "format" else tell_name(str(kind.value))
        )
    return _PLAIN_WORDS.get(name, "does not fit its schema")


def _alternatives(kind: Any, schema: Schema, path: list[str | int]) -> str:
    """One sentence for a value that fits none of several schemas, or more than the one allowed."""
    context = [branch for branch in kind.context if branch]
    if not context:
        return "must be of exactly one of the allowed forms"
    wanted: list[str] = []
    deeper: list[str] = []
    for branch in context:
        first = next(_faults(branch[0], schema))
        if first.path == path_of(path):
            wanted.append(first.message.removeprefix("must be "))
        else:
            deeper.append(f"{first.path} {first.message}")
    # A branch that failed further in is the one that was meant.
    if deeper:
        return f"fits none of the allowed forms: {deeper[0]}"
    return (
        "must be " + _either(dict.fromkeys(wanted))
        if all(_is_noun(w) for w in wanted)
        else f"does not fit: {'; or '.join(dict.fromkeys(wanted))}"
    )


def _is_noun(words: str) -> bool:
    return not words.startswith(("must", "is ", "has ", "does", "lacks", "fits"))


def _either(words: Iterable[str]) -> str:
    listed = list(words)
    return listed[0] if len(listed) == 1 else ", ".join(listed[:-1]) + " or " + listed[-1]


def _told(value: object) -> str:
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, msgspec.MsgspecError):
        return "the value that the schema gives"
    return text if len(text) <= MAX_LITERAL_TOLD else text[:MAX_LITERAL_TOLD] + "…"


def _known(schema: Schema, path: Iterable[str | int]) -> list[str]:
    """The property names beside the keyword that *path* leads to."""
    here: object = schema
    for step in list(path)[:-1]:
        if isinstance(here, Mapping):
            here = here.get(str(step))
        elif isinstance(here, list) and isinstance(step, int) and step < len(here):
            here = here[step]
        else:
            return []
    properties = here.get("properties") if isinstance(here, Mapping) else None
    return [str(name) for name in properties] if isinstance(properties, Mapping) else []
