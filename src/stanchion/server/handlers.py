"""What is done for each request: one handler per row of the method table.

Owns the steps between a request that has been routed and decoded, and its answer: inline answers are returned, work for
callbacks is handed to ``execution``, a listener stays open. A handler that can't serve raises the ``McpError`` to answer
with. Pure, like all that the kernel is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar, cast

import msgspec
from msgspec import UNSET, Raw, Struct

from stanchion.machines.clients import Client, Clients
from stanchion.machines.listeners import Listener, Listeners
from stanchion.machines.session import initialize, set_level
from stanchion.registry.errors import describe_faults
from stanchion.registry.features import Tool
from stanchion.server.config import Config
from stanchion.server.effects import Effect, Emit, Push
from stanchion.server.errands import Errand, OpenCall
from stanchion.server.execution import Execution
from stanchion.server.offers import Listing, Offers
from stanchion.server.ports import Complete, Facts, GetPrompt, ReadResource, RunTool, Work
from stanchion.wire.errors import InvalidParams, ResourceNotFound, UnknownPrompt
from stanchion.wire.jsonrpc import Notification
from stanchion.wire.model import (
    LOG_LEVELS,
    SUBSCRIPTION_ID,
    CallToolParams,
    CompleteParams,
    GetPromptParams,
    InitializeParams,
    JsonObject,
    ListenFilter,
    ListenParams,
    Meta,
    Params,
    PromptReference,
    ReadResourceParams,
    Retried,
    SetLevelParams,
)
from stanchion.wire.revisions import Profile

P = TypeVar("P", bound=Params)

Result = dict[str, object] | Raw


class Asked(Struct, Generic[P]):
    """A request that has been routed and decoded."""

    call: OpenCall
    client: Client
    params: P
    meta: Meta | None
    shared: bool
    """Its connection is several clients'."""
    now: float
    out: list[Effect]
    """What follows from it is added here."""


Handler = Callable[[Asked[Any]], Result | None]
"""Does what was asked. None: the answer comes later."""


class Handlers:
    """The handlers, over the machines they need."""

    def __init__(
        self, config: Config, offers: Offers, execution: Execution, clients: Clients, *, guarded: bool
    ) -> None:
        self.listeners = Listeners(config.max_listeners)
        self._config = config
        self._offers = offers
        self._execution = execution
        self._clients = clients
        self._guarded = guarded
        self.table: Final[Mapping[str, Handler]] = {
            "initialize": self._initialize,
            "server/discover": lambda asked: offers.discovered(asked.call.profile),
            "ping": lambda _: {},
            "tools/list": self._lister("tools"),
            "tools/call": self._call_tool,
            "resources/list": self._lister("resources"),
            "resources/templates/list": self._lister("resourceTemplates"),
            "resources/read": self._read_resource,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "prompts/list": self._lister("prompts"),
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "logging/setLevel": self._set_level,
            "subscriptions/listen": self._listen,
        }

    # -- the connection

    def _initialize(self, asked: Asked[InitializeParams]) -> Result:
        params = asked.params
        client = asked.client
        client.session = initialize(client.session, params.protocol_version, params.client_info)
        forgotten = self._clients.remember(client, params.capabilities or {})
        asked.out.extend(
            Emit("client_capabilities_evicted", {"connection": one.connection}) for one in forgotten
        )
        assert client.session.profile is not None
        asked.call.profile = client.session.profile
        return self._offers.initialized(client.session.profile)

    def _set_level(self, asked: Asked[SetLevelParams]) -> Result:
        asked.client.session = set_level(asked.client.session, asked.params.level)
        return {}

    # -- lists

    def _lister(self, listing: Listing) -> Handler:
        return lambda asked: self._offers.listed(listing, asked.call.profile, asked.params.cursor)

    # -- callbacks

    def _call_tool(self, asked: Asked[CallToolParams]) -> None:
        params = asked.params
        self._open(asked)
        facts = self._facts(asked)
        tool = self._offers.registry.snapshot().tools.get(params.name)
        if tool is None:
            self._execution.unknown_tool(asked.call, params.name, facts, asked.now, asked.out)
        else:
            self._run_tool(asked.call, tool, params.arguments, facts, asked.now, asked.out, retried=params)

    def _run_tool(
        self,
        call: OpenCall,
        tool: Tool,
        arguments: dict[str, object] | None,
        facts: Facts,
        now: float,
        out: list[Effect],
        *,
        raw: bool = False,
        retried: Retried | None = None,
    ) -> None:
        arguments, faults = tool.prepare(arguments)
        work = RunTool(tool, arguments)
        errand = self._errand(work, tool, facts, raw=raw)
        if tool.sensitive and not self._guarded and not raw:
            self._execution.unguarded(call, errand, out)
        elif faults:
            self._execution.reject(call, work, describe_faults(f"tool {tool.name!r}", faults), out)
        else:
            self._begin_errand(call, errand, retried, now, out)

    def _read_resource(self, asked: Asked[ReadResourceParams]) -> None:
        params = asked.params
        match = self._offers.registry.snapshot().match(params.uri)
        if match is None:
            raise ResourceNotFound(params.uri)
        work = ReadResource(match.entry, params.uri, match.variables)
        self._begin(asked, work, match.entry)

    def _get_prompt(self, asked: Asked[GetPromptParams]) -> None:
        params = asked.params
        prompt = self._offers.registry.snapshot().prompts.get(params.name)
        if prompt is None:
            raise UnknownPrompt(params.name)
        arguments, faults = prompt.prepare(params.arguments)
        if faults:
            raise InvalidParams(describe_faults(f"prompt {prompt.name!r}", faults))
        self._begin(asked, GetPrompt(prompt, arguments), prompt)

    def _complete(self, asked: Asked[CompleteParams]) -> Result | None:
        params = asked.params
        snapshot = self._offers.registry.snapshot()
        if isinstance(params.ref, PromptReference):
            if snapshot.prompts.get(params.ref.name) is None:
                raise UnknownPrompt(params.ref.name)
            completer = snapshot.completer("prompt", params.ref.name, params.argument.name)
        else:
            if snapshot.templates.get(params.ref.uri) is None and snapshot.match(params.ref.uri) is None:
                raise InvalidParams("Unknown resource template")
            completer = snapshot.completer("template", params.ref.uri, params.argument.name)
        if completer is None:
            return {"completion": {"values": [], "total": 0, "hasMore": False}}
        settled = params.context.arguments if params.context is not None else None
        work = Complete(completer, params.argument.value, settled or {})
        self._begin(asked, work, completer)
        return None

    def _begin(self, asked: Asked[Any], work: Work, entry: Any) -> None:
        self._open(asked)
        errand = self._errand(work, entry, self._facts(asked))
        retried = asked.params if isinstance(asked.params, Retried) else None
        self._begin_errand(asked.call, errand, retried, asked.now, asked.out)

    def _begin_errand(
        self, call: OpenCall, errand: Errand, retried: Retried | None, now: float, out: list[Effect]
    ) -> None:
        if retried is not None and call.profile.modern:
            try:
                errand = self._execution.resume(errand, retried, now)
            except InvalidParams as error:
                self._execution.fail(call, error, out)
                return
        self._execution.begin(call, errand, now, out)

    def _errand(self, work: Work, entry: Any, facts: Facts, *, raw: bool = False) -> Errand:
        timeout = self._config.callback_timeout if entry.timeout is None else entry.timeout
        return Errand(work, facts, entry.isolation, timeout, raw)

    def direct(self, call: OpenCall, key: str, arguments: JsonObject, now: float, out: list[Effect]) -> None:
        """Run what the embedding program named: no authorizer, its value handed back as it is (F1).

        The call's method is the kind: ``tool``, ``resource`` or ``prompt``.
        """
        snapshot = self._offers.registry.snapshot()
        facts = Facts(request_id=None, profile=call.profile, log_floor=len(LOG_LEVELS))
        tool, match, prompt = None, None, None
        if call.method == "tool":
            tool = snapshot.tools.get(key)
        elif call.method == "resource":
            match = snapshot.match(key)
        else:
            prompt = snapshot.prompts.get(key)
        if tool is not None:
            self._run_tool(call, tool, arguments, facts, now, out, raw=True)
        elif match is not None:
            work = ReadResource(match.entry, key, match.variables)
            self._execution.begin(call, self._errand(work, match.entry, facts, raw=True), now, out)
        elif prompt is not None:
            # Only text gets here: ``Server.get_prompt`` sees to that.
            given, faults = prompt.prepare({name: cast("str", value) for name, value in arguments.items()})
            if faults:
                error = InvalidParams(describe_faults(f"prompt {key!r}", faults))
                self._execution.fail(call, error, out, kind="invalid_arguments")
                return
            errand = self._errand(GetPrompt(prompt, given), prompt, facts, raw=True)
            self._execution.begin(call, errand, now, out)
        else:
            self._execution.fail(
                call, InvalidParams(f"There is no {call.method} {key!r}"), out, kind="unknown"
            )

    # -- changes

    def _subscribe(self, asked: Asked[ReadResourceParams]) -> Result:
        params = asked.params
        if self._offers.registry.snapshot().match(params.uri) is None:
            raise ResourceNotFound(params.uri)
        watching = asked.client.watching
        if params.uri not in watching and len(watching) >= self._config.max_subscriptions:
            raise InvalidParams(
                f"Too many subscriptions on this connection ({self._config.max_subscriptions})"
            )
        watching.add(params.uri)
        return {}

    def _unsubscribe(self, asked: Asked[ReadResourceParams]) -> Result:
        asked.client.watching.discard(asked.params.uri)
        return {}

    def _listen(self, asked: Asked[ListenParams]) -> None:
        call, wanted = asked.call, asked.params.notifications
        uris = tuple(dict.fromkeys(wanted.resource_subscriptions))
        if len(uris) > self._config.max_subscriptions:
            raise InvalidParams(f"Too many resourceSubscriptions ({self._config.max_subscriptions} at most)")
        snapshot = self._offers.registry.snapshot()
        offered = self._offers.offered
        honoured = ListenFilter(
            tools_list_changed=wanted.tools_list_changed and offered("tools"),
            prompts_list_changed=wanted.prompts_list_changed and offered("prompts"),
            resources_list_changed=wanted.resources_list_changed and offered("resources"),
            resource_subscriptions=tuple(
                u for u in uris if offered("resources") and snapshot.match(u) is not None
            ),
        )
        assert call.id is not None
        if not self.listeners.add(Listener(call.ref, call.connection, call.id, honoured)):
            raise InvalidParams(f"Too many listeners on this connection ({self._config.max_listeners})")
        self._open(asked)
        params_told = {"notifications": honoured, "_meta": {SUBSCRIPTION_ID: call.id}}
        notice = Notification(
            "notifications/subscriptions/acknowledged", Raw(msgspec.json.encode(params_told))
        )
        asked.out.append(Push(call.connection, notice, call.ref))

    # -- shared steps

    def _open(self, asked: Asked[Any]) -> None:
        asked.call.holder = asked.client.holder
        self._execution.ledger.open(asked.call, shared=asked.shared)

    def _facts(self, asked: Asked[Any]) -> Facts:
        call, client, meta = asked.call, asked.client, asked.meta
        floor = self._log_floor(call.profile, client, meta)
        token = meta.progress_token if meta is not None else None
        if token is not None and client.has_channel:
            call.token = token
        if call.profile.modern and meta is not None and meta.client_info is not UNSET:
            info: dict[str, object] | None = meta.client_info
        else:
            info = client.session.client_info
        return Facts(
            request_id=call.id,
            profile=call.profile,
            principal=client.principal,  # type: ignore[arg-type]  # the machines hold it as an opaque key
            transport=client.transport,
            connection=client.connection,
            client_info=info,
            abilities=_abilities(call.profile, client, meta),
            meta=None if asked.params.meta is UNSET else asked.params.meta,
            wants_progress=call.token is not None,
            log_floor=floor,
        )

    def _log_floor(self, profile: Profile, client: Client, meta: Meta | None) -> int:
        """The least level that this call's client wants (U3, U4); past the end for none."""
        if not client.has_channel or "logging" not in self._config.offers:
            return len(LOG_LEVELS)
        if not profile.log_by_request:
            return LOG_LEVELS.index(client.session.log_level)
        if meta is None or meta.log_level is UNSET:
            return len(LOG_LEVELS)
        return LOG_LEVELS.index(meta.log_level)


def _abilities(profile: Profile, client: Client, meta: Meta | None) -> JsonObject | None:
    """What this request's client can be asked: told on the request itself or at the handshake, as the era has it (B9)."""
    if profile.modern:
        return None if meta is None or meta.client_capabilities is UNSET else meta.client_capabilities
    return client.abilities if client.has_channel else None
