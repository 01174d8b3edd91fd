"""What the server says of itself: who it is, what it can do, and what it has to offer.

Owns the answers that need no callback: ``initialize`` and ``server/discover``, the four lists, capabilities. What is
declared is exactly what is served: both come from the same ``offers`` option (L11, B16). Lists are the same for every
connection; encoded pages are kept until the registry changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw

from stanchion.registry.registry import Registry
from stanchion.registry.snapshot import Snapshot
from stanchion.server.config import Config
from stanchion.wire.model import Implementation
from stanchion.wire.revisions import MODERN_REVISIONS, CacheHint, Profile, complete

Listing = Literal["tools", "resources", "resourceTemplates", "prompts"]

_KEPT_PAGES: Final = 64


class Offers:
    """Answers about the server itself. Pure but for the pages it keeps."""

    def __init__(
        self,
        registry: Registry,
        config: Config,
        server: Implementation,
        instructions: str | None,
        *,
        guarded: bool,
    ) -> None:
        """Set up.

        Args:
            registry: What is on offer.
            config: Options.
            server: Who we are.
            instructions: How to use this server, for the model.
            guarded: Whether calls are authorised; without that, sensitive tools are not listed (behaviour B3).
        """
        self.registry = registry
        self.server = server
        self._config = config
        self._instructions = instructions
        self._guarded = guarded
        self._pages: dict[tuple[Listing, str, str | None], Raw] = {}
        self._pages_of: Snapshot | None = None

    def offered(self, feature: str | None) -> bool:
        """Whether a method of *feature* exists here."""
        return feature is None or feature in self._config.offers

    def capabilities(self, profile: Profile) -> dict[str, Any]:
        """What is served to a client of this revision, as the protocol declares it."""
        offers = self._config.offers
        declared: dict[str, Any] = {}
        if "tools" in offers:
            declared["tools"] = {"listChanged": True}
        if "resources" in offers:
            declared["resources"] = {"subscribe": True, "listChanged": True}
        if "prompts" in offers:
            declared["prompts"] = {"listChanged": True}
        if "completions" in offers and profile.completions_capability:
            declared["completions"] = {}
        if "logging" in offers:
            declared["logging"] = {}
        return declared

    def initialized(self, profile: Profile) -> dict[str, Any]:
        """The result of ``initialize`` (basic/lifecycle)."""
        result: dict[str, Any] = {
            "protocolVersion": profile.revision,
            "capabilities": self.capabilities(profile),
            "serverInfo": profile.implementation(self.server),
        }
        if self._instructions is not None:
            result["instructions"] = self._instructions
        return result

    def discovered(self, profile: Profile) -> dict[str, Any]:
        """The result of ``server/discover`` (2026-07-28, server/discover)."""
        result: dict[str, Any] = {
            "supportedVersions": list(MODERN_REVISIONS),
            "capabilities": self.capabilities(profile),
        }
        if self._instructions is not None:
            result["instructions"] = self._instructions
        return complete(result, profile, self.server, CacheHint())

    def listed(self, listing: Listing, profile: Profile, cursor: str | None) -> Raw:
        """One page of a list, as an encoded result.

        Raises:
            InvalidParams: The cursor is none that this server gives.
        """
        snapshot = self.registry.snapshot()
        if snapshot is not self._pages_of:
            self._pages.clear()
            self._pages_of = snapshot
        key = (listing, profile.revision, cursor)
        page = self._pages.get(key)
        if page is None:
            page = self._page(snapshot, listing, profile, cursor)
            if len(self._pages) >= _KEPT_PAGES:
                del self._pages[next(iter(self._pages))]
            self._pages[key] = page
        return page

    def _page(self, snapshot: Snapshot, listing: Listing, profile: Profile, cursor: str | None) -> Raw:
        page = _CATALOGS[listing](snapshot).page(cursor, self._config.page_size)
        items = page.items
        if listing == "tools" and not self._guarded:
            items = [tool for tool in items if not tool.sensitive]
        fields: dict[str, Any] = {listing: [item.describe(profile) for item in items]}
        if page.next_cursor is not None:
            fields["nextCursor"] = page.next_cursor
        return Raw(msgspec.json.encode(complete(fields, profile, self.server, CacheHint())))


_CATALOGS: Final[dict[Listing, Callable[[Snapshot], Any]]] = {
    "tools": lambda snapshot: snapshot.tools,
    "resources": lambda snapshot: snapshot.resources,
    "resourceTemplates": lambda snapshot: snapshot.templates,
    "prompts": lambda snapshot: snapshot.prompts,
}
