"""The judge of the other tests is judged here: it must let good messages pass and name what is wrong in bad ones."""

from __future__ import annotations

import pytest

from tests.wire_schema import REVISIONS, SchemaChecker

LEGACY = [revision for revision in REVISIONS if revision < "2026-07-28"]
MODERN = SchemaChecker("2026-07-28")


def answer(result: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def failure(code: int, *, data: object = None, **id_: object) -> dict[str, object]:
    error = {"code": code, "message": "no"} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "error": error, **id_}


@pytest.mark.parametrize("revision", LEGACY)
def test_a_tools_list_is_judged_by_its_own_type_not_by_the_union(revision: str) -> None:
    checker = SchemaChecker(revision)
    good = answer({"tools": [{"name": "a", "inputSchema": {"type": "object"}}]})
    bad = answer({"tools": [{"name": "a", "inputSchema": {"type": "array"}}]})
    assert checker.check_sent(good, "tools/list") == []
    assert checker.check_sent(bad) == []
    assert "inputSchema" in checker.check_sent(bad, "tools/list")[0]


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_method_of_another_revision_has_no_result(revision: str) -> None:
    message = answer({"resultType": "complete"})
    faults = SchemaChecker(revision).check_sent(message, "ping")
    assert bool(faults) == (revision == "2026-07-28")


def test_a_content_block_with_a_wrong_part_is_named() -> None:
    picture = {"type": "image", "data": "not base64!", "mimeType": "image/png"}
    faults = SchemaChecker("2025-06-18").check_sent(answer({"content": [picture]}), "tools/call")
    assert faults
    assert "content/0" in faults[0]


def test_an_error_whose_id_could_not_be_read() -> None:
    for revision in ("2024-11-05", "2025-06-18"):
        assert SchemaChecker(revision).check_sent(failure(-32700)) == []
        assert SchemaChecker(revision).check_sent(failure(-32700, id=None)) == []
    for revision in ("2025-11-25", "2026-07-28"):
        assert SchemaChecker(revision).check_sent(failure(-32700)) == []
        assert SchemaChecker(revision).check_sent(failure(-32700, id=None))


def test_a_code_that_prescribes_data_is_held_to_it() -> None:
    assert MODERN.check_sent(failure(-32022, data={"requested": "x", "supported": ["y"]}, id=1)) == []
    assert MODERN.check_sent(failure(-32022, data={"requested": "x"}, id=1))
    assert MODERN.check_sent(failure(-32021, id=1))


def test_input_may_be_required_only_where_the_revision_says_so() -> None:
    asking = answer({"resultType": "input_required", "requestState": "s"})
    assert MODERN.check_sent(asking, "tools/call") == []
    assert MODERN.check_sent(asking, "tools/list")
    assert SchemaChecker("2025-11-25").check_sent(asking, "tools/call")


def test_a_modern_list_must_say_how_long_it_keeps() -> None:
    listed = {"resultType": "complete", "tools": []}
    assert MODERN.check_sent(answer(listed | {"ttlMs": 0, "cacheScope": "private"}), "tools/list") == []
    assert MODERN.check_sent(answer(listed), "tools/list")


def test_requests_and_notifications_are_known_by_method() -> None:
    checker = SchemaChecker("2025-06-18")
    note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
    assert checker.check_sent(note) == []
    assert "progressToken" in checker.check_sent(progress)[0]
    assert checker.check_sent(note | {"method": "notifications/whatever"})
    assert checker.check_sent({"jsonrpc": "2.0", "id": 1, "method": "ping"}) == []
    assert MODERN.check_sent({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}})


def test_batches_belong_to_one_revision() -> None:
    batch = [answer({}), answer({})]
    assert SchemaChecker("2025-03-26").check_sent(batch) == []
    assert SchemaChecker("2025-03-26").check_sent([])
    assert SchemaChecker("2025-06-18").check_sent(batch)


def test_what_is_no_message_at_all() -> None:
    checker = SchemaChecker("2025-06-18")
    assert checker.check_sent("x")
    assert checker.check_sent({"jsonrpc": "2.0", "id": 1})
    assert checker.check_sent(answer({}) | failure(1))
    assert checker.check_sent({"jsonrpc": "1.0", "id": 1, "result": {}})
    assert checker.check_sent({"jsonrpc": "2.0", "id": 1.5, "result": {}})
