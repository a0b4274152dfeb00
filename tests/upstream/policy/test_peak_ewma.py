"""Peak EWMA: the faster of two hosts, and how latencies are noted for it."""

from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.upstream.policy.balancer_picks import NOW, busy, drawing, picks, using, weighing
from vsr.upstream.policy.balancer import PeakEwma, note_latency
from vsr.upstream.policy.host import Host


def answering(*latencies: float | None) -> list[Host]:
    """Return one idle host per latency, noted just now."""
    hosts = weighing(*[1] * len(latencies))
    for host, latency_s in zip(hosts, latencies, strict=True):
        host.latency_s, host.latency_at = latency_s, NOW
    return hosts


@pytest.mark.parametrize("latencies", [(0.2, 0.1), (0.1, 0.2), (0.2, 0.19)])
@pytest.mark.parametrize("places", [(0, 1), (1, 0)])
def test_faster_of_two_idle_hosts_is_picked(
    latencies: tuple[float, float], places: tuple[int, int]
) -> None:
    """Whichever is drawn first."""
    hosts = answering(*latencies)

    picked = using(PeakEwma(drawing(2, *places)), hosts).pick(NOW)

    assert picked is min(hosts, key=lambda host: host.latency_s or 0)


@given(
    latencies=st.lists(st.floats(0.2, 60), min_size=1, max_size=5),
    active=st.integers(0, 9),
    place=st.integers(0, 4),
    fast_first=st.booleans(),
)
@settings(deadline=None)
def test_idle_fast_host_beats_any_other(
    latencies: list[float], active: int, place: int, *, fast_first: bool
) -> None:
    """Neither calls under way nor a longer latency ever make a better host."""
    hosts = answering(0.1, *latencies)
    for host in hosts[1:]:
        host.active = active
    pair = (0, 1 + place % len(latencies))
    drawn = drawing(len(hosts), *(pair if fast_first else reversed(pair)))

    assert using(PeakEwma(drawn), hosts).pick(NOW) is hosts[0]


@pytest.mark.parametrize(("slow_s", "picked"), [(0.29, "0"), (0.31, "1")])
def test_call_under_way_costs_a_latency(slow_s: float, picked: str) -> None:
    """Two on a host of 0.1 s make 0.3 s for the next one."""
    hosts = answering(slow_s, 0.1)
    hosts[1].active = 2

    assert picks(using(PeakEwma(drawing(2, 0, 1)), hosts), 1) == picked


@pytest.mark.parametrize(("fresh_s", "picked"), [(0.36, "0"), (0.37, "1")])
def test_latency_fades_with_time(fresh_s: float, picked: str) -> None:
    """After 10 s without another, 1 s counts for 1/e of it: 0.368 s."""
    hosts = answering(fresh_s, 1.0)
    hosts[1].latency_at = NOW - 10

    assert picks(using(PeakEwma(drawing(2, 0, 1)), hosts), 1) == picked


def test_latency_fades_to_nothing() -> None:
    """A host left alone for a day is as good as instant, and nothing overflows."""
    hosts = answering(0.001, 3600.0)
    hosts[1].latency_at = NOW - 86_400

    assert picks(using(PeakEwma(drawing(2, 0, 1)), hosts), 1) == "1"


@pytest.mark.parametrize("places", [(0, 1), (1, 0)])
def test_host_without_latency_wins(places: tuple[int, int]) -> None:
    """Even when busy, and against one that answers at once: it must be tried to be known."""
    hosts = answering(0.0, None)
    hosts[1].active = 5

    assert picks(using(PeakEwma(drawing(2, *places)), hosts), 1) == "1"


@pytest.mark.parametrize(("active", "picked"), [((3, 1), "1"), ((1, 3), "0"), ((2, 2), "0")])
def test_less_busy_of_hosts_without_latency_is_picked(active: tuple[int, int], picked: str) -> None:
    """Before the first answers nothing else tells them apart; the first wins a tie."""
    balancer = using(PeakEwma(drawing(2, 0, 1)), busy(*active))

    assert picks(balancer, 1) == picked


def test_first_of_hosts_that_cost_the_same_is_picked() -> None:
    """Equal latency, equally busy."""
    balancer = using(PeakEwma(drawing(2, 1, 0)), answering(0.1, 0.1))

    assert picks(balancer, 1) == "1"


def test_first_latency_is_taken_as_it_is() -> None:
    """There is nothing to average it with."""
    host = weighing(1)[0]

    note_latency(host, 0.5, NOW)

    assert (host.latency_s, host.latency_at) == (0.5, NOW)


def test_higher_latency_is_taken_at_once() -> None:
    """A host that becomes slow must be left at once."""
    host = answering(0.5)[0]

    note_latency(host, 0.7, NOW + 0.01)

    assert (host.latency_s, host.latency_at) == (0.7, NOW + 0.01)


@pytest.mark.parametrize(
    ("after_s", "expected"), [(0, 0.5), (10, 0.1 + 0.4 * exp(-1)), (20, 0.1 + 0.4 * exp(-2))]
)
def test_lower_latency_is_approached(after_s: float, expected: float) -> None:
    """All but 1/e of the way after 10 s; many at once don't hide a slow one."""
    host = answering(0.5)[0]

    note_latency(host, 0.1, NOW + after_s)

    assert host.latency_s == pytest.approx(expected)
    assert host.latency_at == NOW + after_s


@given(
    latencies=st.lists(st.floats(0.001, 600), min_size=1, max_size=20),
    pauses=st.lists(st.floats(0, 100), min_size=20, max_size=20),
)
@settings(deadline=None)
def test_latency_lies_between_the_last_and_the_highest(
    latencies: list[float], pauses: list[float]
) -> None:
    """An average never leaves what it averages."""
    host, now = weighing(1)[0], NOW

    for latency, pause in zip(latencies, pauses, strict=False):
        now += pause
        note_latency(host, latency, now)

    assert host.latency_s is not None
    assert latencies[-1] <= host.latency_s <= max(latencies) * (1 + 1e-9)
