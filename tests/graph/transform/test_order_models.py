"""Transformer `order_models`."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph.branch_ends import INPUTS
from vsr.graph.transform.order_models import OrderModels, size_millions
from vsr.graph.value import ModelRef


def model(
    name: str,
    *,
    size: str | None = None,
    price: float | None = None,
    quality: float | None = None,
    is_known: bool = True,
) -> ModelRef:
    """Return a candidate."""
    return ModelRef(
        name,
        name,
        param_size=size,
        prompt_per_1m=price,
        quality_score=quality,
        is_known=is_known,
    )


def names(ordered: tuple[ModelRef, ...]) -> str:
    """Return the models' names in order."""
    return "".join(ref.model for ref in ordered)


@pytest.mark.parametrize(
    ("size", "millions"),
    [
        ("7b", 7000),
        (" 7B ", 7000),
        ("7", 7000),
        ("1.5b", 1500),
        ("500m", 500),
        ("0.5m", 0),
        ("2500k", 2),
        (".5b", 500),
        ("7.", 7000),
        ("1.2.3b", 0),
        (".", 0),
        ("", 0),
        ("7 b", 0),
        ("7t", 0),
        ("-7b", 0),
        ("8x7b", 0),
        ("7b\nx", 0),
        ("9" * 400, 0),
        ("9" * 308, 0),
        (None, 0),
    ],
)
def test_size_is_read_in_whole_millions(size: str | None, millions: int) -> None:
    """What is missing or not a size is 0."""
    assert size_millions(model("a", size=size)) == millions


@pytest.mark.parametrize("by", ["size", "small_to_large"])
def test_size_orders_from_small_to_large(by: str) -> None:
    """Models of unknown size come first, and those alike stay as declared."""
    models = (
        model("a", size="70b"),
        model("b", size="500m"),
        model("c"),
        model("d", size="0.5b"),
        model("e", size="huge"),
        model("f", size="1b", is_known=False),
    )

    assert names(OrderModels(models, by)(INPUTS)) == "cefbda"  # type: ignore[arg-type]


def test_declared_leaves_the_order() -> None:
    """Whatever is known of the models."""
    models = (model("a", size="70b", price=9), model("b", size="1b", price=1))

    assert OrderModels(models, "declared")(INPUTS) == models


def test_cost_puts_unpriced_models_first_and_unknown_ones_last() -> None:
    """A model that is configured without a price costs nothing, one not configured is a risk."""
    models = (
        model("a", is_known=False),
        model("b", price=5),
        model("c", price=1),
        model("d"),
        model("e", price=1),
        model("f", is_known=False),
        model("g", price=0),
    )

    assert names(OrderModels(models, "cost")(INPUTS)) == "dgcebaf"


@pytest.mark.parametrize(
    ("tradeoff", "expected"),
    [
        # a: q 0.9, c 0; b: q 0.5, c 1; c: q 1 (70b), c 2/3; d: q 0.3 + 0.7 * 0.1, c 0.5
        (0.3, "dabc"),
        (0.0, "dbac"),
        (1.0, "adcb"),
    ],
)
def test_automix_weighs_quality_and_cheapness(tradeoff: float, expected: str) -> None:
    """Cheapness is relative to the prices of the candidates; no price is half cheap."""
    models = (
        model("a", quality=0.9, price=10),
        model("b", quality=0.5, price=1),
        model("c", size="140b", price=4),
        model("d", size="7b"),
    )

    assert names(OrderModels(models, "automix", tradeoff)(INPUTS)) == expected


def test_automix_takes_a_tradeoff_of_three_tenths() -> None:
    """Unless told otherwise: 0.7 * 0.6 + 0.3 is more than 0.7 * 1."""
    models = (model("a", quality=0.6, price=1), model("b", quality=1, price=2))

    assert names(OrderModels(models, "automix")(INPUTS)) == "ba"


def test_automix_knows_no_quality_beyond_1() -> None:
    """A score of 0 or above 1 says nothing: then size speaks, and without it one half is taken."""
    models = (
        model("a", quality=0, size="63b"),
        model("b", quality=1.5, size="7b"),
        model("c", quality=0.5),
        model("d", quality=0),
        model("e", quality=1, size="1b", price=1, is_known=False),
        model("f", quality=1),
    )

    assert names(OrderModels(models, "automix", 0)(INPUTS)) == "bcdeaf"


def test_automix_takes_no_size_for_more_than_the_best() -> None:
    """Beyond 70 billion parameters a model is no better than one of the highest quality."""
    models = (model("a", size="140b"), model("b", quality=1))

    assert names(OrderModels(models, "automix", 0)(INPUTS)) == "ab"


def test_automix_takes_candidates_of_one_price_as_cheap() -> None:
    """A range of prices of no width has only its cheap end; a price of 0 is not in it."""
    models = (model("a", price=5), model("b", price=5), model("c", price=0))

    assert names(OrderModels(models, "automix", 1)(INPUTS)) == "cab"


def test_automix_leaves_the_price_of_an_unknown_model_out() -> None:
    """Else `a` would not be the cheapest."""
    models = (
        model("a", price=2, quality=0.5),
        model("b", price=1, quality=0.5, is_known=False),
        model("c", price=3, quality=0.5),
        model("d", quality=0.5),
    )

    assert names(OrderModels(models, "automix", 1)(INPUTS)) == "cbda"


MODELS = st.lists(
    st.builds(
        model,
        st.just("m"),
        size=st.none() | st.text("0123456789.bmk ", max_size=5),
        price=st.none() | st.floats(0, 1e6),
        quality=st.none() | st.floats(-1, 2),
        is_known=st.booleans(),
    ),
    max_size=6,
).map(tuple)


@settings(max_examples=60)
@given(MODELS, st.sampled_from(["size", "small_to_large", "declared", "cost", "automix"]))
def test_every_model_is_kept_once(models: tuple[ModelRef, ...], by: str) -> None:
    """And an ordered list stays as it is."""
    ordered = OrderModels(models, by)(INPUTS)  # type: ignore[arg-type]

    assert sorted(map(repr, ordered)) == sorted(map(repr, models))
    assert OrderModels(ordered, by)(INPUTS) == ordered  # type: ignore[arg-type]


def test_tradeoff_beyond_1_is_refused() -> None:
    """It is a part of the whole."""
    with pytest.raises(ValueError, match="tradeoff"):
        OrderModels((), "automix", 1.5)
