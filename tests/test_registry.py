"""Named extensions of one kind."""

import importlib
from types import SimpleNamespace

import pytest

from vsr.errors import ConfigRejected
from vsr.registry import Extension, Registry, places


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


def test_placed_extension_is_imported_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name is known before."""
    asked: list[str] = []

    def load(name: str) -> object:
        asked.append(name)
        return SimpleNamespace(FAST=FAST)

    monkeypatch.setattr(importlib, "import_module", load)
    registry: Registry[object] = Registry("strategy", [*places("pkg", {"fast": "mod:FAST"}), SLOW])

    assert "fast" in registry
    assert registry.names() == ["fast", "slow"]
    assert registry.get("slow") is SLOW
    assert asked == []
    assert registry.get("fast") is FAST
    assert list(registry) == [FAST, SLOW]
    assert asked == ["pkg.mod"]


def test_place_of_another_extension_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """A document would get what it did not ask for."""
    monkeypatch.setattr(importlib, "import_module", lambda _: SimpleNamespace(SLOW=SLOW))
    registry: Registry[object] = Registry("strategy", places("pkg", {"fast": "mod:SLOW"}))

    with pytest.raises(ValueError, match="'slow' stands where 'fast' should"):
        registry.get("fast")


def test_more_extensions_make_another_registry() -> None:
    """The first one stays as it is."""
    registry: Registry[object] = Registry("strategy", [SLOW])

    assert registry.with_more([FAST]).names() == ["fast", "slow"]
    assert registry.names() == ["slow"]
    with pytest.raises(ValueError, match="'slow' is registered twice"):
        registry.with_more([SLOW])


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
