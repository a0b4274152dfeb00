"""Merging what several processes tell of their requests, and the state of an attempt."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.configuration import detail
from vsr.routing.outcome import Attempt
from vsr.routing.request_views import RequestList, RequestView, chosen, merged, newest, try_view


def view(request_id: str, start_time: str) -> RequestView:
    """Return a request that has ended."""
    return detail(request_id, start_time).request


def of(under_way: Sequence[str], ended: Sequence[str]) -> RequestList:
    """Return what a worker tells of requests that began at these times."""
    return RequestList(
        newest([view("r", at) for at in under_way], 100),
        newest([view("r", at) for at in ended], 100),
        len(under_way),
        200,
    )


def test_lists_of_workers_are_one_list() -> None:
    """The newest first, each with its worker; who is silent is named."""
    told = merged([(0, of(["3", "1"], ["0"])), (2, of(["2"], []))], 2, (1,))

    assert [(each.start_time, each.worker) for each in told.under_way] == [("3", 0), ("2", 2)]
    assert [(each.start_time, each.worker) for each in told.ended] == [("0", 0)]
    assert (told.under_way_total, told.kept, told.missing_workers) == (3, 200, (1,))


_TIMES = st.lists(st.integers(0, 999).map(lambda at: f"{at:03}"), max_size=8)


@given(st.lists(st.tuples(_TIMES, _TIMES), max_size=4), st.integers(1, 9))
def test_merged_lists_are_what_one_process_would_tell(
    told: list[tuple[list[str], list[str]]], limit: int
) -> None:
    """As long as each has told so many itself."""
    lists = [(worker, of(*each)) for worker, each in enumerate(told)]

    found = merged(lists, limit)

    every = sorted((at for under_way, _ in told for at in under_way), reverse=True)
    assert [each.start_time for each in found.under_way] == every[:limit]
    assert found.under_way_total == len(every)
    ended = sorted((at for _, ended in told for at in ended), reverse=True)
    assert [each.start_time for each in found.ended] == ended[:limit]


def test_newest_of_one_id_is_chosen() -> None:
    """Workers without it say nothing."""
    found = chosen([(0, detail("a", "1")), (1, None), (2, detail("a", "2"))])

    assert found is not None
    assert (found.request.start_time, found.request.worker) == ("2", 2)
    assert chosen([(0, None)]) is None


@pytest.mark.parametrize(
    ("members", "end", "state"),
    [
        ({}, None, "running"),
        ({"status": 200}, None, "running"),
        ({"status": 200}, 3.0, "succeeded"),
        ({"status": 200, "ended_at": 2.0}, None, "succeeded"),
        ({"status": 503, "ended_at": 2.0}, None, "failed"),
        ({"status": 200, "ended_at": 2.0, "error": "upstream_reset"}, None, "failed"),
        ({"error": "deadline_exceeded", "stage": "per_try"}, 3.0, "timed_out"),
        ({"error": "cancelled"}, 3.0, "cancelled"),
        ({}, 3.0, "cancelled"),
    ],
)
def test_attempt_is_told_by_its_last_fact(
    members: dict[str, object], end: float | None, state: str
) -> None:
    """Its endpoint by name: the address is nobody's business."""
    attempt = msgspec.structs.replace(Attempt("m", "backend-1", "10.1.2.3:80", 1.0), **members)

    told = try_view(attempt, 0.5, end)

    assert (told.state, told.started_ms, told.endpoint) == (state, 500.0, "backend-1")
    assert b"10.1" not in msgspec.json.encode(told)
