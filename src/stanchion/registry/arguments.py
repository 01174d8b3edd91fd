"""Arguments as the author's types: what runs in the worker, just before the function (behaviour E1).

Owns building values of a function's types from JSON that its schema already accepted. Does not own the schema
(``registry.schema``). Nothing is guessed: a text stays a text, ``true`` is no number, and only a number without a
fraction becomes an int (cases H07, H09). Prompt arguments and template variables are the exception the protocol makes:
they always arrive as text, so there a text is read as the type asked for.
"""

from __future__ import annotations

import contextlib
import pathlib
import re
import sys
import types
from collections import abc
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal, NewType, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from stanchion.registry.errors import Fault, InvalidArguments, path_of
from stanchion.registry.schema import is_pydantic
from stanchion.registry.signature import MISSING, Signature

Convert = Callable[[object], object]

_AS_IS: Final = frozenset({str, bool, type(None), object, Any, MISSING})
_SEQUENCES: Final[Mapping[Any, Any]] = types.MappingProxyType(
    {
        list: list,
        abc.Sequence: list,
        abc.MutableSequence: list,
        abc.Collection: list,
        abc.Iterable: list,
        tuple: tuple,
        set: set,
        abc.Set: set,
        abc.MutableSet: set,
        frozenset: frozenset,
    }
)
_MAPS: Final = frozenset({dict, abc.Mapping, abc.MutableMapping})
_PATH: Final = re.compile(r" - at `(?:key in )?\$(.*)`$", re.DOTALL)
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_LEAVES: Final = 1_000
"""Parts of a value looked at when a message is checked for it; a larger value gets the neutral message."""


class Decoder(Struct, frozen=True):
    """Builds the keyword arguments of one function. Made by ``decoder`` or ``text_decoder``."""

    steps: tuple[tuple[str, Convert], ...]
    """Parameters that are not taken as they are."""

    def build(self, arguments: dict[str, object]) -> dict[str, object]:
        """Values of the author's types.

        Runs the author's validators and constructors; the dict given is not changed.

        Raises:
            InvalidArguments: Some value is not accepted; all of them are named.
        """
        if not self.steps:
            return arguments
        built = dict(arguments)
        faults: list[Fault] = []
        for name, convert in self.steps:
            if name not in built:
                continue
            try:
                built[name] = convert(built[name])
            except msgspec.ValidationError as error:
                faults.extend(_told(name, error, built[name]))
        if faults:
            raise InvalidArguments(faults)
        return built


def decoder(signature: Signature) -> Decoder:
    """The decoder for arguments that are JSON.

    Raises:
        UnderivableSignature: A parameter's type has a schema but cannot be built.
    """
    return Decoder(tuple(_steps(signature, converter)))


def text_decoder(signature: Signature) -> Decoder:
    """The decoder for arguments that are all text: a prompt's, a template's variables.

    Raises:
        UnderivableSignature: As above.
    """
    return Decoder(tuple(_steps(signature, text_converter)))


def _steps(signature: Signature, make: Callable[[Any], Convert | None]) -> Iterator[tuple[str, Convert]]:
    for parameter in signature.parameters:
        try:
            convert = make(parameter.annotation)
        except TypeError as error:
            reason = str(error).split("\n")[0].rstrip(".")
            raise signature.refuse(
                f"the type of {parameter.name} cannot be built from JSON ({reason})",
                "use one dataclass, or a union of msgspec Structs with tags",
            ) from None
        if convert is not None:
            yield parameter.name, convert


# -- JSON to a type ------------------------------------------------------------------------------------------------


def converter(annotation: Any) -> Convert | None:
    """What turns JSON that the schema accepted into *annotation*; None if it stays as it is.

    Raises:
        TypeError: It cannot be built.
    """
    base = _bare(annotation)
    if base in _AS_IS or get_origin(base) is Literal:
        return None
    if base is int:
        return _int
    if base is float:
        return _float
    if _is_validated_by_pydantic(annotation):
        return _pydantic(annotation)
    try:
        # The cheapest way to ask whether msgspec can build the type.
        msgspec.json.Decoder(base, dec_hook=_build)
    except TypeError:
        return _composed(base)
    return _msgspec(base)


def _bare(annotation: Any) -> Any:
    """*annotation* without the layers that say nothing about what is built."""
    while True:
        if get_origin(annotation) is Annotated and not _is_validated_by_pydantic(annotation):
            annotation = get_args(annotation)[0]
        elif isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        else:
            return annotation


def _is_validated_by_pydantic(annotation: Any) -> bool:
    """Whether an ``Annotated`` holds pydantic's own validators, which nobody else would run."""
    if get_origin(annotation) is not Annotated or "pydantic" not in sys.modules:
        return is_pydantic(annotation) or is_pydantic(get_origin(annotation))
    return any(type(extra).__module__.startswith("pydantic.functional") for extra in get_args(annotation)[1:])


def _int(value: object) -> object:
    # By far the most frequent types, so they do not go through msgspec unless something is odd.
    return value if type(value) is int else _EXACT_INT(value)


def _float(value: object) -> object:
    return value if type(value) is float else msgspec.convert(value, float)


def _msgspec(annotation: Any) -> Convert:
    def convert(value: object) -> object:
        try:
            return msgspec.convert(value, annotation, dec_hook=_build, str_keys=True)
        except msgspec.ValidationError:
            # JSON Schema takes 1.0 for an integer and msgspec does not.
            if not _has_whole_float(value):
                raise
            return msgspec.convert(_without_whole_floats(value), annotation, dec_hook=_build, str_keys=True)

    return convert


_EXACT_INT: Final = _msgspec(int)


def _has_whole_float(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_has_whole_float, value))
    if isinstance(value, dict):
        return any(map(_has_whole_float, value.values()))
    return isinstance(value, float) and value.is_integer()


def _without_whole_floats(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_without_whole_floats(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_whole_floats(item) for key, item in value.items()}
    return value


def _build(kind: Any, value: object) -> object:
    """What msgspec asks for types it does not know."""
    if isinstance(kind, type) and issubclass(kind, pathlib.PurePath):
        return _path(kind, value)
    if is_pydantic(kind) or is_pydantic(get_origin(kind)):
        return sys.modules["pydantic"].TypeAdapter(kind).validate_python(value)
    raise NotImplementedError


def _path(kind: type[pathlib.PurePath], value: object) -> pathlib.PurePath:
    if not isinstance(value, str) or "\x00" in value:
        raise ValueError("must be a path")
    return kind(value)


def _pydantic(annotation: Any) -> Convert:
    adapter = sys.modules["pydantic"].TypeAdapter(annotation)

    def convert(value: object) -> object:
        try:
            return adapter.validate_python(value)
        except ValueError as error:
            raise msgspec.ValidationError(type(error).__name__) from error

    return convert


def _composed(annotation: Any) -> Convert | None:
    """A converter made of converters, for what msgspec refuses as a whole."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in {Union, types.UnionType}:
        return _union(arguments)
    if isinstance(annotation, type) and issubclass(annotation, pathlib.PurePath):
        return _msgspec(annotation)
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        members = [converter(one) for one in arguments]
        return lambda value: tuple(
            item if make is None else make(item) for make, item in zip(members, _items(value), strict=False)
        )
    if origin in _SEQUENCES:
        return _sequence(_SEQUENCES[origin], converter(arguments[0]))
    if origin in _MAPS:
        return _mapping(converter(arguments[1]))
    # Asked again for msgspec's own words.
    msgspec.json.Decoder(annotation, dec_hook=_build)
    return _msgspec(annotation)


def _items(value: object) -> list[object]:
    if isinstance(value, list):
        return value
    raise msgspec.ValidationError("Expected an array")


def _sequence(kind: Callable[[Iterator[object]], object], make: Convert | None) -> Convert:
    return lambda value: kind(item if make is None else make(item) for item in _items(value))


def _mapping(make: Convert | None) -> Convert:
    def convert(value: object) -> object:
        if not isinstance(value, dict):
            raise msgspec.ValidationError("Expected an object")
        return {key: item if make is None else make(item) for key, item in value.items()}

    return convert


def _union(arms: tuple[Any, ...]) -> Convert:
    """The first arm that takes the value; but what is already of an arm's type stays as it is."""
    plain = tuple(arm for arm in map(_bare, arms) if arm in {str, int, float, bool, type(None)})
    makers = [converter(arm) for arm in arms if _bare(arm) not in plain]

    def convert(value: object) -> object:
        if type(value) in plain:
            return value
        problem: msgspec.ValidationError | None = None
        for make in makers:
            if make is None:
                return value
            try:
                return make(value)
            except msgspec.ValidationError as error:
                problem = error
        if plain and problem is None:
            return msgspec.convert(value, Union[plain])  # noqa: UP007  made at run time
        raise problem or msgspec.ValidationError("Expected another type")

    return convert


# -- text to a type ------------------------------------------------------------------------------------------------


def text_converter(annotation: Any) -> Convert | None:
    """What reads a text as *annotation*; None where a text is what is wanted.

    Raises:
        TypeError: No text can be read as that.
    """
    base = _bare(annotation)
    if base in _AS_IS - {bool, type(None)}:
        return None
    arms = [_bare(arm) for arm in get_args(base)] if get_origin(base) in {Union, types.UnionType} else [base]
    if str in arms or Any in arms:
        return None
    if get_origin(base) in _SEQUENCES or get_origin(base) in _MAPS or base in _SEQUENCES or base in _MAPS:
        raise TypeError("it always arrives as text, take a str and split it")
    if get_origin(base) is Literal:
        return _literal(get_args(base))
    msgspec.json.Decoder(base, dec_hook=_build)

    def convert(value: object) -> object:
        return msgspec.convert(value, base, strict=False, dec_hook=_build)

    return convert


def _literal(options: tuple[Any, ...]) -> Convert:
    """Options are told apart by how they are written."""
    by_text = {
        "null" if one is None else str(one).lower() if isinstance(one, bool) else str(one): one
        for one in options
    }

    def convert(value: object) -> object:
        if isinstance(value, str) and value in by_text:
            return by_text[value]
        raise msgspec.ValidationError("Invalid choice") from ValueError(
            f"must be one of {', '.join(by_text)}"
        )

    return convert


# -- what went wrong -----------------------------------------------------------------------------------------------


def _told(name: str, error: msgspec.ValidationError, value: object) -> Iterator[Fault]:
    """*error* as faults. msgspec's own words may quote the value and are not used; the author's are, if they do not."""
    path = [name, *_steps_of(str(error))]
    cause = error.__cause__
    details = getattr(cause, "errors", None)
    if callable(details) and is_pydantic_error(cause):
        for one in details(include_url=False, include_input=False, include_context=False):
            message = str(one.get("msg", "")).removeprefix("Value error, ").removeprefix("Assertion failed, ")
            yield Fault(path_of([*path, *one.get("loc", ())]), _safe(message, value))
        return
    message = ""
    with contextlib.suppress(Exception):
        # The author's exception may be one whose text raises.
        message = str(cause) if isinstance(cause, ValueError | TypeError) else ""
    yield Fault(path_of(path), _safe(message, value))


def is_pydantic_error(error: object) -> bool:
    """Whether *error* lists its problems as pydantic does."""
    return type(error).__module__.startswith("pydantic")


def _steps_of(message: str) -> Iterator[str | int]:
    found = _PATH.search(message)
    for name, index in _STEP.findall(found[1]) if found else ():
        # msgspec writes [...] for a member of a set or a dict.
        if name:
            yield name
        elif index != "...":
            yield int(index)


def _safe(message: str, value: object) -> str:
    """*message*, or a neutral one if it is empty, long, or quotes a part of *value*."""
    neutral = "is not accepted"
    line = message.strip().split("\n")[0]
    if not line or len(line) > 300:  # noqa: PLR2004  a sentence, not a dump
        return neutral
    leaves = 0
    todo: list[object] = [value]
    while todo:
        leaves += 1
        one = todo.pop()
        if isinstance(one, dict):
            todo.extend(one.values())
        elif isinstance(one, list):
            todo.extend(one)
        elif one is not None and str(one) and str(one) in line:
            return neutral
        if leaves > _LEAVES:
            return neutral
    return f"is not accepted: {line}"
