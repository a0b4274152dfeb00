"""Which configuration a request is pinned to, and when one is no longer used."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsr.resources.listener import Listener
from vsr.resources.snapshot import Snapshot
from vsr.routing.engine import Engine
from vsr.routing.generation import ActiveGeneration, Generation
from vsr.routing.ports import Upstream

LISTENER = Listener(name="http", address="127.0.0.1", port=8899, timeout_s=300.0)


def make_generation(version: int, told: list[int] | None = None) -> Generation:
    """Return a generation that notes its version in `told` when it is no longer used."""
    return Generation(
        version=version,
        snapshot=Snapshot(hash="", listeners=(LISTENER,)),
        engine=cast("Engine", object()),
        upstream=cast("Upstream", object()),
        on_unused=None if told is None else lambda: told.append(version),
    )


def other(name: str, port: int) -> Listener:
    """Return a listener of an earlier version."""
    return Listener(name, "127.0.0.1", port, 300.0)


@pytest.mark.parametrize("bound", [LISTENER, other("before", 8899), other("http", 9000)])
def test_listener_is_found_by_its_address_or_by_its_name(bound: Listener) -> None:
    """One that was renamed where it is, and one that has moved."""
    assert make_generation(1).listener_for(bound) is LISTENER


def test_address_goes_before_name() -> None:
    """Where listeners have swapped ports a client keeps no rules for having come early."""
    swapped = (other("http", 9000), other("keyed", 8899))
    generation = make_generation(1)
    generation.snapshot = Snapshot(hash="", listeners=swapped)

    assert generation.listener_for(LISTENER) is swapped[1]


def test_listener_that_is_gone_is_not_found() -> None:
    """A newer version may have dropped it."""
    assert make_generation(1).listener_for(other("other", 9000)) is None


def test_generation_lives_until_its_last_lease_ends() -> None:
    """Requests under way keep what they started with."""
    told: list[int] = []
    generation = make_generation(1, told)
    first, second = generation.lease(), generation.lease()
    assert first is second is generation

    generation.retire()
    first.release()
    assert told == []
    second.release()

    assert told == [1]
    assert generation.leases == 0


def test_unused_generation_is_told_when_it_is_retired() -> None:
    """Nobody is left to wait for."""
    told: list[int] = []
    generation = make_generation(1, told)
    generation.lease().release()
    assert told == []

    generation.retire()

    assert told == [1]


def test_end_of_use_is_told_once() -> None:
    """Retiring twice, or a straggler's lease, changes nothing."""
    told: list[int] = []
    generation = make_generation(1, told)

    generation.retire()
    generation.retire()
    generation.lease().release()

    assert told == [1]


def test_activation_retires_the_generation_before() -> None:
    """The new one serves at once, the old one drains."""
    told: list[int] = []
    active = ActiveGeneration()
    old, new = make_generation(1, told), make_generation(2, told)
    active.activate(old)
    lease = old.lease()

    active.activate(new)

    assert active.current is new
    assert old.is_retired
    assert not new.is_retired
    assert told == []
    lease.release()
    assert told == [1]


@given(st.lists(st.sampled_from(["lease", "release", "activate"]), max_size=40))
def test_every_generation_but_the_active_one_ends_with_its_leases(acts: list[str]) -> None:
    """Told exactly when retired and unused, never earlier, never twice."""
    told: list[int] = []
    active = ActiveGeneration()
    generations = [make_generation(0, told)]
    active.activate(generations[0])
    leases: list[Generation] = []

    for act in acts:
        if act == "lease":
            leases.append(generations[-1].lease())
        elif act == "release" and leases:
            leases.pop(0).release()
        elif act == "activate":
            generations.append(make_generation(len(generations), told))
            active.activate(generations[-1])

        in_use = {lease.version for lease in leases}
        unused = [item.version for item in generations[:-1] if item.version not in in_use]
        assert sorted(told) == unused
