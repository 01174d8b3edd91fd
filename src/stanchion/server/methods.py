"""The method table: what each request is called, what its params hold, and which feature it belongs to.

Owns the rows and the decoding of params. Which revision has a method is the profile's to say; what is done is the
kernel's, which has one handler per row (a test holds the two to each other).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from stanchion.server.config import Feature
from stanchion.wire.model import (
    CallToolParams,
    CancelledParams,
    CompleteParams,
    GetPromptParams,
    InitializeParams,
    ListenParams,
    ListParams,
    Meta,
    Params,
    ReadResourceParams,
    SetLevelParams,
)
from stanchion.wire.params import ParamsDecoder


class Method(Struct, frozen=True):
    """One row."""

    params: ParamsDecoder[Any]
    feature: Feature | None = None
    """What must be offered for the method to exist; None: it always does."""


METHODS: Final = MappingProxyType(
    {
        "initialize": Method(ParamsDecoder(InitializeParams)),
        "server/discover": Method(ParamsDecoder(Params)),
        "ping": Method(ParamsDecoder(Params)),
        "tools/list": Method(ParamsDecoder(ListParams), "tools"),
        "tools/call": Method(ParamsDecoder(CallToolParams), "tools"),
        "resources/list": Method(ParamsDecoder(ListParams), "resources"),
        "resources/templates/list": Method(ParamsDecoder(ListParams), "resources"),
        "resources/read": Method(ParamsDecoder(ReadResourceParams), "resources"),
        "resources/subscribe": Method(ParamsDecoder(ReadResourceParams), "resources"),
        "resources/unsubscribe": Method(ParamsDecoder(ReadResourceParams), "resources"),
        "prompts/list": Method(ParamsDecoder(ListParams), "prompts"),
        "prompts/get": Method(ParamsDecoder(GetPromptParams), "prompts"),
        "completion/complete": Method(ParamsDecoder(CompleteParams), "completions"),
        "logging/setLevel": Method(ParamsDecoder(SetLevelParams), "logging"),
        "subscriptions/listen": Method(ParamsDecoder(ListenParams)),
    }
)
"""Every request of every revision, by name."""

HEAD: Final = ParamsDecoder(Params)
"""Reads only ``_meta``, of any request."""
META: Final[ParamsDecoder[Meta | None]] = ParamsDecoder(
    Meta | None,  # type: ignore[arg-type]  # a union is no type, but a good argument
    root="params._meta",
)
"""Reads the parts of ``_meta`` that matter to the server; a null counts as none."""
CANCELLED: Final = ParamsDecoder(CancelledParams)
"""Reads ``notifications/cancelled``."""
