"""The audit: a chain of entries in a ring."""

import hashlib
import json

import msgspec
import pytest

from vsr.admin.answer import Invalid
from vsr.admin.audit import Audit
from vsr.config.attempt import Attempt, AttemptStatus, Code, Reason, Stage
from vsr.config.origin import Origin


def audit_of(count: int, capacity: int = 100) -> Audit:
    """Return one with so many entries."""
    audit = Audit(lambda: 1_700_000_000.25, capacity)
    for number in range(count):
        action = "config.put" if number % 2 else "config.patch"
        audit.note_request(
            action,
            request_id=f"req-{number}",
            role="operator",
            place=("PUT", "/api/v1/config"),
            status=200,
        )
    return audit


def test_entries_prove_each_other() -> None:
    """Anybody can check the chain with what the API has told: compact JSON without the hash."""
    audit = audit_of(3)
    told = json.loads(msgspec.json.encode(audit.page({})))

    previous = ""
    for entry in told["entries"]:
        claimed = entry.pop("hash")
        compact = json.dumps(entry, separators=(",", ":"), ensure_ascii=False)
        assert entry["previous_hash"] == previous
        assert hashlib.sha256(compact.encode()).hexdigest() == claimed
        previous = claimed
    assert told["entries"][0]["timestamp"] == "2023-11-14T22:13:20.250Z"


def test_page_goes_on_where_the_one_before_ended() -> None:
    """Until there is no more."""
    audit = audit_of(5)

    first = audit.page({"limit": "2"})
    second = audit.page({"limit": "2", "after_sequence": str(first.next_sequence)})
    third = audit.page({"limit": "2", "after_sequence": str(second.next_sequence)})

    pages = [[each.sequence for each in page.entries] for page in (first, second, third)]
    assert pages == [[1, 2], [3, 4], [5]]
    assert [page.has_more for page in (first, second, third)] == [True, True, False]
    assert audit.page({"after_sequence": "5"}).entries == ()
    assert audit.page({"after_sequence": "5"}).next_sequence == 5


def test_oldest_entries_go_and_readers_are_told() -> None:
    """The chain of the others goes on."""
    audit = audit_of(7, capacity=3)

    page = audit.page({})

    assert [each.sequence for each in page.entries] == [5, 6, 7]
    assert (page.oldest_sequence, page.truncated) == (5, True)
    assert not audit.page({"after_sequence": "4"}).truncated
    assert page.entries[1].previous_hash == page.entries[0].hash


def test_action_filters() -> None:
    """And what was left out is not asked for again."""
    page = audit_of(6).page({"action": "config.put", "limit": "1000"})

    assert [each.sequence for each in page.entries] == [2, 4, 6]
    assert (page.next_sequence, page.has_more) == (6, False)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"limit": "0"}, "INVALID_AUDIT_LIMIT"),
        ({"limit": "1001"}, "INVALID_AUDIT_LIMIT"),
        ({"limit": "x"}, "INVALID_AUDIT_LIMIT"),
        ({"limit": "-1"}, "INVALID_AUDIT_LIMIT"),
        ({"after_sequence": ""}, "INVALID_AUDIT_CURSOR"),
        ({"after_sequence": "1e3"}, "INVALID_AUDIT_CURSOR"),
        ({"after_sequence": "9" * 30}, "INVALID_AUDIT_CURSOR"),
    ],
)
def test_query_is_checked(query: dict[str, str], code: str) -> None:
    """With the reference's codes."""
    with pytest.raises(Invalid) as caught:
        audit_of(1).page(query)

    assert caught.value.code == code


def test_lifecycle_is_noted_once_per_attempt() -> None:
    """When it has ended; without method and status, with who wanted it."""
    audit = Audit(lambda: 0.0)
    origin = Origin("api", "operator", "req-9")
    attempt = Attempt(1, "abc", origin, 0.0)
    refused = msgspec.structs.replace(
        attempt,
        status=AttemptStatus.FAILED,
        reasons=(Reason(Stage.PARSE, Code.INVALID_DOCUMENT, "no"),) * 2,
    )

    audit.note_attempt(attempt)
    audit.note_attempt(refused)
    audit.note_attempt(msgspec.structs.replace(attempt, status=AttemptStatus.SUPERSEDED))

    rejected, superseded = json.loads(msgspec.json.encode(audit.page({})))["entries"]
    assert (rejected["action"], superseded["action"]) == ("config.reject", "config.supersede")
    assert (rejected["role"], rejected["request_id"]) == ("operator", "req-9")
    assert "method" not in rejected
    assert rejected["config"] == {
        "version": 0,
        "hash": "abc",
        "source": "api",
        "result": "failed",
        "stage": "parse",
        "codes": ["invalid_document"],
    }


def test_long_path_is_cut() -> None:
    """Whoever asks says how long it is, and entries are held."""
    audit = audit_of(0)
    audit.note_request(
        "recipe.save", request_id="r", role="viewer", place=("PUT", "/x" * 10_000), status=403
    )

    assert audit.page({}).entries[0].path == "/x" * 128
