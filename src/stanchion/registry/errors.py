"""What can be wrong with a definition, an argument or a result, and how a model is told.

Owns the exceptions that the registry raises and the one sentence style in which faults are written. Does not own the
errors a peer sees as JSON-RPC errors (``wire.errors``), nor the decision what a failure costs (breaker, ``is_fault``).

Every exception here survives pickling: workers may be other processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

MAX_FAULTS_TOLD = 20
"""Faults listed in one text; the rest is counted. A model corrects a few at a time."""

MAX_NAME_TOLD = 64
"""Characters of a caller's own argument name that are repeated to it."""


class Fault(Struct, frozen=True):
    """One thing wrong with one value."""

    path: str
    """Where, as in ``order.items[2].count``; empty for the value as a whole."""
    message: str
    """What, as the rest of a sentence that begins with the path. Never holds the value itself."""


class ToolError(Exception):
    """An author's word to the model: the call failed, and here is why.

    Args:
        text: Shown to the model as it is, in an ``isError`` result.
        fault: Whether the failure is one of availability, which the circuit breaker should count (behaviour F2).
            By default it is an answer about the question, such as "no such order".
    """

    text: str
    fault: bool

    def __init__(self, text: str, *, fault: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.fault = fault


class InvalidDefinitions(ValueError):
    """Definitions that cannot be registered. Nothing of the batch was.

    Args:
        faults: For each bad definition its index in the batch and what is wrong with it.
    """

    faults: tuple[tuple[int, tuple[str, ...]], ...]

    def __init__(self, faults: Iterable[tuple[int, Sequence[str]]]) -> None:
        self.faults = tuple((index, tuple(reasons)) for index, reasons in faults)
        super().__init__(self.faults)

    def __str__(self) -> str:
        lines = [f"definition {index}: {reason}" for index, reasons in self.faults for reason in reasons]
        return "Nothing was registered.\n" + "\n".join(lines)


class NameCollision(ValueError):
    """Names that some client could not tell apart. Nothing of the batch was registered.

    Args:
        pairs: For each refused name the name that holds its place.
    """

    pairs: tuple[tuple[str, str], ...]

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs = tuple((refused, holder) for refused, holder in pairs)
        super().__init__(self.pairs)

    def __str__(self) -> str:
        lines = [f"{refused!r} looks like {holder!r} to some client" for refused, holder in self.pairs]
        return "Nothing was registered.\n" + "\n".join(lines)


class InvalidArguments(Exception):
    """Arguments that fit the schema but not the types of the function.

    Args:
        faults: What is wrong, for ``describe_faults``.
    """

    faults: tuple[Fault, ...]

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(self.faults)

    def __str__(self) -> str:
        return "; ".join(f"{fault.path or 'the value'} {fault.message}" for fault in self.faults)


class Unrenderable(Exception):
    """A callback returned something that cannot be sent. ``str()`` is one sentence and never holds the value."""


class UnderivableSignature(TypeError):
    """A function that cannot become a tool. ``str()`` says which, where, why, and what to write instead."""


def describe_faults(subject: str, faults: Sequence[Fault]) -> str:
    """The text that tells a model what to correct (behaviour F6).

    Args:
        subject: What was called, for instance the tool's name.
        faults: What is wrong; at most ``MAX_FAULTS_TOLD`` of them are listed.

    Returns:
        Several lines, without any value that the caller sent.
    """
    lines = [f"Invalid arguments for {subject}:"]
    lines += [f"- {fault.path} {fault.message}".replace("-  ", "- ") for fault in faults[:MAX_FAULTS_TOLD]]
    if len(faults) > MAX_FAULTS_TOLD:
        lines.append(f"- and {len(faults) - MAX_FAULTS_TOLD} more")
    return "\n".join(lines)


def path_of(parts: Iterable[str | int]) -> str:
    """Write a path as ``a.b[0]``.

    Keys may be the caller's own words: they are cut, and control characters do not survive.
    """
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = tell_name(part)
            text += f".{name}" if text else name
    return text


def tell_name(name: str) -> str:
    """A name that the caller made up, fit to be repeated: printable and at most ``MAX_NAME_TOLD`` characters."""
    cut = name if len(name) <= MAX_NAME_TOLD else name[:MAX_NAME_TOLD] + "…"
    return cut if cut.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in cut)
