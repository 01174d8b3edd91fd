"""Bytes to messages and back (JSON-RPC 2.0; the specification's basic/index and basic/transports).

Owns what counts as a message, what each malformed one is answered, and the bounds on depth, number and size. A good
message is decoded once; only when that fails is the text read again, loosely, to find out what to say and to whom.
``params`` and ``result`` are checked to be JSON but stay raw; ``ParamsDecoder`` makes them into values later and turns
whatever it meets then into a sentence.

Does not own: where a message begins and ends (``framing``), whether a batch may come at all (``server``), and what a
method's params must hold (``server.methods``). No text here repeats anything that a peer sent.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final, Literal

import msgspec
from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, ValidationError, structs
from msgspec.json import Decoder, Encoder

from stanchion.wire.errors import InternalError, InvalidParams, InvalidRequest, ParseError
from stanchion.wire.jsonrpc import (
    EMPTY,
    Answer,
    Batch,
    ErrorObject,
    Failure,
    Id,
    Inbound,
    Malformed,
    Message,
    Notification,
    Outbound,
    Request,
    Response,
)
from stanchion.wire.params import ParamsDecoder
from stanchion.wire.text import MARK, is_deeper, is_utf8, mark_surrogates, mend, shallow_part

__all__ = ["Codec", "ParamsDecoder", "encode_value"]


class _Envelope(Struct, gc=False):
    """A good message of any kind."""

    jsonrpc: Literal["2.0"]
    method: str | UnsetType = UNSET
    id: Id | UnsetType = UNSET
    params: Raw = EMPTY
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Members(Struct, gc=False):
    """What an object says where a message is expected, each member on its own."""

    jsonrpc: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    id: Raw | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET

    @property
    def has_outcome(self) -> bool:
        return self.result is not UNSET or self.error is not UNSET

    @property
    def is_reply(self) -> bool:
        return self.method is UNSET and self.has_outcome


class _PeerError(Struct, gc=False):
    """A peer's error; what it says beyond code and message is not ours to know."""

    code: int
    message: str
    data: Raw | UnsetType = UNSET


_ENVELOPE: Final = Decoder(_Envelope)
_MEMBERS: Final = Decoder(_Members)
_ANY: Final = Decoder(Raw)
_ID: Final = Decoder(Id)
_WORD: Final = Decoder(str)
_ERROR: Final = Decoder(_PeerError)

# A view would cost three times as much for the one byte.
_FIRST_BYTE: Final = Layout("c").unpack_from
_BRACE: Final = (b"{",)
_BLANK: Final = b" \t\r\n"


def _malformed(code: int, text: str, ident: Id | UnsetType = UNSET) -> Malformed:
    return Malformed(Failure(ident, ErrorObject(code, text)), text)


_NOT_JSON: Final = _malformed(ParseError.code, "The message is not JSON")
_NOT_UTF8: Final = _malformed(ParseError.code, "The message is not UTF-8")
_NOT_OBJECT: Final = _malformed(InvalidRequest.code, "The message is not an object")
_TOO_LARGE: Final = _malformed(InvalidRequest.code, "The message is too large")
_TOO_DEEP: Final = _malformed(InvalidRequest.code, "The message is nested too deeply")
_UNPAIRED: Final = _malformed(InvalidRequest.code, "The message holds an unpaired surrogate")
_BAD_ID: Final = _malformed(InvalidRequest.code, "id must be a string or an integer")
_NO_ITEMS: Final = _malformed(InvalidRequest.code, "The batch is empty")
_TOO_MANY: Final = _malformed(InvalidRequest.code, "The batch has too many messages")
_BAD_REPLY: Final = Malformed(None, "A response must have an id and either result or error")


class Codec:
    """Reads and writes messages within fixed bounds.

    Args:
        max_depth: Deepest nesting of arrays and objects; the message's own object counts as one.
        max_batch: Most messages in one array.
        max_bytes: Longest text read.
    """

    __slots__ = ("_max_batch", "_max_bytes", "_max_depth", "_slots")

    def __init__(
        self, *, max_depth: int = 128, max_batch: int = 100, max_bytes: int = 16 * 1024 * 1024
    ) -> None:
        self._max_depth = max_depth
        self._max_batch = max_batch
        self._max_bytes = max_bytes
        # One place more than allowed: what comes after that is checked and skipped, but takes no memory.
        places = [(f"item{n}", Raw | UnsetType, UNSET) for n in range(max_batch + 1)]
        self._slots = Decoder(msgspec.defstruct("_Slots", places, array_like=True))

    def decode(self, data: bytes | memoryview) -> Inbound:
        """Return the message or batch that *data* is, or what to make of it if it is none. Never raises."""
        if type(data) is not bytes:
            data = bytes(data)
        size = len(data)
        if size > self._max_bytes:
            return _TOO_LARGE
        # Too deep a text has a bracket more than allowed on either side; short ones need not be counted.
        if size > 2 * self._max_depth and is_deeper(data, self._max_depth):
            return _refuse_depth(data)
        if not data.isascii() and not is_utf8(data):
            return _NOT_UTF8
        found = _decode_one(data)
        if found is _NOT_OBJECT and data.lstrip(_BLANK).startswith(b"["):
            return self._batch(data)
        return found

    def _batch(self, data: bytes) -> Batch | Malformed:
        items = [item for item in structs.astuple(self._slots.decode(data)) if item is not UNSET]
        if not items:
            return _NO_ITEMS
        if len(items) > self._max_batch:
            return _TOO_MANY
        return Batch(tuple(_decode_one(item) for item in items))

    def encode(self, message: Outbound) -> bytes:
        """Return *message* as one line of JSON, without the newline.

        Unpaired surrogates are replaced by U+FFFD. An answer that can't be encoded becomes an internal error for the
        same request, so that there is an answer.

        Raises:
            TypeError, ValueError, RecursionError: A request or notification of ours holds what has no JSON. Not for
                answers.
        """
        if isinstance(message, (Response, Failure)):
            return _encode_answer(message)
        if isinstance(message, tuple):
            return b"[" + b",".join([_encode_answer(answer) for answer in message]) + b"]"
        return _encode(_wire(message))


# -- reading -------------------------------------------------------------------------------------------------------


def _decode_one(data: bytes | Raw) -> Message | Malformed:
    """Decode one message, known to be UTF-8 and not too deep."""
    try:
        envelope = _ENVELOPE.decode(data)
    except (DecodeError, RecursionError):
        return _examine(data)
    method = envelope.method
    if method is UNSET:
        reply = _reply(envelope.id, envelope.result, envelope.error)
        return _examine(data) if reply is None else reply
    params = envelope.params
    if envelope.result is not UNSET or envelope.error is not UNSET or _FIRST_BYTE(params) != _BRACE:
        return _examine(data)
    ident = envelope.id
    return Notification(method, params) if ident is UNSET else Request(ident, method, params)


def _examine(data: bytes | Raw) -> Message | Malformed:
    """Read once more what was no good message at first sight, and say what it is."""
    try:
        seen = _MEMBERS.decode(data)
    except ValidationError:
        # Told as soon as the first character is no brace: the rest may still be anything.
        return _NOT_OBJECT if _is_json(data) else _seek_surrogates(bytes(data))
    except DecodeError:
        return _seek_surrogates(bytes(data))
    except RecursionError:
        return _refuse_depth(bytes(data))
    return _judge(seen)


def _judge(seen: _Members) -> Message | Malformed:
    """Go through the members in order of what can be said about them. Repeated names may make a good message yet."""
    ident = _identify(seen.id)
    version = _word(seen.jsonrpc)
    if seen.is_reply:
        reply = _reply(ident, seen.result, seen.error) if version == "2.0" else None
        return _BAD_REPLY if reply is None else reply
    if ident is UNSET and seen.id is not UNSET:
        return _BAD_ID
    if version != "2.0":
        return _refuse(seen, InvalidRequest.code, 'jsonrpc must be "2.0"')
    method = _word(seen.method)
    if method is None:
        return _refuse(seen, InvalidRequest.code, "method must be a string")
    if seen.has_outcome:
        return _refuse(seen, InvalidRequest.code, "A message has either a method or an outcome")
    params = EMPTY if seen.params is UNSET or bytes(seen.params) == b"null" else seen.params
    if _FIRST_BYTE(params) != _BRACE:
        return _refuse(seen, InvalidParams.code, "params must be an object")
    return Notification(method, params) if ident is UNSET else Request(ident, method, params)


def _refuse(seen: _Members, code: int, text: str) -> Malformed:
    """Refuse a message, with its id if that can be read; notifications and responses are never answered."""
    if seen.is_reply or (seen.id is UNSET and seen.method is not UNSET):
        return Malformed(None, text)
    return _malformed(code, text, _identify(seen.id))


def _reply(ident: Id | UnsetType, result: Raw | UnsetType, error: Raw | UnsetType) -> Answer | None:
    """Return a peer's response, or None if it is none."""
    if ident is UNSET or (result is UNSET) == (error is UNSET):
        return None
    if error is UNSET:
        return Response(ident, result)
    try:
        told = _ERROR.decode(error)
        return Failure(ident, ErrorObject(told.code, told.message, told.data))
    except DecodeError:
        # The peer failed, however badly it says so; whoever waits for it should not wait longer.
        return Failure(ident, ErrorObject(InternalError.code, "The peer's error has the wrong form"))


def _identify(raw: Raw | UnsetType) -> Id | UnsetType:
    if raw is UNSET:
        return UNSET
    try:
        return _ID.decode(raw)
    except DecodeError:
        return UNSET


def _word(raw: Raw | UnsetType) -> str | None:
    try:
        return None if raw is UNSET else _WORD.decode(raw)
    except DecodeError:
        return None


def _is_json(data: bytes | Raw) -> bool:
    try:
        _ANY.decode(data)
    except (DecodeError, RecursionError):
        return False
    return True


def _seek_surrogates(data: bytes) -> Malformed:
    """Tell a message that only holds unpaired surrogates from one that is no JSON at all."""
    marked = mark_surrogates(data)
    if marked is None:
        return _NOT_JSON
    try:
        seen = _MEMBERS.decode(marked)
    except ValidationError:
        return _UNPAIRED if _is_json(marked) else _NOT_JSON
    except (DecodeError, RecursionError):
        return _NOT_JSON
    if seen.id is not UNSET and MARK in bytes(seen.id):
        seen.id = Raw(b"null")
    return _refuse(seen, InvalidRequest.code, _UNPAIRED.reason)


def _refuse_depth(data: bytes) -> Malformed:
    """Refuse a message that is nested too deeply, with its id if that is easily found."""
    try:
        seen = _MEMBERS.decode(data)
    except DecodeError:
        return _TOO_DEEP
    except RecursionError:
        # Too deep even to be skipped. Most clients write the id before the params.
        try:
            seen = _MEMBERS.decode(shallow_part(data))
        except DecodeError:
            return _TOO_DEEP
        if seen.id is UNSET and not seen.is_reply:
            return _TOO_DEEP  # an id may follow: no notification for certain
    return _refuse(seen, InvalidRequest.code, _TOO_DEEP.reason)


# -- writing -------------------------------------------------------------------------------------------------------


class _Request(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    id: Id
    method: str
    params: Raw


class _Notification(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    method: str
    params: Raw


class _Result(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    id: Id
    result: object


class _Refusal(Struct, tag_field="jsonrpc", tag="2.0", gc=False):
    id: Id | UnsetType | None
    error: ErrorObject


_ENCODER: Final = Encoder()


def _wire(message: Message) -> object:
    """Return *message* with the protocol's version in front."""
    if isinstance(message, Response):
        return _Result(message.id, message.result)
    if isinstance(message, Failure):
        return _Refusal(message.id, message.error)
    if isinstance(message, Request):
        return _Request(message.id, message.method, message.params)
    return _Notification(message.method, message.params)


def _encode_answer(answer: Answer) -> bytes:
    try:
        return _encode(_wire(answer))
    except Exception:  # noqa: BLE001 - whatever a value's encoding raises, the peer waits for an answer
        if isinstance(answer, Response):
            error = ErrorObject(InternalError.code, "The result could not be encoded")
        else:
            error = ErrorObject(answer.error.code, mend(answer.error.message))
        return _encode(_Refusal(answer.id, error))


def _encode(value: object) -> bytes:
    try:
        line = _ENCODER.encode(value)
    except UnicodeEncodeError:
        line = _ENCODER.encode(_mend_all(value))
    if b"\n" in line or b"\r" in line:
        # Only raw parts can hold one, and there it is white space: strings have it escaped.
        line = msgspec.json.format(line, indent=-1)
    return line


def encode_value(value: object) -> Raw:
    """Encode a part of a message ahead of time, on one line and with unpaired surrogates replaced.

    Raises:
        TypeError, ValueError, RecursionError: *value* has no JSON.
    """
    return Raw(_encode(value))


def _mend_all(value: object) -> object:
    match value:
        case str():
            return mend(value)
        case None | bool() | int() | float() | UnsetType() | Raw():
            return value
        case dict():
            return {_mend_all(key): _mend_all(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_mend_all(item) for item in value]
        case Struct():
            fields = value.__struct_fields__
            return structs.replace(value, **{name: _mend_all(getattr(value, name)) for name in fields})
        case _:
            return _mend_all(msgspec.to_builtins(value))
