"""Transformer `distribute_calls`."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph.remom_replies import INPUTS
from vsr.errors import GraphFailed
from vsr.graph.transform.distribute_calls import DistributeCalls, Distribution
from vsr.graph.value import ModelRef


def _refs(**weights: float) -> tuple[ModelRef, ...]:
    return tuple(ModelRef(name, f"{name}-lora", weight) for name, weight in weights.items())


def _names(models: tuple[ModelRef, ...]) -> str:
    return "".join(model.model for model in models)


@pytest.mark.parametrize(
    ("by", "weights", "count", "wanted"),
    [
        ("round_robin", {"a": 0, "b": 0, "c": 0}, 5, "abcab"),
        ("first_only", {"a": 0, "b": 9}, 3, "aaa"),
        # Laid out as aaab and aabbc, then shuffled by 3 0 1 2 and 2 0 1 4 3.
        ("weighted", {"a": 3, "b": 1}, 4, "baaa"),
        ("equal", {"a": 9, "b": 0, "c": 0}, 5, "baacb"),
        ("weighted", {"a": 0, "b": -1, "c": 0}, 5, "baacb"),
        ("equal", {"a": 0, "b": 0}, 1, "a"),
    ],
)
def test_distribution_is_that_of_the_reference(
    by: Distribution, weights: dict[str, float], count: int, wanted: str
) -> None:
    """Source: looper-algorithms 8.2 with the orders of 8.3 for seed 42."""
    step = DistributeCalls(_refs(**weights), count=count, by=by, seed=42)

    assert _names(step(INPUTS)) == wanted


@pytest.mark.parametrize(
    ("weights", "count", "wanted"),
    [
        ({"a": 1, "b": 2}, 1, {"b": 1}),
        ({"a": 1, "b": 1, "c": 1}, 4, {"a": 2, "b": 1, "c": 1}),
        ({"a": 0, "b": 1}, 7, {"b": 7}),
        ({"a": 5, "b": 3, "c": 2}, 3, {"a": 1, "b": 1, "c": 1}),
        ({"a": float("inf"), "b": float("nan"), "c": 1}, 2, {"c": 2}),
        ({"a": 1.5e308, "b": 0.5e308}, 4, {"a": 3, "b": 1}),
    ],
)
def test_weighted_gives_what_is_left_to_the_largest_remainders(
    weights: dict[str, float], count: int, wanted: dict[str, int]
) -> None:
    """Ties go to the earlier model; a model without a weight gets nothing."""
    step = DistributeCalls(_refs(**weights), count=count)

    assert Counter(_names(step(INPUTS))) == wanted


@settings(max_examples=50)
@given(
    st.lists(st.floats(-1, 1e9), min_size=1, max_size=6),
    st.integers(1, 40),
    st.sampled_from(["weighted", "equal", "round_robin", "first_only"]),
)
def test_every_call_has_a_model(weights: list[float], count: int, by: Distribution) -> None:
    """There are as many calls as were asked for, and the same ones each time."""
    models = tuple(ModelRef(str(at), str(at), weight) for at, weight in enumerate(weights))
    step = DistributeCalls(models, count=count, by=by, seed=3)

    calls = step(INPUTS)

    assert len(calls) == count
    assert set(calls) <= set(models)
    assert step(INPUTS) == calls


def test_synthesis_model_has_the_final_round() -> None:
    """It is named by its alias and called by its own name; other rounds do not know it."""
    models = _refs(a=1, b=0)
    final = DistributeCalls(models, count=1, synthesis_model="b", is_final=True)
    before = DistributeCalls(models, count=1, synthesis_model="b")

    assert [model.called_name for model in final(INPUTS)] == ["b-lora"]
    assert _names(before(INPUTS)) == "a"


def test_unknown_synthesis_model_fails() -> None:
    """The message says which field is at fault."""
    step = DistributeCalls(_refs(a=1), count=1, synthesis_model="z", is_final=True)

    with pytest.raises(GraphFailed, match="invalid remom configuration: synthesis_model 'z'"):
        step(INPUTS)


def test_no_models_fails() -> None:
    """Source: looper-algorithms 19."""
    with pytest.raises(GraphFailed, match=r"^no models configured$"):
        DistributeCalls((), count=1)(INPUTS)
