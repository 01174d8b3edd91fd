"""What the headers of an HTTP request must say, as pure functions (checklist §1.4).

Owns who may ask at all (``Host`` and ``Origin``, so that no web page reaches a server on the reader's own machine), and the
ladder of a modern request: each header that mirrors the body is there and agrees with it, in the order of the steps, so that
the error a client gets does not depend on which faults came together. First failing rung wins.

A header's name has no case, its value does; blanks around a value are not part of it; a repeated header is its values
joined by commas, and so agrees with nothing.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from msgspec import UNSET, Struct

from stanchion.wire.errors import (
    HeaderMismatch,
    InvalidParams,
    MethodNotFound,
    UnsupportedVersion,
)
from stanchion.wire.model import CLIENT_CAPABILITIES, PROTOCOL_VERSION, Meta
from stanchion.wire.revisions import MODERN_REVISIONS

VERSION: Final = "mcp-protocol-version"
METHOD: Final = "mcp-method"
NAME: Final = "mcp-name"
PARAM: Final = "mcp-param-"

_NAMED_BY: Final[Mapping[str, str]] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The methods that need ``Mcp-Name``, and the member of their params that it repeats (HM6)."""

_SENTINEL: Final = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_INTEGER: Final = re.compile(r"-?\d+(?:\.0+)?")
_LONGEST_INTEGER: Final = 40


# -- who may ask ---------------------------------------------------------------------------------------------------

_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?")
_ORIGIN: Final = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
EVERY: Final = "*"
"""In place of a name: no rule."""


def is_loopback(address: str) -> bool:
    """Whether an address of ours can only be reached from this machine."""
    bare = address.strip("[]").lower()
    return bare in {"localhost", "::1"} or bool(re.fullmatch(r"(::ffff:)?127(\.\d{1,3}){3}", bare))


class Gate(Struct, frozen=True):
    """Who may ask, by ``Host`` and ``Origin``.

    Without *hosts* the rule depends on the address that was connected to: on a loopback address only loopback names are
    taken, on any other each host is. An origin is taken if it is listed, or if its host is one that the host rule admits
    by name: so a page served by the server itself may ask, and no other.
    """

    hosts: tuple[str, ...] = ()
    """Names we answer to, each with a port or for any port; ``*`` for all."""
    origins: tuple[str, ...] = ()
    """Origins besides, such as ``https://app.example.com``; ``*`` for all."""

    def refuse(self, host: str | None, origin: str | None, address: str) -> str | None:
        """Why a request may not be served, or None.

        Args:
            host: The ``Host`` header.
            origin: The ``Origin`` header; None where a client is no browser.
            address: Our own address that was connected to; empty if unknown.
        """
        names = self._names(address)
        if names is not None and (host is None or not _admits(names, _HOST.fullmatch(host.lower()))):
            return (
                "The Host header names a host that this server does not answer to; name it in allowed_hosts"
            )
        if origin is None or self._admits_origin(origin.lower(), names):
            return None
        return "The Origin header names an origin that may not ask this server; name it in allowed_origins"

    def _names(self, address: str) -> Iterable[str] | None:
        """The names that are taken; None where every name is."""
        if EVERY in self.hosts:
            return None
        if self.hosts:
            return [name.lower() for name in self.hosts]
        return _LOOPBACK if is_loopback(address) else None

    def _admits_origin(self, origin: str, names: Iterable[str] | None) -> bool:
        if EVERY in self.origins or origin in (one.lower().rstrip("/") for one in self.origins):
            return True
        parts = _ORIGIN.fullmatch(origin)
        if parts is None or names is None:
            return False
        port = parts[3] or {"http": "80", "https": "443"}[parts[1]]
        return parts[2] in names or f"{parts[2]}:{port}" in names


def _admits(names: Iterable[str], host: re.Match[str] | None) -> bool:
    return host is not None and (host[1] in names or host[0] in names)


# -- what a modern request's headers say ---------------------------------------------------------------------------


class Expected(Struct, frozen=True):
    """One ``Mcp-Param-*`` header that a request should have."""

    header: str
    kind: Literal["string", "integer", "boolean"]
    value: object
    """The argument; None where it is null or absent."""


def check_version(headers: Mapping[str, str], meta: Meta | InvalidParams | None) -> None:
    """Rungs 2 to 5: the version header, the metadata, that they agree, that we speak it.

    Args:
        headers: By name in lower case.
        meta: What ``params._meta`` holds, None without one, or what is wrong with it.

    Raises:
        HeaderMismatch: The header is missing, or names another revision than the body.
        InvalidParams: The metadata lacks something.
        UnsupportedVersion: Both name a revision that has no form of this kind.
    """
    given = headers.get(VERSION)
    if given is None:
        raise HeaderMismatch("The MCP-Protocol-Version header is missing")
    if isinstance(meta, InvalidParams):
        raise meta
    if meta is None or meta.protocol_version is UNSET:
        raise InvalidParams(f"params._meta lacks {PROTOCOL_VERSION}")
    if meta.client_capabilities is UNSET:
        raise InvalidParams(f"params._meta lacks {CLIENT_CAPABILITIES}")
    if given != meta.protocol_version:
        raise HeaderMismatch(f"The MCP-Protocol-Version header does not agree with {PROTOCOL_VERSION}")
    if given not in MODERN_REVISIONS:
        raise UnsupportedVersion(given, MODERN_REVISIONS)


def check_method(headers: Mapping[str, str], method: str, *, known: bool) -> None:
    """Rungs 6 and 7: ``Mcp-Method``, and that there is such a method.

    Raises:
        HeaderMismatch: The header is missing or names another method.
        MethodNotFound: Nobody has the method: then nothing says what ``Mcp-Name`` would repeat.
    """
    given = headers.get(METHOD)
    if given is None:
        raise HeaderMismatch("The Mcp-Method header is missing")
    if given != method:
        raise HeaderMismatch("The Mcp-Method header does not agree with the method")
    if not known:
        raise MethodNotFound(method)


def named_by(method: str) -> str | None:
    """The member of a method's params that ``Mcp-Name`` repeats; None if the method has no such header."""
    return _NAMED_BY.get(method)


def check_name(headers: Mapping[str, str], name: object) -> None:
    """Rung 8: ``Mcp-Name`` of a method that has one.

    Args:
        headers: By name in lower case.
        name: What the params say.

    Raises:
        HeaderMismatch: The header is missing, is not well encoded or says something else.
    """
    given = headers.get(NAME)
    if given is None:
        raise HeaderMismatch("The Mcp-Name header is missing")
    if decode_value(given, "Mcp-Name") != name:
        raise HeaderMismatch("The Mcp-Name header does not agree with the params")


def check_params(headers: Mapping[str, str], expected: Iterable[Expected]) -> None:
    """Rung 9: the headers that repeat arguments of a tool. Headers that nothing asks for are ignored.

    Raises:
        HeaderMismatch: One is missing, is not well encoded, says something else, or repeats what is not there.
    """
    for one in expected:
        title = f"Mcp-Param-{one.header}"
        given = headers.get(f"{PARAM}{one.header.lower()}")
        if given is None:
            if one.value is not None:
                raise HeaderMismatch(f"The {title} header is missing")
        elif one.value is None:
            raise HeaderMismatch(f"The {title} header repeats an argument that is not there")
        elif not _agrees(decode_value(given, title), one):
            raise HeaderMismatch(f"The {title} header does not agree with its argument")


def check_notification(headers: Mapping[str, str], method: str, meta: Meta | InvalidParams | None) -> None:
    """What may be said of a notification's headers: they may be missing, but not wrong (HM21).

    Raises:
        HeaderMismatch: One is there and says something else than the body.
    """
    if headers.get(METHOD, method) != method:
        raise HeaderMismatch("The Mcp-Method header does not agree with the method")
    said = meta.protocol_version if isinstance(meta, Meta) else UNSET
    if said is not UNSET and headers.get(VERSION, said) != said:
        raise HeaderMismatch(f"The MCP-Protocol-Version header does not agree with {PROTOCOL_VERSION}")


def decode_value(value: str, title: str) -> str:
    """The text that a header's value stands for (HM9): as it is, or ``=?base64?…?=`` decoded.

    Args:
        value: As it came, one character a byte.
        title: The header's name, for the error.

    Raises:
        HeaderMismatch: The encoding is broken (HM10), or there are characters that only an encoded value may hold.
    """
    value = value.strip(" \t")
    encoded = _SENTINEL.fullmatch(value)
    if encoded is None:
        if not value.isascii() or not value.isprintable():
            raise HeaderMismatch(f"The {title} header holds characters that must be encoded")
        return value
    try:
        # Strict: the decoder would drop what is not of the alphabet, and so take many texts for one.
        data = base64.b64decode(encoded[1].encode("ascii"), validate=True)
        if base64.b64encode(data).decode() != encoded[1]:
            raise HeaderMismatch(f"The {title} header is not well-formed base64")
        return data.decode()
    except (binascii.Error, UnicodeError):
        raise HeaderMismatch(f"The {title} header is not well-formed base64 of UTF-8") from None


def _agrees(given: str, one: Expected) -> bool:
    value = one.value
    if one.kind == "boolean":
        return isinstance(value, bool) and given == ("true" if value else "false")
    if one.kind == "integer":
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        whole = _INTEGER.fullmatch(given) is not None and len(given) <= _LONGEST_INTEGER
        return whole and int(given.partition(".")[0]) == value
    return given == value
