"""Sealed state: opens for the request, the caller and the time it was made for, and for nothing else."""

from __future__ import annotations

import subprocess
import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import Raw

from stanchion.wire.errors import InvalidParams
from stanchion.wire.seal import KEY_BYTES, MAX_KEY_ID, NONCE_BYTES, BadState, Keyring, digest, seal, unseal

OLD, NEW = bytes(range(32)), bytes(range(100, 132))
KEYS = Keyring.of({"old": OLD})
NONCE = bytes(range(200, 224))
PURPOSE = digest("tools/call", {"name": "pay", "arguments": {"amount": 5}})
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
STATE = seal(b"round 1", keys=KEYS, purpose=PURPOSE, principal="ada", expires=100.0, nonce=NONCE)


def opened(state: str, **other: Any) -> bytes:
    told = {"keys": KEYS, "purpose": PURPOSE, "principal": "ada", "now": 99.0} | other
    return unseal(state, **told)


def why(state: str, **other: Any) -> str:
    with pytest.raises(BadState) as caught:
        opened(state, **other)
    return caught.value.why


def raw(state: str) -> bytes:
    return urlsafe_b64decode(state + "=" * (-len(state) % 4))


def written(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


# -- what opens


@given(
    payload=st.binary(max_size=300),
    purpose=st.binary(max_size=40),
    principal=st.text(st.characters(), max_size=20),
    nonce=st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES),
    now=st.floats(0, 1e12),
    left=st.floats(1e-3, 1e6),
)
def test_what_was_sealed_opens_in_time(
    payload: bytes, purpose: bytes, principal: str, nonce: bytes, now: float, left: float
) -> None:
    assume(now < now + left)
    bound = {"keys": KEYS, "purpose": purpose, "principal": principal}
    state = seal(payload, **bound, expires=now + left, nonce=nonce)
    assert set(state) <= set(ALPHABET)
    assert unseal(state, **bound, now=now) == payload


def test_an_old_key_opens_while_it_is_in_the_ring() -> None:
    rotated = Keyring.of({"new": NEW, "old": OLD})
    assert opened(STATE, keys=rotated) == b"round 1"
    fresh = seal(b"2", keys=rotated, purpose=PURPOSE, principal="ada", expires=100.0, nonce=NONCE)
    assert why(fresh) == "unknown_key"
    assert opened(fresh, keys=Keyring.of({"new": NEW})) == b"2"
    assert why(STATE, keys=Keyring.of({"new": NEW})) == "unknown_key"


def test_a_client_can_neither_read_the_payload_nor_the_principal() -> None:
    state = seal(b"a secret", keys=KEYS, purpose=PURPOSE, principal="ada.l", expires=1.0, nonce=NONCE)
    for part in (b"a secret", b"ada.l", PURPOSE):
        assert part not in raw(state)


def test_each_nonce_makes_another_state() -> None:
    states = {
        seal(b"", keys=KEYS, purpose=b"", principal="", expires=1.0, nonce=bytes([n]) * NONCE_BYTES)
        for n in range(50)
    }
    assert len(states) == 50


# -- what does not


def test_every_flipped_bit_is_noticed() -> None:
    for bit in range(8 * len(raw(STATE))):
        data = bytearray(raw(STATE))
        data[bit // 8] ^= 1 << bit % 8
        assert why(written(bytes(data))) in {"tampered", "unknown_key"}, bit


@given(place=st.integers(0, len(STATE) - 1), put=st.characters())
def test_a_changed_character_is_noticed(place: int, put: str) -> None:
    assume(STATE[place] != put)
    assert why(STATE[:place] + put + STATE[place + 1 :]) in {"tampered", "unknown_key"}


@given(st.integers(0, len(STATE) - 1))
def test_a_cut_is_noticed(length: int) -> None:
    assert why(STATE[:length]) == "tampered"


@pytest.mark.parametrize("more", ["A", "=", "==", "AAAA", "-TAMPERED", " ", "\n", "\x00", "é", "\ud800"])
def test_more_text_is_noticed(more: str) -> None:
    assert why(STATE + more) == "tampered"
    assert why(more + STATE) == "tampered"
    assert why(STATE[:20] + more + STATE[20:]) == "tampered"


def test_only_one_spelling_is_taken() -> None:
    """The last character may have bits that mean nothing; standard base64 has other characters."""
    for size in range(3):
        state = seal(bytes(size), keys=KEYS, purpose=PURPOSE, principal="ada", expires=100.0, nonce=NONCE)
        others = [state[:-1] + last for last in ALPHABET if last != state[-1]]
        assert {why(other) for other in others} == {"tampered"}
    spelled = STATE.replace("-", "+").replace("_", "/")
    assert spelled != STATE
    assert why(spelled) == "tampered"


@given(st.text(st.characters(), max_size=400))
def test_arbitrary_text_is_bad_state_and_nothing_else(text: str) -> None:
    with pytest.raises(BadState):
        opened(text)


@given(st.binary(max_size=300), st.booleans())
def test_arbitrary_bytes_are_bad_state_and_nothing_else(data: bytes, headed: bool) -> None:
    with pytest.raises(BadState):
        opened(written(b"\x01\x03old" + data if headed else data))


def test_parts_of_two_states_do_not_fit_together() -> None:
    other = seal(b"round 2", keys=KEYS, purpose=PURPOSE, principal="ada", expires=100.0, nonce=NONCE[::-1])
    for cut in range(1, len(raw(STATE))):
        mixed = raw(STATE)[:cut] + raw(other)[cut:]
        if mixed not in (raw(STATE), raw(other)):
            assert why(written(mixed)) == "tampered"


def test_the_key_id_is_part_of_what_is_sealed() -> None:
    twice = Keyring.of({"old": OLD, "dup": OLD})
    renamed = raw(STATE).replace(b"old", b"dup", 1)
    assert why(written(renamed), keys=twice) == "tampered"


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"now": 100.0}, "expired"),
        ({"now": 1e9}, "expired"),
        ({"now": float("nan")}, "expired"),
        ({"principal": "bob"}, "wrong_principal"),
        ({"principal": ""}, "wrong_principal"),
        ({"purpose": b""}, "wrong_request"),
        ({"purpose": digest("tools/call", {"name": "pay", "arguments": {"amount": 6}})}, "wrong_request"),
        ({"purpose": digest("prompts/get", {"name": "pay", "arguments": {"amount": 5}})}, "wrong_request"),
        ({"keys": Keyring.of({"old": NEW})}, "tampered"),
        ({"keys": Keyring.of({"new": NEW})}, "unknown_key"),
    ],
)
def test_it_is_bound_to_time_caller_request_and_key(other: dict[str, Any], expected: str) -> None:
    assert opened(STATE) == b"round 1"
    assert why(STATE, **other) == expected


def test_an_expiry_that_is_no_number_has_passed() -> None:
    state = seal(b"", keys=KEYS, purpose=PURPOSE, principal="ada", expires=float("nan"), nonce=NONCE)
    assert why(state) == "expired"


def test_clients_read_one_sentence_whatever_the_reason() -> None:
    """R8: told apart for the log only."""
    told = set()
    for other in ({"now": 1e9}, {"principal": "bob"}, {"purpose": b""}, {"keys": Keyring.of({"x": NEW})}):
        with pytest.raises(InvalidParams) as caught:
            opened(STATE, **other)
        told.add((str(caught.value), caught.value.code, caught.value.data))
        # Nor does a cause come along.
        assert caught.value.__cause__ is None
    assert len(told) == 1


# -- keys and nonces


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"a": b""},
        {"a": OLD + b"x"},
        {"a": OLD[:-1]},
        {"a": "x" * KEY_BYTES},
        {"": OLD},
        {"é": OLD},
        {"a\n": OLD},
        {"a" * (MAX_KEY_ID + 1): OLD},
        {1: OLD},
        {"good": OLD, "bad": b"short"},
    ],
)
def test_a_ring_of_bad_keys_is_refused(keys: Any) -> None:
    with pytest.raises(ValueError):
        Keyring.of(keys)


def test_a_ring_keeps_its_order_and_its_secrets() -> None:
    given_keys = {"b": NEW, "a" * MAX_KEY_ID: OLD}
    ring = Keyring.of(given_keys)
    given_keys.clear()
    assert list(ring) == ["b", "a" * MAX_KEY_ID]
    assert len(ring) == 2
    assert ring.newest() == (b"b", NEW)
    assert repr(ring) == f"Keyring(b, {'a' * MAX_KEY_ID})"


@pytest.mark.parametrize("length", [0, 12, NONCE_BYTES - 1, NONCE_BYTES + 1])
def test_a_nonce_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError):
        seal(b"", keys=KEYS, purpose=b"", principal="", expires=1.0, nonce=bytes(length))


# -- digests

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def reversed_members(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_members(item) for key, item in reversed(value.items())}
    return [reversed_members(item) for item in value] if isinstance(value, list) else value


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_the_order_of_members_does_not_matter(params: dict[str, Any]) -> None:
    assert digest("m", params) == digest("m", reversed_members(params))
    assert len(digest("m", params)) == 32


def test_raw_parts_count_for_what_they_mean() -> None:
    plain = digest("tools/call", {"name": "x", "arguments": {"a": [1, "é"], "b": None}})
    spelled = Raw(b'{ "b": null,\n "a": [1, "\\u00e9"] }')
    assert digest("tools/call", {"name": "x", "arguments": spelled}) == plain


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("m", {"a": 2}),
        ("m", {"a": "1"}),
        ("m", {"a": [1]}),
        ("m", {"b": 1}),
        ("m", {"a": 1, "b": None}),
        ("m", {}),
        ("n", {"a": 1}),
    ],
)
def test_another_request_has_another_digest(method: str, params: dict[str, Any]) -> None:
    assert digest(method, params) != digest("m", {"a": 1})


def test_importing_it_does_not_import_cryptography() -> None:
    script = "import sys, stanchion.wire.seal; assert 'cryptography' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
