"""Prompts and completions: what clients see of them and how they are asked.

Owns the two records. Does not own how messages and values are written (``registry.results``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, field

from stanchion.registry import callbacks
from stanchion.registry.arguments import text_decoder
from stanchion.registry.callbacks import Callback, IsFault, Isolation
from stanchion.registry.errors import Fault, tell_name
from stanchion.registry.shapes import icons_of, plain, told
from stanchion.registry.signature import is_async, name_of, read, where
from stanchion.registry.validation import unknown
from stanchion.wire.model import Icon, JsonObject, PromptArgument, PromptDescriptor
from stanchion.wire.revisions import Profile


class Prompt(Struct, frozen=True, kw_only=True, eq=False, weakref=True):
    """A prompt. Made by ``of`` and ``raw``."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[PromptArgument, ...] = ()
    icons: tuple[Icon, ...] = ()
    meta: JsonObject | None = None
    callback: Callable[..., Any]
    isolation: Isolation
    timeout: float | None = None
    """Seconds; None for the server's ``callback_timeout``."""
    is_fault: IsFault | None = None
    owner: Hashable | None = None
    invoke: Callback
    described: dict[str, Raw] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
        isolation: Isolation | None = None,
        timeout: float | None = None,
        is_fault: IsFault | None = None,
    ) -> Prompt:
        """Make a prompt of a function; its parameters are the arguments, which always arrive as text.

        Args:
            function: Returns a text, a message, or a list of messages.
            name: By default the function's.
            title: A name for people.
            description: By default the docstring without its sections.
            icons: Pictures.
            meta: The entry's ``_meta``.
            isolation: Where it runs. By default a task for a coroutine function, else a thread.
            timeout: Seconds.
            is_fault: Which returned errors the breaker counts; None counts all.

        Raises:
            UnderivableSignature: A parameter cannot be read from text.
            ValueError: ``isolation`` or ``timeout`` is none.
        """
        signature = read(function)
        name = signature.name if name is None else name
        invoke = callbacks.derived(function, signature, text_decoder(signature))
        return cls(
            name=name,
            title=title,
            description=signature.description or None if description is None else description,
            arguments=tuple(
                PromptArgument(name=one.name, description=one.description or UNSET, required=one.required)
                for one in signature.parameters
            ),
            icons=icons_of(icons),
            meta=None if meta is None else plain(meta),
            callback=function,
            isolation=callbacks.isolation_of(isolation, invoke, name),
            timeout=callbacks.timeout_of(timeout, name),
            is_fault=is_fault,
            invoke=invoke,
        )

    @classmethod
    def raw(
        cls,
        *,
        name: str,
        callback: Callable[..., Any],
        arguments: Iterable[PromptArgument | Mapping[str, Any]] = (),
        title: str | None = None,
        description: str | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
        isolation: Isolation | None = None,
        timeout: float | None = None,
        is_fault: IsFault | None = None,
    ) -> Prompt:
        """Make a prompt of a function that takes all arguments as one dict (the reference's shape).

        Args:
            name: What clients call it.
            callback: Called with the arguments and, if a parameter is annotated as one, a context.
            arguments: Name, description and whether required; the rest is as in ``of``.
            title: See there.
            description: None for none.
            icons: See there.
            meta: See there.
            isolation: See there.
            timeout: Seconds.
            is_fault: See there.

        Raises:
            TypeError: Something has the wrong type; the sentence says what.
            ValueError: ``isolation`` or ``timeout`` is none.
        """
        invoke = callbacks.raw(callback, takes_arguments=True)
        try:
            taken = tuple(
                one if isinstance(one, PromptArgument) else msgspec.convert(one, PromptArgument)
                for one in arguments
            )
        except (msgspec.ValidationError, TypeError) as error:
            raise TypeError(f"the arguments do not fit: {error}") from None
        return cls(
            name=name,
            title=title,
            description=description,
            arguments=taken,
            icons=icons_of(icons),
            meta=None if meta is None else plain(meta),
            callback=callback,
            isolation=callbacks.isolation_of(isolation, invoke, str(name)),
            timeout=callbacks.timeout_of(timeout, str(name)),
            is_fault=is_fault,
            invoke=invoke,
        )

    @property
    def key(self) -> str:
        """What it is registered under."""
        return self.name

    @property
    def is_async(self) -> bool:
        """Whether a call gives a coroutine."""
        return self.invoke.is_async

    @property
    def wants_context(self) -> bool:
        """Whether the function takes a context."""
        return self.invoke.context is not None

    def descriptor(self) -> PromptDescriptor:
        """What clients may see, with every field that any revision has."""
        return PromptDescriptor(
            name=self.name,
            title=told(self.title),
            description=told(self.description),
            arguments=self.arguments or UNSET,
            icons=self.icons or UNSET,
            meta=told(self.meta),
        )

    def describe(self, profile: Profile) -> Raw:
        """The encoded ``prompts/list`` entry for a revision. Encoded once a revision."""
        made = self.described.get(profile.revision)
        if made is None:
            made = Raw(msgspec.json.encode(profile.trim(self.descriptor())))
            self.described[profile.revision] = made
        return made

    def prepare(self, arguments: Mapping[str, str] | None) -> tuple[dict[str, object], tuple[Fault, ...]]:
        """Check the arguments of a ``prompts/get``, running none of the author's code (checklist P4).

        Returns:
            The arguments to call with, and which required ones are missing and which names are unknown.
        """
        given: dict[str, object] = dict(arguments or {})
        names = [one.name for one in self.arguments]
        missing = [one.name for one in self.arguments if one.required is True and one.name not in given]
        strange = [name for name in given if name not in names]
        faults = [Fault(name, "is required") for name in missing]
        faults += [Fault(tell_name(name), unknown(name, names)) for name in strange]
        return given, tuple(faults)

    def call(self, arguments: dict[str, object], context: object | None) -> object:
        """Call the author's function with what ``prepare`` returned, in the worker.

        Raises:
            InvalidArguments: A text cannot be read as its parameter's type.
            BaseException: Whatever the function raises.
        """
        return self.invoke.call(arguments, context)


class Completer(Struct, frozen=True, kw_only=True, eq=False, weakref=True):
    """Suggests values for one argument of a prompt or one variable of a template. Made by ``of``."""

    kind: Literal["prompt", "template"]
    name: str
    """The prompt's name or the URI template."""
    argument: str
    callback: Callable[..., Any]
    isolation: Isolation
    timeout: float | None = None
    """Seconds; None for the server's ``callback_timeout``."""
    is_fault: IsFault | None = None
    owner: Hashable | None = None
    is_async: bool
    takes_context: bool
    """It is told which arguments are settled already."""
    context: str | None = None
    """The parameter that takes the server's context."""

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        *,
        kind: Literal["prompt", "template"],
        name: str,
        argument: str,
        isolation: Isolation | None = None,
        timeout: float | None = None,
        is_fault: IsFault | None = None,
    ) -> Completer:
        """Make a completer of a function.

        Args:
            function: Called with the value typed so far and, if it takes a second argument, the settled arguments
                (server/utilities/completion, ``context``). Returns texts, best first, or an object with ``values``,
                ``total`` and ``has_more``.
            kind: What *name* names.
            name: The prompt's name or the URI template.
            argument: Which of its arguments.
            isolation: Where it runs. By default a task for a coroutine function, else a thread.
            timeout: Seconds.
            is_fault: Which returned errors the breaker counts; None counts all.

        Raises:
            TypeError: It takes something else.
            ValueError: ``isolation`` or ``timeout`` is none.
        """
        parameters = inspect.signature(function).parameters.values()
        context = callbacks.context_of(function)
        taken = [
            one
            for one in parameters
            if one.name != context and one.kind not in {one.VAR_KEYWORD, one.KEYWORD_ONLY}
        ]
        needed = [one for one in taken if one.default is one.empty and one.kind is not one.VAR_POSITIONAL]
        if not taken or len(needed) > 2:  # noqa: PLR2004  value and settled arguments
            place = f"{name_of(function)} ({where(function)})"
            raise TypeError(f"{place}: a completion takes (value) or (value, context); write one of the two.")
        probe = Callback(function, is_async(function))
        return cls(
            kind=kind,
            name=name,
            argument=argument,
            callback=function,
            isolation=callbacks.isolation_of(isolation, probe, name),
            timeout=callbacks.timeout_of(timeout, name),
            is_fault=is_fault,
            is_async=probe.is_async,
            takes_context=len(taken) > 1 or taken[0].kind is taken[0].VAR_POSITIONAL,
            context=context,
        )

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is registered under."""
        return (self.kind, self.name, self.argument)

    @property
    def wants_context(self) -> bool:
        """Whether the function takes the server's context."""
        return self.context is not None

    def call(self, value: str, settled: Mapping[str, str], context: object | None = None) -> object:
        """Call the author's function, in the worker.

        Args:
            value: What stands there so far.
            settled: The other arguments, as far as they are known.
            context: For a function that wants one.
        """
        extra = {} if self.context is None else {self.context: context}
        if self.takes_context:
            return self.callback(value, dict(settled), **extra)
        return self.callback(value, **extra)
