"""Classes with fields: dataclasses, TypedDicts, NamedTuples, msgspec Structs.

Owns reading their fields as JSON sees them. Does not own the fields' types (``registry.schema``), nor pydantic models,
which describe themselves.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec
from msgspec import Struct

from stanchion.registry import docstrings
from stanchion.registry.signature import MISSING

_GENERATED: Final = re.compile(r"^\w+\(.*\)$", re.DOTALL)
"""The docstring that ``dataclass`` and ``NamedTuple`` write when the author wrote none."""


class Field(Struct, frozen=True):
    """One field."""

    key: str
    """Its name in JSON."""
    annotation: Any
    default: Any
    """``MISSING`` if there is none that can be shown."""
    required: bool
    """A caller must give it."""
    always: bool
    """It is there in what goes out, also when a caller may leave it out."""
    description: str


class Record(Struct, frozen=True):
    """A class with fields."""

    fields: tuple[Field, ...]
    description: str
    is_tuple: bool = False
    """Its JSON is an array."""
    tag: tuple[str, str | int] | None = None
    """A member that names the class, and what it says."""
    omits: bool = False
    """What goes out lacks fields that hold their default."""


def is_record(kind: object) -> bool:
    """Whether *kind* (or the class it is a parametrised form of) is a class with fields."""
    kind = get_origin(kind) or kind
    if not isinstance(kind, type):
        return False
    return (
        dataclasses.is_dataclass(kind)
        or typing.is_typeddict(kind)
        or is_tuple(kind)
        or issubclass(kind, Struct)
        or hasattr(kind, "__pydantic_validator__")
    )


def is_tuple(kind: object) -> bool:
    """Whether *kind* is written as an array: a NamedTuple or a Struct with ``array_like``."""
    if not isinstance(kind, type):
        return False
    if issubclass(kind, Struct):
        return bool(kind.__struct_config__.array_like)
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def read(kind: type) -> Record:
    """The fields of *kind*, for which ``is_record`` holds."""
    doc = _docstring(kind)
    if issubclass(kind, Struct):
        return _struct(kind, doc)
    hints = typing.get_type_hints(kind, include_extras=True)
    if typing.is_typeddict(kind):
        needed = _required_keys(kind, hints)
        fields = tuple(
            Field(key, hint, MISSING, key in needed, key in needed, doc.parameters.get(key, ""))
            for key, hint in hints.items()
        )
    elif dataclasses.is_dataclass(kind):
        fields = tuple(
            Field(
                one.name,
                hints[one.name],
                MISSING if one.default is dataclasses.MISSING else one.default,
                one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING,
                True,  # noqa: FBT003  a field of Field, named there
                doc.parameters.get(one.name, ""),
            )
            for one in dataclasses.fields(kind)
            if one.init
        )
    else:
        defaults: dict[str, Any] = getattr(kind, "_field_defaults", {})
        names: tuple[str, ...] = getattr(kind, "_fields", ())
        fields = tuple(
            Field(name, hints.get(name, Any), defaults.get(name, MISSING), name not in defaults, True, "")  # noqa: FBT003
            for name in names
        )
    return Record(fields, doc.description, is_tuple=is_tuple(kind))


def _struct(kind: type[Struct], doc: docstrings.Docstring) -> Record:
    config = kind.__struct_config__
    fields = tuple(
        Field(
            one.encode_name,
            _without_unset(one.type),
            MISSING if one.default is msgspec.NODEFAULT else one.default,
            one.required,
            one.default is not msgspec.UNSET,
            doc.parameters.get(one.name, ""),
        )
        for one in msgspec.structs.fields(kind)
    )
    tagged = config.tag is not None and config.tag_field is not None
    tag = (str(config.tag_field), config.tag) if tagged and config.tag is not None else None
    return Record(
        fields, doc.description, is_tuple=bool(config.array_like), tag=tag, omits=bool(config.omit_defaults)
    )


def _without_unset(annotation: Any) -> Any:
    """``int | UnsetType`` is an int that may be missing."""
    arms = get_args(annotation)
    if msgspec.UnsetType in arms and get_origin(annotation) in {typing.Union, types.UnionType}:
        return typing.Union[tuple(arm for arm in arms if arm is not msgspec.UnsetType)]  # noqa: UP007  made at run time
    return annotation


def _required_keys(kind: Any, hints: dict[str, Any]) -> frozenset[str]:
    # Under "from __future__ import annotations" the class itself does not know which of its keys say NotRequired.
    needed: set[str] = set(kind.__required_keys__)
    for key, hint in hints.items():
        base = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        if get_origin(base) is typing.NotRequired:
            needed.discard(key)
        elif get_origin(base) is typing.Required:
            needed.add(key)
    return frozenset(needed)


def _docstring(kind: type) -> docstrings.Docstring:
    text = kind.__dict__.get("__doc__")
    if not isinstance(text, str) or _GENERATED.match(text.strip()):
        return docstrings.Docstring()
    return docstrings.read(inspect.cleandoc(text))
