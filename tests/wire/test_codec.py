"""What the codec makes of lines, good and bad (checklist §2.0, the table of malformed input, stdio column)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from stanchion.wire.codec import Codec
from stanchion.wire.jsonrpc import (
    Batch,
    ErrorObject,
    Failure,
    Malformed,
    Notification,
    Request,
    Response,
)

CODEC = Codec()
PARSE, REQUEST, PARAMS = -32700, -32600, -32602
NO_ID = UNSET
SILENCE = object()


def decode(text: str | bytes) -> Any:
    return CODEC.decode(text.encode() if isinstance(text, str) else text)


def message(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def told(found: object) -> object:
    """What a malformed message is answered: (code, id), or silence."""
    assert isinstance(found, Malformed), found
    return SILENCE if found.answer is None else (found.answer.error.code, found.answer.id)


# -- good messages -------------------------------------------------------------------------------------------------


def test_a_request_keeps_its_params_raw() -> None:
    found = decode('{"jsonrpc":"2.0","id":1,"method":"tools/call","params": {"name" : "x"} }')
    assert (found.id, found.method, bytes(found.params)) == (1, "tools/call", b'{"name" : "x"}')


@pytest.mark.parametrize("params", ["", ',"params":null', ',"params":{}'])
def test_absent_and_null_params_are_an_empty_object(params: str) -> None:
    """C11."""
    request = decode('{"jsonrpc":"2.0","id":"a","method":"ping"' + params + "}")
    notice = decode('{"jsonrpc":"2.0","method":"notifications/initialized"' + params + "}")
    assert isinstance(request, Request)
    assert isinstance(notice, Notification)
    assert bytes(request.params) == bytes(notice.params) == b"{}"


def test_an_id_keeps_its_type() -> None:
    """B2: ``1`` and ``"1"`` are different requests."""
    assert decode(message(id=1, method="ping")).id == 1
    assert decode(message(id="1", method="ping")).id == "1"
    assert decode(message(id="", method="ping")).id == ""
    assert decode(message(id=0, method="ping")).id == 0


@pytest.mark.parametrize(
    "ident", [2**53 + 1, 2**64 + 1, -(2**70), 10**4299], ids=["53", "64", "70", "4300 digits"]
)
def test_a_huge_integer_id_comes_back_exactly(ident: int) -> None:
    found = decode(message(id=ident, method="ping"))
    assert found.id == ident
    assert json.loads(CODEC.encode(Response(found.id, {})))["id"] == ident


def test_unknown_members_are_ignored() -> None:
    """C18."""
    assert isinstance(decode(message(id=1, method="x", trace="t", extra={"a": [1]})), Request)


def test_of_repeated_names_the_last_one_counts() -> None:
    found = decode(
        '{"jsonrpc":"1.0","jsonrpc":"2.0","id":true,"id":7,"method":1,"method":"x","params":[],"params":{}}'
    )
    assert found == Request(7, "x", found.params)
    assert told(decode('{"jsonrpc":"2.0","id":7,"id":null,"method":"x"}')) == (REQUEST, NO_ID)


def test_responses_keep_their_result_raw() -> None:
    found = decode(message(id=3, result={"action": "accept"}))
    assert isinstance(found, Response)
    assert isinstance(found.result, Raw)
    assert json.loads(bytes(found.result)) == {"action": "accept"}


def test_a_failure_is_read() -> None:
    found = decode(message(id=3, error={"code": -1, "message": "no", "more": 1}))
    assert found == Failure(3, ErrorObject(-1, "no"))
    found = decode(message(id=3, error={"code": -1, "message": "no", "data": {"a": 1}}))
    assert bytes(found.error.data) == b'{"a": 1}'


@pytest.mark.parametrize(
    "error", [None, "no", {}, {"code": "x", "message": "y"}, {"code": 1.5, "message": "y"}]
)
def test_an_error_of_the_wrong_form_still_is_one(error: object) -> None:
    found = decode(message(id="q", error=error))
    assert isinstance(found, Failure)
    assert found.id == "q"


def test_a_memoryview_will_do() -> None:
    data = bytearray(message(id=1, method="ping", params={"a": 1}))
    found = CODEC.decode(memoryview(data))
    data[:] = b"\0" * len(data)
    assert isinstance(found, Request)
    assert bytes(found.params) == b'{"a": 1}'


# -- malformed ones: checklist §2.0, "What to answer to malformed input" --------------------------------------------

NOT_JSON = [
    b"",
    b"   ",
    b"NOT VALID JSON",
    b'{"jsonrpc":"2.0","method":"x","params":',
    b'{"jsonrpc":"2.0","id":1,"method":"ping"} x',
    b'{"jsonrpc":"2.0","id":1,"method":"ping",}',
    b"{'id':1}",
    b"Content-Length: 60",
    b"5 x",
    b"[1,2",
    b'["a" "b"]',
    b'{"jsonrpc":"1.0","id":1,"method":"x"',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":-Infinity}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":01}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\x01"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\\x"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\\ud800\\x"}}',
    b'["\\ud800", nonsense]',
    b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}\x00',
]
NOT_UTF8 = [
    b"\xff",
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\xff\xfe"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"\xff":1}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","other":"caf\xe9"}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\xed\xa0\x80"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\xc0\x80"}}',
    b'{"jsonrpc":"2.0","id":"\xff","method":"x"}',
]


@pytest.mark.parametrize("line", NOT_JSON + NOT_UTF8)
def test_not_json(line: bytes) -> None:
    """Row 1; B01, B03, B07."""
    assert told(decode(line)) == (PARSE, NO_ID)


@pytest.mark.parametrize("line", ["5", '"x"', "null", "true", " 1.5 ", '"[\\"{"'])
def test_json_but_neither_object_nor_array(line: str) -> None:
    """Row 2; C16."""
    assert told(decode(line)) == (REQUEST, NO_ID)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ('{"id":1,"method":"ping"}', (REQUEST, 1)),
        ('{"jsonrpc":"1.0","id":"b","method":"ping"}', (REQUEST, "b")),
        ('{"jsonrpc":2.0,"id":2,"method":"ping"}', (REQUEST, 2)),
        ('{"jsonrpc":null,"id":2,"method":"ping"}', (REQUEST, 2)),
        ('{"jsonrpc":"2.0","id":3}', (REQUEST, 3)),
        ('{"jsonrpc":"2.0","id":3,"params":[]}', (REQUEST, 3)),
        ('{"jsonrpc":"2.0","id":4,"method":7}', (REQUEST, 4)),
        ('{"jsonrpc":"2.0","id":4,"method":null}', (REQUEST, 4)),
        ('{"jsonrpc":"2.0","id":4,"method":["a"],"params":5}', (REQUEST, 4)),
        ("{}", (REQUEST, NO_ID)),
        ('{"jsonrpc":"2.0"}', (REQUEST, NO_ID)),
        ('{"jsonrpc":"1.0","id":[],"method":"x"}', (REQUEST, NO_ID)),
    ],
)
def test_jsonrpc_or_method_is_wrong(line: str, answer: object) -> None:
    """Row 3; C14."""
    assert told(decode(line)) == answer


@pytest.mark.parametrize(
    "ident", ["null", "true", "1.5", "1.0", "1e2", "[1]", '{"a":1}', "9" * 4301, "9" * 100_000]
)
def test_id_is_of_another_type(ident: str) -> None:
    """Rows 4 and 5; C03, C04."""
    assert told(decode('{"jsonrpc":"2.0","id":' + ident + ',"method":"ping"}')) == (REQUEST, NO_ID)


@pytest.mark.parametrize("extra", [{"result": {}}, {"error": {}}, {"result": {}, "error": None}])
def test_a_method_together_with_an_outcome(extra: dict[str, object]) -> None:
    """Row 6."""
    assert told(decode(message(id=1, method="x", **extra))) == (REQUEST, 1)
    assert told(decode(message(method="x", **extra))) is SILENCE


@pytest.mark.parametrize("params", [[], [1], 5, "x", True, 1.5])
def test_params_are_no_object(params: object) -> None:
    """Row 7."""
    assert told(decode(message(id=1, method="x", params=params))) == (PARAMS, 1)
    assert told(decode(message(method="x", params=params))) is SILENCE


@pytest.mark.parametrize(
    "line", ['{"method":"x"}', '{"jsonrpc":"2.0","method":7}', '{"jsonrpc":"1","method":"x"}']
)
def test_a_notification_is_never_answered(line: str) -> None:
    """B4; C08."""
    assert told(decode(line)) is SILENCE


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"y"}}',
        '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"y"}}',
        '{"jsonrpc":"2.0","error":{"code":1,"message":"y"}}',
        '{"jsonrpc":"2.0","id":true,"result":{}}',
        '{"jsonrpc":"1.0","id":1,"result":{}}',
        '{"id":1,"result":{}}',
    ],
)
def test_a_malformed_response_is_dropped(line: str) -> None:
    """C17."""
    assert told(decode(line)) is SILENCE


def test_a_message_above_the_size_allowed() -> None:
    codec = Codec(max_bytes=100)
    line = message(id=1, method="x", params={"a": "x" * 100})
    assert told(codec.decode(line)) == (REQUEST, NO_ID)
    assert isinstance(Codec(max_bytes=len(line)).decode(line), Request)


# -- unpaired surrogates (B13) -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"text":"x\\ud800y"}}', (REQUEST, 1)),
        ('{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"no\\udfffsuch"}}', (REQUEST, 2)),
        ('{"jsonrpc":"2.0","id":2,"method":"x","params":{"\\ud800":"\\ud800\\ud800\\udc00"}}', (REQUEST, 2)),
        ('{"jsonrpc":"2.0","id":2,"method":"x","params":{"a":"\\ud800\\udc00\\udc00"}}', (REQUEST, 2)),
        ('{"jsonrpc":"2.0","method":"\\uD800","id":"q\\\\\\"q"}', (REQUEST, 'q\\"q')),
        ('{"jsonrpc":"2.0","id":"i\\ud800d","method":"ping"}', (REQUEST, NO_ID)),
        ('{"jsonrpc":"2.0","id":"\\ufffd","method":"\\ud800"}', (REQUEST, "\ufffd")),
        ('["\\ud800"]', (REQUEST, NO_ID)),
        ('"\\udc00"', (REQUEST, NO_ID)),
        ('{"jsonrpc":"2.0","method":"notifications/x","params":{"a":"\\ud800"}}', SILENCE),
        ('{"jsonrpc":"2.0","id":1,"result":{"a":"\\ud800"}}', SILENCE),
    ],
)
def test_unpaired_surrogates_are_refused_by_name(line: str, answer: object) -> None:
    found = decode(line)
    assert told(found) == answer
    assert found.reason == "The message holds an unpaired surrogate"


@pytest.mark.parametrize("text", ["\\ud83d\\ude00", "\\\\ud800", "\\\\\\\\ud800", "\\uFfFd", "\\u0000"])
def test_what_only_looks_like_one_is_let_through(text: str) -> None:
    assert isinstance(decode('{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"' + text + '"}}'), Request)


# -- batches -------------------------------------------------------------------------------------------------------


def test_a_batch_is_its_messages_each_judged_alone() -> None:
    found = decode(
        b' [{"jsonrpc":"2.0","id":1,"method":"ping"}, 5, [{"jsonrpc":"2.0","id":2,"method":"ping"}],'
        b'{"jsonrpc":"2.0","id":3,"method":"x","params":[]}, {"jsonrpc":"2.0","method":"n"}, {"method":"n"}]'
    )
    assert isinstance(found, Batch)
    assert found.items[0] == Request(1, "ping", found.items[0].params)  # type: ignore[union-attr]
    assert [told(item) for item in found.items if isinstance(item, Malformed)] == [
        (REQUEST, NO_ID),
        (REQUEST, NO_ID),
        (PARAMS, 3),
        SILENCE,
    ]
    assert isinstance(found.items[4], Notification)


def test_an_empty_batch_is_one_error() -> None:
    assert told(decode("[]")) == (REQUEST, NO_ID)
    assert told(decode(" [ ] ")) == (REQUEST, NO_ID)


def test_a_batch_of_too_many_is_one_error() -> None:
    one = message(id=1, method="ping")
    codec = Codec(max_batch=3)
    assert isinstance(codec.decode(b"[" + b",".join([one] * 3) + b"]"), Batch)
    assert told(codec.decode(b"[" + b",".join([one] * 4) + b"]")) == (REQUEST, NO_ID)
    assert told(codec.decode(b"[" + b",".join([one] * 5) + b",")) == (PARSE, NO_ID)


# -- what the peer reads -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "not json hunter2",
        '{"jsonrpc":"hunter2","id":1,"method":"x"}',
        '{"jsonrpc":"2.0","id":{"hunter2":1},"method":"x"}',
        '{"jsonrpc":"2.0","id":1,"method":["hunter2"]}',
        '{"jsonrpc":"2.0","id":1,"method":"hunter2","params":"hunter2"}',
        '{"jsonrpc":"2.0","id":1,"method":"hunter2","params":{"hunter2":"\\ud800"}}',
        '{"jsonrpc":"2.0","id":1,"method":"hunter2","params":' + '{"hunter2":' * 300 + "1" + "}" * 301,
    ],
)
def test_answers_repeat_nothing(line: str) -> None:
    """C19."""
    found = decode(line)
    assert found.answer is not None
    assert "hunter2" not in found.reason
    assert b"hunter2" not in CODEC.encode(found.answer)
    assert len(found.reason) < 60
