r"""URI templates as MCP servers use them: parse, match, expand (RFC 6570; server/resources, Resource Templates).

Owns the template language and its safety rules. Does not own what a variable's text is converted to
(``registry.arguments``) nor which template answers a URI (``registry.registry``).

The language is a part of RFC 6570: ``{name}``, ``{+path}``, and one ``{?a,b}`` at the end. RFC 6570 defines expansion
only; matching is ours, and narrow on purpose: what a variable hands to an author's function may end up in a path.

- ``{name}`` takes one or more characters up to the next literal, never ``/ ? #``, not even percent-encoded ones for
  ``/``; ``{+path}`` takes anything but ``? #``.
- ``..`` as a path segment, ``\`` beside it included, and NUL are refused in every variable, also percent-encoded.
- ``{?a,b}`` takes its names in any order, each at most once, and no others; each may be missing.

Between two variables there must be some literal text, and at most one ``{+path}`` is allowed. That makes the match
unique and its cost linear in the URI: everything left of the ``{+path}`` is settled from the left, the rest from the
right, and no choice is ever taken back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal
from urllib.parse import quote, unquote_to_bytes

from msgspec import Struct

MAX_TEMPLATE: Final = 2048
"""Characters of a template."""

MAX_URI: Final = 8192
"""Characters of a URI that is matched at all."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BROKEN_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_KEPT: Final = ":/[]@!$&'()*+,;="
"""Reserved characters that ``{+name}`` does not encode: all but the two that it never takes."""
_ELSEWHERE: Final = {
    "#": "{#…} is not supported: a fragment is not part of what is read",
    "/": "{/…} is not supported: write /{name}",
    ".": "{.…} is not supported: write .{name}",
    ";": "{;…} is not supported: write it out as ;name={name}",
    "&": "{&…} is not supported: put all names into one {?…}",
}


class TemplateError(ValueError):
    """A URI template that cannot be used. ``str()`` says what, at which character, and what to write instead."""


class Variable(Struct, frozen=True):
    """One expression of the path part."""

    name: str
    reserved: bool = False
    """``{+name}``: may span ``/``."""


class UriTemplate(Struct, frozen=True):
    """A parsed template. Made by ``parse``."""

    text: str
    parts: tuple[str | Variable, ...]
    """Literals and variables, a literal between any two variables."""
    query: tuple[str, ...]
    """The names of ``{?…}``."""

    @property
    def required(self) -> tuple[str, ...]:
        """Names that every match has, in order."""
        return tuple(part.name for part in self.parts if isinstance(part, Variable))

    @property
    def names(self) -> tuple[str, ...]:
        """All names, those of the query last."""
        return self.required + self.query

    def match(self, uri: str) -> dict[str, str] | None:
        """The variables of *uri*, percent-decoded, or None if the template does not answer it.

        Names of the query that the URI does not have are not in the result.
        """
        if len(uri) > MAX_URI:
            return None
        path, found = uri, {}
        if self.query:
            path, mark, rest = uri.partition("?")
            pairs = _query(rest, self.query) if mark else {}
            if pairs is None:
                return None
            found = pairs
        taken = _take(self.parts, path)
        if taken is None:
            return None
        values: dict[str, str] = {}
        for variable, raw in taken:
            value = _decode(raw, variable)
            if value is None:
                return None
            values[variable.name] = value
        return values | found

    def expand(self, values: Mapping[str, str]) -> str:
        """The URI for *values* (RFC 6570, 3.2). ``match`` gives them back.

        Raises:
            ValueError: A required name is missing or empty, or ``match`` would refuse its value.
        """
        uri = ""
        for part in self.parts:
            if isinstance(part, str):
                uri += part
                continue
            value = values.get(part.name, "")
            uri += quote(value, safe=_KEPT if part.reserved else "")
            if not value or not _is_safe(value, part):
                raise ValueError(f"{part.name} of {self.text} cannot have that value")
        pairs = [(name, values[name]) for name in self.query if name in values]
        if any(not _is_safe(value, None) for _, value in pairs):
            raise ValueError(f"a query value of {self.text} cannot be used")
        return (
            uri
            + ("?" if pairs else "")
            + "&".join(f"{name}={quote(value, safe='')}" for name, value in pairs)
        )


def parse(text: str) -> UriTemplate:
    """Read a template.

    Raises:
        TemplateError: With the position of the character that does not fit.
    """
    parts: list[str | Variable] = []
    query: tuple[str, ...] = ()
    for at, kind, body in _tokens(text):
        if query:
            raise _error(text, at, "nothing may follow {?…}")
        if kind == "literal":
            parts.append(body)
        elif body.startswith("?"):
            query = tuple(_name(text, at + 2, name) for name in body[1:].split(","))
        else:
            parts.append(_variable(text, at, body, parts))
    template = UriTemplate(text, tuple(parts), query)
    _check(template)
    return template


def is_template(text: str) -> bool:
    """Whether *text* has variables, so that it names many resources and not one."""
    return "{" in text


def problem(uri: str) -> str | None:
    """Why *uri* cannot be a resource's, or None (RFC 3986: a scheme, no space or control character, bounded)."""
    if len(uri) > MAX_URI:
        return f"the URI has more than {MAX_URI} characters"
    if is_template(uri):
        return f"the URI {uri[:200]!r} has variables: register it as a template"
    if not _SCHEME.match(uri):
        return f"the URI {uri[:200]!r} has no scheme, such as notes://"
    if not uri.isprintable() or " " in uri:
        return "the URI has a space or a character that does not print: percent-encode it"
    return None


def _tokens(text: str) -> Iterator[tuple[int, Literal["literal", "expression"], str]]:
    if len(text) > MAX_TEMPLATE:
        raise _error(text, MAX_TEMPLATE, f"a template has at most {MAX_TEMPLATE} characters")
    at = 0
    while at < len(text):
        opened = text.find("{", at)
        literal = text[at:] if opened < 0 else text[at:opened]
        if "}" in literal:
            raise _error(text, at + literal.index("}"), "this } closes nothing")
        if literal:
            yield at, "literal", literal
        if opened < 0:
            return
        closed = text.find("}", opened)
        if closed < 0:
            raise _error(text, opened, "this { is never closed")
        yield opened, "expression", text[opened + 1 : closed]
        at = closed + 1


def _variable(text: str, at: int, body: str, before: list[str | Variable]) -> Variable:
    if body[:1] in _ELSEWHERE:
        raise _error(text, at + 1, _ELSEWHERE[body[0]])
    reserved = body.startswith("+")
    if "," in body:
        raise _error(text, at + 1, "write several names as {a}/{b}, with some text between them")
    variable = Variable(_name(text, at + 1 + reserved, body[reserved:]), reserved)
    if before and isinstance(before[-1], Variable):
        raise _error(text, at, "two variables need some text between them")
    if reserved and any(isinstance(part, Variable) and part.reserved for part in before):
        raise _error(text, at, "only one {+…} is possible")
    return variable


def _name(text: str, at: int, name: str) -> str:
    if _NAME.fullmatch(name):
        return name
    if name.endswith("*"):
        raise _error(text, at, "the modifier * is not supported: write {+name} for a value with slashes")
    if ":" in name:
        raise _error(text, at, "the modifier : is not supported")
    raise _error(text, at, "a name is a letter or _, then letters, digits and _")


def _check(template: UriTemplate) -> None:
    text = template.text
    if not _SCHEME.match(text):
        raise _error(text, 0, "a URI begins with a scheme, such as notes://")
    if not template.names:
        raise _error(text, 0, "there is no variable: register it as a resource")
    seen: set[str] = set()
    for name in template.names:
        if name in seen:
            raise _error(text, text.rindex(name), f"{name} stands there twice")
        seen.add(name)
    if template.query and any(isinstance(part, str) and "?" in part for part in template.parts):
        raise _error(text, text.index("?"), "there is a ? before the {?…}")


def _error(text: str, at: int, reason: str) -> TemplateError:
    return TemplateError(f"URI template {text[:200]!r}, character {at + 1}: {reason}")


# -- matching ------------------------------------------------------------------------------------------------------


def _take(parts: tuple[str | Variable, ...], path: str) -> list[tuple[Variable, str]] | None:
    """Cut *path* along *parts*; None if it does not fit."""
    wide = next((i for i, part in enumerate(parts) if isinstance(part, Variable) and part.reserved), None)
    if wide is None:
        return _forward(parts, path)
    # Mirrored, what stands right of the {+path} is settled by the same rule.
    left = _prefix(parts[:wide], path)
    if left is None:
        return None
    taken, start = left
    mirrored = tuple(part[::-1] if isinstance(part, str) else part for part in reversed(parts[wide + 1 :]))
    right = _prefix(mirrored, path[start:][::-1])
    if right is None:
        return None
    reversed_taken, length = right
    middle = path[start : len(path) - length]
    variable = parts[wide]
    if not middle or "?" in middle or "#" in middle or isinstance(variable, str):
        return None
    return [*taken, (variable, middle), *((v, raw[::-1]) for v, raw in reversed(reversed_taken))]


def _forward(parts: tuple[str | Variable, ...], path: str) -> list[tuple[Variable, str]] | None:
    """Match parts without a ``{+path}`` against all of *path*."""
    last = parts[-1]
    if isinstance(last, Variable):
        found = _prefix(parts[:-1], path)
        if found is None:
            return None
        taken, start = found
        raw = path[start:]
        return [*taken, (last, raw)] if _is_simple(raw) else None
    if not path.endswith(last):
        return None
    if len(parts) == 1:
        return [] if path == last else None
    return _forward(parts[:-1], path[: len(path) - len(last)])


def _prefix(parts: tuple[str | Variable, ...], path: str) -> tuple[list[tuple[Variable, str]], int] | None:
    """Match parts, the last a literal, against the beginning of *path*: what was taken, and how far it went.

    Each variable ends at the first place where its literal stands. A later place would only take more into this
    variable and leave less to the next; since neither may hold a ``/``, it can never succeed where the first fails.
    """
    taken: list[tuple[Variable, str]] = []
    at = 0
    open_variable: Variable | None = None
    for part in parts:
        if isinstance(part, Variable):
            open_variable = part
        elif open_variable is None:
            if not path.startswith(part, at):
                return None
            at += len(part)
        else:
            found = path.find(part, at + 1)
            if found < 0 or not _is_simple(path[at:found]):
                return None
            taken.append((open_variable, path[at:found]))
            at, open_variable = found + len(part), None
    return taken, at


def _is_simple(raw: str) -> bool:
    return bool(raw) and "/" not in raw and "?" not in raw and "#" not in raw


def _query(text: str, names: tuple[str, ...]) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for pair in text.split("&") if text else ():
        name, _, raw = pair.partition("=")
        value = _decode(raw.replace("+", " "), None)
        if name not in names or name in found or value is None:
            return None
        found[name] = value
    return found


def _decode(raw: str, variable: Variable | None) -> str | None:
    """*raw* without percent-encoding, or None if it is broken or not safe to hand out."""
    if "%" in raw:
        if _BROKEN_PERCENT.search(raw):
            return None
        try:
            raw = unquote_to_bytes(raw).decode()
        except ValueError:
            return None
    return raw if _is_safe(raw, variable) else None


def _is_safe(value: str, variable: Variable | None) -> bool:
    if "\x00" in value:
        return False
    if variable is not None and not variable.reserved and "/" in value:
        return False
    return ".." not in value or ".." not in value.replace("\\", "/").split("/")
