"""Transformer `order_models`: which candidate a cascade asks first."""

import math
import re
from typing import Literal

import attrs

from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs, ModelRef
from vsr.registry import Extension

_SIZE = re.compile(r"([0-9.]+)([bmk]?)")
_MILLIONS = {"b": 1000.0, "": 1000.0, "m": 1.0}
_LARGE_MILLIONS = 70_000
"""From this size on, in millions of parameters, a model is taken to be as good as any."""
_UNKNOWN = 0.5
"""Quality or cheapness of a model of which nothing is said."""


@attrs.frozen
class OrderModels:
    """Orders models; those that are alike keep the order in which they are declared.

    - `size`, `small_to_large`: by parameters; a model without a readable size comes first.
    - `cost`: by price of the prompt; a model without a price comes first, one that the
      configuration does not know last.
    - `automix`: by a value that grows with quality and with cheapness, so that a cheap model may
      come late; `tradeoff` is the part that cheapness has in it, from 0 to 1.
    - `declared`: as they are.

    Source: the reference's escalation orders.
    """

    models: tuple[ModelRef, ...]
    by: Literal["size", "small_to_large", "declared", "cost", "automix"] = "size"
    tradeoff: float = attrs.field(
        default=0.3, validator=[attrs.validators.ge(0), attrs.validators.le(1)]
    )
    """As it is, so 0 means 0."""

    def __call__(self, _inputs: Inputs, /) -> tuple[ModelRef, ...]:
        """Return the models, the one to ask first in front."""
        match self.by:
            case "declared":
                return self.models
            case "cost":
                return tuple(sorted(self.models, key=_cost_rank))
            case "automix":
                return self._by_value()
            case _:
                return tuple(sorted(self.models, key=size_millions))

    def _by_value(self) -> tuple[ModelRef, ...]:
        costs = [cost for model in self.models if (cost := _cost(model)) > 0]
        lowest, highest = min(costs, default=0.0), max(costs, default=0.0)
        span = (highest - lowest) or 1.0

        def value(model: ModelRef) -> float:
            cost = _cost(model)
            cheapness = 1 - (cost - lowest) / span if cost > 0 else _UNKNOWN
            return (1 - self.tradeoff) * _quality(model) + self.tradeoff * cheapness

        return tuple(sorted(self.models, key=value))


def size_millions(model: ModelRef) -> int:
    """Return the model's parameters in whole millions; 0 where they are not known or unreadable.

    A size is a number with `b`, `m` or `k` behind it, or with nothing, which means `b`.
    """
    if not model.is_known or model.param_size is None:
        return 0
    found = _SIZE.fullmatch(model.param_size.strip().lower())
    if found is None:
        return 0
    digits, unit = found.groups()
    try:
        number = float(digits)
    except ValueError:
        return 0
    millions = number / 1000 if unit == "k" else number * _MILLIONS[unit]
    return int(millions) if math.isfinite(millions) else 0


def _cost(model: ModelRef) -> float:
    """Return what a million prompt tokens cost; 0 where nothing is said."""
    return (model.prompt_per_1m or 0.0) if model.is_known else 0.0


def _cost_rank(model: ModelRef) -> float:
    return _cost(model) if model.is_known else math.inf


def _quality(model: ModelRef) -> float:
    if not model.is_known:
        return _UNKNOWN
    if model.quality_score is not None and 0 < model.quality_score <= 1:
        return model.quality_score
    millions = size_millions(model)
    return 0.3 + 0.7 * min(millions / _LARGE_MILLIONS, 1) if millions > 0 else _UNKNOWN


ORDER_MODELS = Extension[Transformer](name="order_models", config=OrderModels)
