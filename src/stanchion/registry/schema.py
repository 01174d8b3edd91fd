"""Types as JSON Schemas that every known client accepts (behaviour F5; cases H01, H03, H04).

Owns the schema of a type and of a signature. The root is an object with ``properties``; there is no ``$ref``, no
combinator at the root, no generated title; arrays have ``items``; property names fit ``[A-Za-z0-9_.-]{1,64}``. A
recursive type is written out ``UNROLL`` times and is any object below that. Does not own how arguments become values
of these types (``registry.arguments``): the schema says what is let through, the types say what is built.

``msgspec.json.schema`` is not the tree, though its choices are followed: it refuses types that can be built one level
up (paths, pydantic models), says nothing of ``annotated_types`` inside classes, and its errors name no parameter.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import pathlib
import re
import sys
import types
import typing
import uuid
from collections import abc
from typing import Annotated, Any, Final, Literal, NewType, Union, get_args, get_origin

import msgspec

from stanchion.registry import constraints, records
from stanchion.registry.content import is_presentation
from stanchion.registry.inlining import MAX_NODES, UNROLL, TooLargeError, inline
from stanchion.registry.signature import MISSING, Signature, substitute

Schema = dict[str, Any]
Direction = Literal["input", "output"]

PROPERTY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Property names that model APIs take (case H04)."""

_PLAIN: Final = types.MappingProxyType(
    {
        str: {"type": "string"},
        int: {"type": "integer"},
        float: {"type": "number"},
        bool: {"type": "boolean"},
        type(None): {"type": "null"},
        bytes: {"type": "string", "contentEncoding": "base64"},
        bytearray: {"type": "string", "contentEncoding": "base64"},
        dt.datetime: {"type": "string", "format": "date-time"},
        dt.date: {"type": "string", "format": "date"},
        dt.time: {"type": "string", "format": "time"},
        dt.timedelta: {"type": "string", "format": "duration"},
        uuid.UUID: {"type": "string", "format": "uuid"},
    }
)
_LISTS: Final = frozenset(
    {
        list,
        abc.Sequence,
        abc.MutableSequence,
        abc.Collection,
        abc.Iterable,
        tuple,
        set,
        frozenset,
        abc.Set,
        abc.MutableSet,
    }
)
_SETS: Final = frozenset({set, frozenset, abc.Set, abc.MutableSet})
_MAPS: Final = frozenset({dict, abc.Mapping, abc.MutableMapping})
_STRINGLY: Final = (str, int, enum.Enum, uuid.UUID, dt.date, dt.datetime)
_WRAPPERS: Final = frozenset({typing.Required, typing.NotRequired, typing.Final, typing.ClassVar})


class UnsupportedTypeError(TypeError):
    """A type without a schema. ``str()`` is a clause: what it is and what to write instead."""


def input_schema(signature: Signature) -> Schema:
    """The schema of a function's arguments.

    Raises:
        UnderivableSignature: A parameter's type has none.
    """
    properties: Schema = {}
    for parameter in signature.parameters:
        try:
            schema = type_schema(parameter.annotation, "input")
        except UnsupportedTypeError as error:
            raise signature.refuse(f"the type of {parameter.name} has no JSON form", str(error)) from None
        if parameter.description:
            schema["description"] = parameter.description
        if not parameter.required:
            schema |= default_of(parameter.default)
        properties[parameter.name] = schema
    required = [parameter.name for parameter in signature.parameters if parameter.required]
    root: Schema = {"type": "object", "properties": properties}
    if required:
        root["required"] = required
    root["additionalProperties"] = False
    return root


def output_schema(signature: Signature) -> Schema | None:
    """The schema of what a function returns, if that is a class with fields; else None.

    A text, number, list or plain dict has no declared members to promise, and revisions before 2026-07-28 admit
    objects only (checklist T21).
    """
    returns = signature.returns
    base = get_args(returns)[0] if get_origin(returns) is Annotated else returns
    if returns is MISSING or not records.is_record(base) or records.is_tuple(base) or is_presentation(base):
        return None
    try:
        schema = type_schema(returns, "output")
    except UnsupportedTypeError:
        return None
    return schema if schema.get("type") == "object" else None


def type_schema(annotation: Any, direction: Direction) -> Schema:
    """The schema of a type.

    Args:
        annotation: A resolved type.
        direction: Whether values of it come in (classes are closed, fields with defaults may be missing) or go out
            (classes are open, all fields are there).

    Raises:
        UnsupportedTypeError: It has none.
    """
    return _Builder(direction).of(annotation)


def default_of(value: object) -> Schema:
    """``{"default": …}`` if *value* can be shown as JSON, else nothing. A null says nothing and is left out."""
    if value is None or value is MISSING or value is msgspec.UNSET:
        return {}
    try:
        plain = msgspec.to_builtins(value, enc_hook=_as_text)
        text = msgspec.json.encode(plain)
    except (TypeError, ValueError, RecursionError):
        return {}
    # NaN is written as null, which would be another default.
    return {} if b"null" in text else {"default": plain}


def _as_text(value: object) -> object:
    if isinstance(value, pathlib.PurePath):
        return str(value)
    raise TypeError(type(value).__name__)


class _Builder:
    """One walk over a type."""

    def __init__(self, direction: Direction) -> None:
        self._direction: Direction = direction
        self._inside: list[object] = []
        self._nodes = 0

    def of(self, annotation: Any) -> Schema:
        """The schema of *annotation*, a dict that the caller may change."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise UnsupportedTypeError(f"it has more than {MAX_NODES} parts, make it smaller")
        if annotation in {Any, object, MISSING}:
            return {}
        if annotation is None:
            return {"type": "null"}
        if isinstance(annotation, type) and annotation in _PLAIN:
            return dict(_PLAIN[annotation])
        origin = get_origin(annotation)
        if origin is Annotated:
            base, *extras = get_args(annotation)
            return constraints.apply(self.of(base), extras)
        if origin in {Union, types.UnionType}:
            return self._union(get_args(annotation))
        if origin is Literal:
            return _choices(
                [one.value if isinstance(one, enum.Enum) else one for one in get_args(annotation)]
            )
        if origin in _WRAPPERS or str(origin) == "typing.ReadOnly":
            return self.of(get_args(annotation)[0])
        return self._named(annotation, origin)

    def _named(self, annotation: Any, origin: Any) -> Schema:
        kind = origin or annotation
        if origin is tuple and not get_args(annotation):
            return self._tuple([])
        if kind in _LISTS:
            return self._list(kind, get_args(annotation))
        if kind in _MAPS:
            return self._map(get_args(annotation))
        if isinstance(annotation, NewType):
            return self.of(annotation.__supertype__)
        if isinstance(annotation, typing.TypeVar):
            return self.of(annotation.__bound__ or Any)
        if type(kind).__name__ == "TypeAliasType":
            return self.of(annotation.__value__)
        if not isinstance(kind, type):
            raise UnsupportedTypeError(f"{annotation!r} is not a type that JSON can carry, use one that is")
        if issubclass(kind, enum.Enum):
            return _choices([member.value for member in kind])
        if issubclass(kind, decimal.Decimal):
            return self._decimal()
        if issubclass(kind, pathlib.PurePath):
            return {"type": "string", "format": "path"}
        if is_pydantic(kind):
            return self._pydantic(annotation)
        if records.is_record(kind):
            return self._record(annotation, kind)
        raise UnsupportedTypeError(
            f"{kind.__qualname__} is a plain class, make it a dataclass, a TypedDict, or take str and build it yourself"
        )

    def _union(self, arms: tuple[Any, ...]) -> Schema:
        members: list[Schema] = []
        for arm in arms:
            schema = self.of(arm)
            for one in schema["anyOf"] if set(schema) == {"anyOf"} else [schema]:
                if one not in members:
                    members.append(one)
        if {} in members:
            return {}
        return members[0] if len(members) == 1 else {"anyOf": members}

    def _list(self, kind: Any, arguments: tuple[Any, ...]) -> Schema:
        if kind is tuple and arguments and arguments[-1] is not Ellipsis:
            return self._tuple([self.of(one) for one in arguments])
        items = self.of(arguments[0]) if arguments else {}
        schema: Schema = {"type": "array", "items": items}
        # A set that goes out has no repetitions by itself; a caller that repeats one means the same set.
        return schema | {"uniqueItems": True} if kind in _SETS and self._direction == "output" else schema

    def _tuple(self, members: list[Schema]) -> Schema:
        distinct = [one for i, one in enumerate(members) if one not in members[:i]]
        schema: Schema = {"type": "array"}
        # Clients want items even where prefixItems says it all.
        if len(distinct) > 1:
            schema["prefixItems"] = members
            schema["items"] = {} if {} in distinct else {"anyOf": distinct}
        else:
            schema["items"] = distinct[0] if distinct else {}
        return schema | {"minItems": len(members), "maxItems": len(members)}

    def _map(self, arguments: tuple[Any, ...]) -> Schema:
        if not arguments:
            return {"type": "object"}
        key, value = arguments
        base = get_args(key)[0] if get_origin(key) is Annotated else key
        literal = get_origin(base) is Literal
        if base is not Any and not literal and not (isinstance(base, type) and issubclass(base, _STRINGLY)):
            raise UnsupportedTypeError("the keys of a JSON object are strings, use dict[str, …]")
        inner = self.of(value)
        schema: Schema = {"type": "object"} | ({"additionalProperties": inner} if inner else {})
        if literal or (isinstance(base, type) and issubclass(base, enum.Enum)):
            names = self.of(base)["enum"]
            schema["propertyNames"] = {"enum": [str(name) for name in names]}
        return schema

    def _decimal(self) -> Schema:
        text: Schema = {"type": "string", "format": "decimal"}
        return {"anyOf": [{"type": "number"}, text]} if self._direction == "input" else text

    def _pydantic(self, annotation: Any) -> Schema:
        mode = "validation" if self._direction == "input" else "serialization"
        try:
            adapter = sys.modules["pydantic"].TypeAdapter(annotation)
            schema = inline(adapter.json_schema(mode=mode))
        except TooLargeError as error:
            raise UnsupportedTypeError(f"{error}, make it smaller") from None
        except Exception as error:  # noqa: BLE001  a model's own hooks may raise anything
            raise UnsupportedTypeError(
                f"pydantic has no schema for it ({type(error).__name__}), change the model"
            ) from None
        _check_names(schema)
        return schema

    def _record(self, annotation: Any, kind: type) -> Schema:
        if self._inside.count(annotation) >= UNROLL:
            return {"type": "array", "items": {}} if records.is_tuple(kind) else {"type": "object"}
        self._inside.append(annotation)
        try:
            bound = dict(zip(getattr(kind, "__parameters__", ()), get_args(annotation), strict=False))
            return self._fields(records.read(kind), kind, bound)
        finally:
            self._inside.pop()

    def _fields(self, record: records.Record, kind: type, bound: dict[Any, Any]) -> Schema:
        properties: Schema = {}
        for field in record.fields:
            if not PROPERTY.fullmatch(field.key):
                raise UnsupportedTypeError(
                    f"{kind.__qualname__} has a member {field.key!r} that model APIs refuse, rename it"
                )
            schema = self.of(substitute(field.annotation, bound))
            if field.description and "description" not in schema:
                schema["description"] = field.description
            if self._direction == "input":
                schema |= default_of(field.default)
            properties[field.key] = schema
        if record.is_tuple:
            return self._tuple(list(properties.values()))
        tag = {record.tag[0]: _choices([record.tag[1]])} if record.tag else {}
        outgoing = self._direction == "output" and not record.omits
        required = [field.key for field in record.fields if field.required or (outgoing and field.always)]
        root: Schema = {"type": "object", "properties": tag | properties}
        if tag or required:
            root["required"] = [*tag, *required]
        if self._direction == "input":
            root["additionalProperties"] = False
        if record.description:
            root["description"] = record.description
        return root


def is_pydantic(kind: object) -> bool:
    """Whether *kind* is a class that pydantic validates. Without pydantic in the process there is none."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(kind, type) and hasattr(kind, "__pydantic_validator__")


def _choices(values: list[Any]) -> Schema:
    if not values or any(not isinstance(one, str | int | float | None) for one in values):
        raise UnsupportedTypeError("a choice must be a text, a number, a boolean or None")
    kinds = {_PLAIN[type(one)]["type"] for one in values if type(one) in _PLAIN}
    known = all(type(one) in _PLAIN for one in values)
    return {"type": kinds.pop(), "enum": values} if len(kinds) == 1 and known else {"enum": values}


def _check_names(schema: object) -> None:
    if isinstance(schema, dict):
        properties = schema.get("properties")
        for name in properties if isinstance(properties, dict) else ():
            if not PROPERTY.fullmatch(name):
                raise UnsupportedTypeError(f"a member is called {name!r}, which model APIs refuse, rename it")
        for inner in schema.values():
            _check_names(inner)
    elif isinstance(schema, list):
        for inner in schema:
            _check_names(inner)
