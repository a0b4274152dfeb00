"""Transformer `distribute_calls`: which models the calls of a round go to."""

import math
from collections.abc import Sequence
from typing import Literal

import attrs

from vsr.errors import GraphFailed
from vsr.graph.shuffle import shuffled
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs, ModelRef
from vsr.registry import Extension

Distribution = Literal["weighted", "equal", "round_robin", "first_only"]


@attrs.frozen
class DistributeCalls:
    """Gives `count` calls to the models; the same fields, the same answer.

    Source: looper-algorithms 8.2.
    """

    models: tuple[ModelRef, ...]
    count: int = attrs.field(validator=attrs.validators.ge(1))
    by: Distribution = "weighted"
    seed: int = 0
    """Of the shuffle, which `weighted` and `equal` end with."""
    synthesis_model: str | None = None
    """The one model that is called in the final round, by its alias; empty counts as None."""
    is_final: bool = False

    def __call__(self, _inputs: Inputs, /) -> tuple[ModelRef, ...]:
        """Return the model of each call, in the order in which they start.

        Raises:
            GraphFailed: there are no models, or `synthesis_model` is none of them.
        """
        if not self.models:
            raise GraphFailed("no models configured")
        if self.is_final and self.synthesis_model:
            return (self._named(self.synthesis_model),) * self.count
        if self.by == "first_only":
            return self.models[:1] * self.count
        if self.by == "round_robin":
            return tuple(self.models[call % len(self.models)] for call in range(self.count))
        shares = self._weighted() if self.by == "weighted" else self._equal()
        laid_out = [
            model for model, share in zip(self.models, shares, strict=True) for _ in range(share)
        ]
        return shuffled(laid_out, self.seed)

    def _named(self, name: str) -> ModelRef:
        for model in self.models:
            if model.model == name:
                return model
        raise GraphFailed(
            f"invalid remom configuration: synthesis_model {name!r} is none of the models"
        )

    def _equal(self) -> list[int]:
        share, more = divmod(self.count, len(self.models))
        return [share + (index < more) for index in range(len(self.models))]

    def _weighted(self) -> list[int]:
        """Return each model's calls: whole parts, then one each to the largest remainders."""
        weights = [
            model.weight if model.weight > 0 and math.isfinite(model.weight) else 0.0
            for model in self.models
        ]
        if not any(weights):
            return self._equal()
        exact = _parts(weights, self.count)
        shares = [math.floor(part) for part in exact]
        owed = sorted(
            (index for index, weight in enumerate(weights) if weight),
            key=lambda index: shares[index] - exact[index],
        )
        for turn in range(self.count - sum(shares)):
            shares[owed[turn % len(owed)]] += 1
        return shares


def _parts(weights: Sequence[float], count: int) -> list[float]:
    """Return `count` divided by weight; large weights are scaled, so that their sum is finite."""
    largest = max(weights)
    if not math.isfinite(sum(weights)):
        weights = [weight / largest for weight in weights]
    total = sum(weights)
    return [weight / total * count for weight in weights]


DISTRIBUTE_CALLS = Extension[Transformer](name="distribute_calls", config=DistributeCalls)
