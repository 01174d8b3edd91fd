"""Small parts that all definitions share: icons, annotations, ``_meta``, and None for "unsaid".

Owns the conversion of what authors give into the wire's structs, with errors that are one clause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from stanchion.wire.model import Annotations, Icon, JsonObject

T = TypeVar("T")

_OBJECT: Final = msgspec.json.Decoder(dict[str, Any])


def told(value: T | None) -> T | UnsetType:
    """*value*, or what is not sent."""
    return UNSET if value is None else value


def plain(value: Mapping[str, Any]) -> JsonObject:
    """A JSON object of the author's as a dict of our own, so that later changes to theirs do not reach clients.

    Raises:
        TypeError: It is no mapping with text keys, or holds what JSON cannot say.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"a {type(value).__name__} stands where an object is expected")
    try:
        copied: JsonObject = _OBJECT.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"an object holds what JSON cannot say ({type(error).__name__})") from None
    return copied


def icons_of(icons: Iterable[Icon | Mapping[str, Any]]) -> tuple[Icon, ...]:
    """Icons as the wire has them.

    Raises:
        TypeError: One lacks ``src`` or has a member of the wrong type.
    """
    if icons == ():
        return ()
    try:
        return tuple(icon if isinstance(icon, Icon) else msgspec.convert(icon, Icon) for icon in icons)
    except (msgspec.ValidationError, TypeError) as error:
        raise TypeError(f"the icons do not fit: {error}") from None


def annotations_of(given: Annotations | Mapping[str, Any] | None) -> Annotations | None:
    """A resource's annotations as the wire has them (server/resources, Annotations).

    Raises:
        TypeError: A member has the wrong type, or the priority is not within 0 to 1.
    """
    if given is None:
        return None
    try:
        made = given if isinstance(given, Annotations) else msgspec.convert(given, Annotations)
    except msgspec.ValidationError as error:
        raise TypeError(f"the annotations do not fit: {error}") from None
    if made.priority is not UNSET and not 0 <= made.priority <= 1:
        raise TypeError("the annotations do not fit: priority is between 0 and 1")
    return made
