"""Named extensions of one kind."""

import pytest

from vsr.errors import ConfigRejected
from vsr.registry import Extension, Registry


class Fast:
    """One strategy."""


class Slow:
    """Another one."""


FAST: Extension[object] = Extension(name="fast", config=Fast)
SLOW: Extension[object] = Extension(name="slow", config=Slow)


def test_extension_is_found_by_name() -> None:
    """Names are listed sorted, extensions in the order given."""
    registry = Registry("strategy", [SLOW, FAST])

    assert registry.get("fast") is FAST
    assert "slow" in registry
    assert "other" not in registry
    assert registry.names() == ["fast", "slow"]
    assert list(registry) == [SLOW, FAST]


def test_unknown_name_is_refused_with_the_known_ones() -> None:
    """Authors see where and what they may write instead."""
    registry = Registry("strategy", [SLOW, FAST])

    with pytest.raises(ConfigRejected) as caught:
        registry.get("other", path="routing.strategy")

    (problem,) = caught.value.problems
    assert problem.path == "routing.strategy"
    assert problem.what == "unknown strategy 'other'"
    assert "fast, slow" in problem.why


def test_name_given_twice_is_a_bug() -> None:
    """Which of the two would run?"""
    with pytest.raises(ValueError, match="'fast' is registered twice"):
        Registry("strategy", [FAST, SLOW, FAST])


def test_empty_registry_knows_nothing() -> None:
    """And says so."""
    registry: Registry[object] = Registry("strategy", [])

    assert registry.names() == []
    with pytest.raises(ConfigRejected):
        registry.get("fast")
