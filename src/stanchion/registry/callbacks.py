"""How a registered function is called: its context, its arguments, where it wants to run.

Owns the call itself. Does not own which worker makes it or for how long (``server``, ``workers``).
"""

from __future__ import annotations

import builtins
import inspect
import math
import types
from collections.abc import Callable
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from stanchion.registry.arguments import Decoder
from stanchion.registry.signature import MISSING, Signature, is_async, is_context, name_of, read

Isolation = Literal["task", "thread", "process", "inline"]
"""Where a callback runs (behaviour E2)."""

IsFault = Callable[[BaseException], bool]
"""Whether an error that an author returned on purpose counts for the breaker (behaviour F2). Runs in the worker."""

ISOLATIONS: Final[frozenset[str]] = frozenset(get_args(Isolation))


class Callback(Struct, frozen=True, eq=False):
    """A function and how to call it."""

    function: Callable[..., Any]
    is_async: bool
    """Calling it gives a coroutine."""
    context: str | None = None
    """The parameter that takes the context."""
    decoder: Decoder | None = None
    """Builds its keyword arguments; None for a function that takes all arguments as one dict."""
    takes_arguments: bool = True
    """A function without ``decoder`` may take nothing at all."""

    def call(self, arguments: dict[str, object], context: object | None) -> object:
        """Call the function; the value or coroutine it returns.

        Args:
            arguments: What ``prepare`` returned.
            context: Given to the function if it wants one.

        Raises:
            InvalidArguments: The author's types do not accept them.
            BaseException: Whatever the function raises.
        """
        extra = {} if self.context is None else {self.context: context}
        if self.decoder is not None:
            built = self.decoder.build(arguments)
            return self.function(**built, **extra) if extra else self.function(**built)
        return self.function(arguments, **extra) if self.takes_arguments else self.function(**extra)


def derived(function: Callable[..., Any], signature: Signature, decoder: Decoder) -> Callback:
    """A callback whose parameters are the arguments."""
    return Callback(function, signature.is_async, signature.context, decoder)


def raw(function: Callable[..., Any], *, takes_arguments: bool) -> Callback:
    """A callback in the reference's shape: one dict of arguments (or nothing), and a context if it is annotated so.

    Raises:
        TypeError: It is not callable, or takes something else.
    """
    if not callable(function):
        raise TypeError("the callback is not callable")
    if takes_arguments and _is_plain(function):
        return Callback(function, inspect.iscoroutinefunction(function))
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        # Some builtins do not tell; they are taken at their word.
        return Callback(function, is_async(function), None, None, takes_arguments)
    context = context_of(function)
    others = [
        one
        for one in parameters
        if one.name != context
        and one.default is MISSING
        and one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD}
    ]
    if len(others) > int(takes_arguments):
        shape = "one dict of arguments" if takes_arguments else "no arguments"
        raise TypeError(f"the callback {name_of(function)} must take {shape}, and a context if it wants one")
    takes = takes_arguments and any(
        one.name != context and one.kind is not one.KEYWORD_ONLY for one in parameters
    )
    return Callback(function, is_async(function), context, None, takes)


def _is_plain(function: Callable[..., Any]) -> bool:
    """Whether it is a function with one parameter that is no context: the usual raw callback, told without inspecting.

    Reading a signature costs a hundred microseconds, and a program may register a hundred thousand tools.
    """
    if type(function) is not types.FunctionType or hasattr(function, "__wrapped__"):
        return False
    code = function.__code__
    if code.co_argcount != 1 or code.co_posonlyargcount or code.co_kwonlyargcount:
        return False
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return False
    annotation = function.__annotations__.get(code.co_varnames[0], dict)
    if isinstance(annotation, str):
        name = annotation.partition("[")[0]
        annotation = function.__globals__.get(name, getattr(builtins, name, None))
    # Only a class, or one with parameters such as dict[str, Any], is known to be no context in disguise.
    kind = getattr(annotation, "__origin__", annotation)
    return isinstance(kind, type) and not is_context(kind)


def context_of(function: Callable[..., Any]) -> str | None:
    """The parameter that takes the context, or None. Works for functions that ``signature.read`` refuses too."""
    try:
        return read(function).context
    except TypeError:
        # It has *args or types that do not resolve: then only an annotation that is the class itself counts.
        parameters = inspect.signature(function).parameters.values()
        return next((one.name for one in parameters if is_context(one.annotation)), None)


def isolation_of(asked: Isolation | None, callback: Callback, name: str) -> Isolation:
    """Where it runs: what was asked for, else a task for a coroutine function and a thread for any other.

    Raises:
        ValueError: No such isolation.
    """
    if asked is None:
        return "task" if callback.is_async else "thread"
    if asked not in ISOLATIONS:
        raise ValueError(f"{name}: isolation is one of {', '.join(get_args(Isolation))}")
    return asked


def timeout_of(asked: object, name: str) -> float | None:
    """Seconds a call may take, or None for the server's default.

    Raises:
        ValueError: It is no positive number of seconds.
    """
    if asked is None:
        return None
    if not isinstance(asked, int | float) or isinstance(asked, bool) or not asked > 0 or math.isinf(asked):
        raise ValueError(f"{name}: timeout is a positive number of seconds, or None for the server's own")
    return float(asked)
