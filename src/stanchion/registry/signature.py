"""A function as its author wrote it: parameters, types, defaults, descriptions, and whether it wants a context.

Owns reading signatures and refusing those that cannot be called by name over JSON (case H14). Does not own what a type
looks like as a schema (``registry.schema``) or how arguments become values (``registry.arguments``).
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final, Union, get_args, get_origin

from msgspec import Struct

from stanchion.registry import docstrings
from stanchion.registry.errors import UnderivableSignature

MISSING: Final = inspect.Parameter.empty
"""Stands for no annotation and for no default."""


class ContextParameter:
    """Marks what a callback receives besides its arguments: a parameter whose annotation is a subclass of this.

    It is no part of the schema and the caller cannot set it (behaviour E6).
    """


class Parameter(Struct, frozen=True):
    """One argument."""

    name: str
    annotation: Any
    """The resolved type; ``Any`` if there is none."""
    default: Any
    """``MISSING`` if the caller must give it."""
    description: str

    @property
    def required(self) -> bool:
        """Whether the caller must give it."""
        return self.default is MISSING


class Signature(Struct, frozen=True):
    """What can be known about a function without calling it."""

    name: str
    where: str
    """``file:line``, or the module where there is no source."""
    description: str
    parameters: tuple[Parameter, ...]
    context: str | None
    """The name of the parameter that takes the context."""
    returns: Any
    """The resolved return type, or ``MISSING``."""
    is_async: bool

    def refuse(self, problem: str, instead: str) -> UnderivableSignature:
        """The error that says what is wrong here and what to write instead."""
        return UnderivableSignature(f"{self.name} ({self.where}): {problem}; {instead}.")


def read(function: Callable[..., Any]) -> Signature:
    """Read *function*: a function, method, ``functools.partial``, or object with ``__call__``.

    Raises:
        UnderivableSignature: It has ``*args``, ``**kwargs``, positional-only parameters, a type that does not resolve,
            two contexts, or is a generator.
    """
    target = unwrap(function)
    bare = Signature(
        name=name_of(function),
        where=where(target),
        description="",
        parameters=(),
        context=None,
        returns=MISSING,
        is_async=is_async(function),
    )
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise bare.refuse("it is a generator", "return a list, or report steps with the context's progress")
    try:
        declared = inspect.signature(function)
    except (TypeError, ValueError):
        raise bare.refuse(
            "its signature cannot be read", "wrap it in a function with annotated parameters"
        ) from None
    fixed = _fixed(function)
    hints = _Hints(target, bare)
    doc = docstrings.read(
        inspect.getdoc(target) if target is not function or inspect.isroutine(function) else None
    )
    context = None
    parameters = []
    for parameter in declared.parameters.values():
        if parameter.name in fixed:
            continue
        _refuse_kind(parameter, bare)
        annotation = hints.of(parameter.name, parameter.annotation)
        if is_context(annotation):
            if context is not None:
                raise bare.refuse(f"both {context} and {parameter.name} take the context", "keep one of them")
            context = parameter.name
            continue
        _refuse_self(parameter, target, bare)
        description = _described(annotation) or doc.parameters.get(parameter.name, "")
        parameters.append(Parameter(parameter.name, annotation, parameter.default, description))
    return Signature(
        name=bare.name,
        where=bare.where,
        description=doc.description,
        parameters=tuple(parameters),
        context=context,
        returns=hints.returns(declared.return_annotation),
        is_async=bare.is_async,
    )


def unwrap(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with the code: below ``partial``, and ``__call__`` of an object."""
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function) and not inspect.isclass(function):
        call: Callable[..., Any] = type(function).__call__
        if inspect.isroutine(call):
            return call
    return function


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling *function* gives a coroutine."""
    return inspect.iscoroutinefunction(unwrap(function))


def name_of(function: Callable[..., Any]) -> str:
    """The name an author would call *function* by."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", None) or type(function).__name__)


def where(function: Callable[..., Any]) -> str:
    """``file:line`` of *function*, or its module where there is no source."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if isinstance(code, types.CodeType):
        return f"{code.co_filename}:{code.co_firstlineno}"
    return str(getattr(function, "__module__", None) or "no source")


def is_context(annotation: object) -> bool:
    """Whether a parameter of this type takes the context; ``Context | None`` does too."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in {Union, types.UnionType}:
        return any(is_context(arm) for arm in get_args(annotation))
    return isinstance(annotation, type) and issubclass(annotation, ContextParameter)


def _fixed(function: Callable[..., Any]) -> set[str]:
    """Names that ``partial`` has settled: the author gave them, so no caller may."""
    names: set[str] = set()
    while isinstance(function, functools.partial):
        names |= function.keywords.keys()
        function = function.func
    return names


def _refuse_kind(parameter: inspect.Parameter, bare: Signature) -> None:
    name = parameter.name
    match parameter.kind:
        case inspect.Parameter.VAR_POSITIONAL:
            raise bare.refuse(f"*{name} cannot be named by a caller", f"write {name}: list[str]")
        case inspect.Parameter.VAR_KEYWORD:
            raise bare.refuse(
                f"**{name} has no names to describe", f"write {name}: dict[str, str], or each name out"
            )
        case inspect.Parameter.POSITIONAL_ONLY:
            raise bare.refuse(f"{name} is positional-only and callers name their arguments", "remove the /")
        case _:
            if not name.isascii():
                raise bare.refuse(f"{name} is not ASCII, which model APIs refuse", "rename the parameter")


def _refuse_self(parameter: inspect.Parameter, target: Callable[..., Any], bare: Signature) -> None:
    unbound = (
        parameter.name in {"self", "cls"} and parameter.annotation is MISSING and not inspect.ismethod(target)
    )
    if unbound and "." in getattr(target, "__qualname__", ""):
        raise bare.refuse(
            f"it is an unbound method ({parameter.name})", "register the bound method of an object"
        )


def _described(annotation: object) -> str:
    """The description that an ``Annotated`` holds: a plain string, or an object that has one."""
    if get_origin(annotation) is not Annotated:
        return ""
    for extra in get_args(annotation)[1:]:
        text = (
            extra
            if isinstance(extra, str)
            else getattr(extra, "description", None) or getattr(extra, "documentation", None)
        )
        if isinstance(text, str) and text:
            return text
    return ""


class _Hints:
    """Annotations of one function, resolved as far as they have to be."""

    def __init__(self, target: Callable[..., Any], bare: Signature) -> None:
        self._bare = bare
        inner = inspect.unwrap(target)
        function = getattr(inner, "__func__", inner)
        self._globals: dict[str, Any] = getattr(function, "__globals__", {})
        self._locals = dict(_closure(function))
        # A context imported under TYPE_CHECKING only is still a context.
        for kind in _subclasses(ContextParameter):
            if kind.__name__ not in self._globals:
                self._locals.setdefault(kind.__name__, kind)

    def of(self, name: str, annotation: Any) -> Any:
        """The type of a parameter; ``Any`` without annotation."""
        if annotation is MISSING:
            return Any
        try:
            return self._resolve(annotation)
        except Exception as error:  # noqa: BLE001  said below
            # Whatever an annotation raises when it is evaluated: a NameError most of all.
            raise self._bare.refuse(
                f"the type of {name} cannot be resolved ({type(error).__name__})",
                "import it at run time and not under TYPE_CHECKING, and define it at module level",
            ) from None

    def returns(self, annotation: Any) -> Any:
        """The return type; ``MISSING`` where there is none or it does not resolve, since nothing depends on it."""
        if annotation is MISSING:
            return MISSING
        try:
            return self._resolve(annotation)
        except Exception:  # noqa: BLE001  as above; there is then no output schema
            return MISSING

    def _resolve(self, annotation: Any) -> Any:
        holder = types.SimpleNamespace(__annotations__={"it": annotation})
        return typing.get_type_hints(holder, self._globals, self._locals, include_extras=True)["it"]


def _closure(function: Any) -> Iterator[tuple[str, object]]:
    code = getattr(function, "__code__", None)
    cells = getattr(function, "__closure__", None) or ()
    for name, cell in zip(getattr(code, "co_freevars", ()), cells, strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue


def _subclasses(kind: type[object]) -> Iterator[type[object]]:
    sub: type[object]
    for sub in kind.__subclasses__():
        yield sub
        yield from _subclasses(sub)


def substitute(annotation: Any, bound: Mapping[Any, Any]) -> Any:
    """*annotation* with the type variables of a generic class replaced by what it was given."""
    if not bound:
        return annotation
    if annotation in bound if isinstance(annotation, typing.TypeVar) else False:
        return bound[annotation]
    parameters = getattr(annotation, "__parameters__", ())
    if parameters and get_origin(annotation) is not None:
        return annotation[tuple(bound.get(one, one) for one in parameters)]
    return annotation
