"""Which calls a looper fixture expects, in which order."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.conformance.looper_calls import call_differences
from tests.conformance.looper_server import SeenCall


def seen(
    model: str,
    started: int,
    ended: int | None,
    headers: Mapping[str, str] | None = None,
    **body: object,
) -> SeenCall:
    """Return a call that was under way between two events."""
    fields = {"model": model, "messages": [{"role": "user", "content": "q"}], **body}
    end = None if ended is None else float(ended)
    return SeenCall("/", dict(headers or {}), fields, started, float(started), ended, end)


def found(wanted: list[dict[str, Any]], *calls: SeenCall, **expect: object) -> list[str]:
    """Return the differences."""
    return list(call_differences({"calls": wanted, **expect}, calls, {}))


def entry(model: str, group: int | None = None, **more: object) -> dict[str, Any]:
    """Return one expected call."""
    return {"model": model, **({} if group is None else {"group": group}), **more}


def test_calls_come_one_after_the_other() -> None:
    """Each starts when the one before has ended."""
    wanted = [entry("a"), entry("b")]

    assert found(wanted, seen("a", 0, 1), seen("b", 2, 3)) == []
    assert found(wanted, seen("a", 0, 2), seen("b", 1, 3)) == [
        (
            "calls[1]: expected to start after call 0 has ended, "
            "got a start at 1.000 s and an end at 2.000 s"
        )
    ]
    assert found(wanted, seen("b", 0, 1), seen("a", 2, 3)) == [
        'calls[0].model: expected "a", got "b"',
        'calls[1].model: expected "b", got "a"',
    ]


@pytest.mark.parametrize(
    "panel",
    [
        (seen("a", 0, 2), seen("b", 1, 3)),
        (seen("b", 0, 2), seen("a", 1, 3)),
        (seen("b", 0, 1), seen("a", 2, 3)),
    ],
)
def test_calls_of_a_group_start_in_any_order(panel: tuple[SeenCall, SeenCall]) -> None:
    """Overlapping or not."""
    assert found([entry("a", 1), entry("b", 1), entry("c")], *panel, seen("c", 4, 5)) == []


def test_group_ends_before_what_follows() -> None:
    """A call that was left ends when it is left; one that never ends is in the way."""
    wanted = [entry("a", 1), entry("b", 1), entry("c")]

    late = found(wanted, seen("a", 0, 5), seen("b", 1, 2), seen("c", 3, 4))
    never = found(wanted, seen("a", 0, 2), seen("b", 1, None), seen("c", 3, 4))

    assert ["calls[2]: expected to start after call 0" in line for line in late] == [True]
    assert ["calls[2]: expected to start after call 1" in line for line in never] == [True]
    assert never[0].endswith("and an end at no time")


def test_groups_of_different_names_follow_each_other() -> None:
    """So do a group and the same group behind another call."""
    wanted = [entry("a", 1), entry("a", 2)]

    assert found(wanted, seen("a", 0, 1), seen("a", 2, 3)) == []
    assert len(found(wanted, seen("a", 0, 2), seen("a", 1, 3))) == 1
    again = [entry("a", 1), entry("b"), entry("a", 1)]
    assert found(again, seen("a", 0, 1), seen("b", 2, 3), seen("a", 4, 5)) == []


def test_calls_are_dealt_to_the_entries_that_fit() -> None:
    """An entry that any call fits leaves the pickier one its call."""
    wanted = [entry("a", 1), entry("a", 1, body={"seed": 1}), entry("a", 1, body={"n": 2})]

    dealt = found(wanted, seen("a", 0, 3, seed=1), seen("a", 1, 4, seed=1, n=2), seen("a", 2, 5))

    assert dealt == []


def test_entry_that_no_call_fits_is_compared_with_the_nearest() -> None:
    """And only that one."""
    wanted = [entry("a", 1, body={"seed": 1}), entry("b", 1)]

    assert found(wanted, seen("b", 0, 2), seen("a", 1, 3, seed=7)) == [
        "calls[0].body.seed: expected 1, got 7"
    ]


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        ([entry("a")], 'calls: expected 1 ["a"], got 2 ["a", "b"]'),
        ([], 'calls: expected 0 [], got 2 ["a", "b"]'),
    ],
)
def test_further_call_is_a_difference(wanted: list[dict[str, Any]], line: str) -> None:
    """No other calls may occur."""
    assert found(wanted, seen("a", 0, 1), seen("b", 2, 3)) == [line]


def test_missing_call_is_a_difference() -> None:
    """Of its group, and of the count."""
    assert found([entry("a"), entry("b")], seen("a", 0, 1)) == [
        'calls: expected 2 ["a", "b"], got 1 ["a"]',
        'calls[1]: expected a call of "b", got none',
    ]


def test_no_statement_about_calls_is_none() -> None:
    """What the fixture does not name is not compared."""
    assert list(call_differences({}, [seen("a", 0, 1)], {})) == []


SENT = {"authorization": "Bearer k", "x-selected-model": "a", "x-team": "blue"}


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ({"message_count": 1}, ""),
        ({"message_count": 2}, "message_count"),
        ({"last_message": {"content": "q"}}, ""),
        ({"last_message": {"content": "r"}}, "last_message.content"),
        ({"absent": ["tools"]}, ""),
        ({"absent": ["tools", "seed"]}, "body.seed"),
        ({"authorization": "Bearer k"}, ""),
        ({"authorization": "Bearer x"}, "authorization"),
        ({"route": "a"}, ""),
        ({"route": "b"}, "route"),
        ({"headers": {"X-Team": {"$regex": "^b"}}}, ""),
        ({"headers": {"X-Team": "red"}}, "headers.X-Team"),
        ({"headers": {"X-Other": "red"}}, "headers.X-Other"),
        ({"absent_headers": ["X-Other"]}, ""),
        ({"absent_headers": ["X-Team"]}, "headers.X-Team"),
        ({"ordinal": 99}, ""),
    ],
)
def test_members_of_an_entry(more: dict[str, Any], where: str) -> None:
    """Each is compared, but the ordinal, which is only information."""
    lines = found([entry("a", **more)], seen("a", 0, 1, SENT, seed=None))

    assert [line.partition(": ")[0] for line in lines] == ([f"calls[0].{where}"] if where else [])


def test_body_that_is_no_object_is_a_difference() -> None:
    """And no error of the runner."""
    call = SeenCall("/", {}, "text", 0, 0.0, 1, 1.0)

    assert found([entry("a")], call) == ['calls[0].body: expected a JSON object, got "text"']


def test_model_under_its_native_name_is_the_routers() -> None:
    """Calls are stated before the name of the backend is put in."""
    wanted = {"calls": [entry("a", body={"model": "a"})]}

    assert list(call_differences(wanted, [seen("native", 0, 1)], {"native": "a"})) == []


def test_peak_is_counted_over_all_calls() -> None:
    """An end makes room for a start that comes behind it."""
    calls = (seen("a", 0, 2), seen("a", 1, 4), seen("a", 3, 5))
    wanted = [entry("a", 1)] * 3

    assert found(wanted, *calls, peak_concurrency=2) == []
    assert found(wanted, *calls, peak_concurrency=3) == ["peak_concurrency: expected 3, got 2"]
