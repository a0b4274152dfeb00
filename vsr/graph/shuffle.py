"""A seeded shuffle that gives the same order on every machine and in every version."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

_MASK_64 = (1 << 64) - 1
_MASK_128 = (1 << 128) - 1
_MULTIPLIER = (2549297995355413924 << 64) + 4865540595714422341
_INCREMENT = (6364136223846793005 << 64) + 1442695040888963407
_CHEAP_MULTIPLIER = 0xDA942042E4DD58B5


def pcg_outputs(seed: int) -> Iterator[int]:
    """Yield the 64-bit outputs of PCG-DXSM, both halves of whose state start as `seed`.

    A negative seed counts as its two's complement.

    Source: looper-algorithms 8.3.
    """
    half = seed & _MASK_64
    state = half << 64 | half
    while True:
        state = (state * _MULTIPLIER + _INCREMENT) & _MASK_128
        high, low = state >> 64, state & _MASK_64
        high ^= high >> 32
        high = high * _CHEAP_MULTIPLIER & _MASK_64
        high ^= high >> 48
        yield high * (low | 1) & _MASK_64


def shuffled(items: Sequence[T], seed: int) -> tuple[T, ...]:
    """Return `items` in the order that `seed` stands for; 0 is a seed like any other.

    Source: looper-algorithms 8.3 (Fisher and Yates, from the last place to the second).
    """
    order = list(items)
    outputs = pcg_outputs(seed)
    for last in range(len(order) - 1, 0, -1):
        other = _below(last + 1, outputs)
        order[last], order[other] = order[other], order[last]
    return tuple(order)


def _below(bound: int, outputs: Iterator[int]) -> int:
    """Return a number from 0 to `bound` - 1, each as likely as any other."""
    if bound & (bound - 1) == 0:
        return next(outputs) & (bound - 1)
    threshold = (1 << 64) % bound
    while True:
        product = next(outputs) * bound
        if product & _MASK_64 >= threshold:
            return product >> 64
