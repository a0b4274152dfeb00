"""The seeded shuffle."""

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.graph.shuffle import pcg_outputs, shuffled

OUTPUTS = {
    42: ("9e89c2ade4a6b4c2", "604c5b3098931fff", "a35b96328cbc5896"),
    0: ("38ffff682123e08a", "acfc572dc29cb1fd", "57ec35105c35c2db"),
}
ORDERS = {
    0: ("1 0", "2 1 0", "0 1 3 2", "0 2 3 4 1", "6 1 0 3 5 7 4 2"),
    1: ("0 1 2", "1 2 3 0"),
    42: ("1 0", "0 2 1", "3 0 1 2", "2 0 1 4 3", "0 5 4 2 1 3", "0 4 7 2 1 5 8 9 3 6"),
}


@pytest.mark.parametrize("seed", OUTPUTS)
def test_pcg_outputs_are_those_of_the_reference(seed: int) -> None:
    """Source: the test vectors of looper-algorithms 8.3."""
    found = [f"{output:016x}" for output in islice(pcg_outputs(seed), 3)]

    assert found == list(OUTPUTS[seed])


@pytest.mark.parametrize(
    ("seed", "order"), [(seed, order) for seed, orders in ORDERS.items() for order in orders]
)
def test_shuffled_orders_are_those_of_the_reference(seed: int, order: str) -> None:
    """Source: the test vectors of looper-algorithms 8.3; powers of two have a rule of their own."""
    wanted = tuple(map(int, order.split()))

    assert shuffled(range(len(wanted)), seed) == wanted


@settings(max_examples=50)
@given(st.lists(st.integers(), max_size=40), st.integers(-(1 << 63), (1 << 64) - 1))
def test_shuffled_loses_and_adds_nothing(items: list[int], seed: int) -> None:
    """Whatever the seed, it is a permutation, and the same one each time."""
    order = shuffled(items, seed)

    assert sorted(order) == sorted(items)
    assert shuffled(items, seed) == order


def test_negative_seed_is_its_twos_complement() -> None:
    """The generator takes the seed as an unsigned number of 64 bits."""
    assert shuffled(range(9), -1) == shuffled(range(9), (1 << 64) - 1)
