"""``Stanchion``: the decorators people import, a thin face over a registry and a server.

Owns the way from a decorated function to a registration, who registered what where (so that two functions under one name
are told apart), and starting up. It holds no protocol and no policy.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Literal, TypeVar, overload

from stanchion.declaring import DuplicateName, Places, declared_fault, opened, place_of
from stanchion.registry.authorizer import Authorizer
from stanchion.registry.errors import NameCollision
from stanchion.registry.features import Completer, Prompt, Resource, Template, Tool
from stanchion.registry.registry import Registry
from stanchion.runtime import Server
from stanchion.server.config import Config
from stanchion.server.ports import Isolation, Observer, UnknownToolReply
from stanchion.serving import run_http, run_stdio
from stanchion.transports.asgi import AsgiApp
from stanchion.transports.http_endpoint import Identify
from stanchion.wire.model import Icon

F = TypeVar("F", bound=Callable[..., Any])

AppLifespan = Callable[["Stanchion"], AsyncIterator[Any] | AbstractAsyncContextManager[Any]]
"""Takes the app; an async generator that yields once, or an async context manager."""

LOADED_AS: Final = "__stanchion_main__"
"""The name under which a file is loaded by ``stanchion run``: there ``app.run()`` does nothing, so a file may end with it."""


_LOG: Final = logging.getLogger("stanchion")


class Stanchion:
    """An MCP server made of decorated functions."""

    def __init__(
        self,
        name: str,
        *,
        title: str | None = None,
        instructions: str | None = None,
        server_version: str | None = None,
        authorizer: Authorizer | None = None,
        unknown_tool_reply: UnknownToolReply | None = None,
        config: Config | None = None,
        lifespan: AppLifespan | None = None,
        observer: Observer | None = None,
        state_keys: Mapping[str, bytes] | None = None,
        names: Literal["lenient", "strict"] = "lenient",
    ) -> None:
        """Set up; nothing runs yet.

        Args:
            name: The server's name, as clients see it.
            title: A name for people.
            instructions: How to use this server, for the model.
            server_version: Default: Stanchion's own.
            authorizer: Judges each ``tools/call``; also by the decorator ``authorizer``.
            unknown_tool_reply: What to say of a tool that is not there; None of its words keep the protocol's error.
            config: Options.
            lifespan: What callbacks need while they run; also by the decorator ``lifespan``.
            observer: Is told of each event (name, fields), off the protocol loop.
            state_keys: Keys of 32 bytes by their ids, newest first, that seal what a client carries between the rounds of
                a request (2026-07-28). Default: one made at start, so that a restart voids what is under way.
            names: ``strict`` refuses tool names that some known client can't take as they are.
        """
        self.name = name
        self.registry = Registry(names=names)
        """What is on offer; may be changed at any time, from any thread."""
        self.config = config or Config()
        self._title = title
        self._instructions = instructions
        self._version = server_version
        self._authorizer = authorizer
        self._unknown_tool_reply = unknown_tool_reply
        self._lifespan = lifespan
        self._observer = observer
        self._state_keys = state_keys
        self._places = Places()

    # -- what is on offer

    @overload
    def tool(self, name: F, /) -> F: ...
    @overload
    def tool(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        read_only: bool | None = None,
        destructive: bool | None = None,
        idempotent: bool | None = None,
        open_world: bool | None = None,
        sensitive: bool = False,
        isolation: Isolation | None = None,
        timeout: float | None = None,
        is_fault: Callable[[BaseException], bool] | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        replace: bool = False,
    ) -> Callable[[F], F]: ...
    def tool(
        self,
        name: str | F | None = None,
        *,
        is_fault: Callable[[BaseException], bool] | None = None,
        replace: bool = False,
        **options: Any,
    ) -> F | Callable[[F], F]:
        """Make a function a tool; with or without parentheses. The function is returned unchanged.

        Args:
            name: Default: the function's name.
            title: A name for people.
            description: Default: the docstring, less its part on parameters.
            read_only: Says that it changes nothing.
            destructive: Says that it may destroy; such a tool needs an authorizer.
            idempotent: Says that calling twice is as good as once.
            open_world: Says that it deals with an open set of things, as a web search does.
            sensitive: Needs an authorizer whatever it says of itself.
            isolation: ``task``, ``thread`` or ``inline``. Default: ``task`` for ``async def``, else ``thread``.
            timeout: Seconds it may run. Default: ``Config.callback_timeout``.
            is_fault: Whether a ``ToolError`` counts against the tool. Default: its own ``fault``.
            input_schema: In place of the one derived from the parameters.
            output_schema: In place of the one derived from the return annotation.
            icons: Pictures for listings.
            meta: ``_meta`` of the tool.
            replace: Take the place of a tool of this name.
            **options: The rest of the names above.

        Raises:
            UnderivableSignature: A parameter has no schema; the text says which and what to write.
            InvalidDefinitions: The definition has faults; all are listed.
            NameCollision: Some known client could not tell its name from another tool's.
            DuplicateName: The app has a tool of this name, and *replace* is false.
        """

        def register(function: F) -> F:
            tool = Tool.of(
                function,
                name=name if isinstance(name, str) else None,
                is_fault=is_fault or declared_fault,
                **options,
            )
            if tool.isolation == "process":
                raise ValueError(
                    f"tool {tool.name!r} ({place_of(function)}) asks for isolation='process', which this version does not "
                    "have; use 'thread', or 'task' for an async function"
                )
            self._places.claim(
                "tool",
                tool.name,
                function,
                taken=tool.name in self.registry.snapshot().tools,
                replace=replace,
            )
            refused = self.registry.register_tools([tool])
            if refused:
                raise NameCollision(tuple(refused))
            for warning in self.registry.take_warnings():
                _LOG.warning("%s", warning)
            return function

        return register if name is None or isinstance(name, str) else register(name)

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        isolation: Isolation | None = None,
        timeout: float | None = None,
        replace: bool = False,
        **options: Any,
    ) -> Callable[[F], F]:
        """Make a function the contents of a resource, or of every resource that a URI template names.

        Args:
            uri: A URI, or a template such as ``notes://{name}`` whose variables are the function's parameters.
            name: Default: the function's name.
            title: A name for people.
            description: Default: the docstring.
            mime_type: Of the contents.
            isolation: As for ``tool``.
            timeout: As for ``tool``.
            replace: Take the place of what is registered under *uri*.
            **options: ``size``, ``annotations``, ``icons``, ``meta`` as ``Resource.of`` and ``Template.of`` have them.

        Raises:
            UnderivableSignature: The parameters do not fit the template.
            InvalidDefinitions: The definition has faults.
            DuplicateName: The app has something under *uri*, and *replace* is false.
        """

        def register(function: F) -> F:
            given = {
                "name": name,
                "title": title,
                "description": description,
                "mime_type": mime_type,
                "isolation": isolation,
                "timeout": timeout,
                **options,
            }
            snapshot = self.registry.snapshot()
            if "{" in uri:
                template = Template.of(function, uri_template=uri, **given)
                self._places.claim(
                    "template", uri, function, taken=uri in snapshot.templates, replace=replace
                )
                self.registry.register_templates([template])
            else:
                resource = Resource.of(function, uri=uri, **given)
                self._places.claim(
                    "resource", uri, function, taken=uri in snapshot.resources, replace=replace
                )
                self.registry.register_resources([resource])
            return function

        return register

    @overload
    def prompt(self, name: F, /) -> F: ...
    @overload
    def prompt(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        isolation: Isolation | None = None,
        timeout: float | None = None,
        replace: bool = False,
    ) -> Callable[[F], F]: ...
    def prompt(
        self, name: str | F | None = None, *, replace: bool = False, **options: Any
    ) -> F | Callable[[F], F]:
        """Make a function a prompt; with or without parentheses. Its parameters are the prompt's arguments.

        Args:
            name: Default: the function's name.
            title: A name for people.
            description: Default: the docstring.
            isolation: As for ``tool``.
            timeout: As for ``tool``.
            replace: Take the place of a prompt of this name.
            **options: The rest of the names above.

        Raises:
            UnderivableSignature: A parameter can't be a prompt's argument.
            InvalidDefinitions: The definition has faults.
            DuplicateName: The app has a prompt of this name, and *replace* is false.
        """

        def register(function: F) -> F:
            prompt = Prompt.of(function, name=name if isinstance(name, str) else None, **options)
            taken = prompt.name in self.registry.snapshot().prompts
            self._places.claim("prompt", prompt.name, function, taken=taken, replace=replace)
            self.registry.register_prompts([prompt])
            return function

        return register if name is None or isinstance(name, str) else register(name)

    def completion(
        self, ref: str, argument: str, *, isolation: Isolation | None = None, timeout: float | None = None
    ) -> Callable[[F], F]:
        """Make a function suggest values for an argument of a prompt, or for a variable of a resource template.

        Args:
            ref: The prompt's name, or the template.
            argument: Which argument or variable.
            isolation: As for ``tool``.
            timeout: As for ``tool``.

        Raises:
            InvalidDefinitions: The definition has faults.
        """

        def register(function: F) -> F:
            kind: Literal["prompt", "template"] = "template" if "{" in ref or "://" in ref else "prompt"
            completer = Completer.of(
                function, kind=kind, name=ref, argument=argument, isolation=isolation, timeout=timeout
            )
            self.registry.register_completers([completer])
            return function

        return register

    def authorizer(self, function: F) -> F:
        """Have a function judge each ``tools/call``: it takes a ``ToolCall`` and returns a ``Verdict``.

        Raises:
            DuplicateName: There is one already.
        """
        if self._authorizer is not None:
            raise DuplicateName(
                f"the app has an authorizer already; {place_of(function)} would be a second one"
            )
        self._authorizer = function
        return function

    def lifespan(self, function: F) -> F:
        """Have a function prepare what callbacks need; what it yields is ``ctx.lifespan``.

        It takes the app and is an async generator that yields once, or returns an async context manager. It runs on the
        callback loop, and again on each fresh one.

        Raises:
            DuplicateName: There is one already.
        """
        if self._lifespan is not None:
            raise DuplicateName(f"the app has a lifespan already; {place_of(function)} would be a second one")
        self._lifespan = function
        return function

    # -- running

    def server(self, *, config: Config | None = None, use_uvloop: bool = False) -> Server:
        """A server over this app's registry, not started.

        Args:
            config: In place of the app's.
            use_uvloop: Run the callback loop on uvloop, if it is installed. A process of its own does.
        """
        return Server(
            self.registry,
            use_uvloop=use_uvloop,
            name=self.name,
            title=self._title,
            version=self._version,
            instructions=self._instructions,
            authorizer=self._authorizer,
            authorizer_source="configured",
            unknown_tool_reply=self._unknown_tool_reply,
            config=config or self.config,
            lifespan=None if self._lifespan is None else opened(self._lifespan, self),
            observer=self._observer,
            state_keys=self._state_keys,
        )

    def asgi(
        self,
        *,
        path: str = "/mcp",
        sse: bool = False,
        identify: Identify | None = None,
        config: Config | None = None,
    ) -> AsgiApp:
        """This app as an ASGI callable, to be served by any ASGI server or mounted in another app.

        It starts with the host's lifespan, or where none is run (a mounted app) with the first request. Its context manager
        ``.lifespan`` is for composing: ``Starlette(lifespan=mcp.lifespan)``. The decorator ``app.lifespan`` is another thing.

        Args:
            path: Where the endpoint is, below the mount.
            sse: Serve the transport of 2024-11-05 as well, on ``/sse`` and ``/messages/``.
            identify: Who the host proved a caller to be, from ASGI's scope.
            config: In place of the app's.
        """
        return AsgiApp(lambda: self.server(config=config), path=path, sse=sse, identify=identify)

    def run(
        self, *, http: str | None = None, sse: bool = False, insecure: bool = False, debug: bool = False
    ) -> None:
        """Serve until SIGINT or SIGTERM comes: over stdin and stdout one client, until it goes, or over HTTP many.

        In a file that ``stanchion run`` loads this does nothing: the command serves.

        Args:
            http: ``HOST:PORT`` to serve HTTP clients at, on ``/mcp``; a port alone means 127.0.0.1.
            sse: Over HTTP, serve the transport of 2024-11-05 as well.
            insecure: Over HTTP, serve other machines, though nothing proves who they are.
            debug: Show where a failed start comes from.

        Raises:
            SystemExit: With code 2 and a sentence on stderr: the server can't start.
        """
        if sys._getframe(1).f_globals.get("__name__") == LOADED_AS:  # noqa: SLF001 - the one way to know the caller
            return
        if http is None:
            run_stdio(lambda: self.server(use_uvloop=True), debug=debug)
        else:
            run_http(lambda: self.server(use_uvloop=True), http, sse=sse, insecure=insecure, debug=debug)
