"""A tool: what clients see of it, how its arguments are checked, how it is called.

Owns the ``Tool`` record. Does not own who may call it or where it runs (``server``), what its result looks like on the
wire (``registry.results``), nor whether it may be registered (``registry.registry``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, field

from stanchion.registry import callbacks
from stanchion.registry.arguments import decoder
from stanchion.registry.bounds import HEADER
from stanchion.registry.callbacks import Callback, IsFault, Isolation
from stanchion.registry.errors import Fault
from stanchion.registry.schema import input_schema as derive_input
from stanchion.registry.schema import output_schema as derive_output
from stanchion.registry.shapes import icons_of, plain, told
from stanchion.registry.signature import read
from stanchion.registry.validation import Compiled, canonical
from stanchion.wire.model import Icon, JsonObject, ToolAnnotations, ToolDescriptor
from stanchion.wire.revisions import Profile


class Tool(Struct, frozen=True, kw_only=True, eq=False, weakref=True):
    """One tool. Immutable but for the caches of what is computed from it; made by ``of`` and ``raw``."""

    name: str
    title: str | None = None
    description: str | None = None
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    annotations: ToolAnnotations | None = None
    """Hints to clients (behaviour B7)."""
    icons: tuple[Icon, ...] = ()
    meta: JsonObject | None = None
    """``_meta`` in the listing."""
    callback: Callable[..., Any]
    """The author's function as it was registered."""
    isolation: Isolation
    timeout: float | None = None
    """Seconds a call may take; None for the server's ``callback_timeout``."""
    sensitive: bool = False
    """Declared sensitive, or destructive (behaviour B3)."""
    is_fault: IsFault | None = None
    """None counts every error that the author returns."""
    derived: bool = False
    """It comes from a live interface (behaviour G3); only the registry sets it."""
    owner: Hashable | None = None
    """Whose end removes it; only the registry sets it."""
    given: bool = False
    """A schema came from the author, not from the signature, so registration has to check it."""
    invoke: Callback
    """How ``callback`` is called."""
    arguments: Compiled
    result: Compiled | None = None
    described: dict[str, Raw] = field(default_factory=dict)
    """Encoded listing entries by revision; filled as they are asked for."""

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
        sensitive: bool = False,
        isolation: Isolation | None = None,
        timeout: float | None = None,
        is_fault: IsFault | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> Tool:
        """Make a tool of a function, deriving what is not said.

        Args:
            function: Its parameters become the arguments; one whose annotation is a context gets the context.
            name: By default the function's.
            title: A name for people (2025-06-18, server/tools).
            description: By default the docstring without its sections.
            read_only: ``readOnlyHint``; None leaves it unsaid, as do the other three hints.
            destructive: ``destructiveHint``. True makes the tool sensitive.
            idempotent: ``idempotentHint``.
            open_world: ``openWorldHint``.
            sensitive: It must not be offered without an authorizer (behaviour B3).
            isolation: Where it runs. By default a task for a coroutine function, else a thread.
            timeout: Seconds.
            is_fault: Which returned errors the breaker counts; None counts all.
            input_schema: Published and checked in place of the derived one.
            output_schema: Likewise; without it a return annotation that is a class with fields gives one.
            icons: Pictures (2025-11-25, basic/index).
            meta: The entry's ``_meta``.

        Raises:
            UnderivableSignature: The function cannot be called by name over JSON.
            ValueError: ``isolation`` or ``timeout`` is none.
        """
        signature = read(function)
        name = signature.name if name is None else name
        arguments = derive_input(signature)
        invoke = callbacks.derived(function, signature, decoder(signature))
        taken: JsonObject = arguments if input_schema is None else plain(input_schema)
        promised = derive_output(signature) if output_schema is None else plain(output_schema)
        return cls(
            name=name,
            title=title,
            description=signature.description or None if description is None else description,
            input_schema=taken,
            output_schema=promised,
            annotations=_hints(read_only, destructive, idempotent, open_world),
            icons=icons_of(icons),
            meta=None if meta is None else plain(meta),
            callback=function,
            isolation=callbacks.isolation_of(isolation, invoke, name),
            timeout=callbacks.timeout_of(timeout, name),
            sensitive=sensitive or destructive is True,
            is_fault=is_fault,
            given=input_schema is not None or output_schema is not None or _is_unusual(arguments),
            invoke=invoke,
            arguments=Compiled(taken),
            result=None if promised is None else Compiled(promised),
        )

    @classmethod
    def raw(
        cls,
        *,
        name: str,
        callback: Callable[..., Any],
        input_schema: Mapping[str, Any] | Compiled,
        title: str | None = None,
        description: str | None = None,
        output_schema: Mapping[str, Any] | None = None,
        annotations: ToolAnnotations | Mapping[str, Any] | None = None,
        sensitive: bool = False,
        isolation: Isolation | None = None,
        timeout: float | None = None,
        is_fault: IsFault | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> Tool:
        """Make a tool of a schema and a function that takes all arguments as one dict (the reference's shape).

        Args:
            name: What clients call it.
            callback: Called with the arguments and, if a parameter is annotated as one, a context.
            input_schema: Published unchanged (checklist T9); registration checks it (behaviour F5). A compiled one is
                shared with the other tools that have it.
            title: As in ``of``, like all that are not named here.
            description: None for none.
            output_schema: What ``structuredContent`` will conform to.
            annotations: Hints as the wire has them; ``destructiveHint: true`` makes the tool sensitive.
            sensitive: As in ``of``.
            isolation: As in ``of``.
            timeout: Seconds.
            is_fault: As in ``of``.
            icons: As in ``of``.
            meta: As in ``of``.

        Raises:
            TypeError: Something has the wrong type; the sentence says what.
            ValueError: ``isolation`` or ``timeout`` is none.
        """
        invoke = callbacks.raw(callback, takes_arguments=True)
        arguments = input_schema if isinstance(input_schema, Compiled) else Compiled(plain(input_schema))
        promised = None if output_schema is None else plain(output_schema)
        hints = _annotations(annotations)
        return cls(
            name=name,
            title=title,
            description=description,
            input_schema=arguments.schema,
            output_schema=promised,
            annotations=hints,
            icons=icons_of(icons),
            meta=None if meta is None else plain(meta),
            callback=callback,
            isolation=callbacks.isolation_of(isolation, invoke, str(name)),
            timeout=callbacks.timeout_of(timeout, str(name)),
            sensitive=sensitive or (hints is not None and hints.destructive_hint is True),
            is_fault=is_fault,
            given=True,
            invoke=invoke,
            arguments=arguments,
            result=None if promised is None else Compiled(promised),
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

    @property
    def destructive(self) -> bool:
        """Whether the registering code said it destroys something."""
        return self.annotations is not None and self.annotations.destructive_hint is True

    @property
    def read_only(self) -> bool:
        """Whether the registering code said it changes nothing."""
        return self.annotations is not None and self.annotations.read_only_hint is True

    def descriptor(self) -> ToolDescriptor:
        """What clients may see, with every field that any revision has."""
        return ToolDescriptor(
            name=self.name,
            title=told(self.title),
            description=told(self.description),
            icons=self.icons or UNSET,
            input_schema=self.input_schema,
            output_schema=told(self.output_schema),
            annotations=told(self.annotations),
            meta=told(self.meta),
        )

    def describe(self, profile: Profile) -> Raw:
        """The encoded ``tools/list`` entry for a revision. Encoded once a revision."""
        made = self.described.get(profile.revision)
        if made is None:
            made = Raw(msgspec.json.encode(profile.trim(self.descriptor())))
            self.described[profile.revision] = made
        return made

    def prepare(self, arguments: dict[str, object] | None) -> tuple[dict[str, object], tuple[Fault, ...]]:
        """Check the arguments of a call, running none of the author's code (behaviour F6).

        Args:
            arguments: As decoded; None counts as ``{}`` (checklist T12). Not changed.

        Returns:
            The arguments to authorise and to call with, and what is wrong with them. Null for an optional argument
            that cannot be null is as if it were left out.
        """
        if arguments is None:
            arguments = {}
        elif None in arguments.values():
            optional = self.arguments.optional
            arguments = {
                key: value for key, value in arguments.items() if value is not None or key not in optional
            }
        if self.arguments.is_valid(arguments):
            return arguments, ()
        faults = self.arguments.faults(arguments)
        return arguments, faults or (Fault("", "do not fit the input schema"),)

    def call(self, arguments: dict[str, object], context: object | None) -> object:
        """Call the author's function, in the worker: its value, or its coroutine.

        Args:
            arguments: What ``prepare`` returned without faults.
            context: For a function that wants one.

        Raises:
            InvalidArguments: The author's types do not accept them.
            BaseException: Whatever the function raises.
        """
        return self.invoke.call(arguments, context)


def _is_unusual(schema: JsonObject) -> bool:
    """Whether a derived schema holds something of the author's own making."""
    text = canonical(schema)
    return b'"pattern"' in text or HEADER.encode() in text or b'"$' in text


def _hints(
    read_only: bool | None,  # noqa: FBT001  one helper for four keywords
    destructive: bool | None,  # noqa: FBT001
    idempotent: bool | None,  # noqa: FBT001
    open_world: bool | None,  # noqa: FBT001
) -> ToolAnnotations | None:
    if read_only is None and destructive is None and idempotent is None and open_world is None:
        return None
    return ToolAnnotations(
        read_only_hint=told(read_only),
        destructive_hint=told(destructive),
        idempotent_hint=told(idempotent),
        open_world_hint=told(open_world),
    )


def _annotations(given: ToolAnnotations | Mapping[str, Any] | None) -> ToolAnnotations | None:
    if given is None or isinstance(given, ToolAnnotations):
        return given
    try:
        return msgspec.convert(given, ToolAnnotations)
    except msgspec.ValidationError as error:
        raise TypeError(f"the annotations do not fit: {error}") from None
