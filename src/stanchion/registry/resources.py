"""Resources and resource templates: what clients see of them and how they are read.

Owns the two records. Does not own which of them answers a URI (``registry.snapshot``), nor how what they return is
written (``registry.results``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, field

from stanchion.registry import callbacks, uri
from stanchion.registry.arguments import text_decoder
from stanchion.registry.callbacks import Callback, IsFault, Isolation
from stanchion.registry.shapes import annotations_of, icons_of, plain, told
from stanchion.registry.signature import Signature, read
from stanchion.wire.model import Annotations, Icon, JsonObject, ResourceDescriptor, TemplateDescriptor
from stanchion.wire.revisions import Profile


class Resource(Struct, frozen=True, kw_only=True, eq=False, weakref=True):
    """Something to read, at one URI. Made by ``of`` and ``raw``."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    """Bytes, if known."""
    annotations: Annotations | None = None
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
        uri: str,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | Mapping[str, Any] | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
        isolation: Isolation | None = None,
        timeout: float | None = None,
        is_fault: IsFault | None = None,
    ) -> Resource:
        """Make a resource of a function without parameters (but for a context).

        Args:
            function: Called for each ``resources/read``.
            uri: Where it is (server/resources; RFC 3986).
            name: By default the function's.
            title: A name for people.
            description: By default the docstring.
            mime_type: Of what it returns; by default decided by what that is.
            size: Bytes, for the listing.
            annotations: Hints (audience, priority, lastModified).
            icons: Pictures.
            meta: The entry's ``_meta``.
            isolation: Where it runs. By default a task for a coroutine function, else a thread.
            timeout: Seconds.
            is_fault: Which returned errors the breaker counts; None counts all.

        Raises:
            UnderivableSignature: It takes arguments.
            ValueError: ``isolation`` or ``timeout`` is none.
        """
        signature = read(function)
        if signature.parameters:
            first = signature.parameters[0].name
            raise signature.refuse(
                f"a resource has no argument {first}", f"write a template such as {uri}/{{{first}}}"
            )
        name = signature.name if name is None else name
        invoke = callbacks.derived(function, signature, text_decoder(signature))
        return cls(
            uri=uri,
            name=name,
            title=title,
            description=signature.description or None if description is None else description,
            mime_type=mime_type,
            size=size,
            annotations=annotations_of(annotations),
            icons=icons_of(icons),
            meta=None if meta is None else plain(meta),
            callback=function,
            isolation=callbacks.isolation_of(isolation, invoke, name),
            timeout=callbacks.timeout_of(timeout, name),
            is_fault=is_fault,
            invoke=invoke,
        )

    @property
    def key(self) -> str:
        """What it is registered under."""
        return self.uri

    @property
    def is_async(self) -> bool:
        """Whether a call gives a coroutine."""
        return self.invoke.is_async

    @property
    def wants_context(self) -> bool:
        """Whether the function takes a context."""
        return self.invoke.context is not None

    def descriptor(self) -> ResourceDescriptor:
        """What clients may see, with every field that any revision has."""
        return ResourceDescriptor(
            uri=self.uri,
            name=self.name,
            title=told(self.title),
            description=told(self.description),
            mime_type=told(self.mime_type),
            size=told(self.size),
            icons=self.icons or UNSET,
            annotations=told(self.annotations),
            meta=told(self.meta),
        )

    def describe(self, profile: Profile) -> Raw:
        """The encoded ``resources/list`` entry for a revision. Encoded once a revision."""
        made = self.described.get(profile.revision)
        if made is None:
            made = Raw(msgspec.json.encode(profile.trim(self.descriptor())))
            self.described[profile.revision] = made
        return made

    def call(self, variables: dict[str, object], context: object | None) -> object:
        """Call the author's function, in the worker. *variables* is there for symmetry and is empty."""
        return self.invoke.call(variables, context)


class Template(Struct, frozen=True, kw_only=True, eq=False, weakref=True):
    """Something to read at each URI that fits a template. Made by ``of``."""

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    icons: tuple[Icon, ...] = ()
    meta: JsonObject | None = None
    callback: Callable[..., Any]
    isolation: Isolation
    timeout: float | None = None
    """Seconds; None for the server's ``callback_timeout``."""
    is_fault: IsFault | None = None
    owner: Hashable | None = None
    invoke: Callback
    parsed: uri.UriTemplate
    described: dict[str, Raw] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        *,
        uri_template: str,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        annotations: Annotations | Mapping[str, Any] | None = None,
        icons: Iterable[Icon | Mapping[str, Any]] = (),
        meta: Mapping[str, Any] | None = None,
        isolation: Isolation | None = None,
        timeout: float | None = None,
        is_fault: IsFault | None = None,
    ) -> Template:
        """Make a template of a function whose parameters are its variables.

        Args:
            function: Called with the variables of the URI, read as the types of its parameters.
            uri_template: In the language of ``registry.uri``. A name of ``{?…}`` needs a default in the function.
            name: By default the function's; the rest is as in ``Resource.of``.
            title: See there.
            description: See there.
            mime_type: See there.
            annotations: See there.
            icons: See there.
            meta: See there.
            isolation: See there.
            timeout: Seconds.
            is_fault: See there.

        Raises:
            TemplateError: The template cannot be used.
            UnderivableSignature: Its variables and the function's parameters are not the same.
            ValueError: ``isolation`` or ``timeout`` is none.
        """
        signature = read(function)
        parsed = uri.parse(uri_template)
        _refuse_mismatch(signature, parsed)
        name = signature.name if name is None else name
        invoke = callbacks.derived(function, signature, text_decoder(signature))
        return cls(
            uri_template=uri_template,
            name=name,
            title=title,
            description=signature.description or None if description is None else description,
            mime_type=mime_type,
            annotations=annotations_of(annotations),
            icons=icons_of(icons),
            meta=None if meta is None else plain(meta),
            callback=function,
            isolation=callbacks.isolation_of(isolation, invoke, name),
            timeout=callbacks.timeout_of(timeout, name),
            is_fault=is_fault,
            invoke=invoke,
            parsed=parsed,
        )

    @property
    def key(self) -> str:
        """What it is registered under."""
        return self.uri_template

    @property
    def is_async(self) -> bool:
        """Whether a call gives a coroutine."""
        return self.invoke.is_async

    @property
    def wants_context(self) -> bool:
        """Whether the function takes a context."""
        return self.invoke.context is not None

    def descriptor(self) -> TemplateDescriptor:
        """What clients may see, with every field that any revision has."""
        return TemplateDescriptor(
            uri_template=self.uri_template,
            name=self.name,
            title=told(self.title),
            description=told(self.description),
            mime_type=told(self.mime_type),
            icons=self.icons or UNSET,
            annotations=told(self.annotations),
            meta=told(self.meta),
        )

    def describe(self, profile: Profile) -> Raw:
        """The encoded ``resources/templates/list`` entry for a revision. Encoded once a revision."""
        made = self.described.get(profile.revision)
        if made is None:
            made = Raw(msgspec.json.encode(profile.trim(self.descriptor())))
            self.described[profile.revision] = made
        return made

    def match(self, uri: str) -> dict[str, str] | None:
        """The variables of *uri* as text, or None if the template does not answer it."""
        return self.parsed.match(uri)

    def call(self, variables: dict[str, object], context: object | None) -> object:
        """Call the author's function with what ``match`` found, in the worker.

        Raises:
            InvalidArguments: A text cannot be read as its parameter's type.
            BaseException: Whatever the function raises.
        """
        return self.invoke.call(variables, context)


def _refuse_mismatch(signature: Signature, parsed: uri.UriTemplate) -> None:
    known = {parameter.name: parameter for parameter in signature.parameters}
    for name in parsed.names:
        if name not in known:
            raise signature.refuse(f"it has no parameter {name}, which {parsed.text} has", f"add {name}: str")
        if name in parsed.query and known[name].required:
            raise signature.refuse(f"{name} may be missing in {parsed.text}", f"give {name} a default")
    for name, parameter in known.items():
        if parameter.required and name not in parsed.names:
            raise signature.refuse(
                f"{parsed.text} has no variable {name}", f"add {{{name}}} or give {name} a default"
            )
