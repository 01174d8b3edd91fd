"""Values as strict JSON: what an author returned, or a sentence why it cannot be sent (cases I01, B14).

Owns the encoding. Does not own where the JSON goes (``registry.results``). Strict means: no NaN and no infinity, no
object that JSON does not know, no cycle, every key a text, and text that is valid Unicode. What can be repaired without
changing its meaning is repaired (lone surrogates, keys that are numbers); all else is an ``Unrenderable`` that never
quotes the value.

``msgspec`` writes nearly every value as it is and fast; it is asked first. It writes NaN as ``null`` without a word, so
a text with ``null`` in it is looked at again.
"""

from __future__ import annotations

import enum
import math
import pathlib
import sys
from collections import abc
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from stanchion.registry.errors import Unrenderable

MAX_DEPTH: Final = 200
"""Objects and arrays within each other; clients' parsers end near there."""

MAX_DIGITS: Final = 4_300
"""Digits of one integer: Python itself writes no longer one by default."""

REPLACEMENT: Final = "\ufffd"


def encode(value: object) -> bytes:
    """*value* as JSON.

    Raises:
        Unrenderable: It has none.
    """
    try:
        text = msgspec.json.encode(value, enc_hook=_known)
    except RecursionError:
        raise Unrenderable("The result is nested too deeply, or holds itself.") from None
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError):
        # Surrogates, odd keys, or what has no JSON at all: the slow way repairs the first two and names the third.
        return _encode_plain(plain(value))
    if b"null" in text:
        _refuse_odd_floats(msgspec.to_builtins(value, enc_hook=_known), 0)
    return text


def plain(value: object) -> object:
    """*value* made of dicts with text keys, lists, texts, numbers, booleans and None.

    Raises:
        Unrenderable: It cannot be.
    """
    return _Plain().of(value, 0)


def clean(text: str) -> str:
    """*text* as a plain str with lone surrogates replaced, so that it can be sent."""
    if type(text) is not str:
        text = str.__str__(text)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _known(value: object) -> object:
    """What msgspec is told about types that it does not know."""
    if isinstance(value, pathlib.PurePath):
        return str(value)
    if isinstance(value, str):
        # msgspec refuses subclasses of str, such as those of template engines.
        return str.__str__(value)
    if isinstance(value, abc.Mapping):
        return dict(value)
    if isinstance(value, abc.Sequence | abc.Set | abc.ValuesView):
        return list(value)
    dump = _dumper(value)
    if dump is not None:
        return dump(mode="json", by_alias=True)
    raise TypeError(type(value).__name__)


def _dumper(value: object) -> Any:
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or isinstance(value, type):
        return None
    if isinstance(value, pydantic.BaseModel):
        return value.model_dump
    return None


class _Plain:
    """One walk over a value that msgspec did not write."""

    def of(self, value: object, depth: int) -> object:
        if depth > MAX_DEPTH:
            raise Unrenderable("The result is nested too deeply, or holds itself.")
        if isinstance(value, str):
            return clean(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int) and not isinstance(value, enum.Enum):
            return _integer(value)
        if isinstance(value, float):
            return _float(value)
        if isinstance(value, Mapping):
            return self._object(value, depth)
        if isinstance(value, list | tuple | set | frozenset) and not isinstance(value, enum.Enum):
            return [self.of(item, depth + 1) for item in value]
        return self._other(value, depth)

    def _object(self, value: Mapping[object, object], depth: int) -> dict[str, object]:
        made: dict[str, object] = {}
        for key, inner in value.items():
            name = _key(key)
            if name in made:
                raise Unrenderable(
                    "The result has a dict with two keys that are the same once they are texts."
                )
            made[name] = self.of(inner, depth + 1)
        return made

    def _other(self, value: object, depth: int) -> object:
        """One layer of what msgspec can take apart: dataclasses, structs, dates, and what the hook knows."""
        try:
            fields = msgspec.structs.asdict(value) if isinstance(value, msgspec.Struct) else None
            if fields is None and hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
                fields = {name: getattr(value, name) for name in value.__dataclass_fields__}
            if fields is not None:
                return self._object(_renamed(value, fields), depth)
            if isinstance(value, enum.Enum):
                return self.of(value.value, depth + 1)
            layer = msgspec.to_builtins(value, enc_hook=_known)
        except RecursionError:
            raise Unrenderable("The result is nested too deeply, or holds itself.") from None
        except (TypeError, ValueError, OverflowError, AttributeError):
            raise Unrenderable(
                f"The result holds a value of type {type(value).__name__}, which has no JSON form."
            ) from None
        return self.of(layer, depth + 1)


def _renamed(value: object, fields: dict[str, object]) -> Mapping[Any, object]:
    """A struct's members under their names on the wire, without the unset ones."""
    if not isinstance(value, msgspec.Struct):
        return fields
    config = value.__struct_config__
    tag: dict[object, object] = {} if config.tag_field is None else {config.tag_field: config.tag}
    return tag | {
        one.encode_name: fields[one.name]
        for one in msgspec.structs.fields(value)
        if fields[one.name] is not msgspec.UNSET
    }


def _key(key: object) -> str:
    """A key as the json module of Python writes it."""
    if isinstance(key, enum.Enum):
        key = key.value
    if isinstance(key, str):
        return clean(key)
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int):
        return str(_integer(key))
    if isinstance(key, float):
        return repr(_float(key))
    try:
        made = msgspec.to_builtins(key)
    except TypeError:
        made = None
    if isinstance(made, str):
        return clean(made)
    raise Unrenderable(f"The result has a dict whose key is a {type(key).__name__}; JSON keys are texts.")


def _integer(value: int) -> int:
    # 3.33 bits a digit: asked before anything writes it out, which would take quadratic time.
    if value.bit_length() > MAX_DIGITS * 3.33:
        raise Unrenderable(f"The result holds an integer of more than {MAX_DIGITS} digits.")
    return int(value)


def _float(value: float) -> float:
    if not math.isfinite(value):
        raise Unrenderable(
            "The result holds a number that is not finite (NaN or infinity), which JSON does not have."
        )
    return float(value)


def _refuse_odd_floats(value: object, depth: int) -> None:
    if isinstance(value, float):
        _float(value)
    elif depth > MAX_DEPTH:
        raise Unrenderable("The result is nested too deeply, or holds itself.")
    elif isinstance(value, dict):
        for inner in value.values():
            _refuse_odd_floats(inner, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            _refuse_odd_floats(inner, depth + 1)


def _encode_plain(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise Unrenderable("The result has no JSON form.") from None
