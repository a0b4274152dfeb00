"""How long what has ended waits before it is started again."""

import pytest

from vsr.workers.backoff import Backoff


def test_first_end_is_followed_at_once_by_a_start() -> None:
    """However short the life was; later ones wait twice as long each time, up to a limit."""
    backoff = Backoff(first_s=0.5, max_s=3.0, steady_s=30.0)

    delays = [backoff.delay_s(0.1) for _ in range(6)]

    assert delays == [0.0, 0.5, 1.0, 2.0, 3.0, 3.0]


@pytest.mark.parametrize(("lived_s", "delay_s"), [(29.9, 1.0), (30.0, 0.0), (1e6, 0.0)])
def test_steady_life_forgets_those_before(lived_s: float, delay_s: float) -> None:
    """Its end has another reason than theirs."""
    backoff = Backoff(first_s=0.5, max_s=30.0, steady_s=30.0)
    for _ in range(2):
        backoff.delay_s(0.0)

    assert backoff.delay_s(lived_s) == delay_s
