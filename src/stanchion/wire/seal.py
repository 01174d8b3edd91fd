"""Sealing what a client carries for us between two rounds (2026-07-28, basic/patterns/mrtr; behaviour D2).

Owns the form of ``requestState``: ``seal`` makes it, ``unseal`` opens it or says why not, a ``Keyring`` has the keys. A
client can neither read nor change a state, nor bring it back for another request, under another name or too late. That it
comes back once only is not owned here: the payload may hold what is needed for that.

The form is base64url without padding of

    version (1 byte) | length of the key's id (1 byte) | the key's id | nonce (24 bytes) | sealed

where *sealed* is AES-256-GCM of

    expiry (8 bytes, seconds) | SHA-256 of the purpose | SHA-256 of the principal | payload

with everything before the nonce as associated data. GCM's own nonce is too short to be drawn at random for ever, so the
nonce's first half makes a key for this one state and its second half is GCM's. Time and nonce are arguments.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from struct import Struct as Layout
from typing import Final, Literal

import msgspec

from stanchion.wire.errors import InvalidParams

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 24
MAX_KEY_ID: Final = 32
"""Characters. A key's id is in every state, in the clear."""

_VERSION: Final = 1
_HEAD: Final = Layout(">BB")
_INNER: Final = Layout(">d32s32s")
_HALF: Final = NONCE_BYTES // 2
_TAG_BYTES: Final = 16

Why = Literal["tampered", "expired", "wrong_request", "wrong_principal", "unknown_key"]


class BadState(InvalidParams):
    """A ``requestState`` that is not taken. The client learns that much; *why* is for our log."""

    def __init__(self, why: Why) -> None:
        super().__init__("The requestState is not valid for this request; send the request again without it")
        self.why: Final = why


class Keyring:
    """Keys by their ids, newest first: the newest seals, each opens what it sealed. Immutable."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        """Check and keep the keys.

        Args:
            keys: Ids to keys of ``KEY_BYTES`` random bytes, newest first. A key may go once the last state that it
                sealed has expired.

        Raises:
            ValueError: There is no key, or one is of another length, or an id is not short printable ASCII.
        """
        if not keys:
            raise ValueError("a keyring needs at least one key")
        for name, key in keys.items():
            _check_key(name, key)
        self._keys: Final = {name.encode(): key for name, key in keys.items()}

    @classmethod
    def of(cls, keys: Mapping[str, bytes]) -> Keyring:
        """The same, as a sentence: ``Keyring.of({"2026-08": new, "2026-07": old})``."""
        return cls(keys)

    def newest(self) -> tuple[bytes, bytes]:
        """The id and the key that seal."""
        return next(iter(self._keys.items()))

    def get(self, name: bytes) -> bytes | None:
        """The key of that id, or None."""
        return self._keys.get(name)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        """The ids, newest first."""
        return (name.decode() for name in self._keys)

    def __repr__(self) -> str:
        # Not the keys: this may end up in a log.
        return f"Keyring({', '.join(self)})"


def _check_key(name: object, key: object) -> None:
    if not (isinstance(name, str) and name.isascii() and name.isprintable()):
        raise ValueError("the id of a key is printable ASCII")
    if not 1 <= len(name) <= MAX_KEY_ID:
        raise ValueError(f"the id of a key has 1 to {MAX_KEY_ID} characters, not {len(name)}")
    if not (isinstance(key, bytes) and len(key) == KEY_BYTES):
        raise ValueError(f"key {name!r} is not {KEY_BYTES} bytes")


def seal(
    payload: bytes, *, keys: Keyring, purpose: bytes, principal: str, expires: float, nonce: bytes
) -> str:
    """Make a ``requestState``.

    Args:
        payload: What to carry. The client can't read it.
        keys: Their newest seals.
        purpose: What the state is good for; mostly the ``digest`` of the request.
        principal: Who may bring it back; "" if nobody is known.
        expires: Seconds on the clock that ``unseal`` is told. From then on it is refused.
        nonce: ``NONCE_BYTES`` fresh random bytes.

    Raises:
        ValueError: *nonce* has another length.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # costs what a start on stdio need not pay

    if len(nonce) != NONCE_BYTES:
        raise ValueError(f"a nonce has {NONCE_BYTES} bytes, not {len(nonce)}")
    name, key = keys.newest()
    head = _HEAD.pack(_VERSION, len(name)) + name
    inner = _INNER.pack(expires, _mark(purpose), _mark(_bytes(principal))) + payload
    sealed = AESGCM(_key_of_one(key, nonce)).encrypt(nonce[_HALF:], inner, head)
    return _written(head + nonce + sealed)


def unseal(state: str, *, keys: Keyring, purpose: bytes, principal: str, now: float) -> bytes:
    """The payload of a ``requestState``.

    Args:
        state: Any text at all.
        keys: One of them must have sealed it.
        purpose: As it was when the state was made; so are the rest.
        principal: Who brings it.
        now: Seconds.

    Raises:
        BadState: It is not good for this request of this caller at this time.
    """
    from cryptography.exceptions import InvalidTag  # as in seal
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    data = _read(state)
    if len(data) < _HEAD.size or data[0] != _VERSION:
        raise BadState("tampered")
    after_name = _HEAD.size + data[1]
    after_nonce = after_name + NONCE_BYTES
    if len(data) < after_nonce + _INNER.size + _TAG_BYTES:
        raise BadState("tampered")
    key = keys.get(data[_HEAD.size : after_name])
    if key is None:
        raise BadState("unknown_key")
    nonce = data[after_name:after_nonce]
    try:
        inner = AESGCM(_key_of_one(key, nonce)).decrypt(nonce[_HALF:], data[after_nonce:], data[:after_name])
    except InvalidTag:
        raise BadState("tampered") from None
    expires, wanted_purpose, wanted_principal = _INNER.unpack_from(inner)
    # Said so that an expiry that is no number has passed.
    if not now < expires:
        raise BadState("expired")
    if wanted_purpose != _mark(purpose):
        raise BadState("wrong_request")
    if wanted_principal != _mark(_bytes(principal)):
        raise BadState("wrong_principal")
    return inner[_INNER.size :]


def digest(method: str, params: Mapping[str, object]) -> bytes:
    """What a request asks for, as 32 bytes that are equal for equal requests, whatever the order of members.

    Args:
        method: The request's method.
        params: Those of its params that its meaning depends on, such as ``name`` and ``arguments``. Raw JSON may be
            among them.

    Raises:
        TypeError, ValueError, RecursionError: *params* has no JSON.
    """
    # Twice, since raw parts are only put in order once they have been read.
    plain = msgspec.json.decode(msgspec.json.encode([method, params]))
    return sha256(msgspec.json.encode(plain, order="sorted")).digest()


def _key_of_one(key: bytes, nonce: bytes) -> bytes:
    return hmac.digest(key, b"stanchion requestState" + nonce[:_HALF], "sha256")


def _mark(value: bytes) -> bytes:
    return sha256(value).digest()


def _bytes(principal: str) -> bytes:
    return principal.encode("utf-8", "surrogatepass")


def _written(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _read(state: str) -> bytes:
    try:
        data = urlsafe_b64decode(state + "=" * (-len(state) % 4))
    except ValueError:
        raise BadState("tampered") from None
    # The decoder skips what it does not know, and bits that are not used; only what we would have written is ours.
    if _written(data) != state:
        raise BadState("tampered")
    return data
