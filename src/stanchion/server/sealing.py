"""What the rounds of one request have in common, sealed and opened (2026-07-28, basic/patterns/mrtr).

Owns what a state is good for: one request (its method and what it asks for), one principal, a limited time. The form of a
state is ``wire.seal``'s. Pure: the nonce comes with what is to be sealed, the time with the event. Nothing is kept here
between rounds, so any server with the same keys can open a state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from stanchion.registry.authorizer import Principal
from stanchion.server.config import Config
from stanchion.server.ports import GetPrompt, Kept, NeedsInput, ReadResource, RunTool, Work
from stanchion.wire.errors import InvalidParams
from stanchion.wire.seal import BadState, Keyring, digest, seal, unseal

_KEPT: Final = msgspec.json.Decoder(Kept)


class Sealing:
    """Seals and opens the states of one server."""

    def __init__(self, config: Config, keys: Keyring, wall_offset: float) -> None:
        """Set up.

        Args:
            config: Options.
            keys: The newest seals, all open.
            wall_offset: Seconds to add to an event's time for the time of day: states outlive this process's clock.
        """
        self._ttl = config.sealed_state_ttl
        self._keys = keys
        self._offset = wall_offset

    @classmethod
    def of(cls, config: Config, keys: Mapping[str, bytes], wall_offset: float) -> Sealing:
        """As ``Sealing``, of keys by their ids, newest first.

        Raises:
            ValueError: A key is none; the text says which.
        """
        return cls(config, Keyring.of(keys), wall_offset)

    def seal(self, outcome: NeedsInput, work: Work, principal: Principal | None, now: float) -> str:
        """The ``requestState`` for a run that needs input."""
        return seal(
            outcome.kept,
            keys=self._keys,
            purpose=_purpose(work),
            principal=_name(principal),
            expires=now + self._offset + self._ttl,
            nonce=outcome.nonce,
        )

    def open(
        self,
        state: str | None,
        responses: Mapping[str, object] | None,
        work: Work,
        principal: Principal | None,
        now: float,
    ) -> Kept | None:
        """What earlier rounds left, with the answers that came now; None for a first round.

        Raises:
            InvalidParams: The state is none that was given for this request (R6): nothing runs.
        """
        if state is None and not responses:
            return None
        kept = Kept({}, {})
        if state is not None:
            payload = unseal(
                state,
                keys=self._keys,
                purpose=_purpose(work),
                principal=_name(principal),
                now=now + self._offset,
            )
            try:
                kept = _KEPT.decode(payload)
            except msgspec.DecodeError:
                raise BadState("tampered") from None
        for key, answer in (responses or {}).items():
            # One that is no object is no answer; it is asked for again (R11).
            if isinstance(answer, dict):
                kept.answers[key] = answer
        return kept


def _purpose(work: Work) -> bytes:
    """A digest of the request that a state belongs to: a state given for one call opens no other (R8)."""
    match work:
        case RunTool(tool, arguments):
            return digest("tools/call", {"name": tool.name, "arguments": arguments})
        case ReadResource(_, uri):
            return digest("resources/read", {"uri": uri})
        case GetPrompt(prompt, arguments):
            return digest("prompts/get", {"name": prompt.name, "arguments": arguments})
        case _:
            raise InvalidParams(f"{type(work).__name__} takes no input")


def _name(principal: Principal | None) -> str:
    return "" if principal is None else f"{principal.kind}:{principal.name}"
