"""The registry: everything a server offers, changed from any thread, read without waiting.

Owns registering, unregistering, owners and change notices (behaviour F1, F3, F4). Does not own when an owner ends or
what is told to clients about a change (``server``), breakers (``machines``), nor the calls.

Writers take one lock. Readers take the published snapshot, which is a plain attribute. Only the first reader after a
change takes the lock, to copy what changed; so that it never waits for a large batch, a writer that is about to put one
in publishes first, and readers go on with that until the batch is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from threading import Lock
from typing import Final, Literal, TypeVar

from msgspec import Struct, structs

from stanchion.registry.definitions import Checker
from stanchion.registry.errors import NameCollision
from stanchion.registry.names import Holders
from stanchion.registry.prompts import Completer, Prompt
from stanchion.registry.resources import Resource, Template
from stanchion.registry.shelf import Shelf
from stanchion.registry.snapshot import CompleterKey, Snapshot
from stanchion.registry.tools import Tool
from stanchion.registry.validation import Validators
from stanchion.wire.model import PromptDescriptor, ResourceDescriptor, TemplateDescriptor, ToolDescriptor

Kind = Literal["tools", "resources", "prompts"]
"""What a list-changed notice is about; templates are resources there."""

Listener = Callable[[frozenset[Kind]], None]
Unsubscribe = Callable[[], None]
Pairs = tuple[tuple[str, str], ...]

LARGE: Final = 64
"""Entries from which a batch counts as large: putting in fewer takes less than a reader's own copying."""

MAX_WARNINGS: Final = 1_000
"""Warnings kept for whoever reads them; beyond it the oldest go."""

E = TypeVar("E", Tool, Resource, Template, Prompt)


class _Batch(Struct, frozen=True):
    """Checked entries, ready to be put in."""

    tools: list[Tool]
    resources: list[Resource]
    templates: list[Template]
    prompts: list[Prompt]
    completers: list[Completer]

    def __len__(self) -> int:
        return sum(
            len(part) for part in (self.tools, self.resources, self.templates, self.prompts, self.completers)
        )


class Registry:
    """Tools, resources, templates, prompts and completers, safe to use from any thread.

    Args:
        names: ``"strict"`` refuses tool names that some client renames or shortens; ``"lenient"`` warns about them.
    """

    def __init__(self, *, names: Literal["lenient", "strict"] = "lenient") -> None:
        if names not in {"lenient", "strict"}:
            raise ValueError('names is "lenient" or "strict"')
        self._strict = names == "strict"
        self._lock = Lock()
        self._validators = Validators()
        self._holders = Holders()
        self._warnings: dict[str, bool] = {}  # text to whether it was taken
        self._listeners: dict[object, Listener] = {}
        self._tools: Shelf[Tool] = Shelf(self._holders.release)
        self._resources: Shelf[Resource] = Shelf(_nothing)
        self._templates: Shelf[Template] = Shelf(_nothing)
        self._prompts: Shelf[Prompt] = Shelf(_nothing)
        self._completers: dict[CompleterKey, Completer] = {}
        self._version = 0
        self._published: Snapshot | None = None

    # -- registering -----------------------------------------------------------------------------------------------

    def register_tools(
        self, tools: Iterable[object], *, owner: Hashable | None = None, derived: bool = False
    ) -> Pairs:
        """Register tools, refusing those that some client could not tell from another (behaviour F4).

        Args:
            tools: ``Tool`` records, or mappings with ``name``, ``inputSchema``, ``callback`` and what else a tool has.
            owner: Whose end removes them; None for nobody's. Registering a name again moves it.
            derived: They come from a live interface: left out of ``static_tools``. Only the synchroniser says so.

        Returns:
            For each refused name the name that holds its place; the others are registered.

        Raises:
            InvalidDefinitions: Some definition is none; then nothing is registered.
        """
        checker = self._checker()
        checked = checker.tools(tools, owner, derived=derived)
        refused, changed = self._change(_Batch(checked, [], [], [], []), checker)
        self._tell(changed)
        return refused

    def register_resources(self, resources: Iterable[object], *, owner: Hashable | None = None) -> None:
        """Register resources: records, or mappings with ``uri``, ``name`` and ``callback``.

        Raises:
            InvalidDefinitions: As in ``register_tools``.
        """
        checker = self._checker()
        self._tell(self._change(_Batch([], checker.resources(resources, owner), [], [], []), checker)[1])

    def register_templates(self, templates: Iterable[Template], *, owner: Hashable | None = None) -> None:
        """Register resource templates. The first one that fits a URI answers it.

        Raises:
            InvalidDefinitions: As in ``register_tools``.
        """
        checker = self._checker()
        self._tell(self._change(_Batch([], [], checker.templates(templates, owner), [], []), checker)[1])

    def register_prompts(self, prompts: Iterable[object], *, owner: Hashable | None = None) -> None:
        """Register prompts: records, or mappings with ``name`` and ``callback``.

        Raises:
            InvalidDefinitions: As in ``register_tools``.
        """
        checker = self._checker()
        self._tell(self._change(_Batch([], [], [], checker.prompts(prompts, owner), []), checker)[1])

    def register_completers(self, completers: Iterable[Completer], *, owner: Hashable | None = None) -> None:
        """Register completers; one for each argument, a later one replaces an earlier one. No client is told.

        Raises:
            InvalidDefinitions: As in ``register_tools``.
        """
        checker = self._checker()
        self._tell(self._change(_Batch([], [], [], [], checker.completers(completers, owner)), checker)[1])

    def register_all(
        self,
        *,
        tools: Iterable[object] = (),
        resources: Iterable[object] = (),
        templates: Iterable[Template] = (),
        prompts: Iterable[object] = (),
        completers: Iterable[Completer] = (),
        owner: Hashable | None = None,
    ) -> None:
        """Register everything given, or nothing.

        Raises:
            InvalidDefinitions: Some definition is none. Indexes count within its kind; the first kind with faults is
                reported.
            NameCollision: Some tool's visible name is taken, by a registered tool or by another of the batch.
        """
        checker = self._checker()
        batch = _Batch(
            checker.tools(tools, owner, derived=False),
            checker.resources(resources, owner),
            checker.templates(templates, owner),
            checker.prompts(prompts, owner),
            checker.completers(completers, owner),
        )
        refused, changed = self._change(batch, checker, whole=True)
        if refused:
            raise NameCollision(refused)
        self._tell(changed)

    # -- unregistering ---------------------------------------------------------------------------------------------

    def unregister_tools(self, keys: Iterable[str], *, owner: Hashable | None = None) -> None:
        """Unregister tools by name; with *owner* only those it still owns. What is not there does nothing."""
        self._drop(self._tools, "tools", keys, owner)

    def unregister_resources(self, keys: Iterable[str], *, owner: Hashable | None = None) -> None:
        """Unregister resources by URI, as ``unregister_tools`` does."""
        self._drop(self._resources, "resources", keys, owner)

    def unregister_templates(self, keys: Iterable[str], *, owner: Hashable | None = None) -> None:
        """Unregister templates by their text, as ``unregister_tools`` does."""
        self._drop(self._templates, "resources", keys, owner)

    def unregister_prompts(self, keys: Iterable[str], *, owner: Hashable | None = None) -> None:
        """Unregister prompts by name, as ``unregister_tools`` does."""
        self._drop(self._prompts, "prompts", keys, owner)

    def unregister_completers(self, keys: Iterable[CompleterKey], *, owner: Hashable | None = None) -> None:
        """Unregister completers by kind, name and argument, as ``unregister_tools`` does."""
        wanted = list(keys)
        with self._lock:
            for key in wanted:
                held = self._completers.get(key)
                if held is not None and (owner is None or held.owner == owner):
                    del self._completers[key]
                    self._touch()

    def owner_ended(self, owner: Hashable) -> frozenset[Kind]:
        """Unregister everything that *owner* still owns (behaviour F3). Which kinds of list changed."""
        if owner is None:
            return frozenset()
        changed: set[Kind] = set()
        with self._lock:
            if self._tools.drop_owner(owner):
                changed.add("tools")
            # Both are dropped: "or" would spare the templates.
            if self._resources.drop_owner(owner) | self._templates.drop_owner(owner):
                changed.add("resources")
            if self._prompts.drop_owner(owner):
                changed.add("prompts")
            for key in [key for key, one in self._completers.items() if one.owner == owner]:
                del self._completers[key]
            self._touch()
        told = frozenset(changed)
        self._tell(told)
        return told

    def owns(self, owner: Hashable) -> bool:
        """Whether anything of *owner*'s is registered. The barrier ``await_owner_cleanup`` waits for False."""
        with self._lock:
            shelves = (self._tools, self._resources, self._templates, self._prompts)
            return any(shelf.owns(owner) for shelf in shelves) or any(
                one.owner == owner for one in self._completers.values()
            )

    # -- reading ---------------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Everything as it is now. Costs an attribute unless something changed since the last call."""
        published = self._published
        if published is not None:
            return published
        with self._lock:
            return self._publish()

    def list_tools(self) -> list[ToolDescriptor]:
        """The definitions of all tools, in order; never their callbacks."""
        return [tool.descriptor() for tool in self.snapshot().tools]

    def static_tools(self) -> list[ToolDescriptor]:
        """The definitions of the tools that were not registered as derived (behaviour B3)."""
        return [tool.descriptor() for tool in self.snapshot().tools if not tool.derived]

    def list_resources(self) -> list[ResourceDescriptor]:
        """The definitions of all resources, in order."""
        return [resource.descriptor() for resource in self.snapshot().resources]

    def list_templates(self) -> list[TemplateDescriptor]:
        """The definitions of all templates, in order."""
        return [template.descriptor() for template in self.snapshot().templates]

    def list_prompts(self) -> list[PromptDescriptor]:
        """The definitions of all prompts, in order."""
        return [prompt.descriptor() for prompt in self.snapshot().prompts]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was remarked about names so far, each sentence once."""
        with self._lock:
            return tuple(self._warnings)

    def take_warnings(self) -> tuple[str, ...]:
        """The remarks that were not taken before, for the log."""
        with self._lock:
            fresh = tuple(text for text, taken in self._warnings.items() if not taken)
            self._warnings = dict.fromkeys(self._warnings, True)
            return fresh

    def listen(self, callback: Listener) -> Unsubscribe:
        """Be told which kinds of list changed, after each change, on the thread that made it and outside the lock.

        Args:
            callback: Must be quick and thread-safe. What it raises is dropped: a listener cannot hurt a writer.

        Returns:
            Ends the subscription; harmless when called again.
        """
        token = object()
        with self._lock:
            self._listeners = {**self._listeners, token: callback}

        def unsubscribe() -> None:
            with self._lock:
                self._listeners = {key: one for key, one in self._listeners.items() if key is not token}

        return unsubscribe

    # -- inside ----------------------------------------------------------------------------------------------------

    def _checker(self) -> Checker:
        return Checker(strict=self._strict, knows=self._validators.knows)

    def _change(
        self, batch: _Batch, checker: Checker, *, whole: bool = False
    ) -> tuple[Pairs, frozenset[Kind]]:
        """Put a batch in: what was refused, and which kinds of list changed. *whole*: all or nothing."""
        changed: set[Kind] = set()
        with self._lock:
            if len(batch) >= LARGE:
                self._publish()
            for text in checker.warnings[: MAX_WARNINGS - len(self._warnings)]:
                self._warnings.setdefault(text, False)
            tools, refused = self._claim(batch.tools)
            if whole and refused:
                for tool in tools:
                    if self._tools.get(tool.name) is None:
                        self._holders.release(tool.name)
                return refused, frozenset()
            if tools:
                changed.add("tools")
            if batch.resources or batch.templates:
                changed.add("resources")
            if batch.prompts:
                changed.add("prompts")
            for tool in tools:
                self._tools.put(self._shared(tool))
            for resource in batch.resources:
                self._resources.put(resource)
            for template in batch.templates:
                self._templates.put(template)
            for prompt in batch.prompts:
                self._prompts.put(prompt)
            for completer in batch.completers:
                self._completers[completer.key] = completer
            if changed or batch.completers:
                self._touch()
        return refused, frozenset(changed)

    def _claim(self, tools: list[Tool]) -> tuple[list[Tool], Pairs]:
        """The tools whose visible names are theirs from now on, and the others with who holds them."""
        taken: list[Tool] = []
        refused: list[tuple[str, str]] = []
        for tool in tools:
            holder = self._holders.claim(tool.name)
            if holder is None:
                taken.append(tool)
            else:
                refused.append((tool.name, holder))
        return taken, tuple(refused)

    def _shared(self, tool: Tool) -> Tool:
        """*tool* with the compiled schemas of others like it."""
        arguments = self._validators.share(tool.arguments)
        result = None if tool.result is None else self._validators.share(tool.result)
        if arguments is tool.arguments and result is tool.result:
            return tool
        return structs.replace(tool, arguments=arguments, result=result)

    def _drop(self, shelf: Shelf[E], kind: Kind, keys: Iterable[str], owner: Hashable | None) -> None:
        # Taken before the lock: an iterable may run the caller's code. One name alone is taken for a list of it.
        wanted = [keys] if isinstance(keys, str) else list(keys)
        with self._lock:
            gone = shelf.drop(wanted, owner)
            if gone:
                self._touch()
        if gone:
            self._tell(frozenset({kind}))

    def _touch(self) -> None:
        self._version += 1
        self._published = None

    def _publish(self) -> Snapshot:
        if self._published is None:
            self._published = Snapshot(
                version=self._version,
                tools=self._tools.publish(),
                resources=self._resources.publish(),
                templates=self._templates.publish(),
                prompts=self._prompts.publish(),
                completers=self._completers.copy(),
            )
        return self._published

    def _tell(self, changed: frozenset[Kind]) -> None:
        if not changed:
            return
        for listener in self._listeners.values():
            with suppress(Exception):
                listener(changed)


def _nothing(_key: str) -> None:
    """A key of a kind whose names no client changes goes."""
