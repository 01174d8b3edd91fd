"""Functions are read whole, or refused in one sentence that says what to write instead (case H14)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import pytest

from stanchion.registry.errors import UnderivableSignature
from stanchion.registry.signature import MISSING, ContextParameter, is_async, read, substitute

if TYPE_CHECKING:
    from decimal import Decimal as OnlyChecked


class Ctx(ContextParameter):
    pass


def plain(a: int, b: str = "x", *, c: Annotated[float, "how much"] = 1.0, d=None) -> str:
    """Do it.

    Args:
        a: The first.
        c: Not this.
    """
    return ""


def test_parameters_have_types_defaults_and_descriptions() -> None:
    signature = read(plain)
    assert [one.name for one in signature.parameters] == ["a", "b", "c", "d"]
    assert [one.description for one in signature.parameters] == ["The first.", "", "how much", ""]
    assert [one.required for one in signature.parameters] == [True, False, False, False]
    assert signature.parameters[3].annotation is Any
    assert signature.returns is str
    assert signature.description == "Do it."
    assert signature.context is None
    assert signature.where.startswith(__file__)


@pytest.mark.parametrize("annotation", [Ctx, Ctx | None, Annotated[Ctx, "x"], "Ctx", "Ctx | None"])
def test_a_context_is_recognised_and_no_argument(annotation: Any) -> None:
    def tool(a: int, ctx) -> None: ...

    tool.__annotations__["ctx"] = annotation
    signature = read(tool)
    assert signature.context == "ctx"
    assert [one.name for one in signature.parameters] == ["a"]


def test_a_context_imported_for_type_checking_only_is_recognised() -> None:
    class Hidden(ContextParameter):
        pass

    def tool(ctx) -> None: ...

    tool.__annotations__["ctx"] = "Hidden"
    assert Hidden.__name__ not in globals()
    assert read(tool).context == "ctx"


class Thing:
    def method(self, a: int) -> str:
        """Method."""
        return ""

    def __call__(self, a: int) -> str:
        """Call."""
        return ""

    @staticmethod
    def static(a: int) -> str:
        return str(a)

    async def later(self) -> None: ...


@pytest.mark.parametrize(
    "function", [Thing().method, Thing(), Thing.static, functools.partial(plain, b="y", c=2, d=3)]
)
def test_methods_objects_and_partials_are_functions_too(function: Any) -> None:
    assert [one.name for one in read(function).parameters] == ["a"]


def test_wrapped_functions_keep_their_parameters() -> None:
    @functools.wraps(plain)
    def wrapper(*args: object, **kwargs: object) -> object:
        return plain(*args, **kwargs)

    assert [one.name for one in read(wrapper).parameters] == ["a", "b", "c", "d"]


def test_async_is_seen_through_layers() -> None:
    assert is_async(Thing().later)
    assert is_async(functools.partial(Thing().later))
    assert not is_async(plain)


def star(*xs: int) -> None: ...
def stars(**kw: int) -> None: ...
def positional(x: int, /) -> None: ...
def generator() -> Any:
    yield 1


async def agenerator() -> Any:
    yield 1


def unresolved(x: OnlyChecked) -> None: ...
def nonsense(x: "1 +") -> None: ...  # noqa: F722
def two(a: Ctx, b: Ctx) -> None: ...
def foreign(größe: int) -> None: ...  # noqa: PLC2401  the case


@pytest.mark.parametrize(
    ("function", "parameter", "instead"),
    [
        (star, "*xs", "list[str]"),
        (stars, "**kw", "dict[str, str]"),
        (positional, "x", "remove the /"),
        (generator, "generator", "return a list"),
        (agenerator, "generator", "return a list"),
        (unresolved, "x", "TYPE_CHECKING"),
        (nonsense, "x", "module level"),
        (two, "a and b", "keep one"),
        (foreign, "größe", "rename"),
        (Thing.method, "self", "bound method"),
    ],
)
def test_what_cannot_be_called_by_name_is_refused(function: Any, parameter: str, instead: str) -> None:
    with pytest.raises(UnderivableSignature) as caught:
        read(function)
    text = str(caught.value)
    assert function.__name__ in text
    assert f"{__file__}:{function.__code__.co_firstlineno}" in text
    assert parameter in text
    assert instead in text
    assert "\n" not in text


def test_a_signature_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(UnderivableSignature, match="cannot be read"):
        read(dict.update)


def test_an_unresolved_return_type_is_none() -> None:
    def tool() -> None: ...

    tool.__annotations__["return"] = "Nowhere"
    assert read(tool).returns is MISSING


def test_type_variables_are_substituted() -> None:
    from typing import TypeVar

    variable = TypeVar("variable")
    assert substitute(list[variable], {variable: int}) == list[int]
    assert substitute(variable, {variable: int}) is int
    assert substitute(int, {}) is int
    assert msgspec.convert([1], substitute(list[variable], {variable: int})) == [1]
